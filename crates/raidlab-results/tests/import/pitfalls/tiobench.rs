//! tiobench.pl.
use super::*;

#[test]
fn random_operations_are_per_thread_in_tiotest_and_a_total_in_tiobench() {
    let imported = taken(&text_of("raw/tiobench.pl-0.3.3.txt"));
    // `-t 1 -r 4000` and `-t 4 -r 1000` are the same `--random 4000`.
    for trial in &imported.trials {
        assert_eq!(phase(trial, "random-read").ops, Some(4000));
        assert_eq!(phase(trial, "random-read").bytes, Some(4000 * 4096));
    }
}

#[test]
fn cut_values_and_backspaces_are_read() {
    let imported = taken(&text_of("raw/tiobench.pl-0.3.3.txt"));
    same(rate(&imported.trials[0], "read"), 1005.0 * MIB);
    assert_eq!(phase(&imported.trials[0], "read").cpu_percent, Some(27.7));
    assert_eq!(
        phase(&imported.trials[1], "read").cpu_percent,
        None,
        "four threads"
    );
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("cuts values"))
    );
}

#[test]
fn columns_of_0_3_3_are_reads_first() {
    let trial = &taken(&text_of("raw/tiobench.pl-0.3.3.txt")).trials[0];
    same(rate(trial, "random-read"), 845.9 * MIB);
    same(rate(trial, "write"), 477.1 * MIB);
    same(rate(trial, "random-write"), 326.8 * MIB);
}

#[test]
fn inflated_random_rates_of_0_4_are_void_unless_the_operations_are_known() {
    let text = text_of("raw/tiobench.pl-0.4.2.txt");
    let trial = &taken(&text).trials[0];
    assert!(!phase(trial, "random-read").is_valid());
    assert!(phase(trial, "read").is_valid());
    let mut source = Source::new("x");
    source.tiotest_random_ops = Some(4000);
    let known = import(text.as_bytes(), &source).unwrap();
    let random = phase(&known.trials[0], "random-read");
    assert!(random.is_valid());
    // 4000 blocks of 4 KiB of the 64 MB that were credited.
    same(
        random.rate.unwrap(),
        1021.24 * MIB * (4000.0 * 4096.0) / (64.0 * MIB),
    );
    assert_eq!(random.ops, Some(4000));
}

#[test]
fn latencies_that_are_sums_over_runs_are_left_out() {
    let text = text_of("raw/tiobench.pl-0.4.2.txt");
    assert_eq!(phase(&taken(&text).trials[0], "read").figures.len(), 4);
    let runs = format!("Run #1: ./tiotest -t 1\nRun #2: ./tiotest -t 1\n{text}");
    let source = Source::new("x").format(Format::TiobenchSections);
    let summed = import(runs.as_bytes(), &source).unwrap();
    assert!(phase(&summed.trials[0], "read").figures.is_empty());
    assert!(
        summed
            .remarks
            .iter()
            .any(|r| r.text.contains("sums latencies"))
    );
}

#[test]
fn a_rate_that_did_not_fit_is_no_figure() {
    let text = text_of("raw/tiobench.pl-0.4.2.txt").replace("     3090.29", "############");
    let trial = &taken(&text).trials[1];
    assert_eq!(phase(trial, "read").rate, None);
    assert_eq!(phase(trial, "read").flags[0].kind, FlagKind::ToolDefect);
}

#[test]
fn a_section_without_a_row_is_refused() {
    let text = text_of("raw/tiobench.pl-0.4.2.txt");
    let cut = text.trim_end().rsplit_once('\n').unwrap().0;
    let message = refused(&format!("{cut}\n"));
    assert!(message.contains("in 'Random Writes'"), "{message}");
}
