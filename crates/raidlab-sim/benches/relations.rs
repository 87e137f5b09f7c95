//! Which laws a large sample of drawn experiments breaks: `cargo bench -p raidlab-sim --bench relations -- COUNT [SEED
//! [FIRST]]`. With `--text` the experiment of each point that breaks one is printed, with `--refused` why others could
//! not be built. The laws and the draws are those of the test `relations`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/relations/draw/mod.rs"]
mod draw;
#[path = "../tests/relations/lab.rs"]
mod lab;
#[path = "../tests/relations/laws/mod.rs"]
mod laws;

use draw::Point;
use lab::Lab;
use laws::{LAWS, THUMB};

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| all.iter().any(|a| a == name);
    let (text, refused, slow) = (option("--text"), option("--refused"), option("--slow"));
    if let Some(path) = all.iter().find_map(|a| a.strip_prefix("--file=")) {
        match std::fs::read_to_string(path)
            .map_err(|e| e.to_string())
            .and_then(|t| lab::run(&t))
        {
            Ok(came) => println!(
                "{:.3} MB/s, {:.1} ops/s, {}",
                came.rate() / 1e6,
                came.outcome.ops as f64 / came.outcome.elapsed.as_secs_f64(),
                came.why.sentence
            ),
            Err(error) => println!("{error}"),
        }
        return;
    }
    let numbers: Vec<u64> = all.iter().filter_map(|a| a.parse().ok()).collect();
    let number = |i: usize, usual| numbers.get(i).copied().unwrap_or(usual);
    let (count, seed, first) = (number(0, 100), number(1, 1), number(2, 0));
    let only = all.iter().find_map(|a| a.strip_prefix("--law="));
    let mut lab = Lab::default();
    let laws: Vec<_> = LAWS.iter().chain(THUMB).collect();
    let mut applied = vec![(0u64, 0u64); laws.len()];
    let mut drawn = 0;
    for number in first..first + count {
        let point = Point::draw(seed, number);
        lab.forget();
        let begin = std::time::Instant::now();
        let came = match lab.run(&point) {
            Ok(came) => came,
            Err(reason) => {
                if refused {
                    println!(
                        "{number:5} refused: {}",
                        reason.lines().next().unwrap_or("")
                    );
                }
                continue;
            }
        };
        drawn += 1;
        let mut broken = false;
        for (index, (name, law)) in laws.iter().enumerate() {
            if only.is_some_and(|only| !name.contains(only)) {
                continue;
            }
            let Some(verdict) = law(&mut lab, &point, &came) else {
                continue;
            };
            applied[index].0 += 1;
            if let Err(what) = verdict {
                applied[index].1 += 1;
                broken = true;
                println!("{number:5} {name}: {what}");
            }
        }
        if broken {
            println!("      {:.1} MB/s of {}", came.rate() / 1e6, point.told());
            if text {
                println!("{}", point.text());
            }
        }
        let took = begin.elapsed().as_secs_f64();
        if slow && took > 5.0 {
            println!("{number:5} took {took:.1} s: {}", point.told());
        }
    }
    for ((name, _), (applied, broken)) in laws.iter().zip(&applied) {
        println!("{broken:5} of {applied:5}  {name}");
    }
    println!(
        "{drawn} of {count} points could be built, {} runs",
        lab.runs
    );
}
