use super::*;

#[test]
fn every_controller_of_the_catalogue_is_read_and_has_its_name() {
    for (name, text) in MODELS {
        let model = parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(model.controller.name, *name);
        assert!(!model.description.is_empty());
        assert!(model.facts.iter().all(|fact| !fact.source.is_empty()));
        assert_eq!(
            find(&name.to_lowercase()).unwrap().controller,
            model.controller
        );
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let message = find("PERC9").unwrap_err().to_string();
    assert!(
        message.contains("'PERC9'") && message.contains("ITE8212, PERC3/Di, pata"),
        "{message}"
    );
}

#[test]
fn all_that_is_wrong_is_said_with_its_line() {
    let text = r#"name = "x"
description = "y"
link = "scsi"
[adapter]
source = "assumed"
request_kib = 0
[channel]
source = "assumed"
efficiency_percent = 120
rates = 3
[cache]
size_kib = { value = 64, source = "assumed" }
line_kib = { value = 48, source = "no mark" }
"#;
    let shared = "name = 'x'\ndescription = 'x'\nlink = 'sata'\n\
                  adapter = { request_kib = { value = 128, source = 'assumed: x' } }\n[channel]\n\
                  first_both_mb_s = { value = 61, source = 'assumed: x' }\n";
    insta::assert_snapshot!(parse("own.toml", shared).unwrap_err(), @"own.toml:6:29: 'channel.first_both_mb_s' is of channels that disks share, and those of sata are not");
    insta::assert_snapshot!(parse("bad.toml", text).unwrap_err(), @r"
    bad.toml:6:15: 'adapter.request_kib' is 0 KiB: between 4 and 1048576 is possible
    bad.toml:9:22: 'channel.efficiency_percent' is 120 %: between 1 and 100 is possible
    bad.toml:10:1: 'channel.rates' is not known here: known are command_us, efficiency_percent, first_both_mb_s, rate_mb_s, reconnect_us, slow_efficiency_percent, switch_read_us, switch_write_us
    bad.toml:11:1: 'cache.host_read_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:11:1: 'cache.host_write_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:11:1: 'cache.disk_read_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:11:1: 'cache.disk_write_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:11:1: 'cache.memory_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:11:1: 'cache.xor_mb_s' is missing: give a rate in millions of bytes a second
    bad.toml:12:22: a cache has at least 16 lines beside what the firmware needs
    bad.toml:13:12: the source of 'cache.line_kib' is 'no mark': begin it with M:, S:, K:, K-low:, D:, fitted: or assumed:
    bad.toml:13:22: a cache line is a power of two of at most 128 KiB
    ");
}

#[test]
fn buses_give_less_than_their_peak() {
    assert_eq!(bus_efficiency("pci-32-33"), 70);
    assert_eq!(bus_efficiency("pci-x-64-133"), 85);
    assert_eq!(bus_efficiency("pcie-3-x8"), 84);
    assert_eq!(bus_efficiency("of my own"), 100);
}

/// As of disks: every key of a controller's file is written down.
#[test]
fn the_keys_of_controllers_are_described() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
    let described = std::fs::read_to_string(path).unwrap();
    let described = described.split_once("## Controllers").unwrap().1;
    let mut seen = 0;
    for name in ["ITE8212", "PERC3/Di"] {
        let text = MODELS.iter().find(|(known, _)| *known == name).unwrap().1;
        // Of an unknown key in each table it is told which are known there.
        let asked = text.replace("]\n", "]\nnone_such = 1\n");
        let error = parse("own.toml", &asked).unwrap_err().to_string();
        let known = error
            .lines()
            .filter_map(|line| line.split_once("known are "));
        for key in known.flat_map(|(_, keys)| keys.split(", ")) {
            seen += 1;
            assert!(described.contains(&format!("`{key}`")), "{key}");
        }
    }
    assert!(seen > 30, "{seen}");
}
