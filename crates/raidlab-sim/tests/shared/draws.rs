//! What `cells` and `relations` draw with.
use raidlab_core::rng::Stream;
use raidlab_experiment::kernel::{Kernel, Scheduler};

/// Draws one after the other from a stream.
pub(crate) struct Draws(Stream, u64);

impl Draws {
    pub(crate) const fn new(stream: Stream) -> Self {
        Self(stream, 0)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.1 += 1;
        self.0.below(self.1, most)
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The schedulers that a kernel has.
pub(crate) fn schedulers(kernel: &str) -> Vec<&'static str> {
    let kernel = kernel.parse::<Kernel>().ok();
    let has = |one: &&Scheduler| kernel.is_some_and(|kernel| kernel.lacks(**one).is_none());
    let all = Scheduler::ALL.iter().filter(has);
    all.map(|one| one.name()).collect()
}
