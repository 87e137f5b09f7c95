//! B-WF2Q+: which queue is next, so that all are served as their weights are. `block/bfq-wf2q.c`.
//!
//! Each queue has a virtual time at which its budget begins and one at which it would be used up; the system's virtual time goes
//! on by what is served over the weights of all. Next is, of those whose time has come, the one whose budget ends first.

/// `WFQ_SERVICE_SHIFT`: virtual time of a sector at weight 1.
const SHIFT: u32 = 22;
/// `BFQ_WEIGHT_CONVERSION_COEFF` times four: the weight of a process of usual priority.
const WEIGHT: u64 = 40;

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no list, and its weight does not count.
    Out,
    /// It has requests, and is not being served.
    Waiting,
    Serving,
    /// It has no requests, but has been served ahead of the system's time: its weight still counts.
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    place: Place,
    start: u64,
    finish: u64,
    /// Sectors that it may be served, and has been.
    pub(super) budget: u64,
    pub(super) service: u64,
    /// How many times the usual weight it has.
    coefficient: u64,
}

impl Share {
    fn weight(&self) -> u64 {
        WEIGHT * self.coefficient
    }

    /// What is left of its budget: nothing when it has been charged for more.
    pub(super) fn left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }

    fn ends_after(&mut self, service: u64) {
        self.finish = self.start + delta(service, self.weight());
    }
}

fn delta(service: u64, weight: u64) -> u64 {
    (service << SHIFT) / weight
}

/// The shares of all queues, by class.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    of: Vec<Share>,
    time: u64,
    /// Of all queues that are not out.
    weights: u64,
    serving: Option<u16>,
    next: Option<u16>,
}

impl Shares {
    /// Room for so many classes.
    pub(super) fn grow(&mut self, classes: usize) {
        let share = Share {
            place: Place::Out,
            start: 0,
            finish: 0,
            budget: 0,
            service: 0,
            coefficient: 1,
        };
        self.of.resize(classes.max(self.of.len()), share);
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn serving(&self) -> Option<u16> {
        self.serving
    }

    /// How many times the usual weight a queue has.
    pub(super) fn coefficient(&self, class: u16) -> u64 {
        self[class].coefficient
    }

    pub(super) fn set_coefficient(&mut self, class: u16, coefficient: u64) {
        let share = &mut self.of[usize::from(class)];
        let before = share.weight();
        share.coefficient = coefficient;
        if share.place != Place::Out {
            self.weights = self.weights - before + share.weight();
        }
    }

    /// A queue has requests again. `waited`: it had to be left only because the next request was not there yet, and is given
    /// back the time that it lost.
    pub(super) fn activate(&mut self, class: u16, waited: bool) {
        let time = self.time;
        let share = &mut self.of[usize::from(class)];
        let back = waited && time > share.finish;
        let least = if back { share.finish } else { time };
        if share.place == Place::Idle {
            share.start = least.max(share.finish);
        } else {
            share.start = least;
            self.weights += share.weight();
        }
        share.ends_after(share.budget);
        if back && time > share.finish {
            let push = (time - share.finish) / share.coefficient;
            share.start += push;
            share.finish += push;
        }
        share.place = Place::Waiting;
        self.find_next(Some(class), false);
    }

    /// The one that is served has requests left, but its turn is over.
    pub(super) fn requeue(&mut self, class: u16) {
        debug_assert_eq!(self.serving, Some(class));
        let share = &mut self.of[usize::from(class)];
        share.ends_after(share.service);
        share.start = share.finish;
        share.ends_after(share.budget);
        share.place = Place::Waiting;
        self.find_next(Some(class), true);
        self.serving = None;
    }

    /// A queue has no requests any more. `turn_over`: it was the one that is served.
    pub(super) fn deactivate(&mut self, class: u16, turn_over: bool) {
        let time = self.time;
        let share = &mut self.of[usize::from(class)];
        if self.serving == Some(class) {
            share.ends_after(share.service);
            self.serving = None;
        }
        if share.finish > time {
            share.place = Place::Idle;
        } else {
            share.place = Place::Out;
            self.weights -= share.weight();
        }
        if self.next == Some(class) {
            self.find_next(None, turn_over);
        }
    }

    /// The queue that is served from now on.
    pub(super) fn take(&mut self) -> Option<u16> {
        let class = self.next?;
        self.serving = Some(class);
        let share = &mut self.of[usize::from(class)];
        (share.service, share.place) = (0, Place::Serving);
        self.find_next(None, false);
        Some(class)
    }

    /// A queue is charged for `sectors`.
    pub(super) fn served(&mut self, class: u16, sectors: u64) {
        self.of[usize::from(class)].service += sectors;
        self.time += delta(sectors, self.weights);
        self.forget();
    }

    /// Keeps the next one to be served (`bfq_update_next_in_service`): one that has just come is compared with it, else all
    /// are looked through.
    fn find_next(&mut self, new: Option<u16>, turn_over: bool) {
        if let Some(new) = new.filter(|new| self.next != Some(*new)) {
            let share = self[new];
            let first = |next: u16| share.start <= self.time && self[next].finish > share.finish;
            if self.next.is_none_or(first) {
                self.next = Some(new);
                return;
            }
        }
        self.next = self.look_up(self.serving.is_some() && !turn_over);
    }

    fn waiting(&self) -> impl Iterator<Item = u16> + Clone + '_ {
        let classes = 0..self.of.len() as u16;
        classes.filter(|class| self[*class].place == Place::Waiting)
    }

    fn look_up(&mut self, while_serving: bool) -> Option<u16> {
        let first = self.waiting().map(|class| self[class].start).min()?;
        let time = self.time.max(first);
        if !while_serving && time > self.time {
            self.time = time;
            self.forget();
        }
        let eligible = self.waiting().filter(|class| self[*class].start <= time);
        eligible.min_by_key(|class| (self[*class].finish, *class))
    }

    /// Lets go of the idle queue that the system's time has caught up with (`bfq_forget_idle`).
    fn forget(&mut self) {
        let classes = 0..self.of.len() as u16;
        let idle = classes.filter(|class| self[*class].place == Place::Idle);
        let finish = |class: &u16| self[*class].finish;
        let Some(first) = idle.clone().min_by_key(finish) else {
            return;
        };
        let last = idle.map(|class| finish(&class)).max().unwrap_or_default();
        if last <= self.time && self.waiting().next().is_none() {
            self.time = last;
        }
        let share = &mut self.of[usize::from(first)];
        if share.finish <= self.time {
            share.place = Place::Out;
            self.weights -= share.weight();
        }
    }
}

impl std::ops::Index<u16> for Shares {
    type Output = Share;

    fn index(&self, class: u16) -> &Share {
        &self.of[usize::from(class)]
    }
}

impl std::ops::IndexMut<u16> for Shares {
    fn index_mut(&mut self, class: u16) -> &mut Share {
        &mut self.of[usize::from(class)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two queues that wait.
    fn two(budgets: &[u64; 2], coefficients: &[u64; 2]) -> Shares {
        let mut shares = Shares::default();
        shares.grow(2);
        for class in [0, 1] {
            let index = usize::from(class);
            shares.set_coefficient(class, coefficients[index]);
            shares[class].budget = budgets[index];
            shares.activate(class, false);
        }
        shares
    }

    /// Sectors that each of two queues gets which always have requests of 8 sectors and budgets of `budgets`.
    fn shared(coefficients: [u64; 2], budgets: [u64; 2]) -> [u64; 2] {
        let mut shares = two(&budgets, &coefficients);
        let mut got = [0; 2];
        while got[0] + got[1] < 1 << 20 {
            let class = shares.take().expect("both wait");
            while shares[class].left() > 0 {
                shares.served(class, 8);
                got[usize::from(class)] += 8;
            }
            shares.requeue(class);
        }
        got
    }

    #[test]
    fn sectors_are_shared_by_weight_whatever_the_budgets() {
        for budgets in [[512, 512], [512, 16_384], [16_384, 512]] {
            let [a, b] = shared([1, 1], budgets);
            assert!(a.abs_diff(b) <= 2 * 16_384, "{budgets:?}: {a}, {b}");
            let [a, b] = shared([1, 30], budgets);
            let fair = (a + b) / 31;
            assert!(a.abs_diff(fair) <= 2 * 16_384, "{budgets:?}: {a} of {fair}");
        }
    }

    #[test]
    fn one_that_was_left_for_a_moment_is_next() {
        let mut shares = two(&[1000; 2], &[1; 2]);
        let first = shares.take().expect("both wait");
        shares.served(first, 8);
        shares.deactivate(first, true);
        let other = shares.take().expect("the other waits");
        shares.served(other, 500);
        shares[first].budget = 992;
        shares.activate(first, true);
        shares.requeue(other);
        assert_eq!(shares.take(), Some(first));
    }

    #[test]
    fn weights_of_queues_that_are_done_are_forgotten() {
        let mut shares = two(&[100; 2], &[1; 2]);
        for _ in 0..2 {
            let class = shares.take().expect("one waits");
            shares.served(class, 100);
            shares.deactivate(class, true);
        }
        assert_eq!(shares.take(), None);
        shares[0].budget = 100_000;
        shares.activate(0, false);
        assert_eq!(shares.take(), Some(0));
        shares.served(0, 100_000);
        assert_eq!(shares.weights, WEIGHT);
    }
}
