//! Seek curves that bend.
use super::*;

/// A measured curve with kinks is followed through each of its points, and by straight lines between them within two
/// nanoseconds, however many cylinders there are.
#[test]
fn a_table_is_followed_exactly() {
    let cylinders = 500_000;
    let points: Vec<(u32, Span)> = [
        (1, 800_000),
        (2000, 2_000_001),
        (2500, 2_000_003),
        (2600, 5_000_000),
        (123_457, 5_100_000),
        (123_459, 9_000_007),
        (499_999, 15_000_000),
    ]
    .map(|(d, ns)| (d, Span(ns)))
    .to_vec();
    let curve = SeekCurve::new(&SeekSpec::Table(points.clone()), cylinders).unwrap();
    for (d, time) in &points {
        assert_eq!(curve.nanos(*d), time.0, "{d} cylinders");
    }
    for pair in points.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        let step = ((to - from) / 7).max(1);
        for d in (from..to).step_by(step as usize) {
            let part = f64::from(d - from) / f64::from(to - from);
            let exact = before.0 as f64 + (after.0 - before.0) as f64 * part;
            assert!((curve.nanos(d) as f64 - exact).abs() < 2.0, "{d} cylinders");
        }
    }
    assert_eq!(curve.full_stroke(cylinders), 15_000_000);
}

/// So is the knee of two pieces that do not quite meet.
#[test]
fn a_far_knee_is_where_it_is() {
    let (a, b, c, e, knee) = (1.0, 0.01, 4.0, 0.000_03, 100_001);
    let spec = SeekSpec::TwoPiece { a, b, c, e, knee };
    let curve = SeekCurve::new(&spec, 400_000).unwrap();
    let ns = |ms: f64| libm::round(ms * 1e6) as u64;
    let far = c + e * f64::from(knee + 1);
    assert_eq!(curve.nanos(knee), ns(a + b * libm::sqrt(f64::from(knee))));
    assert_eq!(curve.nanos(knee + 1), ns(far));
}
