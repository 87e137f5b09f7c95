//! What is known of a resync's pace beside that it is level: that it is above md's limit all along, and that there is another one.
use super::{Machine, Resynced};
use crate::machine::totals::Totals;
use raidlab_core::drive::Pace;
use raidlab_core::target::Target;
use raidlab_core::time::{Instant, Span};
use raidlab_core::units::{KIB, MIB, SECTOR};

/// A pace that is above the limit in so many looks one after the other need not be level: the limit is what it goes at.
const LOOKS: (u32, Span) = (16, Span::from_secs(2));
/// ... and by so much in each of them, in hundredths.
const ABOVE: u64 = 105;
/// A pause after which a resync is tried in a copy of the machine: long enough for drives to read ahead, and shorter than any of md's
/// control. What it does then is looked at for so long after it has settled, and told when it is so many hundredths faster.
const NAP: Span = Span::from_millis(20);
const TRIED: (Span, Span) = (Span::from_secs(2), Span::from_secs(10));
const FASTER: f64 = 1.1;
/// The limit is told from this share of the time on, and as what holds the whole of it back from the other one on.
const HELD: (f64, f64) = (0.05, 0.95);

/// Whether it is faster than the limit all along.
pub(super) struct Fast {
    /// Where it was when that began, with the accounts of then, and at the last look.
    first: (Instant, u64),
    pub(super) before: Totals,
    last: (Instant, u64),
    looks: u32,
}

impl Fast {
    pub(super) const fn new(at: (Instant, u64), before: Totals) -> Self {
        Self {
            first: at,
            before,
            last: at,
            looks: 0,
        }
    }

    /// Looks on, and tells the pace that it has had in enough looks, all of them above `most` bytes a second.
    pub(super) fn look(
        &mut self,
        at: (Instant, u64),
        most: u64,
        totals: impl FnOnce() -> Totals,
    ) -> Option<Pace> {
        let time = at.0.since(self.last.0);
        if time < LOOKS.1 {
            return None;
        }
        let bytes = u128::from((at.1 - self.last.1) * SECTOR) * 1_000_000_000;
        self.last = at;
        self.looks += 1;
        if bytes / u128::from(time.0) * 100 < u128::from(most) * u128::from(ABOVE) {
            *self = Self::new(at, totals());
        }
        (self.looks >= LOOKS.0).then(|| Pace {
            amount: at.1 - self.first.1,
            time: at.0.since(self.first.0),
        })
    }
}

/// Tells of another pace: which of them a resync has is chance then.
pub(super) fn explain(resynced: &mut Resynced, tried: Option<(f64, f64)>) {
    if let Some(told) = tried.and_then(paces) {
        resynced.why.sentence.push_str(&told);
    }
}

/// What is told of a pace that was found and the one after a pause, bytes a second, where that is faster.
fn paces((found, paused): (f64, f64)) -> Option<String> {
    let [before, after] = [found, paused].map(|rate| rate / MIB as f64);
    (paused > FASTER * found).then(|| {
        format!(
            "; undisturbed it goes at {before:.0} MiB/s where it begins, and after any pause at {after:.0}, which gives the drives time to \
             read ahead: how long it takes is chance"
        )
    })
}

impl Machine {
    /// No resource is at its limit when the speed control is what limits.
    pub(super) fn explain(&self, resynced: &mut Resynced, held: Span) {
        let share = held.as_secs_f64() / resynced.elapsed.as_secs_f64();
        // Of nothing, too.
        if share.is_nan() || share < HELD.0 {
            return;
        }
        let mut busy = resynced.why.sentence.as_str();
        if busy.starts_with("nothing is busy") {
            // Not for lack of requests, which is what the sentence goes on with.
            busy = busy.rsplit_once(": ").map_or(busy, |(busy, _)| busy);
        }
        // As reports have rates, so that they can be compared.
        let limit = match self.sync_limit {
            low if low < 10 * MIB => format!("{} KiB/s", low / KIB),
            limit => format!("{:.0} MiB/s", limit as f64 / MIB as f64),
        };
        let limit = format!("md's speed limit of {limit} holds it back");
        resynced.why.sentence = match share {
            share if share < HELD.1 => format!(
                "{limit} for {:.0} % of the time; on the whole {busy}",
                100.0 * share
            ),
            _ => format!("{limit}: {busy}"),
        };
    }

    /// Pauses the resync, and lets what is in flight end.
    pub(super) fn resync_drain(&mut self) {
        let now = self.host.now();
        self.host.with_device(|storage| storage.resync_pause(now));
        while !self.host.device().resync_drained() {
            let Some(next) = self.host.device().next_event() else {
                break;
            };
            self.resync_wait(next);
        }
    }

    /// A pace in bytes a second, and the one after a pause, which matters only below the limit.
    pub(super) fn tried(&mut self, pace: Pace) -> (f64, f64) {
        let (found, most) = (
            (pace.amount * SECTOR) as f64 / pace.time.as_secs_f64(),
            self.sync_limit as f64,
        );
        let paused = if found < most {
            self.after_a_pause().min(most)
        } else {
            found
        };
        (found, paused)
    }

    /// Bytes a second of the resync when it is paused for a moment and goes on. Some have two paces, the slower one as long as
    /// nothing disturbs it: drives that are asked for two places in turn come to read ahead at neither, and a pause gives them time
    /// to, after which each place leaves them time for the other. The machine is as it was afterwards.
    fn after_a_pause(&mut self) -> f64 {
        let kept = self.host.clone();
        self.resync_drain();
        self.resync_wait(self.host.now() + NAP);
        let now = self.host.now();
        self.host.with_device(|storage| storage.resync_resume(now));
        let mut at = [(now, 0); 2];
        for (mark, time) in at.iter_mut().zip([TRIED.0, TRIED.1]) {
            let until = self.host.now() + time;
            self.resync_wait(until);
            *mark = (self.host.now(), self.resync_place());
        }
        self.host = kept;
        let [(since, from), (until, to)] = at;
        (to.saturating_sub(from) * SECTOR) as f64 / until.since(since).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_above_the_limit_need_not_be_level() {
        let totals = Totals::default;
        let mut fast = Fast::new((Instant::ZERO, 0), totals());
        // Sectors in each two seconds: once too few, then never less than 110 MB/s, and never alike.
        let (mut now, mut at, mut found) = (Instant::ZERO, 0, None);
        for look in 0..40_u64 {
            now += LOOKS.1;
            at += match look {
                5 => 200_000_000 / SECTOR,
                look => (220_000_000 + look % 7 * 90_000_000) / SECTOR,
            };
            found = fast.look((now, at), 100_000_000, totals);
            if let Some(pace) = found {
                assert_eq!((look, pace.time), (21, Span::from_secs(32)));
                break;
            }
        }
        let rate = found.map(|pace| pace.amount * SECTOR / 32_000_000);
        assert!(
            rate.is_some_and(|rate| (200..300).contains(&rate)),
            "{rate:?}"
        );
    }

    #[test]
    fn a_resync_with_two_paces_is_told_to_be_chance() {
        let told = |found, paused| paces((found * MIB as f64, paused * MIB as f64));
        let both = told(151.0, 380.0).expect("a faster one");
        let begins =
            "; undisturbed it goes at 151 MiB/s where it begins, and after any pause at 380,";
        assert!(both.starts_with(begins), "{both}");
        assert!(
            both.ends_with(" ahead: how long it takes is chance"),
            "{both}"
        );
        // One pace, and one that a pause makes slower.
        assert_eq!(told(380.0, 390.0), None);
        assert_eq!(told(380.0, 151.0), None);
    }
}
