//! The state of a cell's array, and which members have failed.
use super::view::View;
use crate::diagnostic::{Diagnostic, Problems};
use crate::read::key::Key;
use crate::read::tree::At;
use crate::setup::{ArrayLayout, ArrayState};
use raidlab_core::words::count;
use raidlab_layout::{Layout, Member, MemberSet, Pool, Survival};

/// What an array survives.
pub(super) enum Redundancy {
    /// Nothing.
    None,
    /// Of so many members any so many: of btrfs, which has copies or parity of each stretch on others than of the one before.
    Chunks {
        /// Members.
        members: usize,
        /// How many of them may be lost, whichever they are.
        spare: usize,
        /// Those that the first files lie on.
        first: MemberSet,
    },
    /// As the layout says.
    Layout(Box<Layout>),
    /// As the pool says.
    Pool(Box<Pool>),
}

impl Redundancy {
    fn members(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Chunks { members, .. } => *members,
            Self::Layout(layout) => layout.members(),
            Self::Pool(pool) => pool.members(),
        }
    }

    fn survives(&self, failed: MemberSet) -> bool {
        match self {
            Self::None => failed.is_empty(),
            Self::Chunks { spare, .. } => failed.len() <= *spare,
            Self::Layout(layout) => layout.survives(failed) != Survival::Lost,
            Self::Pool(pool) => pool.survives(failed) != Survival::Lost,
        }
    }

    /// 1 when some failure is survived, else 0.
    pub(super) fn best_case(&self) -> usize {
        let any = (0..self.members()).any(|m| self.survives(MemberSet::one(Member::new(m))));
        usize::from(any)
    }

    /// The first `n` members, in the order of their roles, that can fail together; of chunks of their own those that have something
    /// of the first files before others, for nobody would see that one is missing which has nothing.
    fn pattern(&self, n: usize) -> Option<MemberSet> {
        if let Self::Chunks {
            members,
            spare,
            first,
        } = self
        {
            let others = (0..*members)
                .map(Member::new)
                .filter(|m| !first.contains(*m));
            let in_turn = first.iter().chain(others);
            return (n <= *spare).then(|| in_turn.take(n).collect());
        }
        let mut failed = MemberSet::EMPTY;
        self.search(n, 0, &mut failed, &mut 100_000)
            .then_some(failed)
    }

    fn search(&self, n: usize, from: usize, failed: &mut MemberSet, left: &mut u32) -> bool {
        if n == 0 {
            return true;
        }
        for role in from..self.members() {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let member = Member::new(role);
            failed.insert(member);
            // Nothing that holds a lost pattern is survived.
            if self.survives(*failed) && self.search(n - 1, role + 1, failed, left) {
                return true;
            }
            failed.remove(member);
        }
        false
    }
}

/// The state and the roles of the failed members.
pub(super) fn state(
    problems: &Problems,
    view: &View<'_>,
    layout: &At<ArrayLayout>,
    redundancy: &Redundancy,
) -> Option<(ArrayState, Vec<u16>)> {
    let given = view.state(Key::State);
    let roles = view.roles(Key::Failed);
    let state = match (&given, &roles) {
        (Some(given), _) => given.value,
        (None, Some(roles)) if !roles.value.is_empty() => {
            ArrayState::Degraded(roles.value.len() as u16)
        }
        _ => ArrayState::Clean,
    };
    let at = given.as_ref().map_or(layout.at.clone(), |g| g.at.clone());
    let wrong = |at: std::ops::Range<usize>, message: String, help: &str| {
        let problem = Diagnostic::new(at, message).help(help);
        let layout_told = format!("layout '{}'", layout.value);
        problems.push(problem.also(layout.at.clone(), layout_told));
        None
    };
    if state == ArrayState::Resyncing && matches!(redundancy, Redundancy::Pool(_)) {
        let message = format!("{} is of ZFS, which is never resyncing", layout.value);
        let help = "what was not written to the end belongs to no block, so that copies and parity agree after a crash: use state \
                    clean, degraded or rebuilding";
        return wrong(at, message, help);
    }
    if state == ArrayState::InitialSync && matches!(redundancy, Redundancy::Pool(_)) {
        let message = format!("{} is of ZFS, which has no initial sync", layout.value);
        let help = "a new pool holds no blocks that could disagree: use state clean, degraded or rebuilding";
        return wrong(at, message, help);
    }
    if state.is_unsynced() && redundancy.best_case() == 0 {
        let message = format!("{} has no copies or parity to resync", layout.value);
        return wrong(at, message, "use a redundant layout, or state clean");
    }
    let failures = usize::from(state.failures());
    let Some(roles) = roles else {
        if failures == 0 {
            return Some((state, Vec::new()));
        }
        return match redundancy.pattern(failures) {
            Some(failed) => Some((state, failed.iter().map(|m| m.0).collect())),
            None => {
                let message = format!(
                    "{} does not survive {}",
                    layout.value,
                    count(failures, "failed member")
                );
                let help = "use a layout that does, or a state with fewer failures";
                wrong(at, message, help)
            }
        };
    };
    named(problems, layout, redundancy, state, roles)
}

/// The failed members by their roles.
fn named(
    problems: &Problems,
    layout: &At<ArrayLayout>,
    redundancy: &Redundancy,
    state: ArrayState,
    roles: At<Vec<u16>>,
) -> Option<(ArrayState, Vec<u16>)> {
    let wrong = |message: String, help: &str| {
        let problem = Diagnostic::new(roles.at.clone(), message).help(help);
        let layout_told = format!("layout '{}'", layout.value);
        problems.push(problem.also(layout.at.clone(), layout_told));
        None
    };
    let failures = usize::from(state.failures());
    if roles.value.len() != failures {
        let message = format!(
            "'failed' names {}, and the state is '{state}'",
            count(roles.value.len(), "member")
        );
        let word = match state {
            ArrayState::Rebuilding(_) => "rebuilding",
            _ => "degraded",
        };
        let help = format!("write state = \"{word} {}\"", roles.value.len().max(1));
        return wrong(message, &help);
    }
    if let Some(beyond) = roles
        .value
        .iter()
        .find(|r| usize::from(**r) >= redundancy.members())
    {
        let message = format!(
            "there is no member {beyond}: the array has {}",
            redundancy.members()
        );
        return wrong(message, "members are counted from 0");
    }
    let failed: MemberSet = roles.value.iter().map(|r| Member(*r)).collect();
    if !redundancy.survives(failed) {
        let message = format!("{} does not survive the failure of {failed}", layout.value);
        return wrong(message, "name others, or use another layout");
    }
    Some((state, roles.value))
}
