//! Which request the arm serves next.
use super::Hdd;
use crate::disk::rotation::REVOLUTION;

impl Hdd {
    /// Index of the request to serve from time `t` on: the oldest when it is too old or the drive
    /// does not reorder, else the one among the window that is reached soonest (shortest
    /// positioning time first), the older one of two.
    pub(super) fn pick(&mut self, t: u64) -> usize {
        let window = (self.model.spec.queue.window as usize).min(self.queue.len());
        let oldest = t.saturating_sub(self.queue[0].since);
        if window <= 1 || oldest > self.model.spec.queue.max_age.0 {
            return 0;
        }
        let now = Now {
            t,
            angle: self.spindle.angle(t),
            // Those that the stream may reach are few, and looked at apart.
            stream: self.stream.active.then(|| self.stream_window()),
        };
        let mut best = (u64::MAX, 0);
        for index in 0..window {
            let cost = self.reach(index, &now);
            if cost < best.0 {
                best = (cost, index);
            }
        }
        best.1
    }

    /// Angle that passes from `now` until the first sector of a request is under the head.
    #[inline]
    fn reach(&mut self, index: usize, now: &Now) -> u64 {
        let waiting = &self.queue[index];
        let late = self.spindle.units(waiting.ready.saturating_sub(now.t));
        if now
            .stream
            .is_some_and(|(from, to)| from <= waiting.lba && waiting.lba <= to)
        {
            let waiting = *waiting;
            if let Some(ahead) = self.stream_reach(&waiting, now.t.max(waiting.ready)) {
                return late.saturating_add(ahead);
            }
        }
        let waiting = &self.queue[index];
        let seek = self.move_nanos(&waiting.place, waiting.write);
        // Bounded far above any wait, so that nothing below overflows.
        let least = late.saturating_add(self.spindle.units(seek)).min(1 << 62);
        // The first time from `least` on that the sector's angle comes round.
        let gap = self.spindle.gap(now.angle, waiting.angle);
        let missing = least.saturating_sub(gap + self.spindle.tolerance());
        gap + missing.div_ceil(REVOLUTION) * REVOLUTION
    }
}

/// What is the same for all requests that are compared.
struct Now {
    t: u64,
    /// Angle under the heads.
    angle: u64,
    /// Sectors among which the stream may reach a request.
    stream: Option<(u64, u64)>,
}
