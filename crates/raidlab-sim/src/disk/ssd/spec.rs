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
        /// As given.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
}

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
        let ranges = [
            ("command time (ns)", self.overhead.0, 0, 1_000_000_000),
            (
                "least time between commands (ns)",
                self.turn.0,
                0,
                1_000_000_000,
            ),
            (
                "least time after a write (ns)",
                self.turn_write.map_or(0, |turn| turn.0),
                0,
                1_000_000_000,
            ),
            ("read time (ns)", self.read.0, 1, 1_000_000_000),
            ("program time (ns)", self.program.0, 1, 1_000_000_000),
            (
                "fast program time (ns)",
                self.program_fast.0,
                1,
                1_000_000_000,
            ),
            ("suspend time (ns)", self.suspend.0, 0, 1_000_000_000),
            ("fast area (sectors)", self.fast, 0, 1 << 40),
            (
                "physical sector (sectors of 512 bytes)",
                u64::from(self.physical),
                1,
                8,
            ),
            (
                "link rate (bytes/s)",
                if self.link == 0 { 100_000 } else { self.link },
                100_000,
                1_000_000_000_000,
            ),
            ("capacity (sectors)", self.sectors, 8, 1 << 40),
            ("queue depth", u64::from(self.tags), 1, 65_535),
            ("number of dies", u64::from(self.dies), 1, 4096),
            (
                "number of channels",
                u64::from(self.channels),
                1,
                u64::from(self.dies.max(1)),
            ),
            (
                "channel rate (bytes/s)",
                self.channel_rate,
                1_000_000,
                100_000_000_000,
            ),
            ("page (sectors)", u64::from(self.page), 1, 4096),
            (
                "program unit (sectors)",
                u64::from(self.program_unit),
                u64::from(self.page),
                65_536,
            ),
            (
                "write buffer (sectors)",
                self.buffer,
                u64::from(self.program_unit),
                1 << 32,
            ),
            ("read-ahead (sectors)", self.ahead, 0, 1 << 20),
            ("runs of reads", u64::from(self.runs), 0, 1024),
            (
                "spare flash (thousandths)",
                u64::from(self.spare_permille),
                10,
                2000,
            ),
            ("filled (per cent)", u64::from(self.filled), 0, 100),
        ];
        let problems: Vec<_> = ranges
            .into_iter()
            .filter(|(_, value, least, most)| !(least..=most).contains(&value))
            .map(|(what, value, least, most)| SsdError::Range {
                what,
                value,
                least,
                most,
            })
            .collect();
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

impl SsdModel {
    /// Least time from a command of the kind to the next.
    pub(super) fn turn(&self, kind: BlockKind) -> Span {
        match kind {
            BlockKind::Write => self.spec.turn_write.unwrap_or(self.spec.turn),
            BlockKind::Read | BlockKind::Flush => self.spec.turn,
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
