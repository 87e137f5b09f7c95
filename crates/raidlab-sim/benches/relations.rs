//! Which laws a large sample of drawn experiments breaks: `cargo bench -p raidlab-sim --bench relations -- COUNT [SEED
//! [FIRST]]`. With `--tools` the profiles that do as a tool does are drawn. With `--text` the experiment of each point that
//! breaks one is printed, with `--refused` why others could not be built, with `--slow` which took more than five seconds;
//! `--law=WORDS` tries those laws alone, `--again=N` tells how many of N other seeds of the same experiment break it alike (where
//! heads and platters are is drawn by the seed, so that what few break is chance), `--texts` runs nothing and prints the
//! experiments, and `--file=PATH` runs an experiment and prints what came of its phases. The laws and
//! the draws are those of the test `relations`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/relations/draw/mod.rs"]
mod draw;
#[path = "../tests/relations/lab.rs"]
mod lab;
#[path = "../tests/relations/laws/mod.rs"]
mod laws;

use draw::Point;
use lab::{Came, Lab};
use laws::{LAWS, THUMB, tools};
use std::time::Instant;

/// What is asked for.
struct Asked {
    tools: bool,
    text: bool,
    refused: bool,
    slow: bool,
    only_text: bool,
    law: Option<String>,
    again: u64,
    count: u64,
    seed: u64,
    first: u64,
}

impl Asked {
    fn of(all: &[String]) -> Self {
        let option = |name: &str| all.iter().any(|a| a == name);
        let numbers: Vec<u64> = all.iter().filter_map(|a| a.parse().ok()).collect();
        let number = |i: usize, usual| numbers.get(i).copied().unwrap_or(usual);
        let law = all.iter().find_map(|a| a.strip_prefix("--law="));
        let again = all.iter().find_map(|a| a.strip_prefix("--again="));
        Self {
            tools: option("--tools"),
            text: option("--text"),
            refused: option("--refused"),
            slow: option("--slow"),
            only_text: option("--texts"),
            law: law.map(str::to_owned),
            again: again.and_then(|n| n.parse().ok()).unwrap_or(0),
            count: number(0, 100),
            seed: number(1, 1),
            first: number(2, 0),
        }
    }

    /// The laws that are tried on what is drawn: whether each is firm, and its name.
    fn laws(&self) -> Vec<(bool, &'static str)> {
        let pick = |firm: bool, name: &'static str| {
            let wanted = self.law.as_ref().is_none_or(|law| name.contains(law));
            wanted.then_some((firm, name))
        };
        let firm = if self.tools {
            names(tools::LAWS)
        } else {
            names(LAWS)
        };
        let thumb = if self.tools {
            names(tools::THUMB)
        } else {
            names(THUMB)
        };
        let firm = firm.into_iter().filter_map(|name| pick(true, name));
        let thumb = thumb.into_iter().filter_map(|name| pick(false, name));
        firm.chain(thumb).collect()
    }
}

fn names<L>(laws: &[(&'static str, L)]) -> Vec<&'static str> {
    laws.iter().map(|(name, _)| *name).collect()
}

/// What the law of that name says of a point.
fn tried(asked: &Asked, lab: &mut Lab, point: &Point, all: &[Came], name: &str) -> tools::Verdicts {
    if let Some(tool) = point.tool.as_ref().filter(|_| asked.tools) {
        let mut laws = tools::LAWS.iter().chain(tools::THUMB);
        let law = laws.find(|(n, _)| *n == name);
        return law.map_or_else(Vec::new, |(_, law)| law(lab, point, tool, all));
    }
    let mut laws = LAWS.iter().chain(THUMB);
    let law = laws.find(|(n, _)| *n == name);
    law.and_then(|(_, law)| law(lab, point, all.first()?))
        .into_iter()
        .collect()
}

/// What a broken law is about: the phase, where it tells of one.
fn about(what: &str) -> &str {
    what.split([' ', ':']).next().unwrap_or("")
}

/// How many other seeds of a point break a law in the same phase.
fn again(asked: &Asked, lab: &mut Lab, point: &Point, name: &str, what: &str) -> String {
    if asked.again == 0 {
        return String::new();
    }
    let mut alike = 0;
    for more in 1..=asked.again {
        // Some laws are tried on each eighth seed alone.
        let other = point.with(|p| p.seed += 8 * more);
        let Ok(came) = lab.phases(&other) else {
            continue;
        };
        let verdicts = tried(asked, lab, &other, &came, name);
        let mut broken = verdicts.iter().filter_map(|v| v.as_ref().err());
        alike += u64::from(broken.any(|b| !asked.tools || about(b) == about(what)));
    }
    format!("; so do {alike} of {} other seeds", asked.again)
}

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    if let Some(path) = all.iter().find_map(|a| a.strip_prefix("--file=")) {
        file(path);
        return;
    }
    let asked = Asked::of(&all);
    let mut lab = Lab::default();
    let laws = asked.laws();
    let mut applied = vec![(0u64, 0u64); laws.len()];
    let (mut drawn, mut firmly) = (0, 0);
    for number in asked.first..asked.first + asked.count {
        let point = match asked.tools {
            true => Point::draw_tool(asked.seed, number),
            false => Point::draw(asked.seed, number),
        };
        lab.forget();
        if asked.only_text {
            println!("{}", point.text());
            continue;
        }
        let begin = Instant::now();
        let came = match lab.phases(&point) {
            Ok(came) => came,
            Err(reason) => {
                if asked.refused {
                    let first = reason.lines().next().unwrap_or("");
                    println!("{number:5} refused: {first}");
                }
                continue;
            }
        };
        drawn += 1;
        let (mut broken, mut firm_broken) = (false, false);
        for ((firm, name), applied) in laws.iter().zip(&mut applied) {
            for verdict in tried(&asked, &mut lab, &point, &came, name) {
                applied.0 += 1;
                if let Err(what) = verdict {
                    applied.1 += 1;
                    (broken, firm_broken) = (true, firm_broken || *firm);
                    let mark = if *firm { "FIRM " } else { "" };
                    let again = again(&asked, &mut lab, &point, name, &what);
                    println!("{number:5} {mark}{name}: {what}{again}");
                }
            }
        }
        firmly += u64::from(firm_broken);
        if broken {
            println!("      {:.1} MB/s of {}", came[0].rate() / 1e6, point.told());
            if asked.text {
                println!("{}", point.text());
            }
        }
        let took = begin.elapsed().as_secs_f64();
        if asked.slow && took > 5.0 {
            println!("{number:5} took {took:.1} s: {}", point.told());
        }
    }
    if asked.only_text {
        return;
    }
    for ((firm, name), (applied, broken)) in laws.iter().zip(&applied) {
        let mark = if *firm { "firm " } else { "thumb" };
        println!("{broken:5} of {applied:5}  {mark} {name}");
    }
    println!(
        "{drawn} of {} points could be built, {} runs; {firmly} broke a firm law",
        asked.count, lab.runs
    );
}

/// What came of the phases of an experiment.
fn file(path: &str) {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
    match text.and_then(|text| lab::run(&text)) {
        Ok(all) => all.iter().for_each(|came| {
            println!(
                "{:14} {:.3} MB/s, {:.1} ops/s, {:.3} s, disks {:?}, {}",
                came.phase.id,
                came.rate() / 1e6,
                came.outcome.ops as f64 / came.outcome.elapsed.as_secs_f64(),
                came.outcome.elapsed.as_secs_f64(),
                came.disks,
                came.why.sentence
            );
        }),
        Err(error) => println!("{error}"),
    }
}
