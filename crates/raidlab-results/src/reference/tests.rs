use super::*;

const SMALL: &str = r#"# What was compared.
[study]
id = "small"
date = 2006-09-25
tool = "bonnie++ 1.03"
command = "bonnie"
[[row]]
name = "one"
level = "raid0"
disks = 1
write = 100
[findings]
1 = "x"
"#;

fn errors(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let text = SMALL.replacen(from, to, 1);
    Study::parse("small.toml", &text).unwrap_err().to_string()
}

#[test]
fn all_studies_are_read() {
    let all = studies().unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|s| (s.id.as_str(), s.rows.len(), s.findings.len()))
        .collect();
    assert_eq!(
        told,
        [
            ("pata-raid0", 11, 4),
            ("pata-blocksize", 0, 5),
            ("scsi-hdbench", 11, 4),
            ("sata-md-levels", 0, 6),
            ("zfs-ashift", 2, 3)
        ]
    );
    assert!(study("no such study").unwrap().is_none());
}

#[test]
fn rows_become_trials_with_factors() {
    let study = study("pata-raid0").unwrap().unwrap();
    let trials = study.trials();
    assert_eq!(trials.len(), 11);
    let two = &trials[2];
    assert_eq!(two.cell.label, "md raid0 2 disks, 1 channel");
    let factors: Vec<_> = two
        .cell
        .factors
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    assert_eq!(
        factors,
        [
            "capacity-disks=2",
            "channels=2+0",
            "disks=2",
            "engine=md",
            "level=raid0"
        ]
    );
    assert_eq!(two.settings["file-size"], (1_u64 << 30).to_string());
    let write = &two.phases[0];
    assert_eq!(write.phase, "block-write");
    assert_eq!(write.rate, Some(33420.0 * 1024.0));
    assert_eq!(write.cpu_percent, Some(8.0));
    let seeks = &two.phases[3];
    assert_eq!((seeks.rate, seeks.unit), (Some(170.7), Unit::PerSecond));
}

#[test]
fn withheld_rows_have_all_phases_and_no_figure() {
    let study = study("scsi-hdbench").unwrap().unwrap();
    let trials = study.trials();
    let withheld = trials
        .iter()
        .find(|t| t.cell.label == "raid50 8 mixed")
        .unwrap();
    assert_eq!(withheld.phases.len(), 12);
    for phase in &withheld.phases {
        assert_eq!(phase.rate, None);
        assert_eq!(phase.flags[0].reason, WITHHELD);
        assert!(!phase.flags[0].voids);
    }
    assert_eq!(withheld.cell.factors["capacity-disks"], "6");
    let given = trials
        .iter()
        .find(|t| t.cell.label == "raid50 6 external")
        .unwrap();
    assert_eq!(given.phases.len(), 3);
}

#[test]
fn loading_twice_gives_the_same_ids() {
    let ids = || -> Vec<String> {
        let all = studies().unwrap();
        all.iter().flat_map(Study::trials).map(|t| t.id).collect()
    };
    let (first, second) = (ids(), ids());
    assert_eq!(first, second);
    let unique: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!(unique.len(), first.len());
    assert!(first.iter().all(|id| crate::id::is_id(id)));
}

#[test]
fn studies_without_figures_load_with_what_they_have() {
    let study = study("sata-md-levels").unwrap().unwrap();
    assert!(study.trials().is_empty());
    let plans: Vec<_> = study
        .plans
        .iter()
        .map(|p| (p.name.as_str(), p.items.len()))
        .collect();
    assert_eq!(plans, [("Procedure", 5), ("Arrays", 8)]);
    let disks: Vec<_> = study.setup.iter().filter(|f| f.name == "disk").collect();
    assert_eq!(
        disks[1].text,
        "model Seagate ST3160812AS, count 1, capacity 160GB, cache 8MiB, note about 15 % faster \
         than the 250 GB disks"
    );
}

#[test]
fn a_small_study_is_read() {
    let study = Study::parse("small.toml", SMALL).unwrap();
    assert_eq!(study.title, "What was compared");
    assert_eq!(
        study.figure("one", "block-write"),
        Some(Published::Value(102_400.0))
    );
}

#[test]
fn errors_name_line_and_column() {
    let cases = [
        (
            "write = 100",
            "write = \"fast\"",
            "small.toml:11:9: 'write' is of type string, but a number is needed",
        ),
        (
            "write = 100",
            "write = -5",
            "small.toml:11:9: 'write': -5 is not a figure of a measurement",
        ),
        (
            "write = 100",
            "write = nan",
            "small.toml:11:9: 'write': nan is not a figure of a measurement",
        ),
        (
            "write = 100",
            "wirte = 100",
            "small.toml:7:1: 'one': a row has either figures or withheld = true\nsmall.toml:11:1: 'wirte' is not known here",
        ),
        (
            "disks = 1",
            "disks = 0",
            "small.toml:7:1: 'level': raid0 of 0 disks is no array",
        ),
        (
            "[findings]",
            "[summary]\nbaseline = \"two\"\nat = \"2GB\"\n[findings]",
            "small.toml:12:1: 'baseline': there is no row 'two'",
        ),
        (
            "[findings]",
            "[[row]]\nname = \"one\"\nlevel = \"raid0\"\ndisks = 1\nwithheld = true\n[findings]",
            "small.toml:12:1: 'name': there is a row 'one' already",
        ),
        ("disks = 1\n", "", "small.toml:7:1: 'disks' is missing"),
        (
            "disks = 1",
            "disks = 1.5",
            "small.toml:10:9: 'disks' is of type float, but a count is needed",
        ),
        (
            "level = \"raid0\"\n",
            "",
            "small.toml:7:1: 'level' is missing",
        ),
        ("id = \"small\"\n", "", "small.toml:2:1: 'id' is missing"),
        (
            "# What was compared.\n",
            "",
            "small.toml:1:1: 'title': the first line must be a comment that says what was compared",
        ),
        (
            "1 = \"x\"",
            "one = \"x\"",
            "small.toml:12:1: 'one': findings are numbered 1, 2, 3 …",
        ),
        (
            "tool = \"bonnie++ 1.03\"",
            "tool = \"iozone\"",
            "small.toml:2:1: 'tool': rows are read of bonnie++ and HDBench only",
        ),
    ];
    for (from, to, expected) in cases {
        let found = errors(from, to);
        assert!(
            found.lines().eq(expected.lines()),
            "{to}:\n{found}\n{expected}"
        );
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = SMALL
        .replace("write = 100", "write = true")
        .replace("1 = \"x\"", "1 = 2");
    let error = Study::parse("small.toml", &text).unwrap_err();
    assert_eq!(error.problems.len(), 2, "{error}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let error = errors("level = \"raid0\"", "level = \"raid0");
    assert!(error.starts_with("small.toml:9:"), "{error}");
}

proptest::proptest! {
    #[test]
    fn cut_and_garbled_files_never_panic(cut in 0_usize..240, sign in "\\PC{0,3}") {
        let mut text: String = SMALL.chars().take(cut).collect();
        text.push_str(&sign);
        text.extend(SMALL.chars().skip(cut + 1));
        let _ = Study::parse("small.toml", &text);
    }
}

#[test]
fn figures_of_a_claim_are_told_in_the_unit_of_their_phase() {
    let study = study("zfs-ashift").unwrap().unwrap();
    let figures = |row: &str, phase: &str| {
        let twelve = row == "ashift 12";
        match phase {
            "ran-create" => Some(Published::Value(if twelve { 7722.0 } else { 7716.0 })),
            "block-write" => Some(Published::Value(if twelve {
                1_228_800.0
            } else {
                1_024_000.0
            })),
            _ => None,
        }
    };
    let told = |claim: &str| {
        let mut all = study.check_predicted(&[], &figures).into_iter();
        let checked = all.find(|checked| checked.claim.contains(claim)).unwrap();
        (checked.evidence, checked.told)
    };
    // A thousandth is no gain.
    let expected = ("7722 / 7716 = 1.00".to_owned(), Told::DoesNot);
    assert_eq!(told("random create gains"), expected);
    let expected = ("1200 / 1000 = 1.20".to_owned(), Told::Holds);
    assert_eq!(told("ashift 12 writes"), expected);
}
