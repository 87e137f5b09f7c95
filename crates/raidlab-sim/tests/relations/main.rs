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
