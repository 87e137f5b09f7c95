//! Whether what holds of any cell holds of others than the test `cells` runs: `cargo bench -p raidlab-sim --bench cells -- COUNT [SEED
//! [FIRST]]`. With `--refused` why some could not be run, with `--slow` which took more than five seconds.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#[path = "../tests/cells/draw.rs"]
mod draw;
#[path = "../tests/cells/laws.rs"]
mod laws;

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| all.iter().any(|a| a == name);
    let numbers: Vec<u64> = all.iter().filter_map(|a| a.parse().ok()).collect();
    let number = |i: usize, usual| numbers.get(i).copied().unwrap_or(usual);
    let (count, seed, first) = (number(0, 200), number(1, 1), number(2, 0));
    let (mut run, mut broke) = (0, 0);
    for number in first..first + count {
        if std::io::stdout().is_terminal() {
            print!("{number:6}\r");
            let _ = std::io::stdout().flush();
        }
        let (text, begin) = (draw::text(seed, number), Instant::now());
        match laws::broken(&text) {
            Ok(broken) => {
                run += 1;
                broke += u64::from(!broken.is_empty());
                broken.iter().for_each(|law| println!("{number:6} {law}"));
                if !broken.is_empty() {
                    println!("{text}");
                }
            }
            Err(reason) if option("--refused") => {
                println!(
                    "{number:6} refused: {}",
                    reason.lines().next().unwrap_or("")
                );
            }
            Err(_) => {}
        }
        let took = begin.elapsed().as_secs_f64();
        if option("--slow") && took > 5.0 {
            println!("{number:6} took {took:.1} s\n{text}");
        }
    }
    println!("{run} of {count} cells could be run; {broke} broke a law");
}
