//! `raidlab disk new`.
use crate::lab::Lab;

const NEW: &str = "disk new hdd --capacity 8TB --rpm 5640 --outer-rate 215MB/s --cache 256MiB";

/// From the sheet to a prediction: the file is read by `disk show` and by an experiment.
#[test]
fn a_file_from_a_datasheet_is_read_back() {
    let lab = Lab::new();
    let made = lab
        .run(NEW)
        .done()
        .says(&["215 MB/s to 108 MB/s in sequence"]);
    lab.write("mine.toml", &made.out);
    lab.run("disk show ./mine.toml").done().prints(&[
        "hdd-8tb-5640rpm: 8 TB hard disk",
        "8001.6 GB",
        "assumed",
        "12.000 ms",
    ]);
    lab.write(
        "lab.toml",
        "title = \"x\"\ndisks = { model = \"./mine.toml\", count = 4 }\nprofile = \"random\"\n\
         [factors]\nlayout = [\"raid5\"]\n",
    );
    lab.run("plan lab.toml").done();
    lab.write(
        "nvme.toml",
        lab.run(
            "disk new ssd --name 'My \"fast\" one' --capacity 4TB --interface pcie-4x4 --read-rate 7000MB/s \
             --write-rate 6500MB/s --read-iops 1000k --write-iops 500,000",
        )
        .done()
        .says(&["it writes 500000 random 4 KiB a second"])
        .out,
    );
    lab.run("disk show ./nvme.toml")
        .done()
        .prints(&["My \"fast\" one: 4 TB solid-state disk, PCIe 4.0 x4"]);
}

#[test]
fn what_no_disk_has_is_told_by_option() {
    let lab = Lab::new();
    lab.run("disk new hdd --capacity 1536 --rpm -5 --outer-rate 700MB/s")
        .refused(2)
        .says(&[
            "error: --capacity: 1536 bytes, 3 sectors",
            "--rpm: -5 turns a minute",
            "--outer-rate: 700 MB/s is more than SATA 6 Gb/s carries",
        ]);
    for (line, says) in [
        (
            "disk new hdd --capacity 8T --rpm 7200 --outer-rate 200MB/s",
            "'8TB' (8000000000000 bytes)",
        ),
        (
            "disk new hdd --capacity 8TB --rpm 7200 --outer-rate 200MB",
            "such as 215MB/s",
        ),
        (
            "disk new hdd --capacity 8TB --rpm 7200 --outer-rate -200MB/s",
            "--outer-rate",
        ),
        (
            "disk new hdd --capacity 8TB --rpm fast --outer-rate 200MB/s",
            "--rpm",
        ),
        (
            "disk new hdd --capacity 8TB --rpm 7200 --outer-rate 200MB/s --interface sata",
            "sata-6",
        ),
        (
            "disk new ssd --capacity 1TB --interface sata-6 --read-rate 560MB/s --write-rate 510MB/s --read-iops lots",
            "such as 95000 or 95k",
        ),
        ("disk new ssd --capacity 1TB", "--read-iops"),
    ] {
        let ran = lab.run(line).refused(2).says(&[says]);
        assert_eq!(ran.out, "", "{line}");
    }
    lab.assert_untouched();
}
