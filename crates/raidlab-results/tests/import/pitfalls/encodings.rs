//! Bytes that are no UTF-8, line ends, labels.
use super::*;

const ROW: &str = "box1,1G,1,1,2,2,3,3,4,4,5,5,6.0,6,,,,,,,,,,,,,\n";

#[test]
fn latin_1_machine_names_are_read_with_a_remark() {
    let bytes: Vec<u8> = ROW
        .replace("box1", "b\u{f6}x")
        .chars()
        .map(|c| c as u8)
        .collect();
    let imported = import(&bytes, &Source::new("f")).unwrap();
    assert_eq!(imported.trials[0].cell.label, "böx");
    assert!(
        imported.remarks[0].text.contains("ISO 8859-1"),
        "{:?}",
        imported.remarks
    );
}

#[test]
fn other_bytes_are_refused_with_their_place() {
    let mut bytes = ROW.as_bytes().to_vec();
    bytes.extend(b"b\x81x");
    let error = import(&bytes, &Source::new("f")).unwrap_err();
    assert_eq!((error.line, error.column), (2, 2), "{error}");
    let zero = import(b"ab\0c", &Source::new("f")).unwrap_err();
    assert_eq!((zero.line, zero.column), (1, 3), "{zero}");
    let wide: Vec<u8> = "\u{feff}box"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let error = import(&wide, &Source::new("f")).unwrap_err();
    assert!(error.remedy.contains("iconv"), "{error}");
    // Damaged UTF-8 is not taken for Latin-1.
    let mut mixed = ROW.replace("box1", "bö").into_bytes();
    mixed.extend(b"\xF6");
    assert!(import(&mixed, &Source::new("f")).is_err());
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let plain = taken(ROW);
    let windows = taken(&format!("\u{feff}{}", ROW.replace('\n', "\r\n")));
    assert_eq!(plain.trials[0].phases, windows.trials[0].phases);
}

#[test]
fn a_label_joins_files_and_keeps_several_machines_apart() {
    let mut source = Source::new("run-1.csv");
    source.label = Some("raid5");
    let one = import(ROW.as_bytes(), &source).unwrap();
    assert_eq!(one.trials[0].cell.label, "raid5");
    let two = format!("{ROW}{}", ROW.replace("box1", "box2"));
    let both = import(two.as_bytes(), &source).unwrap();
    assert_eq!(both.trials[1].cell.label, "raid5: box2");
    let nameless = import(
        text_of("raw/tiotest-0.3.3.txt").as_bytes(),
        &Source::new("d/sda.txt"),
    );
    assert_eq!(nameless.unwrap().trials[0].cell.label, "sda");
}

#[test]
fn a_byte_order_mark_where_files_were_joined_is_no_part_of_a_name() {
    let joined = format!("\u{feff}{ROW}\u{feff}{}", ROW.replace(",2,2,", ",3,2,"));
    let imported = taken(&joined);
    assert_eq!(imported.trials[1].cell.label, "box1");
    assert_eq!(imported.trials[1].round, 1);
}

#[test]
fn output_of_another_tool_that_is_left_out_is_told() {
    let [hdparm, dd] = ["raw/hdparm-tT.txt", "raw/dd-coreutils-9.1.txt"].map(text_of);
    let imported = taken(&format!("{hdparm}{dd}"));
    assert_eq!(imported.format, Format::Hdparm);
    let lines = hdparm.lines().count();
    let told = imported
        .remarks
        .iter()
        .find(|r| r.text.contains("output of dd is left out"));
    let told = told.unwrap_or_else(|| panic!("{:?}", imported.remarks));
    assert!(
        told.line.unwrap() > lines && told.text.contains("--format dd"),
        "{told}"
    );
    let json = taken(&format!(
        "{hdparm}{}",
        text_of("raw/fio-3.33-jsonplus.json")
    ));
    let told = json
        .remarks
        .iter()
        .any(|r| r.text.contains("--format fio-json"));
    assert!(told, "{:?}", json.remarks);
    let forced = Source::new("f").format(Format::Dd);
    let text = format!("{hdparm}{dd}");
    let forced = import(text.as_bytes(), &forced).unwrap();
    assert_eq!(forced.trials.len(), taken(&dd).trials.len());
}
