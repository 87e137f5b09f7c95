//! The guest's figures beside the models'.
use super::{Order, Seen};
use raidlab_core::time::Span;
use raidlab_nbd::guest::BUSY;
use raidlab_results::report::document::{Block, Cell, Column, Document, Table};
use serde_json::{Value, json};

fn per_cent(seen: f64, alone: f64) -> f64 {
    100.0 * (seen / alone - 1.0)
}

pub(super) fn document(order: &Order, seen: &[Seen], models: &[f64]) -> Document {
    let mut document = Document::new(format!(
        "{} of {} in the guest, in {} time",
        order.models.len(),
        order.models[0],
        if order.in_real_time() {
            "real"
        } else {
            "virtual"
        }
    ));
    let columns = vec![
        Column::text("one request at a time on each disk"),
        Column::text(""),
        Column::number("guest"),
        Column::number("models alone"),
        Column::number("apart").under("%"),
        Column::number("server").under("% CPU"),
        Column::number("way").under("% CPU"),
        Column::number("late p99").under("us"),
        Column::number("late max").under("us"),
    ];
    let mut table = Table::new("disks", "All disks together", columns);
    // The guest cannot tell of a server outside.
    let inside = |value| match order.in_real_time() {
        true => Cell::absent(),
        false => Cell::number(value, 1),
    };
    for ((phase, seen), alone) in order.phases.iter().zip(seen).zip(models) {
        let (unit, scale) = if phase.random {
            ("IOPS", 1.0)
        } else {
            ("MB/s", f64::from(phase.block) / 1e6)
        };
        table.rows.push(vec![
            Cell::text(phase.name()),
            Cell::text(unit),
            Cell::number(seen.rate * scale, 1),
            Cell::number(alone * scale, 1),
            Cell::number(per_cent(seen.rate, *alone), 2),
            inside(100.0 * seen.server),
            inside(100.0 * seen.load),
            inside(seen.late[1] as f64 / 1e3),
            inside(seen.late[2] as f64 / 1e3),
        ]);
    }
    table.drop_empty_columns();
    document.blocks.push(Block::Table(table));
    if seen.iter().any(|seen| seen.load > BUSY) {
        document.blocks.push(Block::warning(
            "where the way is above 50 %, the guest's processor had more to do with carrying data to the \
             disks and back than the disks with the data: such a figure is the guest's limit, not theirs",
        ));
    }
    document
}

/// By how much replies left before the models' time.
pub(super) fn early(early: Option<Span>) -> String {
    early.map_or_else(String::new, |early| {
        format!(
            "replies left {} us early, to make up for the way\n",
            early.0 / 1000
        )
    })
}

pub(super) fn as_json(order: &Order, seen: &[Seen], models: &[f64], early: Option<Span>) -> Value {
    let phases = order.phases.iter().zip(seen).zip(models);
    let phases = phases.map(|((phase, seen), alone)| {
        json!({
            "phase": phase.name(),
            "write": phase.write,
            "random": phase.random,
            "block_bytes": phase.block,
            "requests_per_disk": phase.count,
            "guest_per_second": seen.rate,
            "models_per_second": alone,
            "apart_percent": per_cent(seen.rate, *alone),
            "server_cpu_share": seen.server,
            "way_cpu_share": seen.load,
            "at_the_guests_limit": seen.load > BUSY,
            "late_p50_us": seen.late[0] as f64 / 1e3,
            "late_p99_us": seen.late[1] as f64 / 1e3,
            "late_max_us": seen.late[2] as f64 / 1e3,
        })
    });
    json!({
        "models": order.models,
        "topology": order.topology,
        "time": if order.in_real_time() { "real" } else { "virtual" },
        "early_us": early.map(|early| early.0 as f64 / 1e3),
        "disk_bytes": order.size,
        "seed": order.seed,
        "phases": phases.collect::<Vec<_>>(),
    })
}
