//! Damaged and cut files: refused whole, or, where the rest is a smaller file of the same kind,
//! taken with figures that the whole file has too; never a panic.
use crate::render::render;
use crate::{bytes_of, files_in, sample_files};
use proptest::prelude::*;
use raidlab_results::import::{Format, Imported, Source, import};
use std::collections::BTreeSet;

fn take(bytes: &[u8]) -> Option<Imported> {
    import(bytes, &Source::new("cut")).ok()
}

/// One line a phase: figures and flags, without the run's place in the file.
fn phases(imported: &Imported) -> BTreeSet<String> {
    imported
        .trials
        .iter()
        .flat_map(|trial| &trial.phases)
        .map(|phase| format!("{phase:?}"))
        .collect()
}

/// Samples of which a cut part can be told from the whole only by what is missing: a text table of
/// bonnie++ before its CSV line arrives has rounded (or, of 2.00, no) figures. Those figures are
/// the table's own and flagged; they are compared with the table alone.
fn is_table_with_csv(sample: &str) -> bool {
    [
        "bonnie-1.03e.stdout",
        "bonnie-1.03e-zfs",
        "bonnie-2.00a.stdout",
        "bonnie-1.96",
    ]
    .iter()
    .any(|name| sample.contains(name))
}

#[test]
fn a_file_cut_anywhere_gives_nothing_that_the_whole_does_not() {
    for sample in sample_files() {
        let bytes = bytes_of(&sample);
        let Some(whole) = take(&bytes) else { continue };
        let known = phases(&whole);
        // Large files are cut at every line end and at some places between.
        let step = if bytes.len() > 5000 { 61 } else { 1 };
        let cuts =
            (0..bytes.len()).filter(|at| at % step == 0 || *at > 0 && bytes[at - 1] == b'\n');
        for at in cuts {
            let Some(cut) = take(&bytes[..at]) else {
                continue;
            };
            if is_table_with_csv(&sample) {
                check_table(&sample, &cut);
                continue;
            }
            let mut extra: Vec<_> = phases(&cut).difference(&known).cloned().collect();
            // What is void enters no aggregate.
            extra.retain(|p| !p.contains("voids: true"));
            if cut.format == Format::Tiotest && extra.iter().all(|p| p.contains("figures: []")) {
                // Without the table of latencies it is what `tiotest -L` prints.
                extra.retain(|p| {
                    let rate = p.split(", bytes:").next().unwrap_or(p);
                    !known.iter().any(|k| k.starts_with(rate))
                });
            }
            assert!(
                extra.is_empty(),
                "{sample} cut at {at}: {extra:#?}\n{}",
                render(&cut)
            );
            assert!(
                cut.trials.len() <= whole.trials.len(),
                "{sample} cut at {at}"
            );
        }
    }
}

/// Without its CSV line a table is a result of its own (published ones rarely have the line), but
/// it says so.
fn check_table(sample: &str, cut: &Imported) {
    let told = cut
        .remarks
        .iter()
        .any(|remark| remark.text.contains("no CSV line"));
    // The cut can also be after the CSV line's end, when nothing is missing.
    let whole = take(&bytes_of(sample)).expect("the whole sample");
    assert!(
        told || phases(cut) == phases(&whole),
        "{sample}:\n{}",
        render(cut)
    );
}

/// What a cut at a line end may leave, format by format: rows are results of their own (a CSV file
/// grows by rows; iozone's table, tiotest's and sysbench's report and JSON have an end that must be
/// there). Anything else must be refused.
#[test]
fn a_report_without_its_last_line_is_refused() {
    for sample in sample_files() {
        let bytes = bytes_of(&sample);
        let Some(whole) = take(&bytes) else { continue };
        let text = String::from_utf8(bytes).unwrap();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        lines.pop();
        let cut = take(lines.concat().as_bytes());
        match whole.format {
            // The last line is one of several results, or (dd, hdparm, bonnie++) of several phases.
            Format::Bonnie
            | Format::Hdparm
            | Format::TiobenchLines
            | Format::Vdbench
            | Format::Elbencho => {
                let rest = cut.map_or(0, |c| c.trials.iter().map(|t| t.phases.len()).sum());
                let all: usize = whole.trials.iter().map(|t| t.phases.len()).sum();
                let table = is_table_with_csv(&sample);
                assert!(rest < all || table, "{sample}: {rest} of {all}");
            }
            _ => assert!(
                cut.is_none(),
                "{sample}: {}",
                cut.map(|c| render(&c)).unwrap_or_default()
            ),
        }
    }
}

/// No dd writes a time below zero, in any language: without its sign it would be another time.
#[test]
fn a_time_below_zero_is_refused() {
    let dd = |time: &str| {
        let text = format!(
            "1+0 records in\n1+0 records out\n1000000 bytes (1.0 MB, 977 KiB) copied, {time} s, 1.0 MB/s\n"
        );
        import(text.as_bytes(), &Source::new("f"))
    };
    assert!(dd("1.0").is_ok() && dd("1,0").is_ok());
    for time in ["-1.0", "-1,0", "\u{2212}1,0"] {
        let error = dd(time).unwrap_err().to_string();
        assert!(error.starts_with("f:3:"), "{error}");
    }
}

#[test]
fn an_empty_or_foreign_file_is_refused() {
    for text in [
        "",
        "\n\n",
        "hello",
        "a,b,c\n1,2,3\n",
        "{",
        "{}",
        "{\n}\n",
        "<html></html>",
        "\u{feff}",
    ] {
        let error = import(text.as_bytes(), &Source::new("f")).unwrap_err();
        assert!(error.to_string().starts_with("f:"), "{error}");
        for format in Format::ALL {
            assert!(
                import(text.as_bytes(), &Source::new("f").format(format)).is_err(),
                "{format}"
            );
        }
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Replace(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0_usize..40_000;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (at(), 1_usize..200).prop_map(|(at, n)| Damage::Remove(at, n)),
        (at(), 1_usize..200).prop_map(|(at, n)| Damage::Repeat(at, n)),
        (
            at(),
            prop_oneof![
                Just("99999999999999999999999"),
                Just("-1"),
                Just("1e308"),
                Just("nan"),
                Just(","),
                Just("\n"),
                Just("\r"),
                Just(";"),
                Just(":"),
                Just("+++++"),
                Just("é"),
                Just("\t"),
                Just("%"),
                Just("18446744073709551615"),
                Just("0"),
                Just("{"),
                Just("\""),
                Just("   "),
            ]
        )
            .prop_map(|(at, text)| Damage::Insert(at, text.to_owned())),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let n = bytes.len().max(1);
    let range = |at: usize, len: usize| {
        let from = at % n;
        from.min(bytes.len())..(from + len).min(bytes.len())
    };
    match damage {
        Damage::Replace(at, byte) => {
            if let Some(slot) = bytes.get_mut(at % n) {
                *slot = *byte;
            }
        }
        Damage::Remove(at, len) => {
            let range = range(*at, *len);
            bytes.drain(range);
        }
        Damage::Repeat(at, len) => {
            let range = range(*at, *len);
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(range.end..range.end, copy);
        }
        Damage::Insert(at, text) => {
            let at = at % n;
            bytes.splice(at.min(bytes.len())..at.min(bytes.len()), text.bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damage_never_panics_and_never_gives_an_impossible_figure(
        which in 0_usize..100,
        damages in prop::collection::vec(damage(), 1..6),
        forced in prop::option::weighted(0.3, 0_usize..Format::ALL.len()),
    ) {
        let samples = [sample_files(), files_in("reports")].concat();
        let mut bytes = bytes_of(&samples[which % samples.len()]);
        damages.iter().for_each(|d| apply(&mut bytes, d));
        let mut source = Source::new("damaged");
        source.format = forced.map(|i| Format::ALL[i]);
        source.tiotest_random_ops = forced.map(|i| i as u64);
        match import(&bytes, &source) {
            Ok(imported) => {
                for phase in imported.trials.iter().flat_map(|t| &t.phases) {
                    let rate = phase.rate.unwrap_or(0.0);
                    prop_assert!(rate.is_finite() && rate >= 0.0);
                    prop_assert!(phase.rate.is_some() || !phase.flags.is_empty());
                }
            }
            Err(error) => {
                prop_assert!(error.line >= 1 && error.column >= 1);
                prop_assert!(!error.expected.is_empty() && !error.remedy.is_empty());
            }
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,300}", forced in 0_usize..Format::ALL.len()) {
        let _ = import(text.as_bytes(), &Source::new("x").format(Format::ALL[forced]));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), forced in 0_usize..Format::ALL.len()) {
        let _ = import(&bytes, &Source::new("x"));
        let _ = import(&bytes, &Source::new("x").format(Format::ALL[forced]));
    }
}
