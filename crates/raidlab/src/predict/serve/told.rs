//! What the user is told: where the disks are, and in the end how late they were.
use crate::commands::quoted;
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_core::words;
use raidlab_nbd::server::{DiskReport, Report};
use raidlab_nbd::session::Export;
use raidlab_results::report::document::{Block, Cell, Column, Document, Table};
use raidlab_sim::fabric::{ControllerSpec, DiskSlot};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a disk is served.
pub(super) enum Address {
    /// A socket of its own.
    Unix(PathBuf),
    /// A port that all share.
    Tcp(SocketAddr),
}

/// A disk, and where it is.
pub(super) struct Place {
    name: String,
    model: String,
    behind: String,
    bytes: u64,
    uri: String,
    client: String,
    blockdev: String,
    socket: Option<String>,
}

impl Place {
    pub(super) fn new(
        export: &Export,
        slot: Option<&DiskSlot>,
        controllers: &[ControllerSpec],
        address: Address,
    ) -> Self {
        let name = export.name.clone();
        let device = "/dev/nbdN";
        let (uri, client, server, socket) = match address {
            Address::Unix(path) => {
                let text = path.to_string_lossy().into_owned();
                (
                    format!("nbd+unix:///?socket={}", escaped(&text)),
                    format!("nbd-client -unix {} {device}", quoted(&text)),
                    format!("server.type=unix,server.path={}", text.replace(',', ",,")),
                    Some(text),
                )
            }
            Address::Tcp(address) => {
                let (host, port) = (address.ip(), address.port());
                (
                    format!("nbd://{address}/{}", escaped(&name)),
                    format!("nbd-client -N {} {host} {port} {device}", quoted(&name)),
                    format!(
                        "server.type=inet,server.host={host},server.port={port},export={}",
                        name.replace(',', ",,")
                    ),
                    None,
                )
            }
        };
        let behind = slot.map_or_else(String::new, |slot| {
            let controller = controllers.get(slot.controller as usize);
            let controller = controller.map_or("", |c| c.name.as_str());
            format!("channel {} of {controller}", slot.channel)
        });
        let node = &name;
        Self {
            blockdev: quoted(&format!(
                "driver=nbd,node-name={node},{server},cache.direct=on,discard=unmap"
            )),
            model: export.description.clone(),
            behind,
            bytes: export.size,
            uri,
            client,
            socket,
            name,
        }
    }
}

/// A text as a part of a URI.
fn escaped(text: &str) -> String {
    let mut uri = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

pub(super) fn places(places: &[Place]) -> Document {
    let mut document = Document::new("Modelled disks over NBD");
    let columns = vec![
        Column::text("disk"),
        Column::text("model"),
        Column::text("behind"),
        Column::text("size"),
        Column::text("where"),
    ];
    let mut table = Table::new("disks", "The disks", columns);
    for place in places {
        table.rows.push(vec![
            Cell::text(place.name.clone()),
            Cell::text(place.model.clone()),
            Cell::text(place.behind.clone()),
            Cell::text(Bytes(place.bytes).to_string()),
            Cell::text(place.uri.clone()),
        ]);
    }
    document.blocks.push(Block::Table(table));
    let columns = vec![Column::text("for"), Column::text("how to attach it")];
    let mut table = Table::new("attach", "How to attach the first of them", columns);
    if let Some(place) = places.first() {
        let device = format!("-device virtio-blk-pci,drive={}", place.name);
        for (what, how) in [
            ("Linux (root)", place.client.clone()),
            ("QEMU", format!("-blockdev {} {device}", place.blockdev)),
            ("a look", format!("nbdinfo {}", quoted(&place.uri))),
            (
                "a test",
                format!("qemu-io -f raw -c 'read 0 4k' {}", quoted(&place.uri)),
            ),
        ] {
            table.rows.push(vec![Cell::text(what), Cell::text(how)]);
        }
    }
    document.blocks.push(Block::Table(table));
    document
}

pub(super) fn places_json(places: &[Place]) -> Value {
    let place = |place: &Place| {
        json!({
            "name": place.name,
            "model": place.model,
            "behind": place.behind,
            "bytes": place.bytes,
            "uri": place.uri,
            "socket": place.socket,
            "nbd_client": place.client,
            "qemu_blockdev": place.blockdev,
        })
    };
    json!({ "disks": places.iter().map(place).collect::<Vec<_>>() })
}

fn micros(span: Option<Span>) -> f64 {
    span.map_or(0.0, |span| span.0 as f64 / 1e3)
}

pub(super) fn report_json(report: &Report) -> Value {
    let late = &report.lateness;
    let disk = |disk: &DiskReport| {
        json!({
            "name": disk.name,
            "reads": disk.reads,
            "writes": disk.writes,
            "flushes": disk.flushes,
            "trims": disk.trims,
            "errors": disk.errors,
            "bytes_read": disk.bytes_read,
            "bytes_written": disk.bytes_written,
            "bytes_stored": disk.stored,
        })
    };
    json!({
        "lateness": {
            "replies": late.all.count(),
            "p50_us": micros(late.all.percentile(50.0)),
            "p99_us": micros(late.all.percentile(99.0)),
            "max_us": micros(late.all.max()),
            "tolerance_us": micros(Some(late.tolerance)),
            "late": late.late,
        },
        "disks": report.disks.iter().map(disk).collect::<Vec<_>>(),
        "connections": report.connections,
        "seconds": report.elapsed.as_secs_f64(),
        "cpu_seconds": report.cpu.as_secs_f64(),
        "real_time_scheduling": report.scheduled,
    })
}

/// One line on how late replies were, and one on each disk that was used.
pub(crate) fn report(report: &Report) -> String {
    let late = &report.lateness;
    let count = late.all.count();
    let mut text = if count == 0 {
        "no request came\n".to_owned()
    } else {
        format!(
            "{}, late by {:.0} us (p50), {:.0} us (p99), {:.0} us (max); {} later than {}\n",
            words::count(count, "reply"),
            micros(late.all.percentile(50.0)),
            micros(late.all.percentile(99.0)),
            micros(late.all.max()),
            late.late,
            late.tolerance
        )
    };
    for disk in report
        .disks
        .iter()
        .filter(|d| d.reads + d.writes + d.errors > 0)
    {
        let _ = writeln!(
            text,
            "{}: {} ({:.1} MB), {} ({:.1} MB), {}, {} failed, {:.1} MB kept",
            disk.name,
            words::count(disk.reads, "read"),
            disk.bytes_read as f64 / 1e6,
            words::count(disk.writes, "write"),
            disk.bytes_written as f64 / 1e6,
            words::count(disk.flushes, "flush"),
            disk.errors,
            disk.stored as f64 / 1e6,
        );
    }
    text
}
