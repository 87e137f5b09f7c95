//! What a solid-state disk is, as data.
use raidlab_core::op::BlockKind;
use raidlab_core::time::Span;
use raidlab_core::units::SECTOR;

/// A whole solid-state disk.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdSpec {
    /// Model name.
    pub name: String,
    /// Logical sectors of 512 bytes.
    pub sectors: u64,
    /// Logical sectors in a physical one: 1 or 8.
    pub physical: u32,
    /// Commands taken at a time.
    pub tags: u32,
    /// Rate of the interface in bytes a second; 0: whoever owns the disk models the link.
    pub link: u64,
    /// Reads and writes go over the interface at a time, each at its rate.
    pub duplex: bool,
    /// Time of the controller for a command.
    pub overhead: Span,
    /// Least time between two commands: one over the most commands a second.
    pub turn: Span,
    /// The same between a write and the next command, for which the map of pages has to be changed; none: as [`Self::turn`].
    pub turn_write: Option<Span>,
    /// Dies that work at the same time.
    pub dies: u32,
    /// Channels that the dies share evenly.
    pub channels: u32,
    /// Rate of a channel in bytes a second.
    pub channel_rate: u64,
    /// Sectors of a flash page, the most that a die reads at a time.
    pub page: u32,
    /// Time a die needs to read a page.
    pub read: Span,
    /// Sectors that a die programs at a time (all planes).
    pub program_unit: u32,
    /// Time of a program.
    pub program: Span,
    /// Time of a program in the fast area.
    pub program_fast: Span,
    /// Sectors that fit the fast area; 0: none.
    pub fast: u64,
    /// Longest time a read waits for a program to be suspended.
    pub suspend: Span,
    /// Sectors of the write buffer.
    pub buffer: u64,
    /// Sectors that are read ahead of each run of reads that follow each other; 0: none.
    pub ahead: u64,
    /// Such runs that are known at a time.
    pub runs: u32,
    /// Buffered writes survive a loss of power, so that a flush costs nothing.
    pub protected: bool,
    /// Time that a flush takes beyond the programs of what is in the buffer, as the map of pages is written; of a protected buffer
    /// it says nothing.
    pub flush: Span,
    /// Spare flash in thousandths of the capacity.
    pub spare_permille: u32,
    /// Share of the capacity in per cent that was written before time zero.
    pub filled: u32,
}

/// One thing wrong with a specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SsdError {
    /// A value outside its range.
    #[error("{what} of {value} is not possible: between {least} and {most} is")]
    Range {
        /// Which.
        what: &'static str,
        /// Its key in a model file.
        key: &'static str,
        /// As given.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// The fast area is programmed no faster.
    #[error(
        "a program in the fast area takes {fast}, longer than elsewhere ({program}): give the shorter of the two here"
    )]
    Fast {
        /// There.
        fast: Span,
        /// Elsewhere.
        program: Span,
    },
    /// A die programs parts of pages.
    #[error("a program of {unit} sectors is no whole number of pages of {page} sectors")]
    Pages {
        /// Sectors of a program.
        unit: u32,
        /// Sectors of a page.
        page: u32,
    },
    /// Physical sectors that pages cut.
    #[error("{what} of {value} sectors is no whole number of physical sectors of 4096 bytes")]
    PartPhysical {
        /// Of what.
        what: &'static str,
        /// Its key in a model file.
        key: &'static str,
        /// As given.
        value: u64,
    },
    /// Reading ahead of no run.
    #[error("it reads ahead of 0 runs: give at least 1, or no size")]
    NoRuns,
}

impl SsdError {
    /// The key of a model file that it is about.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Range { key, .. } | Self::PartPhysical { key, .. } => key,
            Self::Fast { .. } => "flash.program_fast_us",
            Self::Pages { .. } => "flash.program_kib",
            Self::NoRuns => "read_ahead.runs",
        }
    }
}

/// Longest time of a command or of the flash: no controller and no program takes so long, and what is above is in
/// nanoseconds.
const LONGEST: u64 = 100_000_000;

/// A specification ready for use.
#[derive(Clone, Debug)]
pub struct SsdModel {
    /// What it was built from.
    pub spec: SsdSpec,
    /// Nanoseconds a sector takes on the link, in 2^-20 ns.
    pub(in crate::disk) link_sector: u64,
    channel_sector: u64,
    /// Programs for each unit written at random to a full disk, in 2^-16.
    pub(super) amplification: u64,
}

fn sector_time(rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    ((u128::from(SECTOR) * 1_000_000_000) << 20).div_ceil(u128::from(rate)) as u64
}

impl SsdSpec {
    /// Checks the specification and works out what follows from it.
    ///
    /// # Errors
    /// All that is wrong, not only the first.
    pub fn build(self) -> Result<SsdModel, Vec<SsdError>> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        // Greedy collection under uniformly random writes: (1 + r) / (2 r) for a spare ratio r
        // (Agarwal and Marrow, A closed-form expression for write amplification in NAND flash, 2010).
        let spare = u64::from(self.spare_permille);
        let amplification = (((1000 + spare) << 16) / (2 * spare)).max(1 << 16);
        Ok(SsdModel {
            link_sector: sector_time(self.link),
            channel_sector: sector_time(self.channel_rate),
            amplification,
            spec: self,
        })
    }
}

impl SsdSpec {
    /// All that is wrong.
    fn problems(&self) -> Vec<SsdError> {
        let outside = |(key, what, value, least, most): (_, _, u64, u64, u64)| {
            (!(least..=most).contains(&value)).then_some(SsdError::Range {
                what,
                key,
                value,
                least,
                most,
            })
        };
        let times = self.times().into_iter().chain(self.sizes());
        let mut problems: Vec<_> = times.filter_map(outside).collect();
        let mut unless = |fine: bool, problem: SsdError| {
            if !fine {
                problems.push(problem);
            }
        };
        let (fast, program) = (self.program_fast, self.program);
        unless(fast <= program, SsdError::Fast { fast, program });
        let (unit, page) = (self.program_unit, self.page);
        let whole = page == 0 || unit.is_multiple_of(page);
        unless(whole, SsdError::Pages { unit, page });
        unless(self.ahead == 0 || self.runs > 0, SsdError::NoRuns);
        let of_pages = [
            ("drive.sectors", "a capacity", self.sectors),
            ("flash.page_kib", "a page", u64::from(self.page)),
        ];
        for (key, what, value) in of_pages {
            let whole = self.physical != 8 || value.is_multiple_of(8);
            unless(whole, SsdError::PartPhysical { what, key, value });
        }
        problems
    }

    /// Key, name, value in nanoseconds, least and most.
    fn times(&self) -> [Bound; 8] {
        let after_write = self.turn_write.unwrap_or(self.turn).0;
        [
            (
                "drive.overhead_us",
                "command time (ns)",
                self.overhead.0,
                0,
                LONGEST,
            ),
            (
                "drive.turn_us",
                "least time between commands (ns)",
                self.turn.0,
                0,
                LONGEST,
            ),
            (
                "drive.turn_write_us",
                "least time after a write (ns)",
                after_write,
                0,
                LONGEST,
            ),
            ("flash.read_us", "read time (ns)", self.read.0, 1, LONGEST),
            (
                "flash.program_us",
                "program time (ns)",
                self.program.0,
                1,
                LONGEST,
            ),
            (
                "flash.program_fast_us",
                "fast program time (ns)",
                self.program_fast.0,
                1,
                LONGEST,
            ),
            (
                "flash.suspend_us",
                "suspend time (ns)",
                self.suspend.0,
                0,
                LONGEST,
            ),
            (
                "buffer.flush_us",
                "flush time (ns)",
                self.flush.0,
                0,
                LONGEST,
            ),
        ]
    }

    /// Key, name, value, least and most.
    fn sizes(&self) -> [Bound; 15] {
        let link = if self.link == 0 { 100_000 } else { self.link };
        let (page, unit) = (u64::from(self.page), u64::from(self.program_unit));
        let (dies, channels) = (u64::from(self.dies), u64::from(self.channels));
        [
            (
                "flash.fast_mib",
                "fast area (sectors)",
                self.fast,
                0,
                1 << 40,
            ),
            (
                "drive.physical_sector",
                "physical sector (sectors of 512 bytes)",
                u64::from(self.physical),
                1,
                8,
            ),
            (
                "interface.rate_mb_s",
                "link rate (bytes/s)",
                link,
                100_000,
                1_000_000_000_000,
            ),
            (
                "drive.sectors",
                "capacity (sectors)",
                self.sectors,
                8,
                1 << 40,
            ),
            (
                "drive.depth",
                "queue depth",
                u64::from(self.tags),
                1,
                65_535,
            ),
            ("flash.dies", "number of dies", dies, 1, 4096),
            (
                "flash.channels",
                "number of channels",
                channels,
                1,
                dies.max(1),
            ),
            (
                "flash.channel_mb_s",
                "channel rate (bytes/s)",
                self.channel_rate,
                1_000_000,
                100_000_000_000,
            ),
            ("flash.page_kib", "page (sectors)", page, 1, 4096),
            (
                "flash.program_kib",
                "program unit (sectors)",
                unit,
                page,
                65_536,
            ),
            // 64 GiB: what is above is in bytes.
            (
                "buffer.size_kib",
                "write buffer (sectors)",
                self.buffer,
                unit,
                1 << 27,
            ),
            (
                "read_ahead.size_kib",
                "read-ahead (sectors)",
                self.ahead,
                0,
                1 << 20,
            ),
            (
                "read_ahead.runs",
                "runs of reads",
                u64::from(self.runs),
                0,
                1024,
            ),
            (
                "flash.spare_permille",
                "spare flash (thousandths)",
                u64::from(self.spare_permille),
                10,
                2000,
            ),
            (
                "drive.filled_percent",
                "filled (per cent)",
                u64::from(self.filled),
                0,
                100,
            ),
        ]
    }
}

/// A key of a model file, what it is, its value, the least and the most that is possible.
type Bound = (&'static str, &'static str, u64, u64, u64);

impl SsdModel {
    /// Least time from a command of the kind to the next.
    pub(super) fn turn(&self, kind: BlockKind) -> Span {
        match kind {
            BlockKind::Write => self.spec.turn_write.unwrap_or(self.spec.turn),
            BlockKind::Read | BlockKind::Flush | BlockKind::FlushData => self.spec.turn,
        }
    }

    pub(super) fn link_nanos(&self, sectors: u64) -> u64 {
        (sectors * self.link_sector) >> 20
    }

    pub(super) fn channel_nanos(&self, sectors: u64) -> u64 {
        (sectors * self.channel_sector) >> 20
    }

    /// Programs for each unit that is written at random to a full disk.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        self.amplification as f64 / 65_536.0
    }
}
