//! iozone, HDBENCH clone, elbencho, vdbench and sysbench.
use super::*;

#[test]
fn iozone_blanks_are_tests_not_run() {
    let trial = &taken(&text_of("samples/iozone-3.4.txt")).trials[0];
    let names: Vec<_> = trial.phases.iter().map(|p| p.phase.as_str()).collect();
    assert_eq!(
        names,
        [
            "write",
            "rewrite",
            "random-read",
            "random-write",
            "stride-read"
        ]
    );
    same(rate(trial, "stride-read"), 3_779_260.0 * KIB);
    // Spaces that were lost put a value between two titles: refused, not guessed.
    let squeezed = text_of("samples/iozone-3.4.txt").replace(
        "22524                    816017",
        "22524                816017",
    );
    let message = refused(&squeezed);
    assert!(message.starts_with("sample:19:57:"), "{message}");
    assert!(message.contains("Keep the table's spaces"), "{message}");
}

#[test]
fn iozone_in_other_units_or_without_its_end_is_refused() {
    let text = text_of("samples/iozone-3.492.txt");
    assert!(refused(&text.replace("kBytes/sec", "ops/sec")).contains("without -O"));
    assert!(refused(&text.replace("iozone test complete.", "")).contains("test complete"));
}

#[test]
fn hdbench_clone_kb_is_1000_bytes() {
    for sample in [
        "samples/hdbench-clone-0.20.txt",
        "samples/hdbench-clone-0.20.tsv",
    ] {
        let trial = &taken(&text_of(sample)).trials[0];
        same(rate(trial, "read"), 46_020_000.0);
        same(rate(trial, "write"), 41_529_000.0);
        assert_eq!(trial.settings["file-size"], "100000000");
    }
    let pairs = "TOTAL\t1\nREAD\t46020\nWRITE\t41529\nDRIVE\t/home:100MB\n";
    let source = Source::new("x").format(Format::HdbenchClone);
    let imported = import(pairs.as_bytes(), &source).unwrap();
    same(rate(&imported.trials[0], "read"), 46_020_000.0);
    let old = " TOTAL FLOAT INTGR MEMRY  RECT CIRCL  TEXT  SCRL IMAGE  READ WRITE DRIVE\n     1     2     3     4     5     6     7     8     9 46020 41529 /home:100MB\n";
    same(rate(&taken(old).trials[0], "write"), 41_529_000.0);
}

#[test]
fn elbencho_is_read_by_titles_and_last_done() {
    let text = text_of("samples/elbencho-3.1.csv");
    let imported = taken(&text);
    assert_eq!(imported.trials.len(), 2);
    same(rate(&imported.trials[0], "write"), 2941.0 * MIB);
    same(
        figure(phase(&imported.trials[0], "write"), "rate-first-done"),
        3494.0 * MIB,
    );
    assert_eq!(phase(&imported.trials[0], "mkdirs").unit, Unit::PerSecond);
    assert_eq!(
        phase(&imported.trials[0], "write").cpu_percent,
        None,
        "it is the host's"
    );
    let headless = text.split_once('\n').unwrap().1;
    let source = Source::new("x").format(Format::Elbencho);
    assert!(import(headless.as_bytes(), &source).is_err());
}

#[test]
fn vdbench_averages_are_taken_once() {
    let text = text_of("samples/vdbench-flatfile.html");
    let imported = taken(&text);
    let runs: Vec<_> = imported
        .trials
        .iter()
        .map(|t| t.cell.factors["run"].as_str())
        .collect();
    assert_eq!(runs, ["rd1_read", "rd2_mix"]);
    same(rate(&imported.trials[0], "read"), 40.0 * MIB);
    same(
        figure(phase(&imported.trials[0], "read"), "latency-max"),
        0.0045,
    );
    let cut: Vec<&str> = text
        .lines()
        .filter(|l| !l.contains("rd2_mix avg"))
        .collect();
    assert!(refused(&format!("{}\n", cut.join("\n"))).contains("average of run rd2_mix"));
}

#[test]
fn sysbench_latencies_are_of_all_operations_together() {
    let text = text_of("raw/sysbench-1.0.20-fileio.txt");
    let trial = &taken(&text).trials[0];
    same(rate(trial, "read"), 528.33 * MIB);
    same(rate(trial, "fsync"), 2255.70);
    assert!(
        phase(trial, "read")
            .figures
            .iter()
            .all(|f| f.name == "iops")
    );
    same(figure(phase(trial, "events"), "latency-p95"), 0.000_01);
    let interval = text.replace("Threads started!", "Threads started!\n[ 1s ] reads: 288.53 MiB/s writes: 192.35 MiB/s fsyncs: 1230.07/s latency (ms,95%): 0.005");
    assert_eq!(taken(&interval).trials[0].phases, trial.phases);
    assert!(
        refused("sysbench 0.4.12:  multi-threaded system evaluation benchmark\n").contains("1.0")
    );
    let unreleased = text.replace("sysbench 1.0.20 ", "sysbench 1.1.0-2ca9e3f ");
    assert!(refused(&unreleased).contains("never released"));
    let gap = text.replace("    written, MiB/s:               352.22\n", "");
    assert!(
        refused(&gap).contains("'written, MiB/s:'"),
        "{}",
        refused(&gap)
    );
}

/// `--rwmixpct`: the columns without a prefix are of the writes alone.
#[test]
fn elbencho_tells_the_reads_of_a_mix_apart() {
    let titles = "ISO date,label,operation,time ms [first],time ms [last],IOPS [last],MiB/s [last],CPU% [last],MiB [last],IO lat us [avg],rwmix read IOPS [last],rwmix read MiB/s [last],rwmix read MiB [last],rwmix read IO lat us [avg],version,command";
    let row = "2026-05-22T16:09:38,x,RWMIX70,10000,10000,300,300,9,3000,50,700,700,7000,20,3.1-1,elbencho";
    let imported = taken(&format!("{titles}\n{row}\n"));
    let trial = &imported.trials[0];
    same(rate(trial, "rwmix70"), 300.0 * MIB);
    same(rate(trial, "rwmix70-read"), 700.0 * MIB);
    let read = phase(trial, "rwmix70-read");
    same(figure(read, "latency-mean"), 0.000_02);
    same(figure(read, "iops"), 700.0);
    assert_eq!(read.bytes, Some(7000 << 20));
    // Of a run without reads the columns are empty.
    let none = row.replace(",700,700,7000,20,", ",,,,,");
    let imported = taken(&format!("{titles}\n{none}\n"));
    assert_eq!(imported.trials[0].phases.len(), 1);
}
