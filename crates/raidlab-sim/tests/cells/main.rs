//! What holds of any cell that the language takes: arrays of md, ZFS and btrfs in all states, on kernels of all times, with settings of
//! the host as they come. Each is drawn from a seed; here the same few are run each time. What `relations` draws is data that laws can
//! change in one place, and less of it; here nothing is compared but with itself. `cargo bench -p raidlab-sim --bench cells` tries others.
mod draw;
mod laws;

use laws::broken;

/// The draws that are tried, and how many.
const SEED: u64 = 20_261_130;
const CELLS: u64 = 90;

#[test]
fn what_holds_of_any_cell() {
    let (mut run, mut told) = (0, Vec::new());
    for number in 0..CELLS {
        let text = draw::text(SEED, number);
        let Ok(broken) = broken(&text) else { continue };
        run += 1;
        if !broken.is_empty() {
            told.push(format!("{number}: {}\n{text}", broken.join("\n")));
        }
    }
    assert!(run >= CELLS * 2 / 3, "{run} of {CELLS} cells could be run");
    assert!(told.is_empty(), "{}", told.join("\n"));
}
