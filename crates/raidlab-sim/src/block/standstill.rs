//! Models in which time does not go on.
use raidlab_core::time::Instant;

/// How often something may happen at one instant without a call's ending: far more than there can be to do.
const MOST: u32 = if cfg!(test) { 1 << 20 } else { 1 << 26 };

/// What happens at one instant, counted. A model that goes round in a circle ends here; else it would answer to nothing, an interrupt
/// neither.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standstill {
    at: Instant,
    times: u32,
}

impl Standstill {
    /// From `now` on.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { at: now, times: 0 }
    }

    /// Something has happened, and it is `now`.
    ///
    /// # Panics
    /// When time stands still, which is a defect of the model.
    #[inline]
    pub(crate) fn look(&mut self, now: Instant) {
        self.times = if now > self.at { 0 } else { self.times + 1 };
        self.at = now;
        assert!(
            self.times < MOST,
            "a defect of the model: time stands still at {:.9} s. Please report it with the experiment",
            now.0 as f64 / 1e9
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_things_may_happen_at_one_instant_and_more_at_others() {
        let mut still = Standstill::new(Instant(7));
        for at in [7, 8, 8, 9] {
            for _ in 0..MOST / 2 - 1 {
                still.look(Instant(at));
            }
        }
    }

    #[test]
    #[should_panic(expected = "time stands still at 0.000000007 s")]
    fn not_for_ever() {
        let mut still = Standstill::new(Instant(7));
        loop {
            still.look(Instant(7));
        }
    }
}
