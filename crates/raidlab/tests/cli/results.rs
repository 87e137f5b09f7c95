//! list, show, remove, report, reference, layout, doctor.
use crate::lab::{DD, Lab, ended, samples};

const STUDIES: [&str; 5] = [
    "pata-raid0",
    "pata-blocksize",
    "scsi-hdbench",
    "sata-md-levels",
    "zfs-ashift",
];

#[test]
fn published_studies_are_listed() {
    let lab = Lab::new();
    lab.run("reference list").done().prints(&STUDIES);
    let json = lab.run("reference list --json").done().json();
    assert_eq!(json.as_array().expect("a list").len(), 5);
    lab.assert_untouched();
}

#[test]
fn published_studies_are_reported() {
    let lab = Lab::new();
    for study in STUDIES {
        let line = format!("reference report {study} --html {study}.html --images {study}");
        let text = lab.run(&line).done().out;
        assert!(text.lines().count() > 20, "{text}");
        let html = std::fs::read_to_string(lab.path(&format!("{study}.html"))).expect("a page");
        assert!(html.contains("<table") && html.contains("</html>"));
        assert!(
            lab.run(&format!("reference report {study} --markdown"))
                .done()
                .out
                .contains("\n| ")
        );
        assert!(
            lab.run(&format!("reference report {study} --json"))
                .done()
                .json()["blocks"]
                .is_array()
        );
    }
    assert!(!lab.store().exists());
    // Ratios that the texts give.
    lab.run("reference report scsi-hdbench")
        .done()
        .prints(&["1.17", "2.07"]);
    lab.run("reference report pata-raid0")
        .done()
        .prints(&["0.60", "2.01"]);
}

#[test]
fn sessions_are_listed_shown_and_removed() {
    let lab = Lab::new();
    lab.bench(&format!("-n 1 {DD}"));
    let sample = samples().join("hdparm-tT.txt");
    lab.run(&format!("import {}", sample.display())).done();
    lab.run("list")
        .done()
        .prints(&["finished", "1 trial ", "dd on place", "hdparm"]);
    lab.run("list --profile dd").done().prints(&["dd on place"]);
    lab.run("list --label nothing*")
        .refused(0)
        .says(&["no sessions with a cell that matches 'nothing*'; 'raidlab list' shows all"]);
    lab.run("list --profile bonnie --label place")
        .refused(0)
        .says(&["no sessions of profile 'bonnie' with a cell that matches 'place'"]);
    assert_eq!(
        lab.run("list --label pla?e --json")
            .done()
            .json()
            .as_array()
            .expect("a list")
            .len(),
        1
    );
    let sessions = lab.sessions();
    let id = sessions[0]["id"].as_str().expect("an id").to_owned();
    lab.run(&format!("show {}", &id[..8])).done().prints(&[
        "session ",
        "trial ",
        "round 1",
        "environment ",
    ]);
    let trial = lab.run(&format!("show {id} --json")).done().json();
    let trial = trial["trials"][0]["id"].as_str().expect("an id").to_owned();
    lab.run(&format!("show {}", &trial[..8]))
        .done()
        .prints(&[&trial[..8]]);
    lab.run(&format!("remove {id}")).refused(3).says(&["--yes"]);
    assert_eq!(lab.sessions().len(), 2, "nothing was removed");
    // One of two is wrong: nothing is removed.
    lab.run(&format!("remove {id} ffffffff --yes")).refused(2);
    assert_eq!(lab.sessions().len(), 2);
    lab.run(&format!("remove {} {id} --yes", &id[..8])).done();
    assert_eq!(lab.sessions().len(), 1);
    lab.run(&format!("show {id}")).refused(2);
    lab.run(&format!("show {trial}")).refused(2);
}

/// What comes from elsewhere cannot command the terminal.
#[test]
fn labels_are_shown_as_text() {
    let lab = Lab::new();
    let sample = samples().join("hdparm-tT.txt");
    lab.run(&format!(
        "import {} --label \u{1b}[2Jgone",
        sample.display()
    ))
    .done();
    for line in [
        "report",
        "report --markdown",
        "show",
        "list",
        "compare ffff ffff",
    ] {
        let ran = lab.run(line);
        assert!(
            !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'),
            "{ran:?}"
        );
    }
    lab.run("show").done().prints(&["\u{fffd}[2Jgone"]);
}

#[test]
fn an_empty_default_store_is_no_error_to_list() {
    let lab = Lab::new();
    let mut command = lab.command("list");
    command.env_remove("RAIDLAB_STORE");
    ended(command).refused(0).says(&["no sessions"]);
}

#[test]
fn several_sessions_are_one_report() {
    let lab = Lab::new();
    for label in ["old", "new"] {
        lab.run(&format!("bench {label}=place -n 2 {DD}")).done();
    }
    let sessions = lab.sessions();
    let ids: Vec<&str> = sessions
        .iter()
        .map(|s| s["id"].as_str().expect("an id"))
        .collect();
    let line = format!(
        "report {} {} --baseline old --title 'Old and new'",
        ids[0], ids[1]
    );
    lab.run(&line)
        .done()
        .prints(&["Old and new", "old", "new", "baseline"]);
    lab.run(&format!("report {} --baseline nowhere", ids[0]))
        .refused(2)
        .says(&["nowhere", "old"]);
    lab.run(&format!("report {} --html nowhere/r.html", ids[0]))
        .code(4)
        .says(&["cannot write nowhere/r.html"]);
}

/// What a report prints as a label is one, though it looks like factors.
#[test]
fn any_label_may_be_the_baseline() {
    let lab = Lab::new();
    let sample = samples().join("hdparm-tT.txt");
    for label in ["disks=4", "=1"] {
        let mut import = lab.command("import");
        import.arg(&sample).args(["--label", label]);
        ended(import).done();
    }
    for label in ["disks=4", "=1"] {
        let mut report = lab.command("report last~1 last");
        report.arg(format!("--baseline={label}"));
        ended(report).done().prints(&[&format!("ratio to {label}")]);
    }
    let factors = lab.run("report last~1 last --baseline disks=5");
    factors.refused(2).says(&["'disks=5' is none of the cells"]);
}

/// Where cells share a label, a report tells them apart; what it calls them names them for it, too.
#[test]
fn cells_go_by_what_a_report_calls_them() {
    let lab = Lab::new();
    for count in [16, 32, 16, 32] {
        let line = format!("bench place -n 1 --profile dd --block-size 4KiB --count {count}");
        lab.run(&line).done();
    }
    let label = "place (count=32)";
    let mut report = lab.command("report last~1 last");
    report.arg(format!("--baseline={label}"));
    ended(report)
        .done()
        .prints(&[&format!("ratio to {label}"), "place (count=16)"]);
    let mut report = lab.command("report last~1 last --baseline");
    report.arg("place (count=64)");
    ended(report)
        .refused(2)
        .says(&["is none of the cells", label]);
    let of = |label: &str| {
        let mut compare = lab.command("compare --phase read");
        for sessions in ["last~3,last~2", "last~1,last"] {
            compare.arg(format!("{sessions}:{label}"));
        }
        ended(compare)
    };
    of(label).done().prints(&["read"]);
    let unknown = of("place (count=64)").refused(2);
    unknown.says(&["no cell 'place (count=64)'", label]);
}

#[test]
fn a_layout_tells_what_its_rebuild_meets() {
    let lab = Lab::new();
    let told = |level: &str| {
        let line = format!("layout {level} --member-size 24TB --read-errors 1e15");
        let mut command = lab.command(&line);
        // On a screen that is wide enough for each to be a line.
        command.env("COLUMNS", "400");
        let out = ended(command).done().out;
        let lines = out
            .lines()
            .filter_map(|line| line.strip_prefix("rebuild: "));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(
        ["raid5 -n 6", "raid6 -n 6", "raidz1 2x3", "raid0 -n 2"].map(told).join("\n\n"),
        @r"
    after 1 failure 109.1 TiB of the others are read; at one unreadable sector in 1e15 bits, 62 % of rebuilds meet one: nothing is left to make it from

    after 1 failure 109.1 TiB of the others are read; at one unreadable sector in 1e15 bits, 62 % of rebuilds meet one: it is made from the redundancy that is left
    after 2 failures 87.3 TiB of the others are read; at one unreadable sector in 1e15 bits, 54 % of rebuilds meet one: nothing is left to make it from

    after 1 failure 43.7 TiB of the others are read; at one unreadable sector in 1e15 bits, 32 % of rebuilds meet one: nothing is left to make it from

    there is none, for nothing is left to make a failed member from
    "
    );
    assert!(!lab.run("layout raid5").done().out.contains("rebuild"));
    // Of the size that is drawn when none is given nobody wants to know.
    lab.run("layout raid5 --read-errors 1e15")
        .refused(2)
        .says(&["--member-size"]);
    let told = lab
        .run("layout raid1 --json --member-size 1TB")
        .done()
        .json();
    assert_eq!(told["rebuilds"][0]["reads_bytes"], 1_000_000_000_000_u64);
    assert!(told["rebuilds"][0]["meets_unreadable"].is_null());
    for bits in ["nan", "1e5", "-1", "many", "inf"] {
        lab.run(&format!(
            "layout raid5 --member-size 1TB --read-errors={bits}"
        ))
        .refused(2)
        .says(&["no number of bits", "1e14"]);
    }
}

#[test]
fn layouts() {
    let lab = Lab::new();
    let drawn = lab.run("layout raid5 --members 4").done().out;
    insta::assert_snapshot!(drawn, @r"
    raid5 left-symmetric, 4 members, chunk 64 KiB
    capacity: 3 GiB (6291456 sectors), 75.0 % of 4 GiB
    failures: survives any 1 failure
    failures: lost with any 2 failures

            m0   m1   m2   m3
    row 0   D0   D1   D2    P
    row 1   D4   D5    P   D3
    row 2   D8    P   D6   D7
    row 3    P   D9  D10  D11
    row 4  D12  D13  D14    P
    row 5  D16  D17    P  D15
    ...
    ");
    lab.run("layout raid0 -n 4 --member-size 1.5PiB")
        .done()
        .prints(&["raid0, 4 members", "6 PiB"]);
    for level in ["raid1", "linear -n 2", "'raid11 2x2'"] {
        lab.run(&format!("layout {level} --chunk 4KiB"))
            .refused(2)
            .says(&["has no chunk", "leave --chunk out"]);
    }
    // Zones: stripes of all three, then of the two that have room.
    lab.run("layout raid0 --member-size 64KiB,128KiB,128KiB")
        .done()
        .prints(&["3 members", "320 KiB", "row 1   .  D3  D4"]);
    lab.run("layout raid5 -n 4 --member-size 1GiB,2GiB")
        .refused(2)
        .says(&["2 sizes for 4 members"]);
    lab.run("layout linear -n 1")
        .done()
        .prints(&["linear, 1 member\n"]);
    let placed = lab
        .run("layout raid10-f2 --members 4 --chunk 64KiB --sector 123456")
        .done()
        .out;
    insta::assert_snapshot!(placed, @r"
    raid10 2 far copies, 4 members, chunk 64 KiB
    capacity: 2 GiB (4194304 sectors), 50.0 % of 4 GiB
    failures: survives any 1 failure
    failures: survives 1 of 3 second failures: 2 of 6 patterns of 2 failures
      (33.3 %)
    failures: lost with m0+m1, m1+m2, m0+m3, m2+m3

               m0   m1   m2   m3
    row 0      D0   D1   D2   D3
    row 1      D4   D5   D6   D7
    row 2      D8   D9  D10  D11
    row 3     D12  D13  D14  D15
    row 4     D16  D17  D18  D19
    row 5     D20  D21  D22  D23
    ...
    row 8192   D3   D0   D1   D2
    row 8193   D7   D4   D5   D6
    row 8194  D11   D8   D9  D10
    row 8195  D15  D12  D13  D14
    row 8196  D19  D16  D17  D18
    row 8197  D23  D20  D21  D22
    ...
    sector 123456 is sector 30912 of m0 (copy 1 of 2)
    sector 123456 is sector 1079488 of m1 (copy 2 of 2)
    ");
    for level in [
        "linear",
        "raid0",
        "raid1",
        "raid4",
        "raid5-ra",
        "raid6",
        "raid10-n2",
        "raid10-o2",
        "'raid50 2x3'",
        "'raid01 2x2'",
    ] {
        lab.run(&format!("layout {level}"))
            .done()
            .prints(&["capacity", "row 0"]);
        assert!(
            lab.run(&format!("layout {level} --json --sector 1"))
                .done()
                .json()["capacity_bytes"]
                .is_u64()
        );
    }
    lab.assert_untouched();
}

#[test]
fn doctor() {
    let lab = Lab::new();
    lab.run("doctor")
        .done()
        .prints(&["kernel", "cpu", "memory", "path"]);
    let json = lab.run("doctor place / --json").done().json();
    let both = json.as_array().expect("a list");
    assert_eq!(both.len(), 2);
    assert!(
        both.iter()
            .all(|one| one["fit"].is_boolean() && one["warnings"].is_array())
    );
    lab.run("doctor place nowhere --json")
        .refused(2)
        .says(&["nowhere"]);
    lab.assert_untouched();
}

/// Pools have no fixed places, but what they hold and survive, and what blocks take of them.
#[test]
fn layouts_of_zfs() {
    let lab = Lab::new();
    let told = lab
        .run("layout raidz1 -n 4 --member-size 1TiB --ashift 12")
        .done()
        .out;
    insta::assert_snapshot!(told, @r"
    raidz1, 4 members, ashift 12
    capacity: 2.9 TiB in blocks of 128 KiB, 72.7 % of 4 TiB; labels and ZFS's
      reserve are not taken off
    failures: survives any 1 failure
    failures: lost with any 2 failures

    a block of   takes of the disks   of that its data
         4 KiB                8 KiB             50.0 %
         8 KiB               16 KiB             50.0 %
        16 KiB               24 KiB             66.7 %
        64 KiB               88 KiB             72.7 %
       128 KiB              176 KiB             72.7 %
         1 MiB              1.3 MiB             74.9 %
    ");
    // 4 KiB of data and as much of parity; a block of 128 KiB on four disks: 32 sectors and 11 of parity, which is
    // 43, filled up to 44 (a multiple of two): 176 KiB.
    for layout in ["raidz1", "raid0"] {
        lab.run(&format!("layout {layout} -n 4 --member-size 7EiB"))
            .refused(2)
            .says(&["the members together have more than 8 EiB"]);
    }
    let json = lab
        .run("layout raidz1 -n 4 --member-size 1TiB --json")
        .done()
        .json();
    let taken = |place: usize| json["blocks"][place]["taken_bytes"].as_u64();
    assert_eq!((taken(0), taken(4)), (Some(8 << 10), Some(176 << 10)));
    lab.run("layout 'zfs-mirror 2x2'").done().prints(&[
        "survives any 1 failure",
        "survives 2 of 3 second failures: 4 of 6 patterns of 2 failures (66.7 %)",
        "lost with m0+m1, m2+m3",
    ]);
    lab.run("layout zfs-mirror -n 3")
        .done()
        .prints(&["survives any 2 failures", "lost with any 3 failures"]);
    lab.run("layout 'raidz2 2x4' --member-size 1TB,1TB")
        .refused(2)
        .says(&["2 sizes for 8 members"]);
    lab.run("layout raidz1 --member-size 1TB,2TB,2TB")
        .done()
        .prints(&["3 members", "of 4.5 TiB"]);
    lab.run("layout raidz2 -n 6")
        .done()
        .prints(&["survives any 2 failures"]);
    lab.run("layout raidz1 -n 4 --sector 5")
        .refused(2)
        .says(&["no fixed places", "zdb"]);
    for (line, says) in [
        ("layout raidz1 -n 1", "member"),
        ("layout raidz9 -n 4", "raidz9"),
        ("layout 'raidz1 2x3' -n 5", "has 6 members, not 5"),
        ("layout raidz1 -n 4000000000", "128"),
        ("layout raidz1 --ashift 3", "--ashift"),
    ] {
        lab.run(line).refused(2).says(&[says]);
    }
    lab.assert_untouched();
}
