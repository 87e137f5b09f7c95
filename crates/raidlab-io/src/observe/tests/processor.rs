//! The processor as the limit.
use super::*;

#[test]
fn crowded_jobs_wait_for_each_other() {
    let jobs = |count: usize| Evidence {
        cpus: Some(2),
        cpu_pressure: Some(0.5),
        generator: vec![Duration::from_secs(1); count],
        ..reading(GIB)
    };
    assert_eq!(kinds(&jobs(2)), [FlagKind::OtherLoad]);
    assert_eq!(kinds(&jobs(3)), []);
}

#[test]
fn cpu_bound_is_judged_by_thread_not_by_sum() {
    let seconds = |values: &[f64]| values.iter().map(|s| Duration::from_secs_f64(*s)).collect();
    let spread = Evidence {
        generator: seconds(&[5.0, 5.0, 5.0]),
        ..reading(GIB)
    };
    assert_eq!(kinds(&spread), []);
    let one = Evidence {
        generator: seconds(&[9.5, 1.0]),
        ..reading(GIB)
    };
    assert_eq!(kinds(&one), [FlagKind::GeneratorBound]);
    assert_eq!(
        kinds(&Evidence {
            generator_is_subject: true,
            ..one
        }),
        []
    );
}
