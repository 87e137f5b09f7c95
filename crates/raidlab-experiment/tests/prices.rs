//! What parts cost: how the file says it, what an array comes to, and what a price is no part of.
mod common;

use common::known;
use raidlab_experiment::experiment::TableKind;
use raidlab_experiment::{Experiment, parse};

fn sound(text: &str) -> Experiment {
    parse(text, "lab.toml", &known()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn refused(text: &str) -> String {
    let error = parse(text, "lab.toml", &known()).expect_err("this must be refused");
    error.render(false)
}

/// Two groups, a controller each; prices as asked for.
fn file(large: &str, small: &str, card: &str) -> String {
    format!(
        "title = \"t\"\nprofile = \"random\"\n\
         [disks.large]\nmodel = \"nearline-24tb\"\ncount = 4\n{large}\n\
         [disks.small]\nmodel = \"ST3000DM001\"\ncount = 2\n{small}\n\
         [topology.controllers.board]\nkind = \"sata\"\nchannels = 4\ndisks = [\"large\"]\n\
         [topology.controllers.card]\nkind = \"sata\"\nchannels = 2\ndisks = [\"small\"]\n{card}\n\
         [factors]\narray = [\n\
         {{ name = \"disks\", layout = \"raid5\", members = \"4 large\" }},\n\
         {{ name = \"SSDs\", layout = \"raid1\", members = \"2 small\" }},\n\
         {{ name = \"both\", layout = \"raid1\", members = \"1 large + 1 small\" }},\n]\n"
    )
}

fn prices(experiment: &Experiment) -> Vec<Option<String>> {
    let cells = experiment.cells.iter();
    cells
        .map(|cell| Some(experiment.price(&cell.setup.array)?.to_string()))
        .collect()
}

#[test]
fn an_array_costs_its_members_and_their_controllers() {
    let (large, small) = ("price = \"430 EUR\"", "price = \"€99.95\"");
    let some = |text: &str| Some(text.to_owned());
    let with_card = sound(&file(large, small, "price = \"180 eur\""));
    // A controller without a price is there already; one with a price is paid for once.
    assert_eq!(
        prices(&with_card),
        [some("1720 EUR"), some("379.90 EUR"), some("709.95 EUR")]
    );
    let without = sound(&file(large, small, ""));
    assert_eq!(
        prices(&without),
        [some("1720 EUR"), some("199.90 EUR"), some("529.95 EUR")]
    );
    // Unknown is not nothing.
    let partly = sound(&file(large, "", ""));
    assert_eq!(prices(&partly), [some("1720 EUR"), None, None]);
    let nothing = sound(&file(large, "price = \"0 EUR\"", ""));
    assert_eq!(prices(&nothing)[1], some("0 EUR"));
}

#[test]
fn a_price_changes_no_trial_and_is_kept() {
    let with = sound(&file("price = \"430 EUR\"", "", ""));
    let without = sound(&file("", "", ""));
    let digests = |e: &Experiment| -> Vec<String> {
        e.cells.iter().map(|cell| e.cell_digest(cell)).collect()
    };
    assert_eq!(digests(&with), digests(&without));
    let kept = Experiment::from_json(&with.to_json().unwrap()).unwrap();
    assert_eq!(kept, with);
    let kept = Experiment::from_toml(&with.to_toml().unwrap()).unwrap();
    assert_eq!(kept.prices, with.prices);
    // Files without prices are stored as before there were any.
    assert!(!without.to_json().unwrap().contains("prices"));
}

#[test]
fn what_is_worth_a_look_is_told_where_arrays_differ() {
    let several = sound(&file("", "", ""));
    assert!(several.report.tables.contains(&TableKind::Worth));
    let one = sound(
        "title = \"t\"\nprofile = \"random\"\ndisks = { model = \"ST3000DM001\", count = 2 }\n\
         [array]\nlayout = \"raid0\"\n[factors]\nchunk = [\"64KiB\", \"128KiB\"]\n",
    );
    assert!(!one.report.tables.contains(&TableKind::Worth));
}

#[test]
fn wrong_prices_are_told_all_at_once() {
    let text = file("price = 430", "price = \"1,200 EUR\"", "price = \"-5 EUR\"");
    insta::assert_snapshot!("wrong_prices", refused(&text));
    let text = file("price = \"430 EUR\"", "price = \"99 USD\"", "");
    insta::assert_snapshot!("two_currencies", refused(&text));
    let text = file("", "", "price = \"180 EUR\"");
    insta::assert_snapshot!("a_controller_alone", refused(&text));
}
