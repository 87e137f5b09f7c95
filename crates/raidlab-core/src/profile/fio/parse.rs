//! fio job files: text in, jobs out.
//!
//! A file is sections of `option=value` lines; `[global]` holds for the sections after it. An option
//! that raidlab would have to ignore to run the job is refused, with its line: a job file that runs
//! must mean what it says.
use super::{Fio, FioJob, Rw};
use crate::suggest::nearest;
use crate::time::Span;
use crate::units::{Bytes, GIB, KIB, MIB};

/// Why a text is not a job file that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FioError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

/// Options that change nothing in what is measured here.
const WITHOUT_EFFECT: [&str; 17] = [
    "allow_mounted_write",
    "allrandrepeat",
    "description",
    "disk_util",
    "fadvise_hint",
    "fallocate",
    "group_reporting",
    "gtod_reduce",
    "name",
    "new_group",
    "norandommap",
    "random_generator",
    "randrepeat",
    "refill_buffers",
    "thread",
    "unlink",
    "write_lat_log",
];

/// Options that are carried out.
const KNOWN: [&str; 34] = [
    "blocksize",
    "bs",
    "buffered",
    "directory",
    "direct",
    "end_fsync",
    "fdatasync",
    "filename",
    "filesize",
    "fsync",
    "invalidate",
    "io_limit",
    "io_size",
    "iodepth",
    "ioengine",
    "loops",
    "number_ios",
    "numjobs",
    "offset",
    "percentile_list",
    "ramp_time",
    "randseed",
    "rate_iops",
    "rate_process",
    "readwrite",
    "runtime",
    "rw",
    "rwmixread",
    "rwmixwrite",
    "size",
    "stonewall",
    "time_based",
    "timeout",
    "wait_for_previous",
];

/// Options of fio that would change what is measured and are not carried out.
const REFUSED: [(&str, &str); 12] = [
    (
        "thinktime",
        "pauses between operations; use rate_iops for a fixed arrival rate",
    ),
    ("bsrange", "block sizes by chance; use one bs"),
    ("bssplit", "block sizes by chance; use one bs"),
    ("verify", "checking of what was written"),
    ("rate", "a rate in bytes; use rate_iops"),
    ("random_distribution", "other than uniform offsets"),
    ("zonemode", "zoned devices"),
    ("zonesize", "zoned devices"),
    ("nrfiles", "several files a job; use several jobs"),
    ("include", "other files; put the options in"),
    ("exec_prerun", "commands; run them yourself"),
    ("latency_target", "search for a depth"),
];

struct Line<'a> {
    number: usize,
    option: &'a str,
    value: Option<&'a str>,
}

impl Line<'_> {
    fn wrong(&self, why: impl std::fmt::Display) -> FioError {
        FioError {
            line: self.number,
            what: format!("{}: {why}", self.option),
        }
    }

    fn text(&self) -> Result<&str, FioError> {
        self.value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| self.wrong("a value is missing: write option=value"))
    }

    fn flag(&self) -> Result<bool, FioError> {
        match self.value {
            None | Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(other) => Err(self.wrong(format!("'{other}' is neither 0 nor 1"))),
        }
    }

    fn number(&self, least: u32, most: u32) -> Result<u32, FioError> {
        let text = self.text()?;
        text.parse()
            .ok()
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| {
                self.wrong(format!(
                    "'{text}' is not a whole number from {least} to {most}"
                ))
            })
    }

    /// fio's `k` is 1024 bytes, and so is its `kb`; its `KiB` is 1000, which nobody expects.
    fn size(&self) -> Result<Bytes, FioError> {
        let text = self.text()?;
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let scale = match text[digits..].to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => KIB,
            "m" | "mb" => MIB,
            "g" | "gb" => GIB,
            "t" | "tb" => 1 << 40,
            unit @ ("ki" | "kib" | "mi" | "mib" | "gi" | "gib" | "ti" | "tib") => {
                let letter = &unit[..1];
                return Err(self.wrong(format!(
                    "fio reads '{text}' as a power of 1000; write '{}{letter}' for a power of 1024",
                    &text[..digits]
                )));
            }
            "%" => {
                return Err(
                    self.wrong("a share of the file or device is not supported; give a size")
                );
            }
            _ => return Err(self.wrong(format!("'{text}' is not a size such as 4k, 1m or 10g"))),
        };
        text[..digits]
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(scale))
            .filter(|n| *n <= i64::MAX as u64)
            .map(Bytes)
            .ok_or_else(|| self.wrong(format!("'{text}' is not a size such as 4k, 1m or 10g")))
    }

    /// Seconds without a unit.
    fn time(&self) -> Result<Span, FioError> {
        let text = self.text()?;
        let with_unit = if text.ends_with(|c: char| c.is_ascii_digit()) {
            format!("{text}s")
        } else {
            text.to_owned()
        };
        with_unit.parse().map_err(|_| {
            self.wrong(format!(
                "'{text}' is not a length of time such as 30, 30s, 5m or 500ms"
            ))
        })
    }
}

/// Reads a job file.
///
/// # Errors
/// With the line of each thing that cannot be carried out as it stands; at least one.
pub(super) fn read(text: &str) -> Result<Fio, Vec<FioError>> {
    let mut wrong = Vec::new();
    let mut global = FioJob::default();
    let mut jobs: Vec<(usize, FioJob)> = Vec::new();
    let mut section: Option<Option<FioJob>> = None;
    let mut begun = 0;
    for (index, raw) in text.lines().enumerate() {
        let number = index + 1;
        let line = raw.split(['#', ';']).next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name
                .strip_suffix(']')
                .map(str::trim)
                .filter(|n| !n.is_empty());
            let Some(name) = name else {
                let what = format!("'{line}' is not a section: write [name]");
                wrong.push(FioError { line: number, what });
                // What stands below it is looked at as one.
                section.get_or_insert(None);
                continue;
            };
            if let Some(Some(job)) = section.take() {
                jobs.push((begun, job));
            }
            begun = number;
            section = Some((!name.eq_ignore_ascii_case("global")).then(|| FioJob {
                name: name.to_owned(),
                ..global.clone()
            }));
            continue;
        }
        let (option, value) = match line.split_once('=') {
            Some((option, value)) => (option.trim_end(), Some(value.trim())),
            None => (line, None),
        };
        let line = Line {
            number,
            option,
            value,
        };
        let applied =
            match &mut section {
                None => Err(line
                    .wrong("stands before the first section: write [global] or [name] above it")),
                Some(None) => apply(&mut global, &line),
                Some(Some(job)) => apply(job, &line),
            };
        wrong.extend(applied.err());
    }
    if let Some(Some(job)) = section {
        jobs.push((begun, job));
    }
    if jobs.is_empty() && wrong.is_empty() {
        let what = "there is no job: write a section such as [random-read]".to_owned();
        wrong.push(FioError {
            line: text.lines().count().max(1),
            what,
        });
    }
    let checked = jobs.iter().filter_map(|(line, job)| {
        let what = check(job).err()?;
        Some(FioError { line: *line, what })
    });
    wrong.extend(checked);
    if wrong.is_empty() {
        Ok(Fio {
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
        })
    } else {
        Err(wrong)
    }
}

/// The first line that gives an option.
pub(super) fn line_of(text: &str, option: &str) -> Option<usize> {
    let gives = |line: &str| {
        let line = line.split(['#', ';']).next().unwrap_or("");
        line.split_once('=')
            .is_some_and(|(given, _)| given.trim() == option)
    };
    Some(text.lines().position(gives)? + 1)
}

fn apply(job: &mut FioJob, line: &Line<'_>) -> Result<(), FioError> {
    if line.value.is_some_and(|value| value.contains('$')) {
        return Err(line.wrong("variables are not supported; write the value"));
    }
    match line.option {
        "rw" | "readwrite" => job.rw = direction(line)?,
        "bs" | "blocksize" => job.bs = block_size(line)?,
        "size" | "filesize" => job.size = Some(line.size()?),
        "io_size" | "io_limit" => job.io_size = Some(line.size()?),
        "offset" => job.offset = line.size()?,
        "number_ios" => job.number_ios = Some(u64::from(line.number(1, u32::MAX)?)),
        "iodepth" => job.iodepth = line.number(1, 4096)?,
        "numjobs" => job.numjobs = line.number(1, 1024)?,
        "direct" => job.direct = line.flag()?,
        "buffered" => job.direct = !line.flag()?,
        "ioengine" => job.queued = engine(line)?,
        "runtime" | "timeout" => job.runtime = Some(line.time()?),
        "ramp_time" => job.ramp_time = line.time()?,
        "time_based" => job.time_based = line.flag()?,
        "rwmixread" => job.rwmixread = line.number(0, 100)? as u8,
        "rwmixwrite" => job.rwmixread = 100 - line.number(0, 100)? as u8,
        "fsync" | "fdatasync" => flush(job, line)?,
        "end_fsync" => job.end_fsync = line.flag()?,
        "rate_iops" => job.rate_iops = line.number(0, u32::MAX)?,
        "rate_process" => job.poisson = process(line)?,
        "filename" => job.filename = Some(path(line)?),
        "directory" => job.directory = Some(path(line)?),
        "randseed" => {
            let text = line.text()?;
            let seed = text
                .parse()
                .map_err(|_| line.wrong(format!("'{text}' is not a whole number")));
            job.randseed = Some(seed?);
        }
        "invalidate" => job.invalidate = line.flag()?,
        "stonewall" | "wait_for_previous" => job.stonewall = line.flag()?,
        "loops" => drop(
            line.number(1, 1)
                .map_err(|_| line.wrong("repeat the trial instead: only loops=1 is carried out"))?,
        ),
        "percentile_list" => {}
        option if WITHOUT_EFFECT.contains(&option) => {}
        option => return Err(refuse(line, option)),
    }
    Ok(())
}

/// After so many writes; of two ways to make them durable one.
fn flush(job: &mut FioJob, line: &Line<'_>) -> Result<(), FioError> {
    let (every, data_only) = (line.number(0, u32::MAX)?, line.option == "fdatasync");
    if every > 0 && job.fsync > 0 && job.data_only != data_only {
        return Err(line.wrong("fsync and fdatasync both: raidlab makes writes durable in one way"));
    }
    if every > 0 || job.data_only == data_only {
        (job.fsync, job.data_only) = (every, data_only);
    }
    Ok(())
}

fn refuse(line: &Line<'_>, option: &str) -> FioError {
    if let Some((_, what)) = REFUSED.iter().find(|(name, _)| *name == option) {
        return line.wrong(format!("not supported: {what}"));
    }
    let known = KNOWN.iter().chain(&WITHOUT_EFFECT).copied();
    match nearest(option, known) {
        Some(near) => line.wrong(format!("not known (did you mean '{near}'?)")),
        None => line.wrong("not known or not supported"),
    }
}

fn direction(line: &Line<'_>) -> Result<Rw, FioError> {
    Ok(match line.text()? {
        "read" => Rw::Read,
        "write" => Rw::Write,
        "rw" | "readwrite" => Rw::ReadWrite,
        "randread" => Rw::RandRead,
        "randwrite" => Rw::RandWrite,
        "randrw" => Rw::RandRw,
        other => {
            let known = ["read", "write", "rw", "randread", "randwrite", "randrw"];
            return Err(line.wrong(format!("'{other}' is not one of {}", known.join(", "))));
        }
    })
}

fn block_size(line: &Line<'_>) -> Result<Bytes, FioError> {
    if line.text()?.contains(',') {
        return Err(line.wrong("a size for each direction is not supported; give one"));
    }
    let size = line.size()?;
    if size.0 == 0 || size > Bytes::gib(1) {
        return Err(line.wrong(format!("{size} is not from 1 byte to 1 GiB")));
    }
    Ok(size)
}

/// Whether the engine keeps several operations in flight.
fn engine(line: &Line<'_>) -> Result<bool, FioError> {
    match line.text()? {
        "io_uring" | "libaio" | "posixaio" => Ok(true),
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(false),
        other => Err(line.wrong(format!(
            "'{other}' is not supported: choose io_uring, libaio or psync"
        ))),
    }
}

fn process(line: &Line<'_>) -> Result<bool, FioError> {
    match line.text()? {
        "linear" => Ok(false),
        "poisson" => Ok(true),
        other => Err(line.wrong(format!("'{other}' is neither linear nor poisson"))),
    }
}

fn path(line: &Line<'_>) -> Result<String, FioError> {
    let text = line.text()?;
    if text.contains(':') {
        return Err(line.wrong("several paths are not supported; give one"));
    }
    Ok(text.to_owned())
}

fn check(job: &FioJob) -> Result<(), String> {
    let name = &job.name;
    if job.time_based && job.runtime.is_none() {
        return Err(format!("job {name}: time_based needs a runtime"));
    }
    if let Some(runtime) = job.runtime.filter(|time| *time <= Span::ZERO) {
        return Err(format!(
            "job {name}: a runtime of {runtime} measures nothing"
        ));
    }
    Ok(())
}
