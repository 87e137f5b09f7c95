//! A layout of layouts: 1+0, 0+1, 50, 60 and whatever else is built by making arrays of arrays.
use crate::error::LayoutError;
use crate::io::{Choose, first_alive};
use crate::layout::Layout;
use crate::plan::{IoKind, MemberIo, Plan, Sink, WritePolicy};
use crate::survival::Survival;
use crate::types::{Content, MAX_MEMBERS, Member, MemberSet, Place, Places, Run};
use raidlab_core::units::{Lba, Sectors};

/// An outer layout whose members are the inner arrays. Members are numbered through: those of
/// inner array 0 first.
///
/// An inner array that is lost is a failed member of the outer one, as a whole: its surviving
/// members are not used any more. That is why 0+1 survives less than 1+0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    outer: Layout,
    inner: Vec<Layout>,
    /// First member of each inner array.
    bases: Vec<usize>,
    /// Which inner array a member is in.
    owners: Vec<u16>,
}

impl Nested {
    pub(crate) fn new(outer: Layout, inner: Vec<Layout>) -> Result<Self, LayoutError> {
        let members: usize = inner.iter().map(Layout::members).sum();
        if members > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { given: members });
        }
        if outer.members() != inner.len() {
            return Err(LayoutError::NestedMembers {
                outer: outer.members(),
                inner: inner.len(),
            });
        }
        let (mut bases, mut owners) = (Vec::new(), Vec::new());
        for (i, layout) in inner.iter().enumerate() {
            let (has, believed) = (layout.capacity(), outer.used(Member::new(i)));
            if believed > has {
                return Err(LayoutError::NestedSize {
                    inner: i,
                    has,
                    believed,
                });
            }
            bases.push(owners.len());
            owners.resize(owners.len() + layout.members(), i as u16);
        }
        Ok(Self {
            outer,
            inner,
            bases,
            owners,
        })
    }

    /// The layout over the inner arrays.
    #[must_use]
    pub const fn outer(&self) -> &Layout {
        &self.outer
    }

    /// The inner arrays in order.
    #[must_use]
    pub fn inner(&self) -> &[Layout] {
        &self.inner
    }

    /// First member of each inner array.
    pub(crate) fn bases(&self) -> impl Iterator<Item = usize> {
        self.bases.iter().copied()
    }

    pub(crate) fn members(&self) -> usize {
        self.owners.len()
    }

    fn owner(&self, member: usize) -> (usize, usize) {
        let owner = usize::from(self.owners[member]);
        (owner, member - self.bases[owner])
    }

    pub(crate) fn used(&self, member: usize) -> Sectors {
        let (owner, member) = self.owner(member);
        self.inner[owner].used(Member::new(member))
    }

    pub(crate) fn places(&self, lba: u64, out: &mut Places) {
        let (mut outer, mut inner) = (Places::new(), Places::new());
        out.clear();
        self.outer.places_into(lba, &mut outer);
        for place in outer {
            let owner = place.member.index();
            self.inner[owner].places_into(place.sector.0, &mut inner);
            out.extend(inner.iter().map(|place| self.flat(owner, *place)));
        }
    }

    fn flat(&self, owner: usize, place: Place) -> Place {
        Place {
            member: Member::new(self.bases[owner] + place.member.index()),
            ..place
        }
    }

    pub(crate) fn content(&self, member: usize, sector: u64) -> Content {
        let (owner, member) = self.owner(member);
        match self.inner[owner].content(Member::new(member), Lba(sector)) {
            Content::Data(sector) => self.outer.content(Member::new(owner), sector),
            other => other,
        }
    }

    /// The failed members of inner array `i`, as it numbers them.
    fn failed_in(&self, i: usize, failed: MemberSet) -> MemberSet {
        failed.slice(self.bases[i], self.inner[i].members())
    }

    /// The inner arrays that are lost.
    fn lost(&self, failed: MemberSet) -> MemberSet {
        if failed.is_empty() {
            return failed;
        }
        let lost =
            |i: &usize| self.inner[*i].survives(self.failed_in(*i, failed)) == Survival::Lost;
        (0..self.inner.len())
            .filter(lost)
            .map(Member::new)
            .collect()
    }

    pub(crate) fn is_lost(&self, failed: MemberSet) -> bool {
        self.outer.survives(self.lost(failed)) == Survival::Lost
    }

    pub(crate) fn read(
        &self,
        run: Run,
        failed: MemberSet,
        choose: &mut Choose<'_>,
        sink: &mut Sink<'_>,
    ) {
        let mut outer = sink.plan.scratch.take().unwrap_or_default();
        outer.clear();
        // The chooser sees disks, not inner arrays.
        let mut flat = |places: &[Place], len: Sectors| {
            let disks: Places = places
                .iter()
                .map(|place| self.first_disk(*place, failed))
                .collect();
            choose(&disks, len)
        };
        let mut top = Sink {
            plan: &mut outer,
            step: 0,
            base: 0,
        };
        self.outer
            .read_into(run, self.lost(failed), &mut flat, &mut top);
        self.expand(&outer, failed, choose, WritePolicy::default(), sink);
        sink.plan.scratch = Some(outer);
    }

    fn first_disk(&self, place: Place, failed: MemberSet) -> Place {
        let owner = place.member.index();
        let mut places = Places::new();
        self.inner[owner].places_into(place.sector.0, &mut places);
        let failed = self.failed_in(owner, failed);
        let alive = places.iter().find(|place| !failed.contains(place.member));
        self.flat(owner, *alive.unwrap_or(&places[0]))
    }

    pub(crate) fn write(
        &self,
        run: Run,
        failed: MemberSet,
        policy: WritePolicy,
        sink: &mut Sink<'_>,
    ) {
        let mut outer = sink.plan.scratch.take().unwrap_or_default();
        outer.clear();
        let mut top = Sink {
            plan: &mut outer,
            step: 0,
            base: 0,
        };
        self.outer
            .write_into(run, self.lost(failed), policy, &mut top);
        for decision in outer.decisions() {
            let base = sink.base + self.bases[decision.base.index()] as u16;
            sink.plan.decide(crate::plan::RowDecision {
                base: Member(base),
                ..*decision
            });
        }
        // Pre-reads of an outer parity choose as reads do by default.
        self.expand(&outer, failed, &mut first_alive, policy, sink);
        sink.plan.scratch = Some(outer);
    }

    /// Each I/O on an inner array is a read or write of that array. The outer array's next step
    /// waits for all inner steps of the one before.
    fn expand(
        &self,
        outer: &Plan,
        failed: MemberSet,
        choose: &mut Choose<'_>,
        policy: WritePolicy,
        sink: &mut Sink<'_>,
    ) {
        let mut step = sink.step;
        for ios in outer.steps() {
            for MemberIo { kind, member, run } in ios {
                let i = member.index();
                let base = self.bases[i];
                let mut inner = Sink {
                    plan: &mut *sink.plan,
                    step,
                    base: sink.base + base as u16,
                };
                let failed = self.failed_in(i, failed);
                match kind {
                    IoKind::Read => {
                        let mut local = |places: &[Place], len: Sectors| {
                            let disks: Places = places.iter().map(|p| self.flat(i, *p)).collect();
                            choose(&disks, len)
                        };
                        self.inner[i].read_into(*run, failed, &mut local, &mut inner);
                    }
                    IoKind::Write => self.inner[i].write_into(*run, failed, policy, &mut inner),
                }
            }
            if !failed.is_empty() {
                // A row that is read whole for a lost block begins before what was asked for, and
                // pieces of the outer array can want the same rows.
                sink.plan.coalesce(step);
            }
            step = step.max(sink.plan.used());
        }
    }
}
