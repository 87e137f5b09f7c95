//! Laws between predictions, on drawn experiments: whatever the models' figures are, a mirror is not written faster than a
//! disk, and another disk slows nothing down. Here the same few are tried each time. A fresh draw may break a
//! law, and not always a model is wrong; to look for those is what `cargo bench -p raidlab-sim --bench relations` is for, which
//! tells of the laws of thumb, too.
mod draw;
mod lab;
mod laws;

use draw::Point;
use lab::Lab;

/// The draws that are tried.
const SEED: u64 = 20_021_008;
const POINTS: u64 = 24;

#[test]
fn predictions_keep_the_laws_between_them() {
    let (mut built, mut told) = (0, Vec::new());
    for number in 0..POINTS {
        let point = Point::draw(SEED, number);
        let mut lab = Lab::default();
        // What cannot be built breaks no law.
        let Ok(came) = lab.run(&point) else { continue };
        built += 1;
        let broken = laws::broken(&mut lab, &point, &came);
        if !broken.is_empty() {
            told.push(format!("{number}: {}\n{}", broken.join("\n"), point.told()));
        }
    }
    assert!(
        built >= POINTS / 2,
        "{built} of {POINTS} points could be built"
    );
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Those with a tool's profile run longer: of the first 36 some that are short, of each profile two or three.
const TOOLS: [u64; 11] = [3, 4, 5, 9, 10, 14, 15, 18, 26, 31, 35];

#[test]
fn predictions_of_tools_keep_the_laws_between_them() {
    let (mut built, mut told) = (0, Vec::new());
    for number in TOOLS {
        let point = Point::draw_tool(SEED, number);
        let mut lab = Lab::default();
        let Ok(all) = lab.phases(&point) else {
            continue;
        };
        built += 1;
        let broken = laws::tools::broken(&mut lab, &point, &all);
        if !broken.is_empty() {
            told.push(format!("{number}: {}\n{}", broken.join("\n"), point.told()));
        }
    }
    assert_eq!(
        built,
        TOOLS.len(),
        "all could be built when they were chosen"
    );
    assert!(told.is_empty(), "{}", told.join("\n"));
}
