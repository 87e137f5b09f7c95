use super::bundle;
use crate::export::{ExportError, import_jsonl, write_jsonl};
use crate::record::TrialRecord;
use crate::store::tests::samples::{any_trial, session};
use crate::store::{Bundle, Store, TrialFilter};
use proptest::prelude::*;

fn written(bundle: &Bundle) -> String {
    let mut out = Vec::new();
    write_jsonl(&mut out, bundle).unwrap();
    String::from_utf8(out).unwrap()
}

fn refused(text: impl AsRef<[u8]>) -> String {
    import_jsonl("x.jsonl", text.as_ref())
        .unwrap_err()
        .to_string()
}

#[test]
fn everything_comes_back() {
    let text = written(&bundle());
    assert_eq!(text.lines().count(), 4);
    assert_eq!(import_jsonl("x", text.as_bytes()).unwrap(), bundle());
    // Line ends of another system, blank lines and a missing last line end do no harm.
    let other = text.replace('\n', "\r\n\r\n");
    assert_eq!(
        import_jsonl("x", other.trim().as_bytes()).unwrap(),
        bundle()
    );
    let empty = written(&Bundle::default());
    assert_eq!(
        import_jsonl("x", empty.as_bytes()).unwrap(),
        Bundle::default()
    );
}

#[test]
fn a_store_goes_through_a_file_into_another_store() {
    let mut one = Store::in_memory().unwrap();
    one.import(&bundle()).unwrap();
    let text = written(&one.bundle(&TrialFilter::default()).unwrap());
    let mut other = Store::in_memory().unwrap();
    let read = import_jsonl("x", text.as_bytes()).unwrap();
    assert_eq!(other.import(&read).unwrap().trials, 3);
    assert_eq!(other.import(&read).unwrap().skipped, 3);
    let again = written(&other.bundle(&TrialFilter::default()).unwrap());
    assert_eq!(again, text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_record_comes_back(trial in any_trial("s")) {
        let bundle = Bundle { sessions: vec![session("s")], trials: vec![trial], ..Bundle::default() };
        let text = written(&bundle);
        prop_assert_eq!(text.lines().count(), 2);
        prop_assert_eq!(import_jsonl("x", text.as_bytes()).unwrap(), bundle);
    }

    #[test]
    fn reading_never_panics(text in "\\PC{0,80}\n?\\PC{0,80}") {
        let _ = import_jsonl("x", text.as_bytes());
    }

    /// Any damage is an error or does not matter, and never a different result.
    #[test]
    fn a_file_cut_short_is_refused(share in 0.0..1.0_f64) {
        let text = written(&bundle());
        let end = (text.trim_end().len() as f64 * share) as usize;
        prop_assume!(text.is_char_boundary(end));
        prop_assert!(import_jsonl("x", &text.as_bytes()[..end]).is_err());
    }
}

#[test]
fn a_bad_file_is_told_with_line_and_column() {
    let text = written(&bundle());
    let lines: Vec<&str> = text.lines().collect();
    let with = |number: usize, line: &str| {
        let mut changed = lines.clone();
        changed[number - 1] = line;
        refused(changed.join("\n"))
    };
    let changed = |number: usize, from: &str, to: &str| {
        assert!(lines[number - 1].contains(from), "{from}");
        with(number, &lines[number - 1].replacen(from, to, 1))
    };
    let mut bytes = text.clone().into_bytes();
    let at = text.find("raid0").unwrap();
    bytes[at] = 0xff;
    let all = [
        refused(""),
        refused("\n\nname,size\n"),
        refused(r#"{"format":"other"}"#),
        changed(1, "\"version\":1", "\"version\":2"),
        changed(1, "\"version\":1", "\"version\":\"1\""),
        changed(1, "\"trials\":3", "\"trials\":4"),
        changed(1, "\"trials\":3", "\"trials\":3,\"colour\":1"),
        changed(1, "6.1.0", "6.1.1"),
        with(3, "{\"id\": 7}"),
        with(3, &lines[2][..200]),
        with(4, "\u{feff}{}"),
        changed(2, "\"unit\":\"bytes-per-second\"", "\"unit\":\"furlongs\""),
        changed(2, "\"voids\"", "\"void\""),
        changed(3, "\"rate\":1.1", "\"rate\":\"+++++\""),
        changed(3, "\"rate\":1.1", "\"rate\":1e999"),
        changed(3, "\"ops\":null", "\"ops\":-1"),
        changed(3, "\"figures\":[]", "\"figures\":[],\"iops\":5"),
        changed(3, "2026-11-21T08:00:01Z", "21.11.2026"),
        with(3, lines[1]),
        changed(
            3,
            "\"environment\":null",
            "\"environment\":\"0123456789abcdef0123456789abcdef\"",
        ),
        changed(3, "\"session\":\"c", "\"session\":\"d"),
        changed(2, "\"buckets\":[[1003,1]", "\"buckets\":[[1002,1]"),
        changed(
            2,
            "\"buckets\":[[",
            "\"buckets\":[[1,18446744073709551615],[1,18446744073709551615],[",
        ),
        refused(bytes),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    x.jsonl:1:1: not an export of raidlab: the first line must be a header with "format":"raidlab-results"
    x.jsonl:3:1: not an export of raidlab: the first line must be a header with "format":"raidlab-results"
    x.jsonl:1:1: not an export of raidlab: the first line must be a header with "format":"raidlab-results"
    x.jsonl:1:1: exported in version 2 of the format, but this raidlab knows versions up to 1; use a newer raidlab
    x.jsonl:1:1: not an export of raidlab: the first line must be a header with "format":"raidlab-results"
    x.jsonl:5:1: the header announces 4 trials, but 3 follow; is the file complete?
    x.jsonl:1:1: unknown field 'colour'; was the file written by a newer raidlab, or changed by hand?
    x.jsonl:1:1: environment 64cc52fb4d0d74717377e6c11233d63f: the digest of its content is 1ca2a860889e1547db5fcff8c2e71000
    x.jsonl:3:8: invalid type: integer `7`, expected a string
    x.jsonl:3:200: the line ends before what is written on it is complete (EOF while parsing a string); is the file cut short?
    x.jsonl:4:1: expected value
    x.jsonl:2:545: unknown variant `furlongs`, expected one of `bytes-per-second`, `per-second`, `seconds`, `percent`
    x.jsonl:2:14760: missing field `voids`
    x.jsonl:3:496: invalid type: string "+++++", expected f64
    x.jsonl:3:494: number out of range
    x.jsonl:3:534: invalid value: integer `-1`, expected u64
    x.jsonl:3:1: unknown field 'phases[0].iops'; was the file written by a newer raidlab, or changed by hand?
    x.jsonl:3:1: trial 583cfdd1: started: '21.11.2026' is not an RFC 3339 time, such as 2026-11-21T08:30:00Z
    x.jsonl:3:1: trial 0a543c6554029d8a2d7ecc9ab79b8a73: given twice
    x.jsonl:3:1: trial 583cfdd13f77f3f1ff8e110eb8f1942f: its environment 0123456789abcdef0123456789abcdef is not in the header
    x.jsonl:3:1: trial 583cfdd13f77f3f1ff8e110eb8f1942f: its session df55473b4f991834e1ebea6e1491c898 is not in the header
    x.jsonl:2:1: the value of 'phases[0].latency.buckets[0][0]' cannot be kept as it is; was the file changed by hand?
    x.jsonl:2:1: the value of 'phases[0].latency.buckets' cannot be kept as it is; was the file changed by hand?
    x.jsonl:2:124: not UTF-8 text
    "#);
}

/// Values that no phase of ours ever had.
#[test]
fn an_impossible_value_is_told() {
    let with = |change: fn(&mut TrialRecord)| {
        let mut bundle = bundle();
        change(&mut bundle.trials[0]);
        refused(written(&bundle))
    };
    let all = [
        with(|t| t.phases[0].rate = Some(-5.0)),
        with(|t| t.phases[0].mean_in_flight = Some(-1e300)),
        with(|t| t.phases[0].series_width_ns = 0),
        with(|t| t.phases[0].series_ops.push(1)),
        with(|t| t.phases[1].phase = t.phases[0].phase.clone()),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    x.jsonl:2:1: trial 0a543c65: phase 'read': 'rate' is -5.0, which is below 0
    x.jsonl:2:1: trial 0a543c65: phase 'read': 'mean_in_flight' is -1e300, which is below 0
    x.jsonl:2:1: trial 0a543c65: phase 'read': its series has windows of 'series_width_ns' 0
    x.jsonl:2:1: trial 0a543c65: phase 'read': 'series_bytes' has 2 windows and 'series_ops' 3
    x.jsonl:2:1: trial 0a543c65: phase 'read': is there twice
    ");
    let text = written(&bundle());
    let at = text.find("\"max_ns\":").expect("a maximum") + "\"max_ns\":".len();
    let end = at + text[at..].find(',').expect("more");
    let told = refused(format!("{}7{}", &text[..at], &text[end..]));
    assert!(
        told.contains("'max_ns' of 'latency' is below what its buckets count"),
        "{told}"
    );
}

#[test]
fn what_must_not_be_exported_is_not_written() {
    let mut bad = bundle();
    bad.trials[1].phases[0].rate = Some(f64::NAN);
    let mut out = Vec::new();
    let error = write_jsonl(&mut out, &bad).unwrap_err();
    assert!(matches!(error, ExportError::Record(_)), "{error:?}");
    let error = crate::export::write_csv(&mut out, &bad).unwrap_err();
    assert!(matches!(error, ExportError::Record(_)), "{error:?}");
    assert!(out.is_empty());
    bad = bundle();
    bad.sessions.clear();
    let error = write_jsonl(&mut out, &bad).unwrap_err();
    assert!(matches!(error, ExportError::Record(_)), "{error:?}");
    assert!(out.is_empty());
}

#[test]
fn a_full_output_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let error = write_jsonl(full.unwrap(), &bundle()).unwrap_err();
    assert!(matches!(error, ExportError::Io(_)), "{error:?}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let error = crate::export::write_csv(full.unwrap(), &bundle()).unwrap_err();
    assert!(matches!(error, ExportError::Io(_)), "{error:?}");
}
