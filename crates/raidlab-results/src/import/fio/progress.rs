//! Reports of one run on the way. `--status-interval` (and SIGUSR1, and a file `fio-dump-status`)
//! makes fio print all it has counted since the run began, again and again: the last report has what
//! the earlier ones have, and they are no runs of their own.
//!
//! JSON tells when a report was made and how long fio had run, so that two reports are of one run when
//! they have one beginning. Terse output has no times: there every counter must go on from the report
//! before, and the reports must come as regularly as an interval makes them.
use std::collections::BTreeMap;

/// Milliseconds by which two tellings of one beginning may differ: fio rounds the time it has run up to
/// whole seconds.
const ROUNDED: u64 = 1100;
/// Milliseconds of a job's work that may come to its counters at once.
const AT_ONCE: u64 = 5;
/// Milliseconds from which on a job's pace may be any.
const BURST: u64 = 200;
/// Milliseconds by which a job's time may differ though it has ended.
const STALLED: u64 = 1;
/// Most rows of a server among which reports on the way are looked for.
const MOST_ROWS: usize = 1 << 16;
/// Shortest interval looked for where no times are told, in milliseconds.
const SHORTEST_INTERVAL: u64 = 200;

/// One direction of a job as far as it had come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    pub(super) bytes: u64,
    /// Milliseconds.
    pub(super) runtime: u64,
    pub(super) ops: u64,
    /// Shortest, longest and mean response time so far; 0 where not told.
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
}

impl Moved {
    fn goes_on_from(&self, before: &Self) -> bool {
        if before.bytes == 0 && before.ops == 0 {
            return true;
        }
        let counted = self.bytes >= before.bytes && self.ops >= before.ops;
        // A job's own clock and that of the reporting differ in how they round.
        let timed = self.runtime + 1 >= before.runtime;
        let bounded = before.max <= self.max && (before.min <= 0.0 || self.min <= before.min);
        counted && timed && bounded && self.could_move_that(before)
    }

    /// Whether what came to it fits the time that came to it: of two runs that took about as long, one
    /// has moved more than in those few milliseconds. In a longer step a
    /// cache may take or flush at any pace.
    fn could_move_that(&self, before: &Self) -> bool {
        let step = self.runtime.saturating_sub(before.runtime);
        if step >= BURST {
            return true;
        }
        let pace = before.bytes as f64 / before.runtime.max(1) as f64;
        let most = 4.0 * pace * (step + AT_ONCE) as f64;
        (self.bytes - before.bytes) as f64 <= most
    }
}

/// One job, or clone of one, as far as it had come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Jobs of one group run together, those of different groups one after the other.
    pub(super) group: u64,
    /// When it began by whatever clock; 0 before that, and of versions that do not tell it.
    pub(super) begun: u64,
    pub(super) directions: Vec<Moved>,
    /// Context switches and page faults.
    pub(super) others: Vec<u64>,
}

impl Counters {
    fn is_idle(&self) -> bool {
        self.directions.iter().all(|d| d.bytes == 0 && d.ops == 0)
    }

    /// Whether it ran on and moved nothing meanwhile: of two runs that moved the same, one took longer.
    fn stood_since(&self, before: &Self) -> bool {
        let directions = self.directions.iter().zip(&before.directions);
        let ran = |(now, then): (&Moved, &Moved)| now.runtime > then.runtime + STALLED;
        let moved = |(now, then): (&Moved, &Moved)| now.bytes > then.bytes || now.ops > then.ops;
        !before.is_idle() && directions.clone().any(ran) && !directions.clone().any(moved)
    }

    fn goes_on_from(&self, before: &Self) -> bool {
        let mut directions = self.directions.iter().zip(&before.directions);
        let mut others = self.others.iter().zip(&before.others);
        before.is_idle()
            || directions.all(|(now, then)| now.goes_on_from(then))
                && others.all(|(now, then)| now >= then)
    }
}

/// A report as far as its run had come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    /// What ran: equal in all reports of a run.
    pub(super) what: String,
    /// When it was reported, in milliseconds since 1970.
    pub(super) told: Option<u64>,
    /// What that was rounded to: versions before 2.11 tell whole seconds.
    pub(super) told_to: u64,
    /// Seconds that fio had run, rounded up.
    pub(super) elapsed: Option<u64>,
    /// Whether counters begin anew after a time of warming up (`ramp_time`).
    pub(super) ramps: bool,
    /// Whether a job may wait for its data to be durable when all is written (`end_fsync`).
    pub(super) syncs: bool,
    /// Whether a job ended with an error.
    pub(super) failed: bool,
    pub(super) jobs: Vec<Counters>,
}

impl Progress {
    /// Whether nothing has been moved yet: no run, unless it failed.
    fn is_idle(&self) -> bool {
        !self.failed && self.jobs.iter().all(Counters::is_idle)
    }

    /// Whether this is of the time of warming up only, in which fio keeps no response times.
    fn is_warming(&self) -> bool {
        let mut moved = self.jobs.iter().flat_map(|job| &job.directions);
        self.ramps && moved.all(|moved| moved.max <= 0.0)
    }

    /// Milliseconds that the jobs have run, one group after the other.
    fn clock(&self) -> u64 {
        let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
        for job in &self.jobs {
            let runtime = job.directions.iter().map(|d| d.runtime).max().unwrap_or(0);
            let group = longest.entry(job.group).or_default();
            *group = runtime.max(*group);
        }
        longest.values().fold(0, |sum, ms| sum.saturating_add(*ms))
    }

    /// How many jobs have moved something.
    fn at_work(&self) -> usize {
        self.jobs.iter().filter(|job| !job.is_idle()).count()
    }

    /// Whether this can be a later report of the same run. One that is the same in everything is the
    /// same report.
    fn goes_on_from(&self, before: &Self) -> bool {
        if self == before {
            return false;
        }
        let mut jobs = self.jobs.iter().zip(&before.jobs);
        let is_timed = self.told.is_some();
        let counted = jobs
            .all(|(now, then)| now.goes_on_from(then) && (self.syncs || !now.stood_since(then)));
        // When all jobs have ended nothing changes any more.
        let ended = is_timed || self.clock() > before.clock() || self.jobs == before.jobs;
        let anew = before.ramps && before.told.is_some();
        self.jobs.len() == before.jobs.len()
            && (counted || anew)
            && ended
            && self.began_with(before)
    }

    /// Whether the times that are told are of one beginning; nothing speaks against it without any.
    fn began_with(&self, before: &Self) -> bool {
        if before.is_idle() {
            // While files are laid out; after that fio's time begins anew.
            return self.told >= before.told;
        }
        let begun = self.jobs.iter().zip(&before.jobs);
        let mut begun = begun
            .map(|(now, then)| (now.begun, then.begun))
            .filter(|(now, then)| *now > 0 && *then > 0)
            .peekable();
        if begun.peek().is_some() {
            return begun.all(|(now, then)| now == then);
        }
        let (Some(now), Some(then)) = (self.told, before.told) else {
            return self.told.is_none() && before.told.is_none();
        };
        let Some(between) = now.checked_sub(then) else {
            return false;
        };
        let ran = |report: &Self| match report.elapsed {
            Some(seconds) => seconds.saturating_mul(1000),
            None => report.clock(),
        };
        let (ran_now, ran_then) = (ran(self), ran(before));
        let one_beginning =
            (between.saturating_add(ran_then)).abs_diff(ran_now) <= ROUNDED + self.told_to;
        // Short runs in turn have beginnings as near, but a later run has all its time after the
        // report of the earlier.
        let at_least = match self.elapsed {
            Some(_) => ran_now.saturating_sub(1000).max(self.clock()),
            None => self.clock(),
        };
        one_beginning && (before.is_warming() || at_least > between.saturating_add(self.told_to))
    }
}

/// Of each report the last one of its run, which is itself where it is the only one.
pub(super) fn last_reports(reports: &[Progress]) -> Vec<usize> {
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        let chain = open.get(report.what.as_str()).copied();
        let last = chain.and_then(|chain| chains[chain].last().copied());
        match chain {
            Some(chain) if last.is_some_and(|last| report.goes_on_from(&reports[last])) => {
                chains[chain].push(at);
            }
            _ => {
                open.insert(&report.what, chains.len());
                chains.push(vec![at]);
            }
        }
    }
    let mut last: Vec<usize> = (0..reports.len()).collect();
    for chain in chains {
        let (Some(end), all) = (chain.last().copied(), chain.iter().map(|at| &reports[*at])) else {
            continue;
        };
        let is_timed = all.clone().all(|report| report.told.is_some());
        if is_timed || comes_at_intervals(&all.collect::<Vec<_>>()) {
            chain.iter().for_each(|at| last[*at] = end);
        }
    }
    last
}

/// How many reports of each run came before its last one, where that one is.
pub(super) fn earlier(last: &[usize]) -> Vec<usize> {
    let mut earlier = vec![0; last.len()];
    for (at, end) in last.iter().enumerate() {
        earlier[*end] += usize::from(at != *end);
    }
    earlier
}

/// Whether reports that go on from each other come as regularly as those on the way: the first after no
/// more than the interval, the last, at the end of the run, too, and all others after just that. Runs
/// of their own that by chance go on from each other differ by less than they took, or by anything.
fn comes_at_intervals(chain: &[&Progress]) -> bool {
    let at_work: Vec<&&Progress> = chain.iter().filter(|report| !report.is_idle()).collect();
    let clocks: Vec<u64> = at_work.iter().map(|report| report.clock()).collect();
    let steps: Vec<u64> = clocks
        .windows(2)
        .map(|w| w[1].saturating_sub(w[0]))
        .collect();
    match steps.as_slice() {
        [] => true,
        // What came before any I/O was reported on the way, so this was, too.
        _ if at_work.len() < chain.len() => true,
        [only] => *only <= clocks[0].saturating_add(1000),
        [others @ .., last] => {
            let interval = others.iter().copied().max().unwrap_or(0);
            let slack = (interval / 10).max(100);
            // Between two groups files may be laid out, which takes time that no job has.
            let hand_over = |at: usize| at_work[at].at_work() < at_work[at + 1].at_work();
            let mut whole = others.iter().enumerate();
            let regular = whole.all(|(at, step)| step.abs_diff(interval) <= slack || hand_over(at));
            let most = interval.saturating_add(slack);
            interval >= SHORTEST_INTERVAL && regular && clocks[0] <= most && *last <= most
        }
    }
}

/// How many jobs at the end of a list are its last report, where a client was sent reports on the way
/// and lists the jobs of all of them: all, unless the list is one of blocks that go on from each other.
/// `clones` tells how many jobs of a name there are in a report, where that is known.
pub(super) fn last_block(jobs: &[Progress], clones: impl Fn(usize) -> Option<u64>) -> usize {
    let count = jobs.len();
    let blocks = (2..=count)
        .rev()
        .filter(|blocks| count.is_multiple_of(*blocks));
    let repeats = |size: usize| {
        let mut pairs = jobs[size..].iter().zip(jobs);
        pairs.all(|(job, before)| job.what == before.what)
    };
    let mut sizes = blocks.map(|blocks| count / blocks);
    let found = sizes.find(|size| {
        count <= MOST_ROWS && repeats(*size) && {
            let reports: Vec<Progress> = jobs.chunks(*size).map(joined).collect();
            let end = reports.len() - 1;
            fits_clones(&jobs[..*size], &reports, &clones)
                && last_reports(&reports).iter().all(|last| *last == end)
        }
    });
    found.unwrap_or(count)
}

/// Whether a block has as many rows of each job as a report has.
fn fits_clones(
    block: &[Progress],
    reports: &[Progress],
    clones: &impl Fn(usize) -> Option<u64>,
) -> bool {
    let mut alike: BTreeMap<&str, u64> = BTreeMap::new();
    for job in block {
        *alike.entry(&job.what).or_default() += 1;
    }
    let clock = |report: Option<&Progress>| report.map_or(0, Progress::clock);
    let (first, last) = (clock(reports.first()), clock(reports.last()));
    // Two clones take about as long as each other. Rows may be of all clones together
    // (`group_reporting`).
    let apart = reports.len() > 2 || last.saturating_sub(first) > first / 10;
    let mut rows = block.iter().enumerate();
    rows.all(|(at, job)| match (alike[job.what.as_str()], clones(at)) {
        (found, Some(wanted)) if found == wanted => true,
        (found, Some(_)) => found == 1 && apart,
        (_, None) => apart,
    })
}

fn joined(jobs: &[Progress]) -> Progress {
    let what: Vec<&str> = jobs.iter().map(|job| job.what.as_str()).collect();
    Progress {
        failed: jobs.iter().any(|job| job.failed),
        what: what.join("\n"),
        jobs: jobs.iter().flat_map(|job| job.jobs.clone()).collect(),
        ..Progress::default()
    }
}
