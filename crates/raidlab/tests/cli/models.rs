//! `raidlab disk`.
use crate::lab::Lab;

/// A disk of few parameters.
pub(crate) const DISK: &str = r#"name = "small"
kind = "hdd"
description = "A small disk"

[interface]
source = "assumed"
kind = "SATA"
rate_mb_s = 300

[geometry]
source = "assumed"
rpm = 7200
heads = 2
sectors = 20000000

[rate]
source = "assumed"
outer_mb_s = 80
inner_mb_s = 40

[seek]
source = "assumed"
track_to_track_ms = 1
average_ms = 9
full_ms = 18

[cache]
source = "assumed"
size_kib = 8192

[overhead]
source = "assumed"
read_hit_us = 50
read_miss_us = 200
write_us = 50

[queue]
source = "assumed"
depth = 32
"#;

#[test]
fn the_catalogue_is_listed() {
    let lab = Lab::new();
    lab.run("disk list").done().prints(&[
        "ST340015A",
        "nvme-ssd",
        "ITE8212",
        "PERC3/Di",
        "random read",
        "The processors of the catalogue",
        "Turion II Neo N40L",
    ]);
    let json = lab.run("disk list --json").done().json();
    let disks = json["disks"].as_array().expect("a list");
    assert!(disks.len() >= 10, "{}", disks.len());
    for disk in disks {
        let derived = &disk["derived"];
        let rate = |name: &str| derived[name].as_f64().expect("a figure");
        assert!(rate("outer_bytes_per_second") >= rate("inner_bytes_per_second"));
        assert!(rate("random_read_ms") > 0.0);
    }
    assert!(json["controllers"].as_array().expect("a list").len() >= 2);
    for processor in json["processors"].as_array().expect("a list") {
        assert!(processor["clock_mhz"].as_u64().expect("a clock") >= 1000);
        let name = processor["model"].as_str().expect("a name");
        // An experiment that names it as it is listed here is understood.
        assert!(raidlab_sim::catalogue::cpu::find(name).is_some(), "{name}");
    }
    lab.assert_untouched();
}

/// A disk of three sectors has no room for a read of 4 KiB, and no figure of one.
#[test]
fn a_disk_that_is_too_small_for_a_figure_has_none() {
    let lab = Lab::new();
    let file = lab.run("disk show ST340015A --file").done().out;
    let tiny = file
        .lines()
        .map(|line| match line.starts_with("sectors = ") {
            true => "sectors = { value = 3, source = \"assumed\" }",
            false => line,
        });
    lab.write("tiny.toml", tiny.collect::<Vec<_>>().join("\n"));
    let told = lab.run("disk show ./tiny.toml").done();
    assert!(told.out.contains("1.5 KiB"), "{}", told.out);
    assert!(!told.out.contains("random read"), "{}", told.out);
    let json = lab.run("disk show ./tiny.toml --json").done().json();
    let all = json.to_string();
    assert!(all.contains("\"random_read_ms\":null"), "{all}");
}

#[test]
fn a_model_is_shown_with_its_sources() {
    let lab = Lab::new();
    lab.run("disk show st340015a").done().prints(&[
        "geometry.rpm",
        "product manual",
        "average seek, any two cylinders",
        "12.500 ms",
    ]);
    let json = lab.run("disk show ST340015A --json").done().json();
    let parameters = json["parameters"].as_array().expect("a list");
    assert!(parameters.iter().all(|p| p["source"].is_string()));
    lab.run("disk show PERC3/Di")
        .done()
        .prints(&["cache", "source"]);
    let json = lab.run("disk show ITE8212 --json").done().json();
    assert_eq!(json["kind"], "controller");
}

/// What databases wait for: a flush behind each write costs a drive without capacitors nearly all that it can do.
#[test]
fn a_model_tells_of_durable_writes() {
    let lab = Lab::new();
    lab.run("disk show nvme-ssd")
        .done()
        .prints(&["random writes a second, each flushed (durable)"]);
    let json = lab.run("disk show nvme-ssd --json").done().json();
    let rate = |of: &str| json["derived"][of].as_f64().expect("a rate");
    let (flushed, queued) = (rate("flushed_write_iops"), rate("queued_write_iops"));
    assert!(
        (384.0..1751.0).contains(&flushed),
        "{flushed} is none of a desktop drive"
    );
    assert!(flushed < queued / 100.0, "{flushed} {queued}");
}

#[test]
fn a_model_may_be_a_file() {
    let lab = Lab::new();
    lab.write("small.toml", DISK);
    lab.run("disk show small.toml")
        .done()
        .prints(&["A small disk", "80.0 MB/s", "4.167 ms"]);
    lab.write(
        "wrong.toml",
        DISK.replace("7200", "-7200").replace("depth", "deep"),
    );
    lab.run("disk show wrong.toml").refused(2).says(&[
        "error: 2 things are wrong with wrong.toml\n",
        "wrong.toml:12:7: 'geometry.rpm' is -7200",
        "'queue.deep' is not known here",
    ]);
    lab.write("none.toml", "name = ");
    lab.run("disk show none.toml")
        .refused(2)
        .says(&["error: none.toml:1:"]);
    lab.write("latin.toml", b"name = 'ok'\ntitle = 'gr\xfcn'\n");
    for line in [
        "disk show latin.toml",
        "disk show latin.toml --file",
        "plan latin.toml",
        "run latin.toml --on sim",
    ] {
        lab.run(line).refused(2).says(&[
            "error: cannot read latin.toml: line 2, column 12: the byte 0xfc is not UTF-8",
        ]);
    }
}

#[test]
fn a_models_file_is_printed_as_it_is() {
    let lab = Lab::new();
    for (model, key) in [("st340015a", "[geometry]"), ("PERC3/Di", "[cache]")] {
        let text = lab.run(&format!("disk show {model} --file")).done().out;
        assert!(text.contains(key), "{text}");
        // It is one to begin with.
        lab.write("own.toml", &text);
        lab.run("disk show own.toml").done();
        let again = lab.run("disk show own.toml --file").done().out;
        assert_eq!(again, text);
    }
    lab.write("own.toml", "name = ");
    lab.run("disk show own.toml --file").refused(2);
    lab.run("disk show ST1 --file").refused(2);
}

#[test]
fn a_processor_is_shown_and_is_no_disk() {
    let lab = Lab::new();
    let shown = lab.run("disk show 'xeon 1.6 ghz'").done().out;
    assert!(shown.starts_with("Xeon 1.6 GHz: Intel Xeon MP"), "{shown}");
    assert!(shown.contains("memory.copy_mb_s"), "{shown}");
    let json = lab.run("disk show modern --json").done().json();
    assert_eq!(
        (&json["kind"], &json["clock_mhz"]),
        (&"processor".into(), &3500.into())
    );
    let file = lab.run("disk show modern --file").done().out;
    assert!(file.contains("clock_mhz = { value = 3500"), "{file}");
    lab.run("replay trace --disk modern")
        .refused(2)
        .says(&["'modern' is a processor, and a disk is needed"]);
}

#[test]
fn a_model_that_is_not_there() {
    let lab = Lab::new();
    // It may have been a controller.
    lab.run("disk show ST1").refused(2).says(&[
        "there is no model 'ST1'",
        "the path of a model file",
        "a disk (ST340015A",
        "a controller (ITE8212",
        "a processor (Athlon 64 X2 3800+",
    ]);
    lab.run("replay trace --disk ST1")
        .refused(2)
        .says(&["there is no disk model 'ST1'"]);
    lab.run("disk show ./ST1.toml")
        .refused(2)
        .says(&["cannot read ./ST1.toml"]);
    lab.assert_untouched();
}
