//! From common options (`--size`, `--depth` …) to each profile's own settings.
//!
//! The profiles keep the names of the tools they are named after (`chunk`, `bs`, `block`), so one
//! option stands for the setting of that meaning in each.
use crate::args::SettingArgs;
use crate::exit::{BAD_REQUEST, Failure};
use raidlab_core::profile::{Profile, ProfileError};

/// One assignment: which option it came from, which settings may take it, and the value.
struct Assignment {
    option: String,
    /// Only for the profile of this name.
    profile: Option<String>,
    /// The first of these that a profile has is set.
    settings: Vec<String>,
    value: String,
}

impl Assignment {
    fn common(option: &str, settings: &[&str], value: &str) -> Self {
        Self {
            option: option.to_owned(),
            profile: None,
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
            value: value.to_owned(),
        }
    }
}

/// The profiles of these names with what was typed.
///
/// # Errors
/// An unknown profile or setting, a value that cannot be read, or an option that none of the chosen
/// profiles knows.
pub(crate) fn profiles(names: &[String], args: &SettingArgs) -> Result<Vec<Profile>, Failure> {
    let bad = |error: ProfileError| Failure::from_error(BAD_REQUEST, &error);
    let mut profiles = Vec::new();
    for name in names {
        let profile = Profile::named(name.trim()).map_err(bad)?;
        if profiles
            .iter()
            .any(|p: &Profile| p.name() == profile.name())
        {
            return Err(Failure::bad_request(format!(
                "profile {} is named twice",
                profile.name()
            )));
        }
        profiles.push(profile);
    }
    for assignment in assignments(args)? {
        assign(&mut profiles, &assignment)?;
    }
    Ok(profiles)
}

fn assign(profiles: &mut [Profile], assignment: &Assignment) -> Result<(), Failure> {
    let mut known = false;
    let mut unknown = None;
    for profile in profiles.iter_mut() {
        if assignment
            .profile
            .as_deref()
            .is_some_and(|only| only != profile.name())
        {
            continue;
        }
        let setting = assignment
            .settings
            .iter()
            .find(|s| profile.about().iter().any(|about| about.key == **s));
        let result = match setting {
            Some(setting) => profile.set(setting, &assignment.value),
            // Asked for its error, which offers the nearest name.
            None => profile.set(&assignment.settings[0], &assignment.value),
        };
        match result {
            Ok(()) => known = true,
            Err(error) if setting.is_some() => {
                return Err(Failure::from_error(BAD_REQUEST, &error)
                    .remedy(format!("look at {}", assignment.option)));
            }
            Err(error) => unknown = Some(error),
        }
    }
    if known {
        return Ok(());
    }
    let names: Vec<_> = profiles.iter().map(Profile::name).collect();
    Err(match (unknown, &assignment.profile) {
        (None, Some(only)) => Failure::bad_request(format!(
            "{}: profile {only} is not among those to be run ({})",
            assignment.option,
            names.join(", ")
        )),
        (Some(error), _) if assignment.option.starts_with("--set") => {
            Failure::from_error(BAD_REQUEST, &error)
        }
        _ => Failure::bad_request(format!(
            "{} means nothing to {}",
            assignment.option,
            names.join(", ")
        ))
        .remedy(known_options(profiles)),
    })
}

/// Options that take a value, with the settings that each stands for.
const VALUED: [(&str, &[&str]); 10] = [
    ("--size", &["size", "sizes"]),
    ("--block-size", &["chunk", "block", "bs", "call"]),
    ("--count", &["count", "random"]),
    ("--threads", &["threads"]),
    ("--depth", &["depth"]),
    ("--jobs", &["jobs"]),
    ("--read", &["read-percent"]),
    ("--runtime", &["time", "read-time"]),
    ("--rate", &["rate"]),
    ("--fsync-every", &["fsync"]),
];
const FSYNC: (&str, &[&str]) = ("--fsync", &["fsync-writes", "sync", "end-fsync"]);

/// What each profile can be told, as options and as settings.
fn known_options(profiles: &[Profile]) -> String {
    let others: [(&str, &[&str]); 5] = [
        ("--files", &["files"]),
        ("--fast", &["fast"]),
        FSYNC,
        ("--direct", &["direct"]),
        ("--buffered", &["direct"]),
    ];
    let of = |profile: &Profile| {
        let keys: Vec<&str> = profile.about().iter().map(|about| about.key).collect();
        let options = VALUED.iter().chain(&others);
        let known: Vec<&str> = options
            .filter(|(_, settings)| settings.iter().any(|setting| keys.contains(setting)))
            .map(|(option, _)| *option)
            .collect();
        let keys = keys.join(", ");
        match known[..] {
            [] => format!("{} knows --set KEY=VALUE of: {keys}", profile.name()),
            _ => format!(
                "{} knows {}, and --set KEY=VALUE of: {keys}",
                profile.name(),
                known.join(", ")
            ),
        }
    };
    let told: Vec<String> = profiles.iter().map(of).collect();
    told.join("; ")
}

fn assignments(args: &SettingArgs) -> Result<Vec<Assignment>, Failure> {
    let mut all = Vec::new();
    // In the order of the options.
    let values = [
        &args.size,
        &args.block_size,
        &args.count,
        &args.threads,
        &args.depth,
        &args.jobs,
        &args.read,
        &args.runtime,
        &args.rate,
        &args.fsync_every,
    ];
    for ((option, settings), value) in VALUED.into_iter().zip(values) {
        if let Some(value) = value {
            let value = value
                .trim()
                .trim_end_matches(if option == "--read" { "%" } else { "" });
            all.push(Assignment::common(option, settings, value));
        }
    }
    if let Some(files) = &args.files {
        small_files(files, &mut all)?;
    }
    if args.fast {
        all.push(Assignment::common("--fast", &["fast"], "yes"));
    }
    if args.fsync {
        all.push(Assignment::common(FSYNC.0, FSYNC.1, "yes"));
    }
    if args.direct || args.buffered {
        let (option, value) = if args.direct {
            ("--direct", "yes")
        } else {
            ("--buffered", "no")
        };
        all.push(Assignment::common(option, &["direct"], value));
    }
    for text in &args.set {
        all.push(explicit(text)?);
    }
    Ok(all)
}

/// `N[:MAX[:MIN[:DIRS]]]` in the order of bonnie++'s `-n`.
fn small_files(text: &str, all: &mut Vec<Assignment>) -> Result<(), Failure> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 4 || parts.iter().any(|part| part.is_empty()) {
        return Err(
            Failure::bad_request(format!("--files '{text}' is not N[:MAX[:MIN[:DIRS]]]"))
                .remedy("write '--files 16' or '--files 16:64KiB:4KiB:8'"),
        );
    }
    let settings = ["files", "file-size-max", "file-size-min", "directories"];
    all.extend(
        settings
            .iter()
            .zip(parts)
            .map(|(setting, value)| Assignment::common("--files", &[setting], value)),
    );
    Ok(())
}

/// `KEY=VALUE` or `PROFILE.KEY=VALUE`.
fn explicit(text: &str) -> Result<Assignment, Failure> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::bad_request(format!("--set '{text}' has no '='"))
            .remedy("write --set KEY=VALUE, such as --set seeks=20000"));
    };
    let (profile, setting) = match name.split_once('.') {
        Some((profile, setting)) => (Some(profile.trim().to_owned()), setting),
        None => (None, name),
    };
    Ok(Assignment {
        option: format!("--set {text}"),
        profile,
        settings: vec![setting.trim().to_owned()],
        value: value.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        settings: SettingArgs,
    }

    fn with(names: &str, line: &str) -> Result<Vec<Profile>, Failure> {
        let args = Only::parse_from(std::iter::once("x").chain(line.split_whitespace()));
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        profiles(&names, &args.settings)
    }

    fn setting(profile: &Profile, key: &str) -> String {
        profile.settings()[key].clone()
    }

    #[test]
    fn one_option_sets_each_profiles_setting_of_that_meaning() {
        let profiles = with("bonnie,dd,tiobench", "--block-size 16KiB --direct").unwrap();
        assert_eq!(setting(&profiles[0], "chunk"), "16384");
        assert_eq!(setting(&profiles[1], "bs"), "16384");
        assert_eq!(setting(&profiles[2], "block"), "16384");
        assert!(profiles.iter().all(|p| setting(p, "direct") == "yes"));
    }

    #[test]
    fn files_are_spelled_as_for_bonnie() {
        let profiles = with("bonnie", "--files 2:64KiB:4KiB:8").unwrap();
        let keys = ["files", "file-size-max", "file-size-min", "directories"];
        assert_eq!(
            keys.map(|key| setting(&profiles[0], key)),
            ["2", "65536", "4096", "8"]
        );
        assert!(with("bonnie", "--files 1::2").is_err());
    }

    #[test]
    fn an_option_that_nobody_knows_is_an_error() {
        let failure = with("hdparm", "--depth 4").unwrap_err();
        assert_eq!(failure.message, "--depth means nothing to hdparm");
        let failure = with("dd", "--size 1GiB").unwrap_err();
        let remedy = failure.remedy.unwrap();
        assert!(
            remedy.starts_with("dd knows --block-size, --count, ") && !remedy.contains("--size,"),
            "{remedy}"
        );
        assert!(with("hdparm,random", "--depth 4").is_ok());
    }

    #[test]
    fn a_profile_can_be_named_in_a_setting() {
        let profiles = with(
            "random,sequential",
            "--set random.depth=4 --set sequential.depth=2",
        )
        .unwrap();
        assert_eq!(
            profiles
                .iter()
                .map(|p| setting(p, "depth"))
                .collect::<Vec<_>>(),
            ["4", "2"]
        );
        assert!(
            with("dd", "--set random.depth=4")
                .unwrap_err()
                .message
                .contains("not among those")
        );
        assert!(
            with("dd", "--set cout=4")
                .unwrap_err()
                .message
                .contains("count")
        );
        assert!(
            with("dd", "--set count")
                .unwrap_err()
                .message
                .contains("no '='")
        );
    }

    #[test]
    fn an_ambiguous_size_offers_both_readings() {
        let failure = with("bonnie", "--size 64K").unwrap_err();
        assert!(failure.message.contains("64KiB"), "{}", failure.message);
        assert!(failure.message.contains("64kB"), "{}", failure.message);
    }

    #[test]
    fn a_profile_that_does_not_exist_is_told_with_the_nearest() {
        assert!(with("bonny", "").unwrap_err().message.contains("bonnie"));
        assert!(with("dd,dd", "").unwrap_err().message.contains("twice"));
    }
}
