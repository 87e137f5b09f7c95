//! `[topology]`: buses, controllers, and which disk sits where.
use super::disks;
use super::tree::{At, Entry, Node};
use super::value::hint;
use crate::Known;
use crate::diagnostic::{Diagnostic, Problems};
use crate::hardware::{AtaMode, BUSES, Bus, CacheMode, ControllerKind, Link, bus_rate};
use raidlab_core::price::Price;
use raidlab_core::units::Bytes;
use toml::de::{DeTable, DeValue};

/// Buses and controllers as declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct DraftTopology {
    pub(crate) buses: Vec<Bus>,
    pub(crate) controllers: Vec<DraftController>,
}

/// A controller as declared.
#[derive(Clone, Debug)]
pub(crate) struct DraftController {
    pub(crate) name: At<String>,
    pub(crate) kind: ControllerKind,
    pub(crate) link: Option<Link>,
    pub(crate) model: Option<String>,
    pub(crate) model_text: Option<String>,
    pub(crate) bus: Option<String>,
    pub(crate) channels: Option<At<u32>>,
    pub(crate) ports: Option<u32>,
    pub(crate) mode: Option<AtaMode>,
    pub(crate) rate: Option<u64>,
    pub(crate) cache: Option<Bytes>,
    pub(crate) cache_mode: Option<CacheMode>,
    pub(crate) own_raid: bool,
    pub(crate) disks: Seats,
    pub(crate) price: Option<At<Price>>,
}

/// Which disks sit on a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seats {
    /// Nothing said.
    Unsaid,
    /// Disks or groups, dealt round the channels.
    Dealt(Vec<At<String>>),
    /// Disks or groups of each channel.
    Channels(Vec<Vec<At<String>>>),
}

/// The most channels and ports of one controller.
const MOST: u32 = 1024;

/// The topology; `None` when part of it could not be read.
pub(crate) fn read(root: &Node<'_, '_>, known: &Known<'_>) -> Option<DraftTopology> {
    // Asked for by its entry, so that it is among the known keys of a file that has none, too.
    if root.entry("topology").is_none() {
        return Some(DraftTopology::default());
    }
    let node = root.node("topology")?;
    let mut whole = true;
    let mut draft = DraftTopology::default();
    for (name, child) in named(&node, "buses") {
        match bus(name, &child) {
            Some(bus) => draft.buses.push(bus),
            None => whole = false,
        }
        child.close();
    }
    let buses: Vec<String> = match node.entry("buses").and_then(|e| e.get_ref().as_table()) {
        Some(table) => table.keys().map(|k| k.get_ref().to_string()).collect(),
        None => Vec::new(),
    };
    for (name, child) in named(&node, "controllers") {
        match controller(name, &child, &buses, known) {
            Some(controller) => draft.controllers.push(controller),
            None => whole = false,
        }
        child.close();
    }
    node.close();
    whole.then_some(draft)
}

/// The tables of `[topology.buses]` or `[topology.controllers]` with their names.
fn named<'a, 'i>(node: &Node<'a, 'i>, key: &str) -> Vec<(At<String>, Node<'a, 'i>)> {
    let Some(all) = node.node(key) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, entry) in all.pairs() {
        match entry.get_ref().as_table() {
            Some(table) => {
                let path = format!("topology.{key}.{}", name.value);
                let child = all.child(&path, table, name.at.clone());
                found.push((name, child));
            }
            None => {
                let help = format!("write a section [topology.{key}.NAME]");
                node.problems.of_type(&name.value, "a table", entry, &help);
            }
        }
    }
    found
}

fn bus(name: At<String>, node: &Node<'_, '_>) -> Option<Bus> {
    let problems = node.problems;
    let kind = node.entry("kind").and_then(|e| problems.text("kind", e));
    let rate = node.entry("rate").and_then(|e| problems.rate("rate", e));
    let own = kind.as_ref().and_then(|kind| bus_rate(&kind.value));
    if let Some(kind) = kind.as_ref().filter(|_| own.is_none() && !node.has("rate")) {
        let parallel = BUSES.iter().map(|b| b.0);
        let help = hint(&kind.value, parallel.chain(["pcie-3-x4"]));
        problems.push(
            Diagnostic::new(kind.at.clone(), format!("unknown bus '{}'", kind.value))
                .help(format!("{help}; or give its 'rate'")),
        );
    }
    if kind.is_none() {
        node.missing("rate", "give a kind such as \"pci-32-33\", or a rate");
    }
    Some(Bus {
        name: name.value,
        kind: kind.map(|k| k.value),
        rate: rate.or(own)?,
    })
}

fn controller(
    name: At<String>,
    node: &Node<'_, '_>,
    buses: &[String],
    known: &Known<'_>,
) -> Option<DraftController> {
    let problems = node.problems;
    node.missing("kind", "write pata, sata, scsi, nvme or hardware-raid");
    let text = |key: &str| node.entry(key).and_then(|e| problems.text(key, e));
    let count = |key: &str| problems.count32(key, node.entry(key)?, 1..=MOST);
    let kind: Option<ControllerKind> = node.entry("kind").and_then(|e| problems.word("kind", e));
    let link: Option<Link> = node.entry("link").and_then(|e| problems.word("link", e));
    if let (Some(kind), Some(link)) = (kind, link)
        && kind.link().is_some_and(|own| own != link)
    {
        let message = format!("a {kind} controller has no {link} link");
        let help = "drop 'link', or make it a hardware-raid controller";
        problems.wrong(&node.key_at("link"), message, help);
    }
    let model = text("model");
    let model_text = model
        .as_ref()
        .and_then(|model| text_of_model(problems, model, known));
    let bus = text("bus").filter(|bus| {
        let names = buses.iter().map(String::as_str);
        problems.reference(bus, "bus", names)
    });
    let seats = node
        .entry("disks")
        .map_or(Some(Seats::Unsaid), |entry| seats(problems, entry));
    let rate = node.entry("rate").and_then(|e| problems.rate("rate", e));
    let cache = node.entry("cache").and_then(|e| problems.size("cache", e));
    let mode = node.entry("mode").and_then(|e| problems.word("mode", e));
    if mode.is_some() && kind.is_some_and(|kind| kind != ControllerKind::Pata) {
        let help = "drop it, or give the 'rate' of a channel";
        problems.wrong(&node.key_at("mode"), "only PATA channels have a mode", help);
    }
    let cache_mode = node
        .entry("cache-mode")
        .and_then(|e| problems.word("cache-mode", e));
    let own_raid = node
        .entry("own-raid")
        .and_then(|e| problems.flag("own-raid", e));
    let channels = count("channels").map(|n| At::new(n, node.key_at("channels")));
    let ports = count("ports");
    let price = node.price();
    let kind = kind?;
    Some(DraftController {
        name,
        kind,
        link: kind.link().or(link),
        model: model.map(|m| m.value),
        model_text,
        bus: bus.map(|b| b.value),
        channels,
        ports,
        mode,
        rate,
        cache,
        cache_mode,
        own_raid: own_raid.unwrap_or(kind == ControllerKind::HardwareRaid),
        disks: seats?,
        price,
    })
}

/// The text of the file that a model is the path of. Tells when it cannot be used, and when a model is neither a file nor one
/// of the catalogue, which has names with a stroke in them.
fn text_of_model(problems: &Problems, model: &At<String>, known: &Known<'_>) -> Option<String> {
    if known.controllers.contains(&model.value.as_str()) {
        return None;
    }
    let mut files = known.controller_files.iter();
    match files.find(|file| file.path == model.value) {
        Some(file) => match &file.text {
            Ok(text) => return Some((*text).to_owned()),
            Err(reason) => {
                let message = format!("the model file '{}' cannot be used: {reason}", file.path);
                problems.wrong(&model.at, message, disks::ABOUT_FILES);
            }
        },
        None if known.controllers.is_empty() => {}
        None => {
            problems.reference(model, "controller model", known.controllers.iter().copied());
        }
    }
    None
}

/// See [`crate::controller_files`].
pub(crate) fn controller_files(root: &DeTable<'_>) -> Vec<String> {
    let controllers = root
        .get("topology")
        .and_then(|topology| topology.get_ref().as_table()?.get("controllers"))
        .and_then(|all| all.get_ref().as_table());
    let tables = controllers.into_iter().flat_map(|all| all.values());
    disks::paths(tables.filter_map(|controller| controller.get_ref().as_table()))
}

/// `["a", "b"]` dealt round the channels, or `[["a", "b"], ["c"]]` channel by channel.
fn seats(problems: &Problems, entry: Entry<'_, '_>) -> Option<Seats> {
    let DeValue::Array(items) = entry.get_ref() else {
        return Some(Seats::Dealt(vec![problems.text("disks", entry)?]));
    };
    if items.iter().any(|item| item.get_ref().is_array()) {
        let channels = items.iter().map(|item| problems.texts("disks", item));
        return Some(Seats::Channels(channels.collect()));
    }
    Some(Seats::Dealt(problems.texts("disks", entry)))
}
