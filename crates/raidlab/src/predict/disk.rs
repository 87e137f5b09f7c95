//! `raidlab disk`: the models, their parameters with sources, and what follows from them.
use super::catalogue::{self, fact};
use super::figures::Derived;
use crate::args::{DiskAction, DiskArgs};
use crate::commands::{output, print_json};
use crate::exit::{Failure, Outcome};
use raidlab_core::units::Bytes;
use raidlab_results::report::document::{Block, Cell, Column, Document, Table};
use raidlab_sim::catalogue::Model;
use serde_json::{Value, json};

pub(crate) fn run(args: &DiskArgs) -> Result<Outcome, Failure> {
    match &args.action {
        DiskAction::List { json } => list(*json),
        DiskAction::Show { model, json } => show(&catalogue::model(model)?, *json),
    }
}

fn list(as_json: bool) -> Result<Outcome, Failure> {
    let models = catalogue::models()?;
    if as_json {
        let all: Vec<Value> = models.iter().map(|(_, model)| summary(model)).collect();
        print_json(&json!({ "disks": all, "controllers": catalogue::CONTROLLERS }))?;
        return Ok(Outcome::Done);
    }
    let mut document = Document::new("Disk models");
    document.blocks.push(Block::Table(overview(&models)));
    document.blocks.push(Block::paragraph(format!(
        "Controllers: {}.",
        catalogue::CONTROLLERS.join(", ")
    )));
    document.blocks.push(Block::paragraph(
        "Rates are of sequential reading at the first and the last sector; a random read is of 4 KiB, \
         one at a time. 'raidlab disk show MODEL' prints every parameter with its source.",
    ));
    output::print_document(&document)?;
    Ok(Outcome::Done)
}

/// Decimal gigabytes, as drives are sold.
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

fn overview(models: &[(&str, Model)]) -> Table {
    let columns = vec![
        Column::text("model"),
        Column::number("GB"),
        Column::text("link"),
        Column::number("rpm"),
        Column::number("outer").under("MB/s"),
        Column::number("inner").under("MB/s"),
        Column::number("avg seek").under("ms"),
        Column::number("random read").under("ms"),
        Column::text("what it is"),
    ];
    let caption = "The disks of the catalogue";
    let mut table = Table::new("disks", caption, columns);
    for (name, model) in models {
        let derived = Derived::of(&model.disk);
        let seek = derived.seek_average_ms;
        table.rows.push(vec![
            Cell::text(*name),
            Cell::number(gigabytes(derived.capacity_bytes), 0),
            fact(model, "interface.kind").map_or_else(Cell::absent, Cell::text),
            fact(model, "geometry.rpm").map_or_else(Cell::absent, Cell::text),
            Cell::number(derived.outer_bytes_per_second / 1e6, 1),
            Cell::number(derived.inner_bytes_per_second / 1e6, 1),
            seek.map_or_else(Cell::absent, |ms| Cell::number(ms, 2)),
            Cell::number(derived.random_read_ms, if seek.is_some() { 2 } else { 3 }),
            Cell::text(model.description.clone()),
        ]);
    }
    table
}

fn summary(model: &Model) -> Value {
    json!({
        "model": model.disk.name(),
        "description": model.description,
        "link": fact(model, "interface.kind"),
        "rotational": model.disk.rotational(),
        "physical_sector_bytes": u64::from(model.disk.physical()) * 512,
        "queue": model.disk.tags(),
        "derived": Derived::of(&model.disk),
    })
}

fn show(model: &Model, as_json: bool) -> Result<Outcome, Failure> {
    if as_json {
        let mut shown = summary(model);
        let facts = model.facts.iter().map(|fact| {
            json!({
                "key": fact.key, "value": fact.value,
                "mark": fact.mark.to_string(), "source": fact.source,
            })
        });
        shown["parameters"] = facts.collect();
        print_json(&shown)?;
        return Ok(Outcome::Done);
    }
    let mut document = Document::new(format!("{}: {}", model.disk.name(), model.description));
    document.blocks.push(Block::Table(parameters(model)));
    document.blocks.push(Block::paragraph(
        "M: measured on the drive. S: from a source that was read. K: from a datasheet that was not read \
         again (K-low: remembered with doubt). D: by arithmetic. fitted: so that published rows come out. \
         assumed: usual for the kind.",
    ));
    document.blocks.push(Block::Table(derived(model)));
    output::print_document(&document)?;
    Ok(Outcome::Done)
}

fn parameters(model: &Model) -> Table {
    let columns = vec![
        Column::text("parameter"),
        Column::text("value"),
        Column::text("trust"),
        Column::text("source"),
    ];
    let mut table = Table::new("parameters", "Parameters and their sources", columns);
    for fact in &model.facts {
        table.rows.push(vec![
            Cell::text(fact.key.clone()),
            Cell::text(fact.value.clone()),
            Cell::text(fact.mark.to_string()),
            Cell::text(fact.source.clone()),
        ]);
    }
    table
}

fn derived(model: &Model) -> Table {
    let columns = vec![Column::text("figure"), Column::text("value")];
    let mut table = Table::new("derived", "What follows from them", columns);
    let mut row = |name: &str, value: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    };
    let of = Derived::of(&model.disk);
    let rate = |bytes: f64| format!("{:.1} MB/s", bytes / 1e6);
    let capacity = Bytes(of.capacity_bytes);
    row(
        "capacity",
        format!("{:.1} GB ({capacity})", gigabytes(of.capacity_bytes)),
    );
    if of.rotation_half_ms.is_some() {
        row(
            "sequential read, outermost tracks",
            rate(of.outer_bytes_per_second),
        );
        row(
            "sequential read, innermost tracks",
            rate(of.inner_bytes_per_second),
        );
    } else {
        row("sequential read", rate(of.outer_bytes_per_second));
    }
    let times = [
        ("seek to the next cylinder", of.seek_track_ms),
        ("average seek, any two cylinders", of.seek_average_ms),
        ("seek over all cylinders", of.seek_full_ms),
        ("half a turn", of.rotation_half_ms),
        ("random read of 4 KiB", Some(of.random_read_ms)),
    ];
    for (name, time) in times {
        if let Some(ms) = time {
            row(name, format!("{ms:.3} ms"));
        }
    }
    row(
        "random reads a second, one in flight",
        format!("{:.1}", of.random_read_iops),
    );
    if of.queue > 1 {
        let name = format!("random reads a second, {} in flight", of.queue);
        row(&name, format!("{:.1}", of.queued_read_iops));
    }
    table
}
