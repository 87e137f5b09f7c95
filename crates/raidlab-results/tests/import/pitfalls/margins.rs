//! Output that was pasted from a mail or a Markdown file: with quote marks or indentation before each line.
use super::*;
use crate::{bytes_of, sample_files};
use raidlab_results::import::Imported;

/// Each line with a margin; blank ones without their last spaces, as mail programs leave them.
fn with_margin(text: &str, margin: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.trim() {
        "" => format!("{}{line}", margin.trim_end()),
        _ => format!("{margin}{line}"),
    });
    lines.collect()
}

fn phases(imported: &Imported) -> String {
    let trials = imported.trials.iter();
    let told = trials.map(|t| format!("{} {:?} {:?}\n", t.cell.label, t.settings, t.phases));
    told.collect()
}

#[test]
fn every_format_is_read_with_a_margin() {
    for sample in sample_files() {
        let Ok(text) = String::from_utf8(bytes_of(&sample)) else {
            continue;
        };
        let source = Source::new("sample");
        let Ok(plain) = import(text.as_bytes(), &source) else {
            continue;
        };
        for margin in ["> ", ">", ">> ", "> > ", "    ", "\t", ">     "] {
            let shifted = with_margin(&text, margin);
            let found = import(shifted.as_bytes(), &source);
            let found = found.unwrap_or_else(|error| panic!("{sample} {margin:?}: {error}"));
            assert_eq!(phases(&plain), phases(&found), "{sample} {margin:?}");
            let windows = shifted.replace('\n', "\r\n");
            let found = import(windows.as_bytes(), &source);
            let found = found.unwrap_or_else(|error| panic!("{sample} {margin:?}: {error}"));
            assert_eq!(phases(&plain), phases(&found), "{sample} {margin:?}");
        }
    }
}

/// Between other lines of a mail, each of several with a margin of its own.
#[test]
fn an_output_within_a_mail_is_read() {
    for sample in [
        "raw/bonnie-1.03-pata.txt",
        "raw/bonnie-2.00a.stdout",
        "raw/bonnie-1.03e-x2.csv",
        "samples/bonnie-1.97-table.txt",
        "raw/tiotest-0.3.3.txt",
        "raw/tiotest-0.3.3-terse.txt",
        "raw/hdparm-tT.txt",
        "raw/dd-coreutils-9.1.txt",
        "raw/fio-3.33-terse-v3.txt",
        "raw/sysbench-1.0.20-fileio.txt",
    ] {
        let text = text_of(sample);
        let plain = taken(&text);
        for margin in ["> ", "    ", "> > "] {
            let mail = format!("Hello,\n\n{}\nRegards\n", with_margin(&text, margin));
            assert_eq!(phases(&plain), phases(&taken(&mail)), "{sample} {margin:?}");
        }
    }
    let [one, other] = ["raw/bonnie-1.03-pata.txt", "raw/bonnie-2.00a.stdout"].map(text_of);
    let both = format!(
        "{}\n{}",
        with_margin(&other, "> "),
        with_margin(&one, ">> ")
    );
    assert_eq!(taken(&both).trials.len(), taken(&one).trials.len() + 1);
}

#[test]
fn damage_is_told_where_it_is_in_the_file() {
    let text = text_of("raw/bonnie-1.03e-x2.csv").replace("512M", "512Q");
    let place = |text: &str| {
        let error = import(text.as_bytes(), &Source::new("f")).unwrap_err();
        (error.line, error.column)
    };
    let (line, column) = place(&text);
    assert_eq!(place(&with_margin(&text, "> > ")), (line, column + 4));
    assert_eq!(place(&with_margin(&text, "    ")), (line, column + 4));
    assert_eq!(
        place(&format!("Hello,\n{}", with_margin(&text, "> "))),
        (line + 1, column + 2)
    );
}
