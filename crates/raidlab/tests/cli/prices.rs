//! What arrays cost, from the file to the report and the answers.
use crate::lab::Lab;
use serde_json::Value;

/// Runs an experiment, and asks for its answers: the price of each cell's array, by its label.
fn prices(lab: &Lab, file: &str) -> Vec<(String, f64)> {
    lab.write("lab.toml", file);
    lab.run("run lab.toml --on sim").done();
    let answers = lab.run("report --answers").done().json();
    let cells = answers["cells"].as_array().expect("a list");
    let price = |cell: &Value| {
        let label = cell["cell"].as_str().expect("a label");
        let price = cell["array"]["price"].as_f64().expect("a price");
        (label.to_owned(), price)
    };
    cells.iter().map(price).collect()
}

const PROFILE: &str =
    "[profile]\nname = \"random\"\nsize = \"16MiB\"\ntime = \"20ms\"\n[design]\nrepeats = 2\n";

/// Mirrors of equal size may be of disks that cost quite different sums.
#[test]
fn arrays_that_look_alike_have_the_prices_of_their_own_members() {
    let lab = Lab::new();
    let file = format!(
        "title = \"t\"\n\
         [disks.big]\nmodel = \"nearline-24tb\"\ncount = 1\nprice = \"430 EUR\"\n\
         [disks.ssd]\nmodel = \"sata-ssd\"\ncount = 3\nprice = \"80 EUR\"\n{PROFILE}\
         [factors]\nchunk = [\"64KiB\", \"512KiB\"]\n\
         array = [{{ name = \"hybrid\", layout = \"raid0\", members = \"1 big + 1 ssd\", member-size = \"100GiB\" }}, \
         {{ name = \"flash\", layout = \"raid0\", members = \"2 ssd\", member-size = \"100GiB\" }}]\n"
    );
    let told = prices(&lab, &file);
    let of = |name: &str| {
        let of = told.iter().filter(|(label, _)| label.contains(name));
        of.map(|(_, price)| *price).collect::<Vec<_>>()
    };
    assert_eq!(of("hybrid"), [510.0, 510.0], "{told:?}");
    assert_eq!(of("flash"), [160.0, 160.0], "{told:?}");
    let report = lab.run("report").done();
    let rows = |name: &str, price: &str| {
        let of = |line: &&str| line.contains(name) && line.contains(price);
        report.out.lines().filter(of).count()
    };
    // Both chunks are one row, for they cost and hold the same.
    let (hybrid, flash) = (
        "raid0 of 2 disks (1 big + 1 ssd), ",
        "raid0 of 2 disks (2 ssd), ",
    );
    let told = (rows(hybrid, " 510 "), rows(flash, " 160 "));
    assert_eq!(told, (1, 1), "{}", report.out);
}

#[test]
fn arrays_that_look_alike_have_the_prices_of_their_own_controllers() {
    let lab = Lab::new();
    let file = format!(
        "title = \"t\"\ndisks = {{ model = \"ST3000DM001\", count = 4, price = \"90 EUR\" }}\n\
         [topology.controllers.board]\nkind = \"sata\"\nchannels = 2\ndisks = [[\"disk0\"], [\"disk1\"]]\n\
         [topology.controllers.card]\nkind = \"sata\"\nchannels = 2\nprice = \"200 EUR\"\ndisks = [[\"disk2\"], [\"disk3\"]]\n\
         {PROFILE}[factors]\narray = [{{ name = \"board\", layout = \"raid0\", members = [\"disk0\", \"disk1\"] }}, \
         {{ name = \"card\", layout = \"raid0\", members = [\"disk2\", \"disk3\"] }}]\n"
    );
    let told = prices(&lab, &file);
    let told: Vec<(&str, f64)> = told
        .iter()
        .map(|(label, price)| (&label[..], *price))
        .collect();
    assert_eq!(told, [("board", 180.0), ("card", 380.0)]);
    lab.run("report")
        .done()
        .prints(&["(on board)", "(on card)"]);
}
