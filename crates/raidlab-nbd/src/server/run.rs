//! The loop of the thread that owns everything.
use super::conn::{Conn, Gone, code};
use super::pending::{Pending, Table};
use super::report::{DiskReport, Lateness, Report};
use super::thread::{monotonic, own_cpu, settle, wait, wanted};
use super::{Control, Controls, Disk, Listener, Options, Server};
use crate::engine::{Engine, Finished, Job};
use crate::session::{Action, Export, Request, Session};
use raidlab_core::time::{Instant, Span};
use raidlab_sim::disk::DiskError;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes that are read or copied at a time.
const BUFFER: usize = 256 << 10;
/// Clients at a time; more are turned away.
const MOST_CLIENTS: usize = 256;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    engine: Engine,
    pub(super) disks: Vec<Disk>,
    pending: Table,
    /// What the engine has ended, or never had to do.
    finished: Vec<Finished>,
    /// Requests that can be answered.
    ready: Vec<u64>,
    /// The clock's reading at the server's time zero.
    zero: u64,
    pub(super) now: Instant,
    early: Span,
    pub(super) nap_per_kib: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) copy: Vec<u8>,
}

impl Shared {
    /// Looks at the clock, and lets the models go on until then.
    pub(super) fn turn(&mut self) {
        self.now = Instant(monotonic() - self.zero);
        let until = Instant(self.now.0.saturating_add(self.early.0));
        self.engine.advance(until, &mut self.finished);
    }

    /// Whether the disk has failed for good: what is on it stays as it is.
    pub(super) fn is_dead(&self, disk: usize) -> bool {
        self.engine.is_dead(self.disks[disk].port)
    }

    /// Takes a request; its number in the table.
    pub(super) fn submit(&mut self, conn: u64, disk: usize, request: Request) -> u64 {
        let number = self.pending.add(Pending {
            conn: Some(conn),
            disk,
            request,
            came: self.now,
            data_due: request.action == Action::Write,
            data_at: Instant::ZERO,
            lost: false,
            ended: None,
        });
        let dead = self.is_dead(disk);
        let target = &mut self.disks[disk];
        let Request {
            action,
            offset,
            len,
            fua,
            ..
        } = request;
        if !dead
            && matches!(action, Action::Trim | Action::Zeroes { .. })
            && target.store.zero(offset, u64::from(len)).is_err()
        {
            self.lost(number);
        }
        let shown = &self.disks[disk];
        match Job::of(shown.port, action, shown.start + offset, len, fua) {
            Some(job) => self.engine.submit(self.now, number, job),
            None => self.finished.push(Finished {
                token: number,
                at: self.now,
                result: if dead { Err(DiskError::Failed) } else { Ok(()) },
            }),
        }
        number
    }

    /// Data of a write could not be kept.
    pub(super) fn lost(&mut self, number: u64) {
        if let Some(pending) = self.pending.get(number) {
            pending.lost = true;
        }
    }

    /// All data of a write are in their place.
    pub(super) fn data_complete(&mut self, number: u64) {
        if let Some(pending) = self.pending.get(number) {
            (pending.data_due, pending.data_at) = (false, self.now);
            if pending.ended.is_some() {
                self.ready.push(number);
            }
        }
    }

    /// Notes what the models have ended.
    fn note_ends(&mut self) {
        for end in self.finished.drain(..) {
            let Some(pending) = self.pending.get(end.token) else {
                continue;
            };
            pending.ended = Some((end.at, end.result));
            if !pending.data_due {
                self.ready.push(end.token);
            }
        }
    }
}

/// The thread's state.
struct Loop {
    shared: Shared,
    listeners: Vec<(Listener, Arc<[Export]>)>,
    conns: BTreeMap<u64, Conn>,
    connections: u64,
    lateness: Lateness,
    counts: Vec<DiskReport>,
    cpu_before: Span,
    scheduled: bool,
    gone: Vec<u64>,
}

/// Serves until it is told to stop.
pub(super) fn run(server: Server, controls: &Controls) -> Report {
    let scheduled = settle(server.options.scheduling);
    let mut it = Loop::new(server, scheduled);
    let mut descriptors = Vec::new();
    loop {
        it.shared.turn();
        it.answer();
        if it.obey(controls) {
            return it.report();
        }
        it.poll(controls, &mut descriptors);
        it.shared.turn();
        it.take(&descriptors);
    }
}

impl Loop {
    fn new(server: Server, scheduled: bool) -> Self {
        let all = server.exports();
        let Options {
            tolerance,
            early,
            nap_per_kib,
            ..
        } = server.options;
        let counts = all.iter().map(|export| DiskReport {
            name: export.name.clone(),
            ..DiskReport::default()
        });
        let offered = |listener: Listener| {
            let exports = all[listener.first..][..listener.count].into();
            (listener, exports)
        };
        let mut it = Self {
            counts: counts.collect(),
            listeners: server.listeners.into_iter().map(offered).collect(),
            shared: Shared {
                engine: server.engine,
                disks: server.disks,
                pending: Table::default(),
                finished: Vec::new(),
                ready: Vec::new(),
                zero: monotonic(),
                now: Instant::ZERO,
                early,
                nap_per_kib,
                buffer: vec![0; BUFFER],
                copy: vec![0; BUFFER],
            },
            conns: BTreeMap::new(),
            connections: 0,
            lateness: Lateness::new(tolerance),
            cpu_before: own_cpu(),
            scheduled,
            gone: Vec::new(),
        };
        let exports: Arc<[Export]> = all.into();
        for (socket, export) in server.attached {
            let session = Session::transmitting(Arc::clone(&exports), export);
            it.add(socket, session, 0);
        }
        it
    }

    fn add(&mut self, socket: OwnedFd, session: Session, first: usize) {
        let id = self.connections;
        self.connections += 1;
        let mut conn = Conn::new(id, socket, session, first);
        // The greeting.
        match conn.receive(&mut self.shared) {
            Ok(()) => drop(self.conns.insert(id, conn)),
            Err(Gone) => self.shared.pending.abandon(id),
        }
    }

    /// Answers what is due.
    fn answer(&mut self) {
        self.shared.note_ends();
        while let Some(number) = self.shared.ready.pop() {
            // `None`: its client has gone meanwhile.
            let Some(pending) = self.shared.pending.remove(number) else {
                continue;
            };
            let Some((ended, result)) = pending.ended else {
                continue;
            };
            let error = code(result.is_err(), pending.lost);
            let counts = &mut self.counts[pending.disk];
            count(counts, &pending.request, error);
            counts.waited = Span(counts.waited.0 + ended.since(pending.came).0);
            let Some((id, conn)) = pending
                .conn
                .and_then(|id| Some((id, self.conns.get_mut(&id)?)))
            else {
                continue;
            };
            let due = ended.0.saturating_sub(self.shared.early.0);
            let due = due.max(pending.data_at.0);
            let now = monotonic() - self.shared.zero;
            self.lateness.record(Span(now.saturating_sub(due)));
            conn.answer(pending.disk, &pending.request, error);
            if conn.send(&mut self.shared).is_err() {
                self.gone.push(id);
            }
        }
        self.let_go();
    }

    fn let_go(&mut self) {
        for id in self.gone.drain(..) {
            if self.conns.remove(&id).is_some() {
                self.shared.pending.abandon(id);
            }
        }
    }

    /// What its owner asks for; whether to stop.
    fn obey(&mut self, controls: &Controls) -> bool {
        while let Ok(control) = controls.requests.try_recv() {
            match control {
                Control::Stop => return true,
                Control::Report(answer) => {
                    let _ = answer.send(self.report());
                }
                Control::Inject(disk, fault) => {
                    self.shared.engine.inject(self.shared.now, disk, fault);
                }
            }
        }
        false
    }

    /// Sleeps until something is to be done.
    fn poll(&mut self, controls: &Controls, descriptors: &mut Vec<libc::pollfd>) {
        let shared = &self.shared;
        descriptors.clear();
        descriptors.push(wanted(controls.wake.as_raw_fd(), true, false));
        let listeners = self.listeners.iter();
        descriptors.extend(listeners.map(|(l, _)| wanted(l.fd(), true, false)));
        let conns = self.conns.values();
        descriptors.extend(conns.map(|c| wanted(c.fd(), c.listens(), c.is_blocked())));
        let model = shared.engine.next_event();
        let model = model.map(|at| Instant(at.0.saturating_sub(shared.early.0)));
        let naps = self.conns.values().filter_map(|conn| conn.nap);
        let resumes = self.conns.values().any(Conn::resumes);
        let resumes = resumes.then_some(shared.now);
        let next = naps.chain(model).chain(resumes).min();
        let now = Instant(monotonic() - shared.zero);
        wait(descriptors, next.map(|at| at.since(now)));
        if descriptors[0].revents != 0 {
            let _ = rustix::io::read(&*controls.wake, &mut [0; 8]);
        }
    }

    /// Looks at the descriptors that have something.
    fn take(&mut self, descriptors: &[libc::pollfd]) {
        let conns = &descriptors[1 + self.listeners.len()..];
        for ((id, conn), found) in self.conns.iter_mut().zip(conns) {
            let woken = conn.nap.is_some_and(|nap| nap <= self.shared.now);
            let result = if found.revents & libc::POLLOUT != 0 {
                conn.send(&mut self.shared)
            } else if woken || found.revents != 0 || conn.resumes() {
                conn.receive(&mut self.shared)
            } else {
                continue;
            };
            if let Err(Gone) = result {
                self.gone.push(*id);
            }
        }
        self.let_go();
        for index in 0..self.listeners.len() {
            if descriptors[1 + index].revents == 0 {
                continue;
            }
            while let Some(socket) = self.listeners[index].0.accept() {
                if self.conns.len() < MOST_CLIENTS {
                    let (listener, exports) = &self.listeners[index];
                    let first = listener.first;
                    let session = Session::new(Arc::clone(exports));
                    self.add(socket, session, first);
                }
            }
        }
    }

    fn report(&self) -> Report {
        let stored = self.shared.disks.iter().map(|disk| disk.store.used());
        let disks = self.counts.iter().zip(stored);
        Report {
            lateness: self.lateness.clone(),
            disks: disks
                .map(|(count, stored)| DiskReport {
                    stored,
                    ..count.clone()
                })
                .collect(),
            connections: self.connections,
            elapsed: Span(monotonic() - self.shared.zero),
            cpu: Span(own_cpu().0.saturating_sub(self.cpu_before.0)),
            scheduled: self.scheduled,
        }
    }
}

fn count(disk: &mut DiskReport, request: &Request, error: u32) {
    let len = u64::from(request.len);
    let (which, bytes) = match request.action {
        Action::Read => (&mut disk.reads, Some(&mut disk.bytes_read)),
        Action::Write | Action::Zeroes { .. } => (&mut disk.writes, Some(&mut disk.bytes_written)),
        Action::Flush => (&mut disk.flushes, None),
        Action::Trim => (&mut disk.trims, None),
    };
    if error != 0 {
        disk.errors += 1;
        return;
    }
    *which += 1;
    if let Some(bytes) = bytes {
        *bytes += len;
    }
}

#[cfg(test)]
mod tests;
