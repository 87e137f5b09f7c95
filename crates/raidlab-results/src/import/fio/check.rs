//! Rates against what they are made of: fio divides bytes and operations by the runtime, which it
//! prints too, so that a rate that is neither is damage.
use super::model::{Direction, Job};
use raidlab_core::units::KIB;

/// What to do about a rate that does not fit: what is around it cannot be trusted either.
pub(super) const CHANGED: &str =
    "The file is not as fio wrote it: save fio's whole output again, with --output=FILE";

/// A rate that does not fit.
pub(super) struct Contradiction {
    /// Where it is in the object, in bytes.
    pub(super) at: usize,
    pub(super) found: String,
    pub(super) expected: String,
}

/// A rate beside what it is to be: `count` divided by the runtime, to a whole step.
struct Quotient {
    rate: f64,
    step: f64,
    count: u64,
    /// By how much the count may be more, since it is rounded down.
    rest: u64,
}

impl Quotient {
    /// `None` when the rate fits; what it should be otherwise. The runtime, in milliseconds, may have
    /// been rounded either way.
    fn wrong(&self, runtime: u64) -> Option<f64> {
        if runtime == 0 {
            return None;
        }
        let (count, ms) = (self.count as f64, runtime as f64);
        let least = count * 1e3 / (ms + 1.0) - self.step;
        let most = (count + self.rest as f64) * 1e3 / (ms - 1.0) + self.step;
        let fits = self.rate >= least && (self.rate <= most || runtime == 1);
        (!fits).then_some(count * 1e3 / ms)
    }
}

/// KiB and KiB/s of terse output: what the rate should be, unless it fits.
pub(super) fn wrong_kib(kib: u64, rate: f64, milliseconds: u64) -> Option<f64> {
    let quotient = Quotient {
        rate,
        step: 1.0,
        count: kib,
        rest: 1,
    };
    quotient.wrong(milliseconds)
}

/// The first rate of a job that contradicts its bytes, operations and time. `number` is the job's
/// place in `raw`, the text of the object.
pub(super) fn contradiction(job: &Job, number: usize, raw: &str) -> Option<Contradiction> {
    let directions = [
        ("read", &job.read),
        ("write", &job.write),
        ("trim", &job.trim),
        ("mixed", &job.mixed),
    ];
    directions.into_iter().find_map(|(name, direction)| {
        let (key, rate, should, of) = wrong(direction)?;
        let at = place(raw, number, name, key);
        Some(Contradiction {
            at,
            found: format!("{name} has {key} {rate}"),
            expected: format!(
                "about {should:.0}, which is {of} by the runtime of {} ms",
                direction.runtime
            ),
        })
    })
}

/// Key, value, what it should be and what that is made of.
fn wrong(direction: &Direction) -> Option<(&'static str, f64, f64, String)> {
    let bytes = direction.bytes();
    let rest = if direction.is_in_kib() { KIB } else { 0 };
    let moved = |rate: f64, step: f64| Quotient {
        rate,
        step,
        count: bytes,
        rest,
    };
    let of_bytes = || format!("{bytes} bytes");
    let kib = KIB as f64;
    if let Some(rate) = direction.bw_bytes
        && let Some(should) = moved(rate, 1.0).wrong(direction.runtime)
    {
        return Some(("bw_bytes", rate, should, of_bytes()));
    }
    if let Some(rate) = direction.bw
        && let Some(should) = moved(rate * kib, kib).wrong(direction.runtime)
    {
        return Some(("bw", rate, should / kib, of_bytes()));
    }
    let ops = direction.total_ios?;
    let done = Quotient {
        rate: direction.iops,
        step: 1.0,
        count: ops,
        rest: 0,
    };
    let should = done.wrong(direction.runtime)?;
    Some(("iops", direction.iops, should, format!("{ops} operations")))
}

/// Where a direction of a job has a key; the job's place, or the object's, when it cannot be found.
fn place(raw: &str, number: usize, direction: &str, key: &str) -> usize {
    let Some((job, _)) = raw.match_indices("\"jobname\"").nth(number) else {
        return 0;
    };
    // An option's value may be called like a direction, but only a direction is an object.
    let quoted = format!("\"{direction}\"");
    let is_object = |at: &usize| {
        let rest = raw[at + quoted.len()..].trim_start().strip_prefix(':');
        rest.is_some_and(|rest| rest.trim_start().starts_with('{'))
    };
    let found = raw[job..].match_indices(&quoted);
    let begin = found.map(|(at, _)| job + at).find(is_object);
    begin
        .and_then(|begin| Some(begin + raw[begin..].find(&format!("\"{key}\""))?))
        .unwrap_or(job)
}
