//! Numbers that no disk has, in every key.
use super::{text_of, wrong};
use crate::catalogue::{controller, cpu, parse};

/// A name, a file, and whether such a file is read.
type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&str) -> bool);

/// What each key of a number takes of values that are mostly not possible.
fn taken(text: &str, reads: &dyn Fn(&str) -> bool) -> Vec<String> {
    let (mut table, mut told) = (String::new(), Vec::new());
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']).to_owned();
        }
        let Some((key, rest)) = line.split_once(" = ") else {
            continue;
        };
        let (before, rest) = match rest.strip_prefix("{ value = ") {
            Some(rest) => ("{ value = ", rest),
            None => ("", rest),
        };
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        if rest[..end].parse::<f64>().is_err() {
            continue;
        }
        let given = |value: &str| {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            lines[at] = format!("{key} = {before}{value}{}", &rest[end..]);
            lines.join("\n")
        };
        let mut values = vec!["-1", "nan", "inf", "0", "0.0001", "1e8", "1e14"];
        values.retain(|value| reads(&given(value)));
        let line = format!("{table}.{key} takes {}", values.join(" "));
        if !values.is_empty() && !told.contains(&line) {
            told.push(line);
        }
    }
    told
}

fn with(text: &str, changes: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// Where nought is taken it says that there is nothing of the kind: no overhead, no limit, no spares. Any capacity may be one.
#[test]
fn absurd_numbers_are_refused() {
    let every = with(
        text_of("ST3250624AS"),
        &[
            (
                "[cache]\n",
                "[cache]\nsource = \"assumed\"\nread_ahead_kib = 100\nleast_ahead_kib = 50\nwrite_share_percent = 40\n\
                 write_runs = 100\nrounds = 5\nhigh_percent = 70\nlow_percent = 40\nquiet_ms = 10\n",
            ),
            (
                "[seek]\n",
                "[switch]\nsource = \"assumed\"\nhead_ms = 0.9\ntrack_skew_ms = 1\n\
                 cylinder_skew_ms = 1.4\n\n[seek]\n",
            ),
            (
                "[geometry]\n",
                "[geometry]\nzones = { value = 12, source = \"assumed\" }\n",
            ),
        ],
    );
    let extracted = with(
        text_of("HP-C3323A"),
        &[(
            "cylinder_skew = 18\n",
            "cylinder_skew = 18\nunused = 0\nspare_per_track = 0\n",
        )],
    );
    for text in [&every, &extracted] {
        parse("disk.toml", text).unwrap_or_else(|error| panic!("{error}"));
    }
    let disk = |text: &str| parse("disk.toml", text).is_ok();
    let card = |text: &str| controller::parse("card.toml", text).is_ok();
    let processor = |text: &str| cpu::parse("cpu.toml", text).is_ok();
    let of = |models: &[(&str, &'static str)], name: &str| {
        let found = models.iter().find(|(known, _)| *known == name);
        found.unwrap().1
    };
    let cases: [Case<'_>; 6] = [
        ("a hard disk", &every, &disk),
        ("an extracted one", &extracted, &disk),
        ("a solid-state disk", text_of("nvme-ssd"), &disk),
        ("a card", of(controller::MODELS, "PERC3/Di"), &card),
        (
            "one without cache",
            of(controller::MODELS, "ITE8212"),
            &card,
        ),
        ("a processor", of(cpu::MODELS, "modern"), &processor),
    ];
    let mut all = Vec::new();
    for (name, text, reads) in cases {
        all.push(format!("{name}:\n  {}", taken(text, reads).join("\n  ")));
    }
    insta::assert_snapshot!(all.join("\n"));
}

/// Values that are wrong by their unit or beside others; all are told at once.
#[test]
fn contradictions_are_told() {
    let hard = wrong(
        "ST3250624AS",
        &[
            ("kind = { value = \"SATA\", source = \"S: review\" }\n", ""),
            ("value = 300,", "value = 0,"),
            ("value = 512,", "value = 1000,"),
            ("value = 33.8,", "value = 0.0338,"),
            ("value = 0.8,", "value = 0.0008,"),
            ("value = 12,", "value = 10,"),
            ("value = 16384,", "value = 8388608,"),
            ("value = 16,", "value = 0,"),
            ("value = 200,", "value = 200000,"),
            (
                "[cache]\n",
                "[switch]\nwrite_settle_ms = { value = 0.5, source = \"assumed\" }\n\n[cache]\n",
            ),
        ],
    );
    let piece = wrong(
        "HP-C3323A",
        &[
            (
                "spare_per_cylinder = 28",
                "slipped = [99, 99999999, 4000000000]\nspare_per_cylinder = 28",
            ),
            ("spare_per_cylinder = 17", "spare_per_cylinder = 120"),
            ("knee = 150", "knee = 15000"),
        ],
    );
    let flash = wrong(
        "nvme-ssd",
        &[
            ("read_us = 45", "read_usec = 45"),
            ("channels = 8", "channels = 0"),
            ("runs = 16", "runs = 2000"),
            ("turn_us = 1", "turn_us = 1e6"),
        ],
    );
    let apart = wrong(
        "nvme-ssd",
        &[
            ("program_fast_us = 180", "program_fast_us = 18000"),
            ("runs = 16", "runs = 0"),
        ],
    );
    let pieces = wrong("HP-C3323A", &[("long = [[", "long = [[10")]);
    insta::assert_snapshot!([hard, piece, pieces, flash, apart].join("\n\n"));
}
