//! What is known of a resync while it is leapt through.
use raidlab_core::drive::{Pace, Seen};
use raidlab_core::time::Span;

/// What is known on the way.
#[derive(Default)]
pub(super) struct Course {
    /// No attempt before this position.
    pub(super) later: u64,
    /// For so long the speed control held it back. What it does on the whole does not tell that: of a disk that is slower towards its
    /// end the limit holds back the first part alone, and several arrays have a control each.
    pub(super) held: Span,
    /// The first pace that was found, and the one it has after a pause, bytes a second.
    pub(super) tried: Option<(f64, f64)>,
    /// It is faster with the control's sleeps than without.
    pub(super) controlled: bool,
    /// Its pace was uneven in some zone: what is level for some seconds there is chance.
    pub(super) uneven: bool,
    /// It was slower than the limit in some zone, and is no faster in those further in: a pause may seem to make it so for a moment.
    pub(super) slow: bool,
}

impl Course {
    /// The pace of windows that are alike. Of a resync whose pace is uneven some seconds may be alike by chance: disks in order for as
    /// long were taken for the pace of a whole zone, and it for three quarters faster than it is. Its mean is known in time either way.
    pub(super) const fn level(&self, seen: Seen) -> Option<Pace> {
        match seen {
            Seen::Steady(pace) if !self.uneven => Some(pace),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_that_are_alike_are_no_pace_of_an_uneven_resync() {
        let pace = Pace {
            amount: 4,
            time: Span::from_secs(4),
        };
        let mut course = Course::default();
        assert_eq!(course.level(Seen::Steady(pace)), Some(pace));
        assert_eq!(course.level(Seen::Mark), None);
        course.uneven = true;
        assert_eq!(course.level(Seen::Steady(pace)), None);
    }
}
