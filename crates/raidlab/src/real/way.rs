//! The second witness of real time: what the guest waited for its disks, by its own kernel's counters, against what
//! the models took, by the log of their server. The difference is the way there and back, through a translated guest
//! and QEMU; how late replies leave does not tell of it.
use super::early;
use raidlab_core::flag::{Flag, FlagKind};
use raidlab_core::time::Span;
use raidlab_io::observe::Roots;
use raidlab_io::observe::diskstats::Snapshot;
use raidlab_nbd::server::Report;
use raidlab_results::record::{Figure, TrialRecord, Unit};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A larger share of the time than this may not go on the way: so far off may figures of real time be.
const TOLERATED: f64 = 0.03;
/// Fewer requests than this tell nothing.
const FEW: u64 = 20;
/// Where the guest's part is in a trial's environment.
const FIELD: &str = "waited";

/// What the guest waited in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Waited {
    /// Requests to the members that ended.
    requests: u64,
    /// Milliseconds, summed over them.
    ms: u64,
    /// Milliseconds that the phase took, with what was prepared for it.
    elapsed_ms: u64,
}

/// Counters in the guest at the beginning of each phase, and at the end of the last.
#[derive(Debug)]
pub(super) struct Counting {
    names: Vec<String>,
    marks: Vec<Snapshot>,
}

impl Counting {
    /// Of these devices.
    pub(super) fn new(members: &[PathBuf]) -> Self {
        let name = |path: &PathBuf| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        Self {
            names: members.iter().filter_map(name).collect(),
            marks: Vec::new(),
        }
    }

    /// A phase begins, or the last has ended.
    pub(super) fn mark(&mut self) {
        self.marks.extend(Snapshot::take(&Roots::system()));
    }

    /// What was waited from mark to mark, into a trial's environment.
    pub(super) fn note(&self, environment: &mut serde_json::Value) {
        let count = |mark: &Snapshot| {
            let devices = self.names.iter().filter_map(|name| mark.devices.get(name));
            devices.fold((0, 0), |(requests, ms), device| {
                let (flushes, flushing) = device.flush.unwrap_or_default();
                (
                    requests + device.read.completed + device.write.completed + flushes,
                    ms + device.read.time_ms + device.write.time_ms + flushing,
                )
            })
        };
        let pairs = self.marks.windows(2);
        let waited: Vec<Waited> = pairs
            .map(|pair| {
                let (before, after) = (count(&pair[0]), count(&pair[1]));
                let elapsed = pair[1].taken.saturating_duration_since(pair[0].taken);
                Waited {
                    requests: after.0.saturating_sub(before.0),
                    ms: after.1.saturating_sub(before.1),
                    elapsed_ms: elapsed.as_millis() as u64,
                }
            })
            .collect();
        if let Some(fields) = environment.as_object_mut() {
            let waited = serde_json::to_value(waited).unwrap_or_default();
            fields.insert(FIELD.to_owned(), waited);
        }
    }
}

/// Counters of the disks' server at the same times.
#[derive(Debug, Default)]
pub(super) struct Serving {
    marks: Vec<(u64, Span)>,
}

impl Serving {
    /// A phase begins, or the last has ended.
    pub(super) fn mark(&mut self, report: Option<&Report>) {
        self.marks.extend(report.map(|report| {
            let disks = &report.disks;
            let requests = disks.iter().map(|d| d.reads + d.writes + d.flushes).sum();
            let waited = disks.iter().map(|d| d.waited.0).sum();
            (requests, Span(waited))
        }));
    }

    /// Forgets all marks.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Compares with what the guest noted in the environment, and notes with each phase how much of its time went on
    /// the way; too much is a doubt that voids its figure.
    pub(super) fn judge(&self, record: &mut TrialRecord, environment: &serde_json::Value) {
        let waited = environment.get(FIELD).cloned().unwrap_or_default();
        let waited: Vec<Waited> = serde_json::from_value(waited).unwrap_or_default();
        let models = self.marks.windows(2);
        let models = models.map(|pair| {
            let requests = pair[1].0.saturating_sub(pair[0].0);
            (requests, Span(pair[1].1.0.saturating_sub(pair[0].1.0)))
        });
        let mut found = waited.iter().zip(models).map(Way::of);
        let whole = record.phases.iter().filter(|p| p.whole().is_none());
        if waited.len() == 1 && whole.count() != 1 {
            // A tool that ran all phases by itself.
            let way = found.next().flatten();
            record.flags.extend(way.as_ref().and_then(Way::doubt));
            return;
        }
        for (way, phase) in found.zip(&mut record.phases) {
            // A phase that took no time has no share of it; the next one keeps its own.
            let Some(way) = way else { continue };
            phase.figures.push(Figure {
                name: "way-to-disks".to_owned(),
                value: 100.0 * way.share,
                unit: Unit::Percent,
            });
            phase.flags.extend(way.doubt());
        }
    }
}

/// What the way to the disks and back was in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    /// The share of the phase's time that it took: of the time of one request after the other where the guest waited
    /// for several at a time.
    share: f64,
    /// Mean wait of a request in the guest, and by the model.
    waits: [Span; 2],
    requests: u64,
}

impl Way {
    fn of((guest, (requests, model)): (&Waited, (u64, Span))) -> Option<Self> {
        let waited = Span::from_millis(guest.ms);
        let longest = waited.0.max(guest.elapsed_ms * 1_000_000);
        let mean = |sum: Span, n: u64| Span(sum.0 / n.max(1));
        (longest > 0).then(|| Self {
            share: (waited.0 as f64 - model.0 as f64) / longest as f64,
            waits: [mean(waited, guest.requests), mean(model, requests)],
            requests: requests.min(guest.requests),
        })
    }

    fn doubt(&self) -> Option<Flag> {
        let [guest, model] = self.waits;
        if self.share.abs() <= TOLERATED || self.requests < FEW {
            return None;
        }
        let ms = |span: Span| span.0 as f64 / 1e6;
        let share = 100.0 * self.share;
        let reason = if self.share > 0.0 {
            let longer = Span(guest.0.saturating_sub(model.0));
            let remedy = if longer <= early::MOST {
                format!("--early {}us replies so much sooner", longer.0 / 1000)
            } else {
                "this machine had too much else to do".to_owned()
            };
            format!(
                "the way to the disks and back took {share:.1} % of the time: the guest waited {:.2} ms a request, of \
                 which the models took {:.2} ms ({remedy})",
                ms(guest),
                ms(model),
            )
        } else {
            format!(
                "the guest waited {:.2} ms a request, and the models took {:.2} ms: replies that leave too early, or \
                 requests that are not one to one",
                ms(guest),
                ms(model)
            )
        };
        Some(Flag::new(FlagKind::Late, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(guest: (u64, u64, u64), model: (u64, u64)) -> Way {
        let (requests, ms, elapsed_ms) = guest;
        let waited = Waited {
            requests,
            ms,
            elapsed_ms,
        };
        Way::of((&waited, (model.0, Span::from_millis(model.1)))).expect("some time passed")
    }

    #[test]
    fn a_phase_that_took_no_time_leaves_the_others_theirs() {
        let mut record: TrialRecord = serde_json::from_value(serde_json::json!({
            "id": "1", "session": "2", "order": 0, "round": 0, "cell": { "label": "c", "factors": {} },
            "profile": "dd", "settings": {}, "provenance": { "source": "measured", "place": "vm" },
            "phases": [], "status": "complete", "flags": [],
        }))
        .expect("a record");
        for name in ["open", "read"] {
            let phase = raidlab_results::record::PhaseRecord::bare(name, None, Unit::PerSecond);
            record.phases.push(phase);
        }
        let ms = Span::from_millis;
        let serving = Serving {
            marks: vec![(0, ms(0)), (0, ms(0)), (1000, ms(6000))],
        };
        let none = Waited::default();
        let some = Waited {
            requests: 1000,
            ms: 7000,
            elapsed_ms: 7100,
        };
        serving.judge(&mut record, &serde_json::json!({ FIELD: [none, some] }));
        assert!(record.phases[0].figures.is_empty() && record.phases[0].flags.is_empty());
        assert_eq!(record.phases[1].figures[0].name, "way-to-disks");
        assert_eq!(record.phases[1].flags.len(), 1);
    }

    #[test]
    fn what_goes_on_the_way_is_a_doubt() {
        // One request after the other, 7 ms each, of which the model takes 6.
        let one = way((1000, 7000, 7100), (1000, 6000));
        assert!((one.share - 1000.0 / 7100.0).abs() < 1e-9);
        let flag = one.doubt().expect("14 % is more than 3 %");
        assert!(flag.voids && flag.kind == FlagKind::Late);
        assert!(
            flag.reason.contains("7.00 ms a request") && flag.reason.contains("--early 1000us")
        );
        let busy = way((1000, 12_000, 12_100), (1000, 6000)).doubt();
        assert!(busy.expect("half").reason.contains("too much else"));
        // 32 at a time: each waits the same 1 ms more, and the disk is as busy as ever.
        assert_eq!(way((1000, 192_000, 6000), (1000, 191_000)).doubt(), None);
        // A program that computes most of the time.
        assert_eq!(way((1000, 2000, 60_000), (1000, 1000)).doubt(), None);
        assert!(
            way((1000, 5000, 5000), (1000, 6000)).doubt().is_some(),
            "too early"
        );
        assert_eq!(way((10, 70, 70), (10, 10)).doubt(), None, "too few to tell");
    }
}
