//! Laws between predictions, on experiments drawn at random: whatever the models' figures are, a mirror is not written faster
//! than a disk, and another disk slows nothing down. A few are drawn here; `make soak` draws others, and
//! `cargo bench -p raidlab-sim --bench relations` draws as many as are wanted, and tells of the laws of thumb, too.
mod draw;
mod lab;
mod laws;

use draw::Point;
use lab::Lab;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn predictions_keep_the_laws_between_them(seed in any::<u64>()) {
        let point = Point::draw(seed, 0);
        let mut lab = Lab::default();
        // What cannot be built breaks no law.
        if let Ok(came) = lab.run(&point) {
            let broken = laws::broken(&mut lab, &point, &came);
            prop_assert!(broken.is_empty(), "{}\n{}\n{}", broken.join("\n"), point.told(), point.text());
        }
    }
}
