//! Jobs in time: which rows of a client are reports on the way, and how long jobs took together.
use super::jobs::Options;
use super::model::Job;
use super::progress::{Progress, last_block};
use crate::import::draft::Harvest;
use raidlab_core::words::count;
use std::collections::BTreeMap;

/// What a job is, whatever it has done.
pub(super) fn what(job: &Job) -> String {
    let host = job.hostname.as_deref().unwrap_or("");
    let port = job.port.unwrap_or(0);
    let (name, group, options) = (&job.jobname, job.groupid, &job.options);
    format!("{host}:{port} {group} {name:?} {options:?}")
}

/// Leaves out the rows of reports on the way: a server sends them to its client, which lists them
/// among those of the end.
pub(super) fn leave_earlier_rows(
    jobs: &mut Vec<Job>,
    global: &Options,
    line: usize,
    harvest: &mut Harvest,
) {
    let mut places: BTreeMap<(Option<String>, Option<u64>), Vec<usize>> = BTreeMap::new();
    for (at, job) in jobs.iter().enumerate() {
        let server = (job.hostname.clone(), job.port);
        places.entry(server).or_default().push(at);
    }
    let mut kept = vec![true; jobs.len()];
    for places in places.values() {
        let of_job = |at: &usize| Progress {
            what: what(&jobs[*at]),
            failed: jobs[*at].error != 0,
            jobs: vec![jobs[*at].counters()],
            ..Progress::default()
        };
        let rows: Vec<Progress> = places.iter().map(of_job).collect();
        let clones = |at: usize| clones(&jobs[places[at]], global);
        let last = last_block(&rows, clones);
        places[..places.len() - last]
            .iter()
            .for_each(|at| kept[*at] = false);
    }
    let earlier = kept.iter().filter(|kept| !**kept).count();
    if earlier > 0 {
        let told = format!(
            "{} of reports on the way (--status-interval) left out: a client lists them among those \
             of the end, and the last of each job has all",
            count(earlier, "row")
        );
        harvest.remark(line, told);
    }
    let mut kept = kept.into_iter();
    jobs.retain(|_| kept.next().unwrap_or(true));
}

/// How many rows a report has of such a job; `None` where no options are told.
fn clones(job: &Job, global: &Options) -> Option<u64> {
    if job.options.is_empty() && global.is_empty() {
        return None;
    }
    let told = job.option(global, "numjobs");
    told.map_or(Some(1), |n| n.parse().ok())
}

/// Milliseconds that the jobs took: a group begins when that before has ended, unless it is only told
/// apart from it (`new_group`), and those of several hosts ran at once. Not every version tells options
/// that have no value, so that it cannot be more than fio had run.
pub(super) fn runtime(jobs: &[Job], global: &Options) -> u64 {
    type Server<'a> = (Option<&'a str>, Option<u64>);
    let mut groups: BTreeMap<(Server<'_>, u64), (u64, bool)> = BTreeMap::new();
    for job in jobs {
        let server = (job.hostname.as_deref(), job.port);
        let is_set = |option| job.option(global, option).is_some_and(|value| value != "0");
        let waits = is_set("stonewall") || is_set("wait_for_previous") || !is_set("new_group");
        let group = groups.entry((server, job.groupid)).or_insert((0, true));
        *group = (group.0.max(job.runtime()), group.1 && waits);
    }
    // Of each server what those before took, and what those take that run at once now.
    let mut servers: BTreeMap<Server<'_>, (u64, u64)> = BTreeMap::new();
    for ((server, _), (longest, waits)) in groups {
        let (before, now) = servers.entry(server).or_default();
        if waits {
            *before = before.saturating_add(*now);
            *now = longest;
        } else {
            *now = longest.max(*now);
        }
    }
    let whole = servers
        .values()
        .map(|(before, now)| before.saturating_add(*now));
    let whole = whole.max().unwrap_or(0);
    let elapsed = jobs.iter().filter_map(|job| job.elapsed).max();
    let most = elapsed.map_or(u64::MAX, |seconds| seconds.saturating_mul(1000));
    let longest = jobs.iter().map(Job::runtime).max().unwrap_or(0);
    whole.min(most).max(longest)
}
