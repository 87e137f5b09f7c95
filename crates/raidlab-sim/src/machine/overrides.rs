//! A disk model with what an experiment says about it: the model file with other values in it, read
//! again, so that all that is derived from a value follows it and all that is checked is checked.
use crate::catalogue::{self, Model, ModelError};
use crate::disk::DiskModel;
use crate::disk::spec::HddModel;
use raidlab_core::time::Span;
use raidlab_core::units::{Bytes, SECTOR};
use raidlab_experiment::hardware::Overrides;
use toml::{Table, Value};

/// Why an override makes no disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// Something that a disk of this kind does not have.
    #[error("'{key}' says nothing about a solid-state disk: drop it")]
    NotOfSsd {
        /// The key of the experiment file.
        key: &'static str,
    },
    /// A size that cannot be expressed in the unit of the model.
    #[error("'{key}' of {given} is no whole number of {unit}")]
    Fraction {
        /// The key of the experiment file.
        key: &'static str,
        /// As given.
        given: Bytes,
        /// What it must be a multiple of.
        unit: &'static str,
    },
    /// A cache that holds more than the disk.
    #[error("its 'cache' of {cache} holds more than the disk, which has {capacity}")]
    Cache {
        /// As given.
        cache: Bytes,
        /// Of the disk, with what else is given.
        capacity: Bytes,
    },
    /// The model with these values is no disk.
    #[error("with its override it is no disk: {0}")]
    Model(String),
}

/// A disk model with `overrides`: `name` and `text` as in [`catalogue::MODELS`].
///
/// # Errors
/// [`OverrideError`] with what is wrong.
pub fn model(name: &str, text: &str, overrides: &Overrides) -> Result<DiskModel, OverrideError> {
    let plain = read(name, text)?;
    if *overrides == Overrides::default() {
        return Ok(plain.disk);
    }
    let mut file: Table = text
        .parse()
        .map_err(|e: toml::de::Error| OverrideError::Model(e.message().to_owned()))?;
    match &plain.disk {
        DiskModel::Hdd(model) => hard_disk(&mut file, model, overrides)?,
        DiskModel::Ssd(_) => solid_state(&mut file, plain.disk.physical(), overrides)?,
    }
    let made = read(name, &file.to_string())?.disk;
    let capacity = Bytes(made.sectors() * SECTOR);
    match overrides.cache {
        Some(cache) if cache > capacity => Err(OverrideError::Cache { cache, capacity }),
        _ => Ok(made),
    }
}

/// What is wrong with the values that an experiment gives a model: of the catalogue, unless the text of its file is given.
///
/// # Errors
/// With what is wrong.
pub fn check(name: &str, own: Option<&str>, overrides: &Overrides) -> Result<(), String> {
    let of_catalogue = || catalogue::MODELS.iter().find(|(known, _)| *known == name);
    let Some(text) = own.or_else(|| of_catalogue().map(|(_, text)| *text)) else {
        return Ok(());
    };
    let made = model(name, text, overrides);
    made.map(drop).map_err(|error| error.to_string())
}

fn read(name: &str, text: &str) -> Result<Model, OverrideError> {
    let told = |error: ModelError| {
        // Lines and columns are those of a text that nobody has seen.
        let each: Vec<_> = error.problems.into_iter().map(|p| p.message).collect();
        OverrideError::Model(each.join("; "))
    };
    catalogue::parse(name, text).map_err(told)
}

/// The table of that name, made when there is none.
fn table<'t>(file: &'t mut Table, name: &str) -> Option<&'t mut Table> {
    let table = file
        .entry(name)
        .or_insert_with(|| Value::Table(Table::new()));
    table.as_table_mut()
}

fn set(file: &mut Table, name: &str, key: &str, value: impl Into<Value>) {
    let mut sourced = Table::new();
    sourced.insert("value".to_owned(), value.into());
    sourced.insert("source".to_owned(), "K: the experiment says so".into());
    if let Some(table) = table(file, name) {
        table.insert(key.to_owned(), Value::Table(sourced));
    }
}

fn whole(
    key: &'static str,
    size: Bytes,
    unit: u64,
    of: &'static str,
) -> Result<i64, OverrideError> {
    if !size.0.is_multiple_of(unit) {
        return Err(OverrideError::Fraction {
            key,
            given: size,
            unit: of,
        });
    }
    Ok(i64::try_from(size.0 / unit).unwrap_or(i64::MAX))
}

/// Sectors of 512 bytes of a capacity, on a disk whose model has physical sectors of so many. 500 GB are whole sectors of 512
/// bytes, and none of 4 KiB: no drive ends within one.
fn sectors(capacity: Bytes, physical: u32, o: &Overrides) -> Result<i64, OverrideError> {
    let sectors = whole("capacity", capacity, SECTOR, "sectors of 512 bytes")?;
    let physical = physical_sector(o).map_or(i64::from(physical), |bytes| bytes / 512);
    Ok(sectors / physical * physical)
}

fn hard_disk(file: &mut Table, model: &HddModel, o: &Overrides) -> Result<(), OverrideError> {
    if let Some(capacity) = o.capacity {
        let sectors = sectors(capacity, model.spec.physical, o)?;
        set(file, "geometry", "sectors", sectors);
    }
    if let Some(rpm) = o.rpm {
        set(file, "geometry", "rpm", i64::from(rpm));
    }
    if let Some(physical) = physical_sector(o) {
        set(file, "geometry", "physical_sector", physical);
    }
    if let Some(cache) = o.cache {
        set(
            file,
            "cache",
            "size_kib",
            whole("cache", cache, 1024, "KiB")?,
        );
        // What was said of a segment of another buffer says nothing of this one.
        if let Some(cache) = table(file, "cache") {
            cache.remove("read_ahead_kib");
        }
    }
    if let Some(tags) = o.queue {
        set(file, "queue", "depth", i64::from(tags));
        let window = model.spec.queue.window.min(tags);
        set(file, "queue", "window", i64::from(window));
    }
    zones(file, model, o);
    seeks(file, model, o);
    Ok(())
}

/// A logical sector of 4 KiB is a physical one of as much.
fn physical_sector(o: &Overrides) -> Option<i64> {
    let size = o.sector_physical.max(o.sector_logical)?;
    Some(i64::try_from(size.0).unwrap_or(i64::MAX))
}

/// Zones of an extraction are those of one capacity and density: others are derived anew.
fn zones(file: &mut Table, model: &HddModel, o: &Overrides) {
    let extracted = file.contains_key("zone");
    let other = o.outer_rate.is_some() || o.inner_rate.is_some();
    let resized = extracted && o.capacity.is_some();
    if !(other || resized) {
        return;
    }
    file.remove("zone");
    let last = model.spec.sectors - 1;
    let of = |lba| model.geometry.sustained(lba, model.spec.decirpm);
    let (outer, inner) = (of(0), of(last));
    let outer = o.outer_rate.map_or(outer, |rate| rate as f64);
    let inner = o.inner_rate.map_or(inner, |rate| rate as f64);
    let rate = Table::new();
    file.insert("rate".to_owned(), Value::Table(rate));
    set(file, "rate", "outer_mb_s", outer / 1e6);
    set(file, "rate", "inner_mb_s", inner / 1e6);
}

/// A curve of an extraction is replaced by the one through the three figures of a datasheet; those
/// not given are the curve's own.
fn seeks(file: &mut Table, model: &HddModel, o: &Overrides) {
    if o.seek_track.is_none() && o.seek_average.is_none() && o.seek_full.is_none() {
        return;
    }
    let cylinders = model.geometry.cylinders();
    let curve = &model.seek;
    let own = [
        ("track_to_track_ms", o.seek_track, curve.nanos(1)),
        ("average_ms", o.seek_average, average(model)),
        ("full_ms", o.seek_full, curve.nanos(cylinders - 1)),
    ];
    if let Some(seek) = table(file, "seek") {
        for key in ["table", "short", "long", "knee"] {
            seek.remove(key);
        }
        // The write's average is relative to a read's that is no more.
        if o.seek_average.is_some() && seek.remove("average_write_ms").is_some() {
            let settle = model.spec.write_settle.as_millis_f64();
            set(file, "switch", "write_settle_ms", settle);
        }
    }
    for (key, given, own) in own {
        let value = given.unwrap_or(Span(own)).as_millis_f64();
        set(file, "seek", key, value);
    }
}

/// Mean seek time over random pairs of cylinders, whose distance d has the density 2(C-d)/C^2 (MODELS
/// section 5.2), by a sum over a thousand distances.
fn average(model: &HddModel) -> u64 {
    const STEPS: u64 = 1000;
    let cylinders = u64::from(model.geometry.cylinders());
    let (mut sum, mut weights) = (0_u128, 0_u128);
    for step in 0..STEPS {
        let distance = (cylinders * (2 * step + 1) / (2 * STEPS)).max(1);
        let weight = u128::from(cylinders - distance.min(cylinders - 1));
        sum += weight * u128::from(model.seek.nanos(distance as u32));
        weights += weight;
    }
    (sum / weights.max(1)) as u64
}

fn solid_state(file: &mut Table, physical: u32, o: &Overrides) -> Result<(), OverrideError> {
    let mechanical = [
        ("rpm", o.rpm.is_some()),
        ("seek-average", o.seek_average.is_some()),
        ("seek-track", o.seek_track.is_some()),
        ("seek-full", o.seek_full.is_some()),
        ("outer-rate", o.outer_rate.is_some()),
        ("inner-rate", o.inner_rate.is_some()),
    ];
    if let Some((key, _)) = mechanical.into_iter().find(|(_, given)| *given) {
        return Err(OverrideError::NotOfSsd { key });
    }
    if let Some(capacity) = o.capacity {
        let sectors = sectors(capacity, physical, o)?;
        set(file, "drive", "sectors", sectors);
    }
    if let Some(physical) = physical_sector(o) {
        set(file, "drive", "physical_sector", physical);
    }
    if let Some(tags) = o.queue {
        set(file, "drive", "depth", i64::from(tags));
    }
    if let Some(cache) = o.cache {
        set(
            file,
            "buffer",
            "size_kib",
            whole("cache", cache, 1024, "KiB")?,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::MODELS;

    fn text(name: &str) -> &'static str {
        MODELS.iter().find(|(n, _)| *n == name).expect("known").1
    }

    fn hdd(name: &str, overrides: &Overrides) -> std::sync::Arc<HddModel> {
        match model(name, text(name), overrides).expect("a disk") {
            DiskModel::Hdd(model) => model,
            DiskModel::Ssd(_) => panic!("a hard disk was asked for"),
        }
    }

    #[test]
    fn nothing_overridden_changes_nothing() {
        for (name, text) in MODELS {
            let plain = catalogue::find(name).expect("known").disk;
            let same = model(name, text, &Overrides::default()).expect("a disk");
            assert_eq!(format!("{plain:?}"), format!("{same:?}"));
        }
    }

    #[test]
    fn a_capacity_ends_with_a_physical_sector() {
        let given = Overrides {
            capacity: Some(Bytes(500_000_000_000)),
            ..Overrides::default()
        };
        assert_eq!(hdd("nearline-24tb", &given).spec.sectors, 976_562_496);
        assert_eq!(hdd("ST340015A", &given).spec.sectors, 976_562_500);
        for name in ["sata-ssd", "nvme-ssd"] {
            let made = model(name, text(name), &given).expect("a disk");
            assert_eq!(made.sectors(), 976_562_496, "{name}");
        }
    }

    #[test]
    fn what_is_overridden_holds_and_the_rest_stays() {
        let given = Overrides {
            capacity: Some(Bytes(10_000_000_000 / 512 * 512)),
            rpm: Some(7200),
            cache: Some(Bytes::mib(8)),
            queue: Some(4),
            outer_rate: Some(80_000_000),
            inner_rate: Some(50_000_000),
            ..Overrides::default()
        };
        for name in ["ST340015A", "HP-C3323A"] {
            let model = hdd(name, &given);
            assert_eq!(model.spec.sectors, 10_000_000_000 / 512);
            assert_eq!((model.spec.decirpm, model.spec.queue.tags), (72_000, 4));
            let rates =
                [0, model.spec.sectors - 1].map(|lba| model.geometry.sustained(lba, 72_000));
            assert!((rates[0] / 80e6 - 1.0).abs() < 0.01, "{rates:?}");
            assert!((rates[1] / 50e6 - 1.0).abs() < 0.01, "{rates:?}");
            let plain = hdd(name, &Overrides::default());
            assert_eq!(model.spec.overhead, plain.spec.overhead);
        }
    }

    #[test]
    fn a_seek_figure_bends_the_curve() {
        for name in ["ST340015A", "HP-C3323A"] {
            let plain = hdd(name, &Overrides::default());
            let given = Overrides {
                seek_average: Some(Span::from_millis(9)),
                seek_full: Some(Span::from_millis(17)),
                ..Overrides::default()
            };
            let model = hdd(name, &given);
            let ms = average(&model) as f64 / 1e6;
            assert!((ms - 9.0).abs() < 0.1, "{name}: {ms}");
            assert_eq!(model.seek.nanos(1) / 10_000, plain.seek.nanos(1) / 10_000);
        }
    }

    #[test]
    fn what_makes_no_disk_is_told() {
        let told =
            |name: &str, overrides| model(name, text(name), &overrides).unwrap_err().to_string();
        let rpm = |rpm| Overrides {
            rpm: Some(rpm),
            ..Overrides::default()
        };
        assert_eq!(
            told("sata-ssd", rpm(7200)),
            "'rpm' says nothing about a solid-state disk: drop it"
        );
        assert_eq!(
            told("KW036", rpm(90_000)),
            "with its override it is no disk: 90000 rpm is not a disk's speed: between 300 and 20000 is"
        );
        for name in ["KW036", "sata-ssd"] {
            let given = Overrides {
                capacity: Some(Bytes::gib(1)),
                cache: Some(Bytes::gib(2)),
                ..Overrides::default()
            };
            assert_eq!(
                told(name, given),
                "its 'cache' of 2 GiB holds more than the disk, which has 1 GiB"
            );
        }
        let odd = Overrides {
            capacity: Some(Bytes(1000)),
            ..Overrides::default()
        };
        assert_eq!(
            told("KW036", odd),
            "'capacity' of 1000 B is no whole number of sectors of 512 bytes"
        );
    }

    #[test]
    fn solid_state_disks_take_what_they_have() {
        let given = Overrides {
            capacity: Some(Bytes::gib(100)),
            queue: Some(16),
            cache: Some(Bytes::mib(1)),
            ..Overrides::default()
        };
        let model = model("sata-ssd", text("sata-ssd"), &given).expect("a disk");
        assert_eq!((model.sectors(), model.tags()), (100 << 21, 16));
    }
}
