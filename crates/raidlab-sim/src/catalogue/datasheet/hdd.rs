//! A hard disk from its datasheet.
use super::text::{self, File};
use super::{Check, Interface, SheetProblem, TB, physical, readable, sectors};
use raidlab_core::units::{Bytes, KIB, MIB};
use std::f64::consts::TAU;

/// What a datasheet says of a hard disk.
#[derive(Clone, Debug, PartialEq)]
pub struct HddSheet {
    /// Name of the model.
    pub name: String,
    /// Formatted capacity as the drive is sold.
    pub capacity: Bytes,
    /// Turns a minute.
    pub rpm: f64,
    /// Bytes a second, sustained, of the outermost tracks: the "maximum sustained transfer rate".
    pub outer_rate: f64,
    /// The same of the innermost tracks.
    pub inner_rate: Option<f64>,
    /// Milliseconds of an average read seek.
    pub seek_average: Option<f64>,
    /// Milliseconds of an average write seek.
    pub seek_average_write: Option<f64>,
    /// Milliseconds to the next track.
    pub seek_track: Option<f64>,
    /// Milliseconds over all tracks.
    pub seek_full: Option<f64>,
    /// The buffer.
    pub cache: Option<Bytes>,
    /// One of [`super::HDD_INTERFACES`].
    pub interface: Interface,
    /// Surfaces in use.
    pub heads: Option<u32>,
    /// Bytes of a physical sector.
    pub sector_physical: Option<u32>,
    /// Commands that the drive takes at a time.
    pub queue: Option<u32>,
    /// Random reads of 4 KiB a second. Where the average seek is not given it is derived from them, else they must agree.
    pub read_iops: Option<f64>,
    /// In flight for these; one when nothing is said.
    pub read_iops_depth: Option<u32>,
}

/// The inner tracks of the drives whose zones are known have 0.47 to 0.68 of the outer ones' bytes; those of today about
/// a half.
const INNER_SHARE: f64 = 0.5;
/// Median of the seven drives whose seek curves were extracted: 0.08 to 0.22.
const TRACK_SHARE: f64 = 0.15;
/// Median of the same drives: 1.82 to 2.02.
const FULL_SHARE: f64 = 1.92;
/// User bits along a track for each track across, of drives of 2003 to 2024 two and a half to four.
const BIT_ASPECT: f64 = 3.0;
/// Surfaces of eleven discs, the most that are made.
const MOST_HEADS: f64 = 22.0;
/// Drives of so much and more are those of servers, which look at more commands when they choose the next.
const NEARLINE: u64 = 6 * TB;

/// A value with where it is from.
pub(super) type Sourced = (f64, String);

fn given(value: Option<f64>, otherwise: impl FnOnce() -> Sourced) -> Sourced {
    value.map_or_else(otherwise, |value| (value, "K: datasheet".to_owned()))
}

impl HddSheet {
    /// The text of a model file.
    ///
    /// # Errors
    /// All that no disk can have.
    pub fn file(&self) -> Result<String, Vec<SheetProblem>> {
        self.check()?;
        match self.seek_of_reads()? {
            Some((average, why)) => {
                let sheet = Self {
                    seek_average: Some(average),
                    ..self.clone()
                };
                sheet.text(&sheet.check()?, Some(why))
            }
            None => self.text(&self.check()?, None),
        }
    }

    /// The file, of a sheet that was checked; `derived` says where the average seek is from when it is not from the sheet.
    pub(super) fn text(
        &self,
        heads: &Sourced,
        derived: Option<String>,
    ) -> Result<String, Vec<SheetProblem>> {
        let rpm = text::figure(self.rpm);
        let what = format!(
            "{} hard disk of {rpm} rpm, {}, from its datasheet",
            text::capacity(self.capacity),
            self.interface.what
        );
        let mut file = File::new(&self.name, "hdd", &what);
        let standard = format!("K: {}", self.interface.what);
        file.table("interface");
        file.word("kind", self.interface.kind, &standard);
        file.number("rate_mb_s", self.interface.mb_s, &standard);

        file.table("geometry");
        file.number("rpm", self.rpm, "K: datasheet");
        file.whole("heads", heads.0 as u64, &heads.1);
        let (count, how) = sectors(self.capacity);
        file.whole("sectors", count, &how);
        let (size, why) = physical(self.sector_physical, self.capacity.0 >= TB);
        file.whole("physical_sector", u64::from(size), why);

        file.table("rate");
        file.number(
            "outer_mb_s",
            self.outer_rate / 1e6,
            "K: datasheet, sustained",
        );
        let (inner, why) = self.inner();
        file.number("inner_mb_s", inner / 1e6, &why);
        self.arm(&mut file, derived);
        self.electronics(&mut file);
        readable(file.end(), "seek-average")
    }

    /// The surfaces, when all is possible.
    pub(super) fn check(&self) -> Result<Sourced, Vec<SheetProblem>> {
        let mut check = Check::default();
        check.capacity(self.capacity, 5_000_000);
        check.range("rpm", Some(self.rpm), 300.0, 20_000.0, " turns a minute");
        check.rate("outer-rate", Some(self.outer_rate), &self.interface);
        check.rate("inner-rate", self.inner_rate, &self.interface);
        if self.inner_rate.is_some_and(|inner| inner > self.outer_rate) {
            check.wrong(
                "inner-rate",
                "the inner tracks are shorter: it cannot be above --outer-rate",
            );
        }
        let times = [
            ("seek-average", self.seek_average, 0.5, 100.0),
            ("seek-average-write", self.seek_average_write, 0.5, 100.0),
            ("seek-track", self.seek_track, 0.05, 20.0),
            ("seek-full", self.seek_full, 0.5, 200.0),
        ];
        for (figure, value, least, most) in times {
            check.range(figure, value, least, most, " ms");
        }
        let average = self.average().0;
        // One that is yet to be derived is held against the write when it is known.
        let known = self.seek_average.is_some() || self.read_iops.is_none();
        if known && self.seek_average_write.is_some_and(|write| write < average) {
            check.wrong(
                "seek-average-write",
                format!("a write waits no less than a read ({average:.2} ms)"),
            );
        }
        check.range("heads", self.heads.map(f64::from), 1.0, 64.0, "");
        check.range("queue", self.queue.map(f64::from), 1.0, 256.0, "");
        check.buffer_and_sector(self.cache, 0.0, self.sector_physical);
        check.range("read-iops", self.read_iops, 1.0, 100_000.0, " a second");
        let most = f64::from(self.depth().0);
        let depth = self.read_iops_depth.map(f64::from);
        check.range("read-iops-depth", depth, 1.0, most, " in flight");
        if !check.0.is_empty() {
            return Err(check.0);
        }
        let heads = self.surfaces(&mut check);
        if check.0.is_empty() {
            Ok(heads)
        } else {
            Err(check.0)
        }
    }

    fn inner(&self) -> Sourced {
        given(self.inner_rate, || {
            let inner = self.outer_rate * INNER_SHARE;
            (
                inner,
                "assumed: half of the outer tracks, as of most drives".to_owned(),
            )
        })
    }

    /// How many surfaces hold the capacity: a turn of the outermost track gives its bytes, its length their density, and
    /// tracks lie a certain multiple of a bit apart. Rotation and rate are as given whatever comes out; it says over how many
    /// cylinders the data lie.
    fn surfaces(&self, check: &mut Check) -> Sourced {
        if let Some(heads) = self.heads {
            return (f64::from(heads), "K: datasheet".to_owned());
        }
        let holds = self.surface();
        let wanted = self.capacity.0 as f64 / holds;
        let gb = text::roughly(holds);
        if wanted > 2.0 * MOST_HEADS {
            let message = format!(
                "at such a rate a surface holds about {gb}, and this capacity wants {wanted:.0} of them: is one of the two figures mistaken? \
                 If not, say --heads"
            );
            check.wrong("outer-rate", message);
        } else if wanted < 0.02 {
            let message = format!(
                "at such an --outer-rate a single surface holds about {gb}: is one of the two figures mistaken? If not, say --heads"
            );
            check.wrong("capacity", message);
        }
        // A twentieth too much is within what is not known.
        let heads = libm::ceil(wanted - 0.05).clamp(1.0, MOST_HEADS);
        let how = format!(
            "assumed: a surface of that rate and speed holds about {gb} (three bits along the track to one track across); \
             right within a factor of two"
        );
        (heads, how)
    }

    /// Bytes that a surface of a disc holds.
    fn surface(&self) -> f64 {
        // Discs of 95, 84 and 70 mm; linear density is constant, so that radii are as rates.
        let outer_mm = match self.rpm {
            ..9000.0 => 46.0,
            ..13_000.0 => 40.0,
            _ => 33.0,
        };
        let turn = 60.0 / self.rpm;
        let (outer, inner) = (self.outer_rate * turn, self.inner().0 * turn);
        let bits_per_mm = outer * 8.0 / (TAU * outer_mm);
        let tracks =
            (outer_mm * (1.0 - inner / outer)).max(outer_mm * 0.05) * bits_per_mm / BIT_ASPECT;
        tracks * (outer + inner) / 2.0
    }

    fn average(&self) -> Sourced {
        given(self.seek_average, || {
            let why = "assumed: usual at that speed";
            (self.usual_average(), why.to_owned())
        })
    }

    /// Milliseconds of an average seek that are usual at the speed.
    pub(super) fn usual_average(&self) -> f64 {
        match self.rpm {
            ..5000.0 => 12.5,
            ..7000.0 => 12.0,
            ..9000.0 if self.capacity.0 >= NEARLINE => 8.0,
            ..9000.0 => 8.5,
            ..13_000.0 => 4.7,
            _ => 3.6,
        }
    }

    fn track(&self) -> Sourced {
        given(self.seek_track, || {
            let ms = self.average().0 * TRACK_SHARE;
            (
                ms,
                format!(
                    "assumed: {TRACK_SHARE} of the average, the median of seven drives (0.08 to 0.22)"
                ),
            )
        })
    }

    fn full(&self) -> Sourced {
        given(self.seek_full, || {
            let ms = self.average().0 * FULL_SHARE;
            (
                ms,
                format!(
                    "assumed: {FULL_SHARE} of the average, the median of seven drives (1.82 to 2.02)"
                ),
            )
        })
    }

    fn arm(&self, file: &mut File, derived: Option<String>) {
        file.table("seek");
        let write = given(self.seek_average_write, || {
            let why = "assumed: the average read and a settling of 0.5 ms";
            (self.average().0 + 0.5, why.to_owned())
        });
        let (average, why) = self.average();
        let times = [
            ("track_to_track_ms", self.track()),
            ("average_ms", (average, derived.unwrap_or(why))),
            ("full_ms", self.full()),
            ("average_write_ms", write),
        ];
        for (key, (ms, why)) in times {
            file.number(key, ms, &why);
        }
    }

    /// Commands that the drive takes at a time.
    fn depth(&self) -> (u32, String) {
        match self.queue {
            Some(depth) => (depth, "K: datasheet".to_owned()),
            None if self.interface.depth == 1 => {
                (1, format!("assumed: no queue on {}", self.interface.what))
            }
            None => (
                self.interface.depth,
                format!("assumed: usual on {}", self.interface.what),
            ),
        }
    }

    /// Buffer, command times and queue.
    fn electronics(&self, file: &mut File) {
        file.table("cache");
        let size = self
            .cache
            .map_or_else(|| usual_cache(self.capacity), |cache| cache.0);
        let why = if self.cache.is_some() {
            "K: datasheet"
        } else {
            "assumed: usual at that capacity"
        };
        file.whole("size_kib", size / KIB, why);
        let (segments, runs) = match size / MIB {
            0..32 => (16, 128),
            32..256 => (32, 256),
            _ => (64, 1024),
        };
        if size > 0 {
            file.whole(
                "segments",
                segments,
                "assumed: usual for a buffer of that size",
            );
            if size >= 8 * MIB {
                file.flag(
                    "adaptive",
                    true,
                    "assumed: drives with such buffers divide them by the readers there are",
                );
            }
            file.flag("write_back", true, "assumed: as drives are delivered");
            file.whole("write_runs", runs, "assumed: more in a larger buffer");
        }

        file.table("overhead");
        let (hit, miss, write) = match (self.interface.kind, self.interface.mb_s) {
            ("SCSI", _) => (250, 250, 250),
            ("SATA" | "SAS", 500.0..) => (30, 150, 40),
            _ => (60, 200, 80),
        };
        let why = "assumed: as of the catalogue's drives on such an interface";
        file.whole("read_hit_us", hit, why);
        file.whole("read_miss_us", miss, why);
        file.whole("write_us", write, why);

        file.table("queue");
        let (depth, why) = self.depth();
        file.whole("depth", u64::from(depth), &why);
        if depth > 1 {
            let (window, why) = match self.interface.kind {
                "SCSI" | "SAS" => (
                    16,
                    "assumed: server drives look at more commands than desktop drives",
                ),
                _ if self.capacity.0 >= NEARLINE => (12, "assumed: as of nearline-24tb"),
                _ => (4, "assumed: reordering as weak as a desktop drive's"),
            };
            file.whole("window", u64::from(depth.min(window)), why);
            file.whole(
                "max_age_ms",
                500,
                "assumed: those passed over for longer go first",
            );
        }
    }
}

/// Bytes of the buffer that drives of this capacity usually have.
fn usual_cache(capacity: Bytes) -> u64 {
    let mib = match capacity.0 / super::GB {
        0..60 => 2,
        60..200 => 8,
        200..500 => 16,
        500..1000 => 32,
        1000..4000 => 64,
        4000..12_000 => 256,
        _ => 512,
    };
    mib * MIB
}
