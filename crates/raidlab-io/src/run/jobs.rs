//! All jobs of a phase: started together, watched, and ended.
use super::asked::Asked;
use super::error::RunError;
use super::job::{Ended, Job, Message, Seen, work};
use super::place::Place;
use super::standstill::Standstill;
use super::{EngineChoice, RunMonitor, RunOptions, RunProgress, RunStage};
use crate::engine::{Clock, Content, TargetOptions, Uring};
use crate::observe::cpu::OwnCpu;
use raidlab_core::drive::Tally;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::phase::{Access, Phase};
use raidlab_core::time::{Instant, Span};
use raidlab_core::workload::Expected;
use raidlab_core::workload::spec::AnyWorkload;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the jobs are looked at.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// From the last job's readiness to the common start.
const LEAD: Span = Span::from_millis(1);
/// What jobs are given to end after a cancellation, of the 100 ms promised.
pub(super) const GRACE: Span = Span::from_millis(80);
/// What the other jobs are given to end after one has failed.
const GRACE_AFTER_FAILURE: Span = Span::from_secs(5);
/// A job reports a stall itself; only one whose thread is stuck is reported for.
pub(super) const STALL_MARGIN: Span = Span::from_secs(1);

/// Jobs whose targets are made and that wait for the start.
pub(super) struct Launched<'a> {
    phase: &'a Phase,
    place: &'a Place,
    options: &'a RunOptions,
    clock: Clock,
    workers: Vec<Worker>,
    hear: Receiver<(usize, Message)>,
    flags: Vec<Flag>,
}

struct Worker {
    seen: Arc<Seen>,
    gate: Sender<Instant>,
    thread: JoinHandle<()>,
    ended: Option<Box<Ended>>,
}

/// Jobs that have ended. Their threads are kept, with the kernel's workers that belong to them, until
/// [`release`](Self::release).
pub(super) struct Ran {
    pub(super) tallies: Vec<Tally>,
    pub(super) cpu: Vec<OwnCpu>,
    pub(super) interrupted: bool,
    pub(super) flags: Vec<Flag>,
    workers: Vec<(Sender<Instant>, JoinHandle<()>)>,
}

impl Ran {
    /// Lets the threads go and waits for them.
    pub(super) fn release(&mut self) {
        let (gates, threads): (Vec<_>, Vec<_>) = self.workers.drain(..).unzip();
        drop(gates);
        for thread in threads {
            // It has reported already; how it ends says nothing more.
            let _ = thread.join();
        }
    }
}

/// Makes a thread and a target for each job and waits until all are ready.
pub(super) fn launch<'a>(
    phase: &'a Phase,
    place: &'a Place,
    options: &'a RunOptions,
    content: &Content,
) -> Result<Launched<'a>, RunError> {
    let (tell, hear) = channel();
    let mut launched = Launched {
        phase,
        place,
        options,
        clock: Clock::start(),
        workers: Vec::new(),
        hear,
        flags: Vec::new(),
    };
    match launched.make_ready(content, tell) {
        Ok(()) => Ok(launched),
        Err(error) => {
            launched.abandon();
            Err(error)
        }
    }
}

impl Launched<'_> {
    fn make_ready(
        &mut self,
        content: &Content,
        tell: Sender<(usize, Message)>,
    ) -> Result<(), RunError> {
        let uring = self.choose_engine()?;
        for number in 0..self.phase.jobs.len() {
            let (job, workload) = self.job(number, uring, content)?;
            let (gate, opened) = channel();
            let (seen, tell) = (job.seen.clone(), tell.clone());
            let thread = std::thread::Builder::new()
                .name(format!("job-{number}"))
                .spawn(move || work(&job, workload, &opened, &tell))
                .map_err(RunError::Thread)?;
            self.workers.push(Worker {
                seen,
                gate,
                thread,
                ended: None,
            });
        }
        drop(tell);
        for _ in 0..self.phase.jobs.len() {
            match self.hear.recv() {
                Ok((_, Message::Ready)) => {}
                Ok((_, Message::Failed(error))) => return Err(error),
                Ok((job, Message::Ended(_))) => return Err(self.died(job)),
                Err(_) => return Err(self.died(0)),
            }
        }
        Ok(())
    }

    /// Lets jobs go that have not begun, and waits for them: what they hold open is in the way of
    /// removing the files, and of the next phase. One that is stuck is left behind.
    fn abandon(self) {
        let (gates, threads): (Vec<_>, Vec<_>) = self
            .workers
            .into_iter()
            .map(|worker| (worker.gate, worker.thread))
            .unzip();
        drop(gates);
        let give_up = self.clock.now() + GRACE_AFTER_FAILURE;
        for thread in threads {
            while !thread.is_finished() && self.clock.now() < give_up {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Whether block operations go through io_uring.
    fn choose_engine(&mut self) -> Result<bool, RunError> {
        let deep = self.phase.jobs.iter().any(|job| job.depth > 1);
        let block = self.phase.access != Access::Calls;
        match self.options.engine {
            EngineChoice::Uring => Ok(block),
            EngineChoice::Auto if block && deep => match Uring::probe() {
                Ok(()) => Ok(true),
                Err(error) => {
                    self.flags.push(Flag::new(
                        FlagKind::Other,
                        format!("one operation at a time by blocking calls: {error}"),
                    ));
                    Ok(false)
                }
            },
            EngineChoice::Auto | EngineChoice::Blocking => Ok(false),
        }
    }

    fn job(
        &self,
        number: usize,
        uring: bool,
        content: &Content,
    ) -> Result<(Job, AnyWorkload), RunError> {
        let (phase, place) = (self.phase, self.place);
        let depth = phase.jobs[number].depth.max(1);
        let stream = phase.stream(self.options.seed, number);
        let workload = phase.jobs[number].workload.build(stream);
        let asked = Asked::of(workload.clone());
        if asked.writes && !place.is_writable() {
            return Err(RunError::NotWritable {
                phase: phase.id.clone(),
                path: place.resolved().path.clone(),
                why: place.why_not_writable(),
            });
        }
        let seen = Arc::<Seen>::default();
        let target = TargetOptions {
            clock: self.clock,
            heartbeat: seen.heartbeat.clone(),
            ..TargetOptions::new(depth, asked.largest, content.clone())
        };
        let job = Job {
            number,
            phase: phase.id.clone(),
            depth,
            access: phase.access,
            uring: uring && (depth > 1 || self.options.engine == EngineChoice::Uring),
            writes: asked.writes,
            data: place.way(0),
            directory: place.inside().map(ToOwned::to_owned),
            seed: self.options.seed,
            ramp: phase.ramp,
            stall: self.options.stall,
            target,
            seen,
        };
        Ok((job, workload))
    }

    fn died(&self, job: usize) -> RunError {
        RunError::Died {
            phase: self.phase.id.clone(),
            job,
        }
    }

    /// Starts the jobs together and waits until all have ended.
    pub(super) fn run(mut self, monitor: RunMonitor<'_>) -> Result<Ran, RunError> {
        let start = self.clock.now() + LEAD;
        let (mut still, mut alive) = (Standstill::new(), start);
        for worker in &self.workers {
            // A thread that is gone is noticed below.
            let _ = worker.gate.send(start);
        }
        let expected = self.phase.expected();
        let mut give_up: Option<Instant> = None;
        let mut failure = None;
        let mut cancelled = false;
        while self.workers.iter().any(|worker| worker.ended.is_none()) {
            let now = self.clock.now();
            if failure.is_none() && !cancelled {
                cancelled = monitor(self.progress(now, start, expected)).is_break()
                    || self.options.is_cancelled();
                if cancelled {
                    give_up = Some(self.stop(GRACE));
                }
            }
            if give_up.is_some_and(|end| now >= end) {
                // Stuck in the kernel: left behind.
                return Err(failure.unwrap_or(RunError::Cancelled));
            }
            if let Some(error) = self.next_event(&mut still, &mut alive) {
                // A failure while ending early is a consequence at most.
                if failure.is_none() && !cancelled {
                    failure = Some(error);
                    give_up = Some(self.stop(GRACE_AFTER_FAILURE));
                }
                if self
                    .workers
                    .iter()
                    .all(|w| w.ended.is_some() || w.thread.is_finished())
                {
                    return Err(failure.unwrap_or(RunError::Cancelled));
                }
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(self.finish(&still, start)),
        }
    }

    /// Asks all jobs to stop; returns when to give them up.
    fn stop(&self, grace: Span) -> Instant {
        for worker in &self.workers {
            worker.seen.stop.store(true, Ordering::Relaxed);
        }
        self.clock.now() + grace
    }

    /// Waits for a job to report, for a tick at most; an error when one failed, died or is stuck. No job had a chance to show
    /// a sign of life before `alive`.
    fn next_event(&mut self, still: &mut Standstill, alive: &mut Instant) -> Option<RunError> {
        let before = self.clock.now();
        let heard = self.hear.recv_timeout(TICK);
        let now = self.clock.now();
        if still.slept(Span::from(TICK), now.since(before)) {
            *alive = now;
        }
        let message = match heard {
            Ok(message) => message,
            // A thread that ended between the two looks has left its message.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let stuck = self.stuck(now, *alive)?;
                match self.hear.try_recv() {
                    Ok(message) => message,
                    Err(_) => return Some(stuck),
                }
            }
        };
        match message {
            (job, Message::Ended(ended)) => {
                self.workers[job].ended = Some(ended);
                None
            }
            (_, Message::Failed(error)) => Some(error),
            (_, Message::Ready) => None,
        }
    }

    /// The first job that is dead or gave no sign of life for too long.
    fn stuck(&self, now: Instant, alive: Instant) -> Option<RunError> {
        let running = |worker: &&Worker| worker.ended.is_none();
        if let Some(job) = self
            .workers
            .iter()
            .position(|w| running(&w) && w.thread.is_finished())
        {
            return Some(self.died(job));
        }
        let limit = self.options.stall + STALL_MARGIN;
        self.workers.iter().enumerate().find_map(|(job, worker)| {
            let waited = now.since(worker.seen.heartbeat.last().max(alive));
            (running(&worker) && waited >= limit).then(|| RunError::Stalled {
                path: self.place.resolved().path.clone(),
                job,
                waited,
                in_flight: "in a system call".to_owned(),
                state: thread_state(worker.seen.thread.load(Ordering::Relaxed)),
            })
        })
    }

    fn progress(&self, now: Instant, start: Instant, expected: Expected) -> RunProgress {
        let sum = |of: fn(&Seen) -> u64| self.workers.iter().map(|worker| of(&worker.seen)).sum();
        RunProgress {
            stage: RunStage::Running,
            elapsed: now.since(start),
            ops: sum(|seen| seen.ops.load(Ordering::Relaxed)),
            bytes: sum(|seen| seen.bytes.load(Ordering::Relaxed)),
            expected,
        }
    }

    fn finish(mut self, still: &Standstill, start: Instant) -> Ran {
        self.flags.extend(still.flag(self.clock.now().since(start)));
        let mut ran = Ran {
            tallies: Vec::new(),
            cpu: Vec::new(),
            interrupted: false,
            flags: self.flags,
            workers: Vec::new(),
        };
        for worker in self.workers {
            if let Some(ended) = worker.ended {
                ran.tallies.push(ended.tally);
                ran.cpu.push(ended.cpu);
                ran.interrupted |= ended.interrupted;
            }
            ran.workers.push((worker.gate, worker.thread));
        }
        ran
    }
}

/// State of a thread of this process: `R`, `S`, `D` … (`proc(5)`); `?` when it cannot be told.
pub(super) fn thread_state(thread: i32) -> char {
    std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"))
        .ok()
        .and_then(|text| text.rsplit_once(')')?.1.trim_start().chars().next())
        .unwrap_or('?')
}
