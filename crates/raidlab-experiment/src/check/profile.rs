//! The profile of a cell, its settings, and what it comes to on this array.
use super::idle::lacks;
use super::view::View;
use super::zfs;
use crate::diagnostic::{Diagnostic, Problems};
use crate::read::key::{ALIASES, Key, Value};
use crate::read::setting::{Bound, What, setting};
use crate::setup::{Array, Filesystem, Host, context};
use raidlab_core::profile::{Fio, Profile, ProfileError};
use raidlab_core::suggest::{list, nearest};
use raidlab_core::units::Bytes;
use std::collections::BTreeMap;

/// Which bound set which setting of the profile.
pub(super) struct Chosen<'b> {
    pub(super) profile: Profile,
    set_by: BTreeMap<String, &'b Bound>,
}

/// Whether the profile makes files of its own, and so needs a file system.
pub(super) fn makes_files(profile: &Profile) -> bool {
    matches!(
        profile,
        Profile::Bonnie(_) | Profile::Tiobench(_) | Profile::Hdbench(_)
    )
}

/// The profile with its settings; nothing when one is wrong, which is told.
pub(super) fn profile<'b>(problems: &Problems, view: &View<'b>) -> Option<Chosen<'b>> {
    let name = view.text(Key::Profile).or_else(|| {
        // One that could not be read has been told.
        if view.bound(Key::Profile).is_none() && !problems.misspelt("profile") {
            let at = view.settings.first().map_or(0..0, |b| b.key_at.clone());
            let help = "say which: profile = \"bonnie\", or name = \"bonnie\" in [profile]";
            problems.wrong(&at, "a cell has no profile", help);
        }
        None
    })?;
    let mut whole = true;
    let mut profile = match name.value.as_str() {
        "fio" => fio(problems, view, &name)?,
        name => Profile::named(name).ok()?,
    };
    let mut set_by = BTreeMap::new();
    let mut taken = Vec::new();
    for bound in &view.settings {
        let What::Setting { scope, name: own } = &bound.what else {
            continue;
        };
        if scope.is_some_and(|scope| scope != profile.name()) {
            continue;
        }
        if own == "jobs" && profile.name() == "fio" {
            continue;
        }
        let Some(setting) = setting_name(&profile, own) else {
            view.mark(bound);
            problems.push(not_taken(&profile, bound));
            whole = false;
            continue;
        };
        taken.push((setting, *bound));
        let Some(Value::Setting(text)) = &bound.value else {
            whole = false;
            continue;
        };
        if let Some(earlier) = set_by.insert(setting.to_owned(), *bound)
            && earlier.what != bound.what
            && bound.at.start != earlier.at.start
            && bound.name != earlier.name
        {
            let message = format!("'{}' and '{}' are the same", earlier.name, bound.name);
            let problem = Diagnostic::new(bound.key_at.clone(), message);
            let problem = problem.also(earlier.key_at.clone(), "set here too");
            problems.push(problem.help("drop one of them"));
        }
        if let Err(error) = profile.set(setting, text) {
            problems.push(value_problem(&profile, bound, &error));
            whole = false;
        }
    }
    let of_use = |(setting, _): &(&str, &Bound)| lacks(&profile, setting).is_none();
    for (_, bound) in taken.into_iter().filter(of_use) {
        view.mark(bound);
    }
    whole.then_some(Chosen { profile, set_by })
}

fn fio(
    problems: &Problems,
    view: &View<'_>,
    name: &crate::read::tree::At<String>,
) -> Option<Profile> {
    let Some(bound) = view.settings.iter().rev().find(|bound| is_jobs(bound)) else {
        let help = "write them below [profile]: jobs = \"\"\"…\"\"\", as a fio job file has them";
        problems.wrong(&name.at, "profile fio has no jobs", help);
        return None;
    };
    view.mark(bound);
    let Some(Value::Setting(text)) = &bound.value else {
        return None;
    };
    match Fio::read(text) {
        Ok(jobs) => Some(Profile::Fio(jobs)),
        Err(wrong) => {
            for error in wrong {
                let problem = Diagnostic::new(bound.at.clone(), error.what).line(error.line);
                let problem = problem.label(format!("line {} of 'jobs'", error.line));
                problems
                    .push(problem.help("docs/profiles/fio.md says which options are understood"));
            }
            None
        }
    }
}

/// Whether these are the jobs of profile fio.
fn is_jobs(bound: &Bound) -> bool {
    matches!(&bound.what, What::Setting { name, .. } if name == "jobs")
}

/// What is wrong with a setting that no key of the file gives, such as an option of a job: the remedy is that of the reason.
fn unset_problem(at: std::ops::Range<usize>, error: &ProfileError) -> Diagnostic {
    let ProfileError::Value {
        profile,
        setting,
        why,
    } = error
    else {
        return Diagnostic::from_error(at, &error.to_string());
    };
    let mut problem = Diagnostic::from_error(at, why);
    problem.message = format!("profile {profile}, {setting}: {}", problem.message);
    problem
}

/// What the profile calls a setting; `None` when it has none such.
fn setting_name<'n>(profile: &Profile, name: &'n str) -> Option<&'n str> {
    if let Some((_, names)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        let own = names.iter().find(|(of, _)| *of == profile.name());
        return own.map(|(_, own)| *own);
    }
    profile
        .about()
        .iter()
        .any(|s| s.key == name)
        .then_some(name)
}

/// A setting that the profile does not have, and which profiles do.
fn not_taken(profile: &Profile, bound: &Bound) -> Diagnostic {
    let name = match &bound.what {
        What::Setting { name, .. } => name.as_str(),
        What::Key(key) => key.name(),
    };
    let others = Profile::NAMES.iter().filter(|other| {
        let profile = Profile::named(other).ok();
        profile.is_some_and(|p| setting_name(&p, name).is_some())
    });
    let others: Vec<&str> = others.copied().collect();
    let own = profile.about().iter().map(|s| s.key);
    let message = format!("profile '{}' does not take '{name}'", profile.name());
    let problem = Diagnostic::new(bound.key_at.clone(), message);
    let meant = nearest(name, own.clone());
    let meant = meant.map_or_else(String::new, |name| format!("did you mean '{name}'? "));
    let own = list(own);
    let taken = match others.is_empty() {
        true => String::new(),
        false => format!("; taken by {}", others.join(", ")),
    };
    problem.help(format!("{meant}{} takes {own}{taken}", profile.name()))
}

/// What the profile says of a value, without repeating which setting it is.
fn value_problem(profile: &Profile, bound: &Bound, error: &ProfileError) -> Diagnostic {
    match error {
        ProfileError::Value { setting, .. } if is_list_for_one(profile, setting, bound) => {
            let message = format!("'{}' takes one value, and this is a list", bound.name);
            let problem = Diagnostic::new(bound.at.clone(), message);
            problem.help(format!(
                "what is varied stands in [factors], each level a value: {} = […, …]",
                bound.name
            ))
        }
        ProfileError::Value { why, .. } => {
            let problem = Diagnostic::from_error(bound.at.clone(), why);
            problem.label(format!("of '{}'", bound.name))
        }
        other => Diagnostic::from_error(bound.at.clone(), &other.to_string()),
    }
}

/// Whether a list was written for a setting that has one value: its levels, most likely. No other text has a comma.
fn is_list_for_one(profile: &Profile, name: &str, bound: &Bound) -> bool {
    let several = setting(profile, name).is_none_or(|setting| setting.form.contains('…'));
    let listed = matches!(&bound.value, Some(Value::Setting(text)) if text.contains(','));
    listed && !several
}

/// What a profile is to run on.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    pub(super) array: &'a Array,
    pub(super) host: &'a Host,
    pub(super) filesystem: Option<&'a Filesystem>,
    /// Bytes of the array's logical sectors.
    pub(super) sector: Bytes,
    /// Of a pool of ZFS, bytes of files that fit, if known.
    pub(super) room: Option<Bytes>,
}

/// The profile's settings as resolved, and its phases.
pub(super) fn planned(
    problems: &Problems,
    view: &View<'_>,
    chosen: &Chosen<'_>,
    on: On<'_>,
) -> Option<(BTreeMap<String, String>, Vec<String>)> {
    let room = on.room.or(on.array.capacity);
    let least = on.filesystem.map_or(0, |made| made.kind.direct_multiple());
    let alignment = least.max(on.sector.0 as u32);
    let context = context(on.host.memory, on.filesystem, room, alignment);
    let error = match chosen.profile.plan(&context) {
        Ok(plan) => {
            if !zfs::fits(problems, view, &on, &plan) {
                return None;
            }
            let phases = plan.phases.into_iter().map(|phase| phase.id).collect();
            return Some((plan.settings, phases));
        }
        Err(error) => error,
    };
    let jobs = view.settings.iter().rev().find(|bound| is_jobs(bound));
    let jobs = jobs.filter(|_| chosen.profile.name() == "fio");
    let at = jobs.map_or_else(|| view.place(&[Key::Profile]), |jobs| jobs.at.clone());
    let set = |setting: &str| chosen.set_by.get(setting);
    problems.push(match &error {
        ProfileError::Value { setting, .. } => match set(setting) {
            Some(bound) => value_problem(&chosen.profile, bound, &error),
            None => unset_problem(at, &error),
        },
        ProfileError::Space { setting, .. } => {
            let at = set(setting).map_or(at, |bound| bound.at.clone());
            let problem = Diagnostic::from_error(at, &error.to_string());
            problem.also(view.place(&[Key::Layout]), "on this layout")
        }
        ProfileError::Place { .. } => {
            let filesystem = view.place(&[Key::Filesystem, Key::Profile]);
            let problem = Diagnostic::new(filesystem, error.to_string());
            problem.help("give a file system, or another profile")
        }
        _ => Diagnostic::from_error(at, &error.to_string()),
    });
    None
}
