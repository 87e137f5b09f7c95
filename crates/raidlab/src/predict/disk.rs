//! `raidlab disk`: the models, their parameters with sources, and what follows from them.
use super::catalogue::{self, Named, fact};
use super::figures::Derived;
use crate::args::{DiskAction, DiskArgs};
use crate::commands::{output, print, print_json};
use crate::exit::{Failure, Outcome};
use raidlab_core::units::Bytes;
use raidlab_results::report::document::{Block, Cell, Column, Document, Table};
use raidlab_sim::catalogue::controller::{self, ControllerModel};
use raidlab_sim::catalogue::{Fact, Model, cpu};
use serde_json::{Value, json};

pub(crate) fn run(args: &DiskArgs) -> Result<Outcome, Failure> {
    match &args.action {
        DiskAction::List { json } => list(*json),
        DiskAction::Show { model, file, .. } if *file => {
            // With the check of what is in it.
            catalogue::model(model)?;
            print(&catalogue::file(model)?)?;
            Ok(Outcome::Done)
        }
        DiskAction::Show { model, json, .. } => match catalogue::model(model)? {
            Named::Disk(model) => show(&model, *json),
            Named::Controller(model) => show_controller(&model, *json),
            Named::Processor(model) => show_processor(&model, *json),
        },
        DiskAction::New(args) => super::datasheet::run(args),
        DiskAction::Serve(args) => super::serve::run(args),
    }
}

fn list(as_json: bool) -> Result<Outcome, Failure> {
    let models = catalogue::models()?;
    let controllers = catalogue::controllers()?;
    let processors = catalogue::processors()?;
    if as_json {
        let derived = Derived::of_all(models.iter().map(|(_, model)| &model.disk), Derived::of);
        let told = models.iter().zip(derived);
        let disks: Vec<Value> = told.map(|((_, model), of)| summary(model, &of)).collect();
        let controllers: Vec<Value> = controllers.iter().map(controller_summary).collect();
        let processors: Vec<Value> = processors.iter().map(processor_summary).collect();
        print_json(&json!({
            "disks": disks, "controllers": controllers, "processors": processors,
        }))?;
        return Ok(Outcome::Done);
    }
    let mut document = Document::new("Models");
    document.blocks.push(Block::Table(overview(&models)));
    document.blocks.push(Block::paragraph(
        "Rates are of sequential reading at the first and the last sector; a random read is of 4 KiB, \
         one at a time. 'raidlab disk show MODEL' prints every parameter with its source.",
    ));
    let table = Block::Table(controller_overview(&controllers));
    document.blocks.push(table);
    let table = Block::Table(processor_overview(&processors));
    document.blocks.push(table);
    document.blocks.push(Block::paragraph(
        "An experiment names its processor in [host]: cpu = \"Core 2 Duo 2.4 GHz\". Copies are from and to \
         memory, by one core.",
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
    let disks = models.iter().map(|(_, model)| &model.disk);
    for ((name, model), derived) in models.iter().zip(Derived::of_all(disks, Derived::alone)) {
        let seek = derived.seek_average_ms;
        table.rows.push(vec![
            Cell::text(*name),
            Cell::number(gigabytes(derived.capacity_bytes), 0),
            fact(&model.facts, "interface.kind").map_or_else(Cell::absent, Cell::text),
            fact(&model.facts, "geometry.rpm").map_or_else(Cell::absent, Cell::text),
            Cell::number(derived.outer_bytes_per_second / 1e6, 1),
            Cell::number(derived.inner_bytes_per_second / 1e6, 1),
            seek.map_or_else(Cell::absent, |ms| Cell::number(ms, 2)),
            derived.random_read_ms.map_or_else(Cell::absent, |ms| {
                Cell::number(ms, if seek.is_some() { 2 } else { 3 })
            }),
            Cell::text(model.description.clone()),
        ]);
    }
    table
}

fn summary(model: &Model, derived: &Derived) -> Value {
    json!({
        "model": model.disk.name(),
        "description": model.description,
        "kind": "disk",
        "link": fact(&model.facts, "interface.kind"),
        "rotational": model.disk.rotational(),
        "physical_sector_bytes": u64::from(model.disk.physical()) * 512,
        "queue": model.disk.tags(),
        "derived": derived,
    })
}

fn show(model: &Model, as_json: bool) -> Result<Outcome, Failure> {
    if as_json {
        let mut shown = summary(model, &Derived::of(&model.disk));
        shown["parameters"] = facts_json(&model.facts);
        print_json(&shown)?;
        return Ok(Outcome::Done);
    }
    let mut document = Document::new(format!("{}: {}", model.disk.name(), model.description));
    document.blocks.extend(parameters(&model.facts));
    document.blocks.push(Block::Table(derived(model)));
    output::print_document(&document)?;
    Ok(Outcome::Done)
}

fn controller_overview(models: &[controller::Model]) -> Table {
    let columns = vec![
        Column::text("controller"),
        Column::text("link"),
        Column::text("own RAID"),
        Column::text("what it is"),
    ];
    let caption = "The controllers of the catalogue";
    let mut table = Table::new("controllers", caption, columns);
    for model in models {
        let controller = &model.controller;
        table.rows.push(vec![
            Cell::text(controller.name.clone()),
            Cell::text(controller.link.to_string()),
            Cell::text(own_raid(controller)),
            Cell::text(model.description.clone()),
        ]);
    }
    table
}

/// What RAID a controller has of its own, in a word.
fn own_raid(controller: &ControllerModel) -> &'static str {
    match (&controller.cache, &controller.firmware) {
        (Some(_), _) => "with a cache",
        (None, Some(_)) => "in firmware",
        (None, None) => "no",
    }
}

fn controller_summary(model: &controller::Model) -> Value {
    json!({
        "model": model.controller.name,
        "description": model.description,
        "kind": "controller",
        "link": model.controller.link.to_string(),
        "own_raid": own_raid(&model.controller),
    })
}

fn processor_overview(models: &[cpu::Model]) -> Table {
    let columns = vec![
        Column::text("processor"),
        Column::number("clock").under("MHz"),
        Column::number("copies").under("MB/s"),
        Column::text("what it is"),
    ];
    let caption = "The processors of the catalogue";
    let mut table = Table::new("processors", caption, columns);
    for model in models {
        table.rows.push(vec![
            Cell::text(model.cpu.name.clone()),
            Cell::number(f64::from(model.cpu.mhz), 0),
            Cell::number(model.cpu.copy as f64 / 1e6, 0),
            Cell::text(model.description.clone()),
        ]);
    }
    table
}

fn processor_summary(model: &cpu::Model) -> Value {
    json!({
        "model": model.cpu.name,
        "description": model.description,
        "kind": "processor",
        "clock_mhz": model.cpu.mhz,
        "copy_bytes_per_second": model.cpu.copy,
        "parameters": facts_json(&model.facts),
    })
}

fn show_controller(model: &controller::Model, as_json: bool) -> Result<Outcome, Failure> {
    if as_json {
        let mut shown = controller_summary(model);
        shown["parameters"] = facts_json(&model.facts);
        print_json(&shown)?;
        return Ok(Outcome::Done);
    }
    show_facts(&model.controller.name, &model.description, &model.facts)
}

fn show_processor(model: &cpu::Model, as_json: bool) -> Result<Outcome, Failure> {
    if as_json {
        print_json(&processor_summary(model))?;
        return Ok(Outcome::Done);
    }
    show_facts(&model.cpu.name, &model.description, &model.facts)
}

/// A model of which there is nothing to tell but its parameters.
fn show_facts(name: &str, description: &str, facts: &[Fact]) -> Result<Outcome, Failure> {
    let mut document = Document::new(format!("{name}: {description}"));
    document.blocks.extend(parameters(facts));
    output::print_document(&document)?;
    Ok(Outcome::Done)
}

fn facts_json(facts: &[Fact]) -> Value {
    let facts = facts.iter().map(|fact| {
        json!({
            "key": fact.key, "value": fact.value,
            "mark": fact.mark.to_string(), "source": fact.source,
        })
    });
    facts.collect()
}

/// Every value with its source, and what the marks mean.
fn parameters(facts: &[Fact]) -> [Block; 2] {
    let columns = vec![
        Column::text("parameter"),
        Column::text("value"),
        Column::text("trust"),
        Column::text("source"),
    ];
    let mut table = Table::new("parameters", "Parameters and their sources", columns);
    for fact in facts {
        table.rows.push(vec![
            Cell::text(fact.key.clone()),
            Cell::text(fact.value.clone()),
            Cell::text(fact.mark.to_string()),
            Cell::text(fact.source.clone()),
        ]);
    }
    let marks = "M: measured. S: from a source that was read. K: from a datasheet that was not read \
                 again (K-low: remembered with doubt). D: by arithmetic. fitted: so that published rows \
                 come out. assumed: usual for the kind.";
    [Block::Table(table), Block::paragraph(marks)]
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
        ("random read of 4 KiB", of.random_read_ms),
    ];
    for (name, time) in times {
        if let Some(ms) = time {
            row(name, format!("{ms:.3} ms"));
        }
    }
    if let Some(rate) = of.random_read_iops {
        row("random reads a second, one in flight", format!("{rate:.1}"));
    }
    if let Some(rate) = of.queued_read_iops.filter(|_| of.queue > 1) {
        let name = format!("random reads a second, {} in flight", of.queue);
        row(&name, format!("{rate:.1}"));
    }
    if let Some(rate) = of.queued_write_iops {
        let full = match of.full {
            true => ", disk full",
            false => "",
        };
        let name = format!("random writes a second, {} in flight{full}", of.queue);
        row(&name, format!("{rate:.1}"));
    }
    if let Some(rate) = of.flushed_write_iops {
        let name = "random writes a second, each flushed (durable)";
        row(name, format!("{rate:.1}"));
    }
    table
}
