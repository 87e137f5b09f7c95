//! The reads and writes of a [`Layout`]: which member I/Os they are.
use crate::error::PlanError;
use crate::layout::Layout;
use crate::mirror::Raid10;
use crate::plan::{IoKind, Plan, Sink, WritePolicy};
use crate::survival::Survival;
use crate::types::{MemberSet, Place, Places, Run};
use raidlab_core::units::{Lba, Sectors};

/// Picks one of the surviving copies for a read: their places, and how many sectors are read
/// there; the answer is an index (beyond the end counts as the last).
pub type Choose<'a> = dyn FnMut(&[Place], Sectors) -> usize + 'a;

/// The first of the places offered: what a reader takes that does not balance.
pub(crate) fn first_alive(_: &[Place], _: Sectors) -> usize {
    0
}

impl Layout {
    /// Put the member I/Os of a read into `plan`. Of several surviving copies the first is read:
    /// the lowest member of raid1, the lowest section of raid10 far (which is what md does there).
    /// Balancing is the caller's: [`Self::map_read_choosing`].
    ///
    /// # Errors
    /// A run beyond the end; an array that is lost.
    pub fn map_read(&self, run: Run, failed: MemberSet, plan: &mut Plan) -> Result<(), PlanError> {
        self.map_read_choosing(run, failed, &mut first_alive, plan)
    }

    /// [`Self::map_read`] with a say in which copy is read. `choose` is asked once for each stretch
    /// that lies contiguously on a member (raid10: chunk by chunk; raid1: once) and only about
    /// members that have not failed; in a nested layout, an inner array is offered as the disk
    /// where its first sector is.
    ///
    /// # Errors
    /// A run beyond the end; an array that is lost.
    pub fn map_read_choosing(
        &self,
        run: Run,
        failed: MemberSet,
        choose: &mut Choose<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        plan.clear();
        let failed = self.check(run, failed)?;
        self.read_into(
            run,
            failed,
            choose,
            &mut Sink {
                plan,
                step: 0,
                base: 0,
            },
        );
        Ok(())
    }

    /// Put the member I/Os of a write into `plan`: pre-reads and what needs none first, then what
    /// waits for them. Parity levels work in rows of 4 KiB as md does, so a partly covered row is
    /// written whole.
    ///
    /// # Errors
    /// A run beyond the end; an array that is lost.
    pub fn plan_write(
        &self,
        run: Run,
        failed: MemberSet,
        policy: WritePolicy,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        plan.clear();
        let failed = self.check(run, failed)?;
        self.write_into(
            run,
            failed,
            policy,
            &mut Sink {
                plan,
                step: 0,
                base: 0,
            },
        );
        Ok(())
    }

    fn check(&self, run: Run, failed: MemberSet) -> Result<MemberSet, PlanError> {
        let capacity = self.capacity().0;
        if run.end() > capacity {
            return Err(PlanError::OutOfRange { run, capacity });
        }
        if failed.is_empty() {
            return Ok(failed);
        }
        let failed = failed.intersection(MemberSet::first(self.members()));
        match self.survives(failed) {
            Survival::Lost => Err(PlanError::Lost { failed }),
            _ => Ok(failed),
        }
    }

    pub(crate) fn read_into(
        &self,
        run: Run,
        failed: MemberSet,
        choose: &mut Choose<'_>,
        sink: &mut Sink<'_>,
    ) {
        let Run {
            start: Lba(start),
            len: Sectors(len),
        } = run;
        let mut read = |places: &[Place], len: u64| {
            let place = pick(places, failed, len, choose);
            sink.add(0, IoKind::Read, place.member.index(), place.sector.0, len);
        };
        match self {
            Self::Linear(l) => pieces(start, len, |at| l.place(at), read),
            Self::Raid0(l) => pieces(start, len, |at| l.place(at), read),
            Self::Raid1(l) if len > 0 => read(&l.places(start), len),
            Self::Raid1(_) => {}
            Self::Raid10(l) => {
                copies(start, len, l, read);
                sort_sections(l, sink);
            }
            Self::Parity(l) => l.read(start, len, failed, sink),
            Self::Nested(l) => l.read(run, failed, choose, sink),
        }
    }

    pub(crate) fn write_into(
        &self,
        run: Run,
        failed: MemberSet,
        policy: WritePolicy,
        sink: &mut Sink<'_>,
    ) {
        let Run {
            start: Lba(start),
            len: Sectors(len),
        } = run;
        let mut write = |places: &[Place], len: u64| {
            for place in places.iter().filter(|place| !failed.contains(place.member)) {
                sink.add(0, IoKind::Write, place.member.index(), place.sector.0, len);
            }
        };
        match self {
            Self::Linear(l) => pieces(start, len, |at| l.place(at), write),
            Self::Raid0(l) => pieces(start, len, |at| l.place(at), write),
            Self::Raid1(l) if len > 0 => write(&l.places(start), len),
            Self::Raid1(_) => {}
            Self::Raid10(l) => {
                copies(start, len, l, write);
                sort_sections(l, sink);
            }
            Self::Parity(l) => l.write(start, len, failed, policy, sink),
            Self::Nested(l) => l.write(run, failed, policy, sink),
        }
    }
}

/// With far or offset copies a member's sectors are reached out of order: those of a later section
/// before, and contiguous with, those of an earlier one.
fn sort_sections(layout: &Raid10, sink: &mut Sink<'_>) {
    if layout.copies().far > 1 {
        sink.plan.coalesce(sink.step);
    }
}

/// The surviving copy to read.
fn pick(places: &[Place], failed: MemberSet, len: u64, choose: &mut Choose<'_>) -> Place {
    if places.len() == 1 {
        return places[0];
    }
    if failed.is_empty() {
        return places[choose(places, Sectors(len)).min(places.len() - 1)];
    }
    let alive: Places = places
        .iter()
        .filter(|place| !failed.contains(place.member))
        .copied()
        .collect();
    debug_assert!(!alive.is_empty(), "a lost array is refused before");
    match alive.as_slice() {
        [] => places[0],
        [only] => *only,
        several => several[choose(several, Sectors(len)).min(several.len() - 1)],
    }
}

/// Visit a run of the array in stretches that are contiguous on one member.
fn pieces(
    start: u64,
    len: u64,
    place: impl Fn(u64) -> (Place, u64),
    mut visit: impl FnMut(&[Place], u64),
) {
    let (mut at, end) = (start, start + len);
    while at < end {
        let (place, contiguous) = place(at);
        let len = contiguous.min(end - at);
        visit(&[place], len);
        at += len;
    }
}

/// The same where each stretch is on several members.
fn copies(start: u64, len: u64, layout: &Raid10, mut visit: impl FnMut(&[Place], u64)) {
    let (mut at, end) = (start, start + len);
    let mut places = Places::new();
    while at < end {
        let len = layout.places(at, &mut places).min(end - at);
        visit(&places, len);
        at += len;
    }
}
