//! The settings of a cell: what they are called, where they may stand, how they are read.
use super::key::{ALIASES, Form, Key, Value};
use super::members::{channels, members, roles};
use super::tree::{At, Entry, Node, shown};
use super::value::{label, size_label};
use crate::diagnostic::{Diagnostic, Problems};
use crate::dirty::Dirty;
use crate::setup::ArrayLayout;
use raidlab_core::profile::{Profile, Setting};
use raidlab_core::units::Bytes;
use raidlab_layout::{BtrfsProfile, POOLS, SpecError};
use std::ops::Range;
use toml::de::DeValue;

/// What a value is given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A setting of the array, the host, the file system, or which profile.
    Key(Key),
    /// A setting of the profile; of this one only when it is named.
    Setting {
        scope: Option<&'static str>,
        name: String,
    },
}

/// A setting with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) what: What,
    /// The name as it was written.
    pub(crate) name: String,
    pub(crate) key_at: Range<usize>,
    pub(crate) at: Range<usize>,
    pub(crate) label: String,
    /// `None` when it could not be read, which has been told.
    pub(crate) value: Option<Value>,
}

/// The settings of all profiles, and the common names for them.
fn profile_settings() -> impl Iterator<Item = &'static str> + Clone {
    let profiles = Profile::NAMES.iter().filter_map(|n| Profile::named(n).ok());
    let own: Vec<&'static str> = profiles
        .flat_map(|p| p.about().iter().map(|s| s.key).collect::<Vec<_>>())
        .collect();
    let common = ALIASES.iter().map(|(alias, _)| *alias);
    common.chain(own)
}

/// The profile of that name, `fio` too.
pub(crate) fn profile_name(name: &str) -> Option<&'static str> {
    profile_names().find(|known| *known == name)
}

pub(crate) fn profile_names() -> impl Iterator<Item = &'static str> + Clone {
    Profile::all_names()
}

/// A setting by its name as a factor; told when there is none.
pub(crate) fn bound(problems: &Problems, name: &At<String>, entry: Entry<'_, '_>) -> Option<Bound> {
    if let Some(key) = Key::named(&name.value) {
        return Some(key_bound(problems, key, name, entry));
    }
    if profile_settings().any(|s| s == name.value) {
        return Some(setting_bound(problems, None, name, entry));
    }
    let known = Key::ALL.iter().map(|key| key.name());
    let known = known.chain(profile_settings());
    problems.unknown(&name.at, "setting", &name.value, known);
    None
}

/// A setting of the sections of a file.
pub(crate) fn key_bound(
    problems: &Problems,
    key: Key,
    name: &At<String>,
    entry: Entry<'_, '_>,
) -> Bound {
    let value = read(problems, key, entry);
    let written = label(entry.get_ref());
    let label = match &value {
        Some(Value::Size(size) | Value::Dirty(Dirty::Size(size))) => size_label(*size, &written),
        Some(Value::Layout(layout)) => layout.to_string(),
        Some(Value::Flag(flag)) => if *flag { "yes" } else { "no" }.to_owned(),
        Some(Value::State(state)) if written.split_whitespace().count() > 1 => state.to_string(),
        _ => written,
    };
    Bound {
        what: What::Key(key),
        name: name.value.clone(),
        key_at: name.at.clone(),
        at: entry.span(),
        label,
        value,
    }
}

fn read(problems: &Problems, key: Key, entry: Entry<'_, '_>) -> Option<Value> {
    let name = key.name();
    Some(match key.form() {
        Form::Layout => Value::Layout(layout(problems, entry)?),
        Form::Engine => Value::Engine(problems.word(name, entry)?),
        Form::Members => Value::Members(members(problems, entry)?),
        Form::Channels => Value::Channels(channels(problems, entry)?),
        Form::Roles => Value::Roles(roles(problems, entry)?),
        Form::State => Value::State(problems.parsed(name, entry)?),
        Form::Size => Value::Size(problems.size(name, entry)?),
        Form::Dirty => Value::Dirty(problems.dirty(name, entry)?),
        Form::Time => Value::Time(problems.time(name, entry)?),
        Form::Rate => Value::Rate(problems.rate(name, entry)?),
        Form::Count(least, most) => Value::Count(problems.count32(name, entry, least..=most)?),
        Form::Text => Value::Text(problems.text(name, entry)?.value),
        Form::Flag => Value::Flag(problems.flag(name, entry)?),
        Form::Kernel => Value::Kernel(problems.parsed(name, entry)?),
        Form::Scheduler => Value::Scheduler(problems.word(name, entry)?),
        Form::Filesystem => Value::Filesystem(problems.word(name, entry)?),
        Form::Metadata => Value::Metadata(problems.word(name, entry)?),
        Form::Bitmap => Value::Bitmap(problems.word(name, entry)?),
        Form::Journal => Value::Journal(problems.word(name, entry)?),
        Form::Profile => {
            let text = problems.text(name, entry)?;
            let known = profile_name(&text.value);
            if known.is_none() {
                problems.unknown(&text.at, "profile", &text.value, profile_names());
            }
            Value::Text(known?.to_owned())
        }
    })
}

fn layout(problems: &Problems, entry: Entry<'_, '_>) -> Option<ArrayLayout> {
    let text = problems.text("layout", entry)?;
    let error = match text.value.parse::<ArrayLayout>() {
        Ok(layout) => return Some(layout),
        Err(error) => error,
    };
    let closed: String = text.value.split_whitespace().collect();
    let of_btrfs = of_btrfs(&closed);
    problems.push(match error {
        SpecError::Zfs(_) => Diagnostic::new(
            text.at,
            format!("'{}' is not known here", shown(&text.value)),
        )
        .help(
            format!("of ZFS there are {POOLS} of all members, and with a shape pools of several: 'zfs-mirror 2x2', 'raidz1 2x3'"),
        ),
        _ if closed.parse::<ArrayLayout>().is_ok() => {
            Diagnostic::new(text.at, format!("'{}' is no level", shown(&text.value)))
                .help(format!("write '{}'", closed.to_lowercase()))
        }
        SpecError::NotNested(level) => {
            let members = members_of(&text.value).unwrap_or(4);
            Diagnostic::new(text.at, format!("{level} is not nested")).help(format!(
                "write '{level}' alone, and members = {members} beside it; without members it has all disks"
            ))
        }
        // As `raidlab layout` has them.
        SpecError::Level { .. } if of_btrfs.is_some() => {
            let layout = of_btrfs.unwrap_or_default();
            Diagnostic::new(text.at, format!("'{}' is no level", shown(&text.value)))
                .help(format!("write '{layout}', and engine = \"btrfs\" beside it"))
        }
        // An experiment has pools, too.
        SpecError::Level { .. } => {
            let message = format!(
                "{error}; of ZFS {POOLS}, and pools such as 'raidz1 2x3'; of btrfs raid1c3 and raid1c4"
            );
            Diagnostic::from_error(text.at, &message)
        }
        error => Diagnostic::from_error(text.at, &error.to_string()),
    });
    None
}

/// What `raidlab layout` calls `btrfs-raid1`, as an experiment has it.
fn of_btrfs(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let profile = BtrfsProfile::named(lower.strip_prefix("btrfs-")?)?;
    Some(match profile {
        BtrfsProfile::Single => "linear",
        profile => profile.name(),
    })
}

/// How many members a number or a shape behind a level asks for.
fn members_of(layout: &str) -> Option<u32> {
    let (_, behind) = layout.trim().split_once(char::is_whitespace)?;
    let mut numbers = behind.split('x').map(|number| number.trim().parse().ok());
    let members = numbers.try_fold(1_u32, |all, number: Option<u32>| all.checked_mul(number?))?;
    (members > 0).then_some(members)
}

/// A setting of a profile: read by the profile itself later, since only a cell knows which it is.
pub(crate) fn setting_bound(
    problems: &Problems,
    scope: Option<&'static str>,
    name: &At<String>,
    entry: Entry<'_, '_>,
) -> Bound {
    let text = setting_text(problems, scope, name, entry);
    let written = label(entry.get_ref());
    let size = text.as_deref().and_then(|t| t.parse::<Bytes>().ok());
    let label = match size {
        Some(size) if written.ends_with('B') => size_label(size, &written),
        _ => written,
    };
    Bound {
        what: What::Setting {
            scope,
            name: name.value.clone(),
        },
        name: name.value.clone(),
        key_at: name.at.clone(),
        at: entry.span(),
        label,
        value: text.map(Value::Setting),
    }
}

/// The text that a profile reads. A bare number for a size is refused: it has no unit.
fn setting_text(
    problems: &Problems,
    scope: Option<&'static str>,
    name: &At<String>,
    entry: Entry<'_, '_>,
) -> Option<String> {
    let mut parts = Vec::new();
    for item in Problems::items(entry) {
        let text = match item.get_ref() {
            DeValue::String(text) if scope == Some("fio") => text.to_string(),
            DeValue::String(text) if !text.contains(',') => text.trim().to_owned(),
            DeValue::String(_) => {
                let message = format!("'{}' has a comma", name.value);
                problems.wrong(&item.span(), message, "write a list: [\"…\", \"…\"]");
                return None;
            }
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Integer(_) | DeValue::Float(_) if is_size(scope, &name.value) => {
                problems.size(&name.value, item)?.0.to_string()
            }
            // Its profile says which numbers it takes.
            DeValue::Integer(n) if n.as_str().starts_with('-') => n.as_str().to_owned(),
            DeValue::Float(n) => n.as_str().to_owned(),
            DeValue::Integer(_) => problems.count(&name.value, item, 0..=u64::MAX)?.to_string(),
            _ => {
                let help = "write a text, a whole number, or true or false";
                problems.of_type(&name.value, "a setting of a profile", item, help);
                return None;
            }
        };
        parts.push(text);
    }
    Some(parts.join(","))
}

/// Whether every profile that has the setting takes a size for it.
fn is_size(scope: Option<&'static str>, name: &str) -> bool {
    if ALIASES[..2].iter().any(|(alias, _)| *alias == name) {
        return true;
    }
    let mut forms = Profile::NAMES
        .iter()
        .filter(|profile| scope.is_none_or(|scope| **profile == scope))
        .filter_map(|profile| Profile::named(profile).ok())
        .filter_map(|p| setting(&p, name).map(|s| s.form))
        .peekable();
    forms.peek().is_some() && forms.all(|form| form.starts_with("SIZE"))
}

/// What a profile says of one of its settings.
pub(crate) fn setting(profile: &Profile, name: &str) -> Option<Setting> {
    profile.about().iter().copied().find(|s| s.key == name)
}

/// The settings of `[array]`, `[host]`, `[filesystem]` and `[profile]`.
pub(crate) fn fixed(root: &Node<'_, '_>) -> Vec<Bound> {
    let mut all = Vec::new();
    for section in ["array", "host", "filesystem"] {
        let Some(entry) = root.entry(section) else {
            continue;
        };
        if section == "filesystem" && !entry.get_ref().is_table() {
            let name = At::new(section.to_owned(), root.key_at(section));
            all.push(key_bound(root.problems, Key::Filesystem, &name, entry));
            continue;
        }
        let Some(node) = root.node(section) else {
            continue;
        };
        let keys = Key::ALL.iter().filter(|key| key.section() == section);
        for key in keys {
            if let Some(entry) = node.entry(key.short()) {
                let name = At::new(key.short().to_owned(), node.key_at(key.short()));
                all.push(key_bound(root.problems, *key, &name, entry));
            }
        }
        node.close();
    }
    all.extend(profile(root));
    one_choice(root.problems, &all);
    all
}

/// `profile = "bonnie"`, `[profile]` with a name and settings, or `[profile.bonnie]` and others.
fn profile(root: &Node<'_, '_>) -> Vec<Bound> {
    let mut all = Vec::new();
    let Some(entry) = root.entry("profile") else {
        return all;
    };
    if entry.get_ref().is_str() {
        let name = At::new("profile".to_owned(), root.key_at("profile"));
        all.push(key_bound(root.problems, Key::Profile, &name, entry));
        return all;
    }
    if entry.get_ref().is_array() {
        let help = "a list of levels stands in [factors]: profile = [\"…\", \"…\"]";
        root.problems
            .of_type("profile", "one name or a section", entry, help);
        all.push(Bound {
            what: What::Key(Key::Profile),
            name: "profile".to_owned(),
            key_at: root.key_at("profile"),
            at: entry.span(),
            label: label(entry.get_ref()),
            value: None,
        });
        return all;
    }
    if !entry.get_ref().is_table() {
        let help = "write a name, such as \"bonnie\", or a section [profile]";
        root.problems
            .of_type("profile", "one name or a section", entry, help);
        return all;
    }
    let Some(node) = root.node("profile") else {
        return all;
    };
    let mut named = None;
    if let Some(entry) = node.entry("name") {
        let name = At::new("profile".to_owned(), node.key_at("name"));
        let bound = key_bound(root.problems, Key::Profile, &name, entry);
        named = profile_name(&bound.label);
        all.push(bound);
    }
    for (name, entry) in node.pairs() {
        if name.value == "name" {
            continue;
        }
        match entry.get_ref().as_table() {
            Some(table) => {
                let child = node.child(&format!("profile.{}", name.value), table, name.at.clone());
                all.extend(of_profile(&name, &child));
            }
            None => all.extend(own_setting(root.problems, named, &name, entry)),
        }
    }
    all
}

/// `[profile.bonnie]`, or `bonnie.seeks` of a level.
pub(crate) fn of_profile(name: &At<String>, node: &Node<'_, '_>) -> Vec<Bound> {
    let Some(scope) = profile_name(&name.value) else {
        let problems = node.problems;
        problems.unknown(&name.at, "profile", &name.value, profile_names());
        return Vec::new();
    };
    let pairs = node.pairs().into_iter();
    pairs
        .filter_map(|(name, entry)| own_setting(node.problems, Some(scope), &name, entry))
        .collect()
}

/// A setting by the profile's own name or a common one; told when the profile has none such.
pub(crate) fn own_setting(
    problems: &Problems,
    scope: Option<&'static str>,
    name: &At<String>,
    entry: Entry<'_, '_>,
) -> Option<Bound> {
    let known: Vec<&'static str> = match scope {
        Some("fio") => vec!["jobs"],
        Some(scope) => {
            let profile = Profile::named(scope).ok()?;
            let own = profile.about().iter().map(|s| s.key);
            let has = |(_, names): &&(&str, &[(&str, &str)])| names.iter().any(|n| n.0 == scope);
            let common = ALIASES.iter().filter(has).map(|(alias, _)| *alias);
            own.chain(common).collect()
        }
        None => profile_settings().chain(["jobs"]).collect(),
    };
    if !known.contains(&name.value.as_str()) {
        let place = scope.map_or(String::new(), |scope| format!("of {scope}"));
        let known = known.iter().copied();
        problems.unknown_of(&name.at, "setting", &name.value, &place, known);
        return None;
    }
    Some(setting_bound(problems, scope, name, entry))
}

/// Members are chosen by number or by channel, not both.
pub(crate) fn one_choice(problems: &Problems, bounds: &[Bound]) {
    let of = |key: Key| bounds.iter().find(|b| b.what == What::Key(key));
    if let (Some(members), Some(channels)) = (of(Key::Members), of(Key::Channels)) {
        let problem = Diagnostic::new(
            channels.key_at.clone(),
            "members are chosen twice, by 'members' and by 'channels'",
        );
        problems.push(
            problem
                .help("drop one of them")
                .also(members.key_at.clone(), "here too"),
        );
    }
}
