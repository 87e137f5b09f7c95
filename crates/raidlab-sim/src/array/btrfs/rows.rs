//! Rows of btrfs with parity (`fs/btrfs/raid56.c`, where they are full stripes).
//!
//! What covers a whole row is written with its parity at once. What covers a part of one waits until whoever submits does, so that
//! parts of a row come together; the rest of the row is read then, parity computed, and what is new written with it. One turn at a row
//! is under way: what comes while it reads goes with it, what comes later waits. The rows that were written in part last are known, and
//! not read again.
//!
//! A read of what a missing member has reads the whole row of all others. While a member is replaced its data is read like that, and its
//! parity is computed and written to it.
//!
//! Workers do all this, and whatever they ask for is nobody's in particular: also what `fsync` waits for is written as if nobody did.
//!
//! Left out: that before 6.2 a write to a row without one of its members reads the data first, and then everything.
use super::known::Known;
use super::turn::{Part, Turn, What};
use crate::array::core::{Core, Op, Task};
use crate::array::node::Common;
use crate::array::parity::thread::{Job, Thread, Work};
use crate::array::slab::Slab;
use crate::array::spec::{Era, ParityCost};
use crate::block::{Bio, Busy, Origin, ResourceKind};
use crate::disk::DiskError;
use raidlab_core::op::BlockKind;
use raidlab_core::time::Instant;
use raidlab_layout::btrfs::{Row, STRIPE};
use std::collections::{BTreeMap, VecDeque};

/// A row that something is under way of.
#[derive(Clone, Debug)]
struct Active {
    row: Row,
    turn: Turn,
    /// No worker has come to it, or it reads: what comes goes with it.
    open: bool,
    /// All of its data are known.
    known: bool,
    /// Whoever brings it goes on with it himself.
    at_once: bool,
    /// Requests to members under way.
    waits: u32,
    error: Option<DiskError>,
    /// What waits for its turn.
    next: VecDeque<Turn>,
}

/// Rows with parity, and the workers that write them.
#[derive(Clone, Debug)]
pub(in crate::array) struct Rows {
    /// Parts that wait until whoever submits does, by their rows.
    plugged: Vec<(Row, Turn)>,
    /// By their first addresses.
    active: BTreeMap<u64, Active>,
    known: Known,
    workers: Thread,
    /// The rows that they come to, or compute.
    theirs: Slab<u64>,
    /// Parts of the replacement of a member that are done, by their numbers, and whether they went well.
    pub(in crate::array) replaced: VecDeque<(u32, bool)>,
    era: Era,
}

impl Rows {
    pub(in crate::array) fn new(cost: ParityCost, workers: u16, era: Era) -> Self {
        // What a stripe costs md's thread is the work of its states, which there are none of here.
        let cost = ParityCost { stripe: 0, ..cost };
        Self {
            plugged: Vec::new(),
            active: BTreeMap::new(),
            known: Known::default(),
            workers: Thread::new(cost, workers),
            theirs: Slab::new(),
            replaced: VecDeque::new(),
            era,
        }
    }

    /// Takes the part `at..at + len` of a request, which lies in one row. `parent` waits for it.
    pub(super) fn submit(
        &mut self,
        (common, core): (&Common, &mut Core),
        row: Row,
        (parent, bio): (u32, &Bio),
        (at, len): (u64, u64),
    ) {
        core.parents.get_mut(parent).waits += 1;
        let turn = Turn::new(&row, parent, bio, at, len);
        if turn.recovers() || turn.is_full(&row) {
            self.begin(common, core, row, turn);
        } else {
            self.plugged.push((row, turn));
        }
    }

    /// Does something for a member that is replaced; it is [`replaced`](Self::replaced) when it is done.
    pub(in crate::array) fn refill(
        &mut self,
        (common, core): (&Common, &mut Core),
        row: Row,
        (job, what): (u32, What),
    ) {
        self.begin(common, core, row, Turn::of_job(job, what));
    }

    /// Whoever submitted waits: what of the same row lies side by side goes as one (`raid_unplug`).
    pub(in crate::array) fn unplug(&mut self, common: &Common, core: &mut Core) {
        let mut plugged = std::mem::take(&mut self.plugged);
        plugged.sort_by_key(|(row, turn)| (row.begin, turn.first()));
        let mut last: Option<(Row, Turn)> = None;
        for (row, turn) in plugged {
            match &mut last {
                Some((of, joined)) if of.begin == row.begin => joined.join(turn),
                _ => {
                    if let Some((row, turn)) = last.replace((row, turn)) {
                        self.begin(common, core, row, turn);
                    }
                }
            }
        }
        if let Some((row, turn)) = last {
            self.begin(common, core, row, turn);
        }
    }

    /// A turn comes to its row (`lock_stripe_add`).
    fn begin(&mut self, common: &Common, core: &mut Core, row: Row, turn: Turn) {
        let at = row.begin.0;
        if let Some(active) = self.active.get_mut(&at) {
            if active.open && active.turn.joins(&turn) {
                active.turn.join(turn);
            } else if let Some(waiting) = active.next.iter_mut().find(|next| next.joins(&turn)) {
                waiting.join(turn);
            } else {
                active.next.push_back(turn);
            }
            return;
        }
        let active = Active {
            known: self.known.take(at),
            open: turn.writes(),
            at_once: false,
            row,
            turn,
            waits: 0,
            error: None,
            next: VecDeque::new(),
        };
        self.active.insert(at, active);
        self.wake(common, core, at);
    }

    /// A worker comes to a row when there is one (`start_async_work`), or whoever brings the turn goes on with it.
    fn wake(&mut self, common: &Common, core: &mut Core, at: u64) {
        let Some(active) = self.active.get_mut(&at) else {
            return;
        };
        let (turn, row) = (&active.turn, &active.row);
        let may = !self.era.rows_by_workers && turn.job.is_none();
        active.at_once = may && (turn.recovers() || turn.is_full(row));
        if self.workers.is_free() || active.at_once {
            return self.start(common, core, at);
        }
        let key = self.theirs.insert(at);
        self.workers.wake(core.now, key);
    }

    /// The turn of a row begins: it reads what it needs.
    fn start(&mut self, common: &Common, core: &mut Core, at: u64) {
        let Some(active) = self.active.get_mut(&at) else {
            return;
        };
        let (row, turn) = (&active.row, &active.turn);
        let has_none = |piece: usize| {
            let member = row.pieces[piece].member;
            common.gone.contains(member) || common.filling.contains(member)
        };
        let all = |pieces: usize| (0..pieces).map(|piece| (piece, 0, STRIPE));
        let mut reads: Vec<Part> = match &turn.what {
            What::Recover => all(row.pieces.len()).collect(),
            What::Parity { height, known, .. } => {
                let first = if *known { row.data() } else { 0 };
                let pieces = first..row.pieces.len();
                let parts = |piece| height.iter().map(move |(from, end)| (piece, *from, *end));
                pieces.flat_map(parts).collect()
            }
            What::Write if active.known || turn.is_full(row) => Vec::new(),
            What::Write => {
                let open = turn.open(row);
                // What is missing is computed from all that is there.
                match self.era.reads_rows || open.iter().any(|part| has_none(part.0)) {
                    true => all(row.pieces.len()).collect(),
                    false => open,
                }
            }
        };
        reads.retain(|part| !has_none(part.0));
        active.waits = reads.len() as u32;
        if reads.is_empty() {
            return self.compute(common, core, at);
        }
        ask(common, core, active, BlockKind::Read, &reads);
    }

    /// All that is needed is there: parity, or what is missing, is computed.
    fn compute(&mut self, common: &Common, core: &mut Core, at: u64) {
        let Some(active) = self.active.get_mut(&at) else {
            return;
        };
        active.open = false;
        if self.workers.is_free() {
            return self.computed(common, core, at);
        }
        let (row, turn) = (&active.row, &active.turn);
        let height: u64 = turn.height().iter().map(|(from, end)| end - from).sum();
        // Of what is written in part the pages are kept (`cache_rbio_pages`).
        let copied = turn.writes() && !turn.is_full(row);
        let job = Job {
            sectors: height as u32,
            sums: row.data() as u32,
            syndrome: row.parities > 1 && !turn.recovers(),
            copies: if copied {
                turn.sectors().div_ceil(height.max(1)) as u32
            } else {
                0
            },
            ..Job::default()
        };
        let key = self.theirs.insert(at);
        self.workers.run(core.now, key, job);
    }

    /// It has been computed, and is written.
    fn computed(&mut self, common: &Common, core: &mut Core, at: u64) {
        let Some(active) = self.active.get_mut(&at) else {
            return;
        };
        let (row, turn) = (&active.row, &active.turn);
        if turn.recovers() || active.error.is_some() {
            return self.end(common, core, at);
        }
        let mut writes = turn.covered();
        let height = match turn.what {
            What::Write if !self.era.narrow_parity => vec![(0, STRIPE)],
            _ => turn.height(),
        };
        let parities = match turn.what {
            What::Parity { piece, .. } => piece..piece + 1,
            _ => row.data()..row.pieces.len(),
        };
        for parity in parities {
            writes.extend(height.iter().map(|(from, end)| (parity, *from, *end)));
        }
        writes.retain(|part| !common.gone.contains(row.pieces[part.0].member));
        active.waits = writes.len() as u32;
        if writes.is_empty() {
            return self.end(common, core, at);
        }
        ask(common, core, active, BlockKind::Write, &writes);
    }

    /// A request of a row has ended.
    pub(in crate::array) fn ended(
        &mut self,
        common: &Common,
        core: &mut Core,
        op: &Op,
        result: Result<(), DiskError>,
    ) {
        let Some(active) = self.active.get_mut(&op.at) else {
            return;
        };
        active.waits -= 1;
        if let Err(error) = result {
            active.error.get_or_insert(error);
        }
        if active.waits > 0 {
            return;
        }
        match op.kind {
            BlockKind::Read => self.compute(common, core, op.at),
            _ => self.end(common, core, op.at),
        }
    }

    /// The turn of a row has ended, and the next one begins (`unlock_stripe`).
    fn end(&mut self, common: &Common, core: &mut Core, at: u64) {
        let Some(active) = self.active.get_mut(&at) else {
            return;
        };
        let result = active.error.take().map_or(Ok(()), Err);
        let turn = &active.turn;
        let known = turn.writes() && !turn.is_full(&active.row) && result.is_ok();
        let replaced = turn.job.map(|job| (job, result.is_ok()));
        self.replaced.extend(replaced);
        for parent in std::mem::take(&mut active.turn.parents) {
            core.close(parent, result);
        }
        if let Some(next) = active.next.pop_front() {
            (active.known, active.open) = (known, next.writes());
            active.turn = next;
            return self.wake(common, core, at);
        }
        self.active.remove(&at);
        if known {
            self.known.add(at);
        }
    }

    /// What the workers have done by now.
    pub(in crate::array) fn advance(&mut self, common: &Common, core: &mut Core) {
        while let Some((key, work)) = self.workers.done(core.now) {
            match work {
                Work::Look => {
                    let at = self.theirs.remove(key);
                    self.start(common, core, at);
                }
                Work::Compute => {
                    let at = self.theirs.remove(key);
                    self.computed(common, core, at);
                }
                Work::Send => {}
            }
        }
    }

    /// When they have done the next of it.
    pub(in crate::array) fn next(&self) -> Instant {
        self.workers.next()
    }

    /// Whether [`advance`](Self::advance) would do nothing at any time.
    pub(in crate::array) fn is_quiet(&self) -> bool {
        !self.workers.any_busy()
    }

    /// The workers.
    pub(in crate::array) const fn workers(&self) -> &Thread {
        &self.workers
    }

    /// The same, to have them wait.
    pub(in crate::array) const fn workers_mut(&mut self) -> &mut Thread {
        &mut self.workers
    }

    /// Their time.
    pub(in crate::array) fn busy(&self, now: Instant) -> Busy {
        let [sum, copy, send] = self.workers.spent(now);
        let mut parts = vec![("parity", sum), ("copies", copy), ("requests", send)];
        parts.sort_by_key(|part| std::cmp::Reverse(part.1));
        Busy {
            name: "btrfs-rmw workers".to_owned(),
            kind: ResourceKind::Thread,
            units: self.workers.count() as u32,
            busy: self.workers.busy(now),
            parts,
            way: None,
        }
    }
}

/// Asks the members for parts of a row.
fn ask(common: &Common, core: &mut Core, active: &Active, kind: BlockKind, parts: &[Part]) {
    let turn = &active.turn;
    // A worker's is nobody's.
    let origin = match turn.recovers() && active.at_once {
        true => turn.origin,
        false => Origin {
            sync: kind == BlockKind::Read,
            ..Origin::default()
        },
    };
    for &(piece, from, end) in parts {
        let place = active.row.pieces[piece];
        let op = Op {
            node: common.index,
            role: place.member.0,
            task: Task::Row,
            at: active.row.begin.0,
            kind,
            lba: place.sector.0 + from,
            sectors: (end - from) as u32,
            fua: turn.fua && kind == BlockKind::Write,
            origin,
            tries: 0,
        };
        core.ask(common.children[place.member.index()], op);
    }
}
