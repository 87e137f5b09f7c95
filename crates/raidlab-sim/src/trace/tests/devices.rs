//! Devices of traces, by their names.
use super::*;

const MSR: &str = "\
128166372003061629,usr,0,Read,0,4096,1000
128166372013061629,prn,0,Write,8192,4096,1000
128166372023061629,prn,1,Write,8192,4096,1000
";

/// Names of the devices of a trace's records, of the one that is asked for or of all, and how many were skipped.
fn devices(format: Format, text: &str, only: Option<&str>) -> Result<(Vec<String>, u64), String> {
    let mut reader = Reader::new(format, text.lines());
    if let Some(name) = only {
        let name = name.parse()?;
        reader.only(&name).map_err(|error| error.to_string())?;
    }
    let mut names = Vec::new();
    while let Some(record) = reader.next() {
        let record = record.map_err(|error| error.to_string())?;
        names.push(reader.device(record.device));
    }
    Ok((names, reader.others().values().sum()))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn disks_of_two_hosts_are_two_devices() {
    let of = |only| devices(Format::Msr, MSR, only);
    assert_eq!(of(None), Ok((names(&["usr:0", "prn:0", "prn:1"]), 0)));
    assert_eq!(of(Some("prn:0")), Ok((names(&["prn:0"]), 2)));
    assert_eq!(of(Some("usr,0")), Ok((names(&["usr:0"]), 2)));
    // As the files of these traces are called.
    assert_eq!(of(Some("prn_1")), Ok((names(&["prn:1"]), 2)));
    assert_eq!(of(Some("prn.1")), Ok((names(&["prn:1"]), 2)));
    assert_eq!(of(Some("web:0")), Ok((Vec::new(), 3)));
    // A number is enough where one host alone has such a disk.
    assert_eq!(of(Some("1")), Ok((names(&["prn:1"]), 2)));
    insta::assert_snapshot!(of(Some("0")).unwrap_err(), @"2:20: host 'prn' has a disk 0, too, as host 'usr' above: name the one that is meant with its host, as 'usr:0'");
}

#[test]
fn a_device_is_asked_for_as_the_trace_names_it() {
    let blkparse = "8,0 1 1 0.0 5 Q R 0 + 8 [x]\n8,16 1 1 0.0 5 Q R 0 + 8 [x]\n";
    for name in ["8,16", "8:16", "8388624"] {
        let of = devices(Format::Blkparse, blkparse, Some(name));
        assert_eq!(of, Ok((names(&["8,16"]), 1)), "{name}");
    }
    let disksim = "0 3 0 8 1\n0 4 0 8 1\n";
    assert_eq!(
        devices(Format::DiskSim, disksim, Some("4")),
        Ok((names(&["4"]), 1))
    );
    let wrong = [
        (Format::Blkparse, "4096,0"),
        (Format::Blkparse, "usr:0"),
        (Format::DiskSim, "8,16"),
        (Format::Msr, "usr:1048576"),
        (Format::Msr, "8,x"),
        (Format::Msr, ":1"),
        (Format::Msr, "+1"),
    ];
    let messages: Vec<String> = wrong
        .iter()
        .map(|(format, name)| devices(*format, "", Some(name)).unwrap_err())
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    '4096,0' is no device of a trace like this: blkparse prints two numbers, below 2^12 and 2^20, such as 8,16
    'usr:0' is no device of a trace like this: blkparse prints two numbers, below 2^12 and 2^20, such as 8,16
    '8,16' is no device of a trace like this: it has a number for each, such as 0
    'usr:1048576' is no device of a trace like this: write host and disk, a number below 2^20, such as usr:0
    '8,x' is no device of a trace like this: write host and disk, a number below 2^20, such as usr:0
    ':1' is no device of a trace like this: write host and disk, a number below 2^20, such as usr:0
    '+1' is no device of a trace like this: write host and disk, a number below 2^20, such as usr:0
    ");
}

/// fio's log names files, which may be devices; what is left out of others is not counted.
#[test]
fn a_file_of_fio_is_a_device_by_its_name() {
    let log = "fio version 3 iolog\n0 /dev/sdb add\n0 /dev/sdc add\n5 /dev/sdc write 0 4096\n6 /dev/sdb trim 0 4096\n\
        7 /dev/sdb read 0 4096\n8 data,1 read 0 4096\n9 /dev/sdc read 0 4096\n";
    let of = |only| devices(Format::Fio, log, only);
    let all = names(&["/dev/sdc", "/dev/sdb", "data,1", "/dev/sdc"]);
    assert_eq!(of(None), Ok((all, 0)));
    assert_eq!(of(Some("/dev/sdb")), Ok((names(&["/dev/sdb"]), 3)));
    let second = Ok((names(&["/dev/sdc", "/dev/sdc"]), 2));
    assert_eq!(of(Some("/dev/sdc")), second);
    assert_eq!(of(Some("data,1")), Ok((names(&["data,1"]), 3)));
    // Another file may be called so.
    assert_eq!(of(Some("data:1")), Ok((Vec::new(), 4)));
    assert_eq!(of(Some("/dev/sdd")), Ok((Vec::new(), 4)));
    let mut reader = Reader::new(Format::Fio, log.lines());
    reader.only(&"/dev/sdc".parse().unwrap()).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!(reader.left_out().discards, 0);
}

/// SPC has room for columns of one's own, and is told from MSR by what is done.
#[test]
fn rows_with_seven_columns_are_told_apart() {
    let detect = |line: &str| Format::detect(line);
    assert_eq!(detect("0,0,4096,R,0,x,y"), Some(Format::Spc));
    assert_eq!(detect("0, 0, 4096, w, 0, x, y"), Some(Format::Spc));
    assert_eq!(detect("0,0,4096,W,0"), Some(Format::Spc));
    assert_eq!(detect(MSR.lines().next().unwrap()), Some(Format::Msr));
    assert_eq!(
        detect("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        Some(Format::Msr)
    );
}
