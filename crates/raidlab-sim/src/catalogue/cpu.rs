//! Processors as data. The files are written as those of disks are: every value has a source.
use super::reader::{Reader, Table};
use super::{Fact, ModelError};
use crate::host::CpuModel;
use raidlab_core::units::KIB;
use raidlab_experiment::kernel::Kernel;
use toml::de::DeTable;

/// A processor of the catalogue or of a file.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it is.
    pub cpu: CpuModel,
    /// One line on what it is.
    pub description: String,
    /// Every value with its source.
    pub facts: Vec<Fact>,
}

macro_rules! models {
    ($($name:literal = $file:literal),* $(,)?) => {
        /// The processors that come with the program: name and text of the file.
        pub const MODELS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../models/cpus/", $file, ".toml")))),*
        ];
    };
}

models!(
    "Athlon 64 X2 3800+" = "athlon-64-x2-3800",
    "Pentium D 2.8 GHz" = "pentium-d-2.8",
    "Xeon 1.6 GHz" = "xeon-1.6",
    "Core 2 Duo 2.4 GHz" = "core-2-2.4",
    "Turion II Neo N40L" = "turion-ii-neo-n40l",
    "server-2011" = "server-2011",
    "modern" = "modern",
);

/// Reads a model file; `file` is how messages name it.
///
/// # Errors
/// All that is wrong with it, each with its line and what to do.
pub fn parse(file: &str, text: &str) -> Result<Model, ModelError> {
    let reader = Reader::new(file, text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let read = if syntax.is_empty() {
        Some(lower(&reader, document.get_ref()))
    } else {
        for error in syntax {
            reader.report(&error.span().unwrap_or_default(), error.message());
        }
        None
    };
    let ((cpu, description), facts) = reader.finish(read)?;
    Ok(Model {
        cpu,
        description,
        facts,
    })
}

/// Lowers the file; what is wrong is reported to the reader.
fn lower(reader: &Reader<'_>, document: &DeTable<'_>) -> (CpuModel, String) {
    let root = Table::root(reader, document);
    let name = root.text("name").unwrap_or_default();
    let description = root.text("description").unwrap_or_default();
    let (core, memory) = (root.table("core"), root.table("memory"));
    let rate = |key| positive(&memory, key, "a rate in millions of bytes a second");
    let cpu = CpuModel {
        name,
        mhz: positive(&core, "clock_mhz", "the clock of a core"),
        per_clock: positive(&core, "per_clock_permille", "its work in a clock"),
        copy: u64::from(rate("copy_mb_s")) * 1_000_000,
        copy_cached: u64::from(rate("copy_cached_mb_s")) * 1_000_000,
        cache: u64::from(positive(&memory, "cache_kib", "the largest cache")) * KIB,
        peak: match memory.has("peak_mb_s") {
            true => u64::from(rate("peak_mb_s")) * 1_000_000,
            false => 0,
        },
    };
    for table in [&core, &memory, &root] {
        table.deny_unknown();
    }
    (cpu, description)
}

/// A number from 1 to 10 million that must be there.
fn positive(table: &Table<'_, '_>, key: &str, what: &str) -> u32 {
    if !table.has(key) {
        table.missing(key, what);
    }
    match table.count(key) {
        Some(value @ 1..=10_000_000) => value,
        Some(value) => {
            let path = table.path_of(key);
            let message = format!("'{path}' is {value}: from 1 to 10000000 is possible");
            table.reader.report_at(&path, message);
            1
        }
        None => 1,
    }
}

/// A processor that comes with the program, by its name in any case.
#[must_use]
pub fn find(name: &str) -> Option<Model> {
    let found = MODELS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name.trim()))?;
    // The files of the catalogue are checked by a test.
    parse(found.0, found.1).ok()
}

/// The processor for a name as it stands in an experiment: the one of that name, else one of the
/// kernel's time, at the clock that the name tells (`2.8 GHz`, `800 MHz`).
#[must_use]
pub fn find_or_of_its_time(name: Option<&str>, kernel: Kernel) -> Model {
    if let Some(found) = name.and_then(find) {
        return found;
    }
    let like = of_its_time(kernel);
    let mut model = find(like).unwrap_or_else(|| unreachable!("'{like}' is in the catalogue"));
    if let Some(name) = name {
        model.cpu.mhz = clock(&name.to_lowercase()).unwrap_or(model.cpu.mhz);
        name.clone_into(&mut model.cpu.name);
    }
    model
}

/// The model that stands in for a processor of which there is none; `None` when the name is known, or none was asked
/// for.
#[must_use]
pub fn stand_in(name: Option<&str>, kernel: Kernel) -> Option<&'static str> {
    name.is_some_and(|name| find(name).is_none())
        .then(|| of_its_time(kernel))
}

/// A processor as machines of the kernel's time had them.
fn of_its_time(kernel: Kernel) -> &'static str {
    if kernel < Kernel::Linux(2, 6, 32) {
        "Athlon 64 X2 3800+"
    } else if kernel < Kernel::Linux(4, 0, 0) {
        "server-2011"
    } else {
        "modern"
    }
}

/// The clock in MHz that a name in lower case tells.
fn clock(name: &str) -> Option<u32> {
    let (before, scale) = match (name.find("ghz"), name.find("mhz")) {
        (Some(at), _) => (&name[..at], 1000.0),
        (None, Some(at)) => (&name[..at], 1.0),
        (None, None) => return None,
    };
    let value: f64 = before.split_whitespace().next_back()?.parse().ok()?;
    let mhz = libm::round(value * scale);
    (1.0..100_000.0).contains(&mhz).then_some(mhz as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_reads_and_has_the_name_it_is_found_by() {
        for (name, text) in MODELS {
            let model = parse(name, text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(model.cpu.name, *name);
            assert!(model.cpu.copy_cached >= model.cpu.copy, "{name}");
            // What is copied is read and written.
            let peak = model.cpu.peak;
            assert!(peak == 0 || peak >= 2 * model.cpu.copy, "{name}");
            assert!(model.facts.len() >= 5, "{name}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let text = "name = \"x\"\ndescription = \"y\"\n[core]\nclock_mhz = { value = 0, source = \"K: x\" }\nclocks = 2\n";
        let error = parse("x.toml", text).unwrap_err().to_string();
        for part in [
            "'core.clock_mhz' is 0",
            "per_clock_permille",
            "copy_mb_s",
            "clocks",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_name_that_is_not_known_has_its_clock() {
        let of = |name, kernel| find_or_of_its_time(name, kernel).cpu;
        let old = Kernel::Linux(2, 6, 16);
        assert_eq!(of(Some("xeon 1.6 ghz"), old).mhz, 1600);
        assert_eq!(of(Some("Something 800 MHz"), old).mhz, 800);
        assert_eq!(of(Some("Something 800 MHz"), old).per_clock, 1000);
        assert_eq!(of(None, Kernel::DEFAULT).name, "modern");
        assert_eq!(stand_in(Some("Pentium 9"), old), Some("Athlon 64 X2 3800+"));
        assert_eq!(stand_in(Some(" MODERN"), old), None);
        assert_eq!(stand_in(None, old), None);
        assert_eq!(clock("of 0 mhz"), None);
    }
}
