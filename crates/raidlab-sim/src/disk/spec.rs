//! What a hard disk is, as data: the immutable specification that a model file is lowered into, and
//! the tables that are built from it.
use super::geometry::{Geometry, GeometryError, Switches, ZoneSpec};
use super::link::{SLOWEST_LINK, sector_nanos};
use super::rotation::{FASTEST, Spindle};
use super::rough::Rough;
use super::seek::{SeekCurve, SeekError, SeekSpec};
use super::segments::MOST_SEGMENTS;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;

/// A whole hard disk.
#[derive(Clone, Debug, PartialEq)]
pub struct HddSpec {
    /// Model name.
    pub name: String,
    /// Tenths of a revolution a minute.
    pub decirpm: u32,
    /// Surfaces with a head.
    pub heads: u32,
    /// Logical sectors of 512 bytes.
    pub sectors: u64,
    /// Logical sectors in a physical one: 1, or 8 for 512-byte emulation on 4 KiB sectors.
    pub physical: u32,
    /// Zones from the outside in.
    pub zones: Vec<ZoneSpec>,
    /// Seek times.
    pub seek: SeekSpec,
    /// Time to switch to another head of the cylinder.
    pub head_switch: Span,
    /// Time a write needs to settle after a seek, beyond a read.
    pub write_settle: Span,
    /// Reads that fit a track begin with whatever sector comes first.
    pub zero_latency: bool,
    /// Time of the drive's processor for each command.
    pub overhead: Overhead,
    /// Buffer.
    pub cache: CacheSpec,
    /// Command queueing.
    pub queue: QueueSpec,
    /// Highest rate of the drive's interface in bytes a second; 0: transfers take no time, because
    /// whoever owns the disk models the link.
    pub link: u64,
}

/// Time of the drive's processor for a command, before the arm or the transfer starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// A read served from the buffer.
    pub read_hit: Span,
    /// A read that needs the media.
    pub read_miss: Span,
    /// A write.
    pub write: Span,
}

/// When reading ahead goes on after it had filled its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// As soon as the host has taken anything.
    Eager,
    /// When half of the segment is free.
    Lazy,
}

/// A hard disk's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Read segments; 0: no read cache.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u64,
    /// A reader has what others leave of all segments, not one.
    pub adaptive: bool,
    /// Sectors read ahead of what the host has taken; 0: none.
    pub read_ahead: u64,
    /// Sectors that are read ahead in any case before the arm is taken away for what the buffer has to
    /// write (the minimum pre-fetch of SCSI mode page 8); 0: none.
    pub least_ahead: u64,
    /// When reading ahead goes on.
    pub restart: Restart,
    /// Writes are acknowledged when they are in the buffer.
    pub write_back: bool,
    /// Sectors of the buffer that may wait to be written.
    pub write_sectors: u64,
    /// Separate runs that may wait to be written.
    pub write_runs: u32,
    /// A run goes first, wherever the arm is, when so many times what may wait was written since it came, in sectors
    /// or in runs; at least 1.
    pub rounds: u32,
    /// Share of the write buffer in per cent at which destaging takes turns with reads.
    pub high: u32,
    /// Share in per cent at which it goes back to waiting for idle time.
    pub low: u32,
    /// Destaging waits until no read has come for so long, unless the buffer is above `high`.
    pub quiet: Span,
}

impl CacheSpec {
    /// Sectors of the buffer.
    pub fn sectors(&self) -> u64 {
        let read = self
            .segment_sectors
            .saturating_mul(u64::from(self.segments));
        read.max(self.write_sectors)
    }

    /// Sectors that a segment can hold at most.
    pub fn largest_segment(&self) -> u64 {
        let parts = if self.adaptive { self.segments } else { 1 };
        self.segment_sectors.saturating_mul(u64::from(parts))
    }
}

/// Command queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Commands that the drive takes at a time; 1: none beside the one in work.
    pub tags: u32,
    /// Commands, oldest first, among which the drive picks the one it reaches soonest; 1: in order.
    pub window: u32,
    /// A command that has been among those for longer than this goes first.
    pub max_age: Span,
}

/// One thing wrong with a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Rotation outside what a disk can do.
    #[error("{0} rpm is not a disk's speed: between 300 and 20000 is")]
    Rpm(String),
    /// No or too many heads.
    #[error("{0} heads are not possible: between 1 and 64 are")]
    Heads(u32),
    /// No sectors.
    #[error(
        "a capacity of {0} sectors is not possible: at least one cylinder's worth is needed, and at most 2^40"
    )]
    Capacity(u64),
    /// A physical sector that is neither 512 nor 4096 bytes.
    #[error("physical sectors of {0} bytes are not possible: 512 or 4096 are")]
    Physical(u64),
    /// A capacity that is not whole physical sectors.
    #[error(
        "{0} sectors are not whole physical sectors of 4096 bytes: the capacity must be a multiple of 8 sectors"
    )]
    PartPhysical(u64),
    /// The queue.
    #[error("a queue of {0} commands is not possible: between 1 and 256 are")]
    Tags(u32),
    /// The reordering window.
    #[error(
        "a reordering window of {window} commands is not possible with {tags} tags: between 1 and the tags are"
    )]
    Window {
        /// As given.
        window: u32,
        /// The tags.
        tags: u32,
    },
    /// Read segments.
    #[error("{0} cache segments are not possible: at most 64 are")]
    Segments(u32),
    /// A segment that holds nothing.
    #[error("cache segments of 0 sectors: give the cache a size, or 0 segments for none")]
    SegmentSize,
    /// Read-ahead beyond the segment.
    #[error("reading {ahead} sectors ahead does not fit a segment of {segment} sectors")]
    ReadAhead {
        /// As given.
        ahead: u64,
        /// Sectors of a segment.
        segment: u64,
    },
    /// A write buffer that holds nothing.
    #[error(
        "write_back needs a write share of the cache and at least 1 run: give write_share and write_runs, or set write_back = false"
    )]
    WriteBuffer,
    /// Runs that are never passed over.
    #[error("a run is passed over for {0} rounds of the buffer: between 1 and 1000 are possible")]
    Rounds(u32),
    /// Marks in the wrong order.
    #[error(
        "destaging starts at {high} % and stops at {low} %: the low mark must be below the high one, both at most 100"
    )]
    Marks {
        /// High mark.
        high: u32,
        /// Low mark.
        low: u32,
    },
    /// A time that no drive takes.
    #[error("{what} of {time} is not possible: at most {most} is")]
    Time {
        /// Which.
        what: &'static str,
        /// As given.
        time: Span,
        /// At most.
        most: Span,
    },
    /// The link.
    #[error("a link of {0} bytes a second is not possible: at least {SLOWEST_LINK} are")]
    Link(u64),
    /// The buffer.
    #[error("a buffer with segments of {0} sectors is not possible: at most 2^32 are")]
    Buffer(u64),
    /// Zones.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Seek times.
    #[error(transparent)]
    Seek(#[from] SeekError),
}

/// A specification with its tables: immutable, shared by all disks of the model.
#[derive(Clone, Debug)]
pub struct HddModel {
    /// What it was built from.
    pub spec: HddSpec,
    /// Zones.
    pub geometry: Geometry,
    /// Seek times.
    pub seek: SeekCurve,
    /// Bounds of them, to compare requests.
    pub(super) rough: Rough,
    /// Nanoseconds a sector takes on the link, in 2^-20 ns.
    pub(super) link_sector: u64,
}

impl HddSpec {
    /// Builds the tables.
    ///
    /// # Errors
    /// All that is wrong, not only the first.
    pub fn build(self) -> Result<HddModel, Vec<SpecError>> {
        let mut problems = self.check();
        let switches = Switches {
            head: self.head_switch.0.saturating_mul(u64::from(self.decirpm)),
            cylinder: 0,
        };
        let cylinders: u64 = self
            .zones
            .iter()
            .map(|zone| u64::from(zone.cylinders))
            .sum();
        let seek = SeekCurve::new(
            &self.seek,
            u32::try_from(cylinders).unwrap_or(u32::MAX).min(1 << 24),
        );
        if let Err(problem) = &seek {
            problems.push(problem.clone().into());
        }
        if !problems.is_empty() {
            problems.extend(self.geometry(switches).err().into_iter().flatten());
            return Err(problems);
        }
        let seek = seek.map_err(|problem| vec![problem.into()])?;
        let switches = Switches {
            cylinder: seek.nanos(1).saturating_mul(u64::from(self.decirpm)),
            ..switches
        };
        let geometry = self.geometry(switches)?;
        let spindle = Spindle::new(self.decirpm, 0);
        // What a stream may reach is compared exactly.
        let window = self.cache.segment_sectors + u64::from(geometry.widest());
        let (cylinders, near) = (geometry.cylinders(), geometry.span(window));
        Ok(HddModel {
            rough: Rough::new(&seek, cylinders, &spindle, self.write_settle.0, near),
            geometry,
            seek,
            link_sector: sector_nanos(self.link),
            spec: self,
        })
    }

    fn geometry(&self, switches: Switches) -> Result<Geometry, Vec<SpecError>> {
        if self.heads == 0 || self.heads > 64 || self.sectors == 0 || self.sectors > 1 << 40 {
            // Reported by the check; nothing can be laid out.
            return Err(Vec::new());
        }
        Geometry::new(&self.zones, self.heads, self.sectors, switches)
            .map_err(|problems| problems.into_iter().map(SpecError::from).collect())
    }

    fn check(&self) -> Vec<SpecError> {
        let mut problems = Vec::new();
        let mut unless = |fine: bool, problem: SpecError| {
            if !fine {
                problems.push(problem);
            }
        };
        let rpm = f64::from(self.decirpm) / 10.0;
        unless(
            (3_000..=FASTEST).contains(&self.decirpm),
            SpecError::Rpm(rpm.to_string()),
        );
        unless((1..=64).contains(&self.heads), SpecError::Heads(self.heads));
        unless(
            (1..=1 << 40).contains(&self.sectors),
            SpecError::Capacity(self.sectors),
        );
        unless(
            matches!(self.physical, 1 | 8),
            SpecError::Physical(u64::from(self.physical) * SECTOR),
        );
        unless(
            self.physical != 8 || self.sectors.is_multiple_of(8),
            SpecError::PartPhysical(self.sectors),
        );
        let (queue, cache) = (&self.queue, &self.cache);
        unless((1..=256).contains(&queue.tags), SpecError::Tags(queue.tags));
        unless(
            (1..=queue.tags.max(1)).contains(&queue.window),
            SpecError::Window {
                window: queue.window,
                tags: queue.tags,
            },
        );
        unless(
            cache.segments <= MOST_SEGMENTS,
            SpecError::Segments(cache.segments),
        );
        unless(
            cache.segments == 0 || cache.segment_sectors > 0,
            SpecError::SegmentSize,
        );
        unless(
            cache.segments == 0 || cache.read_ahead <= cache.largest_segment(),
            SpecError::ReadAhead {
                ahead: cache.read_ahead,
                segment: cache.largest_segment(),
            },
        );
        unless(
            !cache.write_back || (cache.write_sectors > 0 && cache.write_runs > 0),
            SpecError::WriteBuffer,
        );
        unless(
            (1..=1000).contains(&cache.rounds),
            SpecError::Rounds(cache.rounds),
        );
        unless(
            cache.low < cache.high && cache.high <= 100,
            SpecError::Marks {
                high: cache.high,
                low: cache.low,
            },
        );
        unless(
            self.link == 0 || self.link >= SLOWEST_LINK,
            SpecError::Link(self.link),
        );
        let largest = cache.largest_segment().max(cache.write_sectors);
        unless(largest <= 1 << 32, SpecError::Buffer(largest));
        problems.extend(self.check_times());
        problems
    }

    fn check_times(&self) -> Vec<SpecError> {
        let (second, day) = (Span::from_secs(1), Span::from_secs(86_400));
        let times = [
            ("a head switch", self.head_switch, second),
            ("a write settling", self.write_settle, second),
            ("a read-hit overhead", self.overhead.read_hit, second),
            ("a read overhead", self.overhead.read_miss, second),
            ("a write overhead", self.overhead.write, second),
            ("a quiet time", self.cache.quiet, day),
            ("a highest age", self.queue.max_age, day),
        ];
        let long = times.into_iter().filter(|(_, time, most)| time > most);
        long.map(|(what, time, most)| SpecError::Time { what, time, most })
            .collect()
    }
}

impl HddModel {
    /// A spindle of this model with `phase` units of angle under the heads at time zero.
    #[must_use]
    pub fn spindle(&self, phase: u64) -> Spindle {
        Spindle::new(self.spec.decirpm, phase)
    }

    /// Sustained rate of sequential reading at `lba` in bytes a second: a cylinder's sectors over its
    /// turns and switches, or the link's rate where that is lower.
    #[must_use]
    pub fn sustained(&self, lba: u64) -> f64 {
        let media = self.geometry.sustained(lba, self.spec.decirpm);
        if self.spec.link == 0 {
            media
        } else {
            media.min(self.spec.link as f64)
        }
    }
}
