//! bonnie++.
use super::*;

const ROW_1_03: &str = "box1,1G,236471,67,730304,63,200000,30,279846,63,300000,31,512.5,3,64:1024:128/4,19306,48,112372,41,65449,45,6210,70,+++++,+++,69960,55\n";

#[test]
fn rewrite_counts_bytes_once() {
    let trial = &taken(ROW_1_03).trials[0];
    same(rate(trial, "rewrite"), 200_000.0 * KIB);
    assert_eq!(phase(trial, "rewrite").bytes, Some(1 << 30));
}

#[test]
fn k_is_1024_bytes_and_seeks_are_operations() {
    let trial = &taken(ROW_1_03).trials[0];
    same(rate(trial, "block-write"), 730_304.0 * KIB);
    same(rate(trial, "seeks"), 512.5);
    assert_eq!(phase(trial, "seeks").unit, Unit::PerSecond);
    assert_eq!(phase(trial, "seq-create").unit, Unit::PerSecond);
    assert_eq!(phase(trial, "block-write").cpu_percent, Some(63.0));
}

#[test]
fn files_are_counted_in_units_of_1024() {
    let trial = &taken(ROW_1_03).trials[0];
    assert_eq!(trial.settings["files"], "64");
    assert_eq!(phase(trial, "ran-create").ops, Some(65_536));
    assert_eq!(trial.settings["directories"], "4");
}

#[test]
fn pluses_are_no_figure_and_no_failure() {
    let trial = &taken(ROW_1_03).trials[0];
    let short = phase(trial, "ran-stat");
    assert_eq!((short.rate, short.cpu_percent), (None, None));
    assert_eq!(short.flags[0].kind, FlagKind::TooShort);
    assert!(!short.flags[0].voids);
    assert!(trial.is_valid());
}

#[test]
fn a_comma_in_the_machine_name_shifts_nothing() {
    let named = |row: &str| {
        let imported = taken(row);
        assert!(
            imported.remarks.iter().any(|r| r.text.contains("comma")),
            "{row}"
        );
        imported.trials.into_iter().next().unwrap()
    };
    let trial = named(&ROW_1_03.replace("box1", "box1, 2 disks, md"));
    assert_eq!(trial.cell.label, "box1, 2 disks, md");
    same(rate(&trial, "block-write"), 730_304.0 * KIB);
    let new = text_of("raw/bonnie-2.00a.stdout")
        .lines()
        .last()
        .unwrap()
        .replace("box1", "a,b");
    let trial = named(&format!("{new}\n"));
    assert_eq!(trial.cell.label, "a,b");
    same(rate(&trial, "block-write"), 305_411.0 * KIB);
}

#[test]
fn the_machine_name_is_cut_in_the_table_and_whole_in_the_csv_line() {
    let text = text_of("raw/bonnie-1.03e-zfs-ashift9.txt");
    let imported = taken(&text);
    assert_eq!(
        imported.trials.len(),
        1,
        "the table and the line are one run"
    );
    assert_eq!(imported.trials[0].cell.label, "abcde.localdomain");
    let table = text.rsplit_once("abcde.localdomain").unwrap().0;
    let imported = taken(table);
    assert_eq!(imported.trials[0].cell.label, "abcde.locald");
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("may be cut"))
    );
}

#[test]
fn a_table_and_a_line_of_different_runs_are_two_trials() {
    let text = text_of("raw/bonnie-1.03e-zfs-ashift9.txt").replace(",114327,", ",124327,");
    assert_eq!(taken(&text).trials.len(), 2);
}

#[test]
fn skipped_phases_are_blank_and_a_long_name_shifts_them() {
    let imported = taken(&text_of("raw/bonnie-1.03-pata.txt"));
    assert_eq!(imported.trials.len(), 5);
    let glued = &imported.trials[3];
    assert_eq!(glued.cell.label, "bios-raid0(2u-2ch)");
    assert_eq!(glued.settings["file-size"], (1_u64 << 30).to_string());
    same(rate(glued, "block-write"), 60_544.0 * KIB);
    same(rate(glued, "rewrite"), 17_886.0 * KIB);
    same(rate(glued, "block-read"), 36_314.0 * KIB);
    same(rate(glued, "seeks"), 169.3);
    for trial in &imported.trials {
        assert!(
            trial
                .phases
                .iter()
                .all(|p| p.phase != "putc" && p.phase != "getc")
        );
    }
}

#[test]
fn blanks_that_do_not_fit_the_columns_are_refused_not_guessed() {
    let text = text_of("raw/bonnie-1.03-pata.txt");
    let squeezed = text.replace("1G           75696", "1G     75696");
    assert!(
        refused(&squeezed).contains("sample:6:"),
        "{}",
        refused(&squeezed)
    );
}

#[test]
fn fifty_columns_have_seeks_that_the_header_leaves_out() {
    let imported = taken(&text_of("raw/bonnie-2.00a-x2.csv"));
    let trial = &imported.trials[0];
    assert_eq!(trial.settings["seeks"], "8192");
    assert_eq!(trial.settings["seekers"], "5");
    same(rate(trial, "block-write"), 792_199.0 * KIB);
    same(figure(phase(trial, "seeks"), "latency-max"), 0.007_715);
    assert_eq!((trial.round, imported.trials[1].round), (0, 1));
}

#[test]
fn forty_eight_columns_are_read_by_the_header() {
    let row = text_of("samples/bonnie-1.96.txt");
    let row = row.lines().last().unwrap();
    assert_eq!(row.split(',').count(), 48);
    let trial = &taken(&format!("{row}\n")).trials[0];
    same(rate(trial, "putc"), 136.0 * KIB);
    same(rate(trial, "seq-delete"), 16_405.0);
    same(figure(phase(trial, "rewrite"), "latency-max"), 1.411);
    // 49 and 50 columns of this format are a comma in the name, not the newer format.
    let shifted = row.replace("romano", "ro,ma,no");
    assert_eq!(
        taken(&format!("{shifted}\n")).trials[0].cell.label,
        "ro,ma,no"
    );
}

#[test]
fn directories_are_in_the_last_field_of_1_98() {
    let trial = &taken(&text_of("raw/bonnie-2.00a.stdout")).trials[0];
    assert_eq!(trial.settings["directories"], "4");
    assert_eq!(trial.settings["file-size-max"], "1024");
}

#[test]
fn the_table_of_2_00_has_no_file_rates_and_rounded_others() {
    let text = text_of("raw/bonnie-2.00a.stdout");
    let table = text.rsplit_once("1.98,").unwrap().0;
    let imported = taken(table);
    let trial = &imported.trials[0];
    for name in ["seq-create", "seq-delete", "ran-create", "ran-delete"] {
        let garbage = phase(trial, name);
        assert_eq!(garbage.rate, None, "{name} is 65536, the number of files");
        assert_eq!(garbage.flags[0].kind, FlagKind::ToolDefect);
    }
    same(figure(phase(trial, "seq-create"), "latency-max"), 0.088_858);
    same(rate(trial, "putc"), 2419.0 * KIB);
    same(rate(trial, "block-write"), 298.0 * MIB);
    same(rate(trial, "rewrite"), 1.5 * 1024.0 * MIB);
    assert_eq!(trial.settings["seeks"], "65536");
    assert!(imported.remarks.iter().any(|r| r.text.contains("rounded")));
}

#[test]
fn the_chunk_size_of_1_98_is_unknown_unless_the_table_tells_it() {
    let imported = taken(&text_of("raw/bonnie-2.00a-x2.csv"));
    assert!(!imported.trials[0].settings.contains_key("block-size"));
    assert!(
        imported
            .remarks
            .iter()
            .any(|r| r.text.contains("chunk size"))
    );
    let text =
        text_of("raw/bonnie-2.00a.stdout").replace("box1     2G:::65536", "box1 2G:64k::65536 ");
    assert_eq!(taken(&text).trials[0].settings["block-size"], "65536");
    let usual = &taken(&text_of("raw/bonnie-2.00a.stdout")).trials[0];
    assert_eq!(usual.settings["block-size"], "8192");
    let old = &taken(&text_of("raw/bonnie-1.03e-x2.csv")).trials[0];
    assert_eq!(old.settings["block-size"], "65536");
    assert_eq!(old.settings["file-size"], (512_u64 << 20).to_string());
}

#[test]
fn a_run_without_a_big_file_has_file_phases_only() {
    let imported = taken("1.96,1.96,fslab3,1,1374655110,,,,,,,,,,,,,,60,32,32,,,1702,14,2025,12,1332,4,1873,16,2047,13,1266,3,,,,,,,3874ms,6645ms,8659ms,505ms,7257ms,9627ms\n".replace("1374655110,,,,,,,,,,,,,,60", "1374655110,,,,,,,,,,,,,,,60").as_str());
    let trial = &imported.trials[0];
    assert_eq!(trial.phases.len(), 6);
    same(rate(trial, "seq-create"), 1702.0);
    assert_eq!(phase(trial, "seq-create").ops, Some(60 * 1024));
    assert!(!trial.settings.contains_key("file-size"));
}

#[test]
fn damage_is_told_with_line_and_column() {
    let text = text_of("raw/bonnie-1.03e-x2.csv").replace(
        "512M:64k,,,+++++,+++,+++++,+++,,,+++++,+++,+++++,+++,,,,,,,,,,,,,\nbox1",
        "512M:64k,,,+++++,+++,12x45,9,,,+++++,+++,+++++,+++,,,,,,,,,,,,,\nbox1",
    );
    let message = refused(&text);
    assert!(
        message.starts_with("sample:2:27: '12x45'; expected a number (rewrite)"),
        "{message}"
    );
    let short = refused(
        "1.98,2.00a,box1,1,1795212515,512M,,8192,5,,,792199,29,+++++,+++,,,+++++,+++,+++++,+++\n",
    );
    assert!(short.contains("21 fields; expected 50 fields"), "{short}");
}

#[test]
fn a_prompt_after_the_table_is_no_damage_and_half_a_line_is() {
    let text = text_of("raw/bonnie-1.03-pata.txt");
    assert_eq!(taken(&format!("{text}root@box:~#\n")).trials.len(), 5);
    let table = text_of("raw/bonnie-2.00a.stdout");
    let table = table.rsplit_once("1.98,").unwrap().0;
    assert!(refused(&format!("{table}1.98,2.00a,box1,1\n")).contains("4 fields"));
}

#[test]
fn a_grown_file_knows_its_old_runs_again() {
    let text = text_of("raw/bonnie-2.00a-x2.csv");
    let (old, first) = (taken(&text), text.lines().nth(1).unwrap());
    let grown = taken(&format!(
        "{text}{}\n",
        first.replace("1795212515", "1795212999")
    ));
    assert_eq!(grown.trials.len(), 3);
    assert_eq!(grown.trials[0].id, old.trials[0].id);
    assert_eq!(grown.trials[1].id, old.trials[1].id);
    assert_ne!(grown.trials[2].id, old.trials[0].id);
}
