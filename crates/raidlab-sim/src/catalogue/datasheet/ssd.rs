//! A solid-state disk from its datasheet.
use super::text::{self, File};
use super::{Check, GB, Interface, SheetProblem, physical, readable, sectors};
use raidlab_core::units::{Bytes, KIB, MIB};

/// What a datasheet says of a solid-state disk.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdSheet {
    /// Name of the model.
    pub name: String,
    /// Capacity as the drive is sold.
    pub capacity: Bytes,
    /// Bytes a second of sequential reading.
    pub read_rate: f64,
    /// Bytes a second of sequential writing, as long as the fast area lasts if there is one.
    pub write_rate: f64,
    /// Bytes a second of sequential writing when it is full.
    pub sustained_write: Option<f64>,
    /// Random reads of 4 KiB a second with many in flight.
    pub read_iops: f64,
    /// Random writes of 4 KiB a second with many in flight.
    pub write_iops: Option<f64>,
    /// The same of a drive that is full and has been written at random for long.
    pub sustained_write_iops: Option<f64>,
    /// What has to be programmed may wait so long in memory.
    pub cache: Option<Bytes>,
    /// One of [`super::SSD_INTERFACES`].
    pub interface: Interface,
    /// Whether the buffer survives a loss of power.
    pub protected: bool,
    /// Bytes of a physical sector.
    pub sector_physical: Option<u32>,
    /// Commands that the drive takes at a time.
    pub queue: Option<u32>,
}

/// Bytes of a page of flash.
const PAGE: f64 = 16.0 * 1024.0;
/// A three-bit die reads a page in so many microseconds, and programs one as a single bit and as three.
const READ_US: f64 = 50.0;
const FAST_US: f64 = 180.0;
/// The two of the catalogue's drives are 3.3 and 3.5 times slower than in their fast area.
const DENSE: f64 = 3.4;
/// Gigabytes of a part of a die that reads by itself: 64 GB a die, two planes.
const DIE_GB: u64 = 32;
const CHANNELS: u32 = 8;
/// Of a channel of a SATA drive; those of NVMe drives follow the link.
const CHANNEL_MB_S: f64 = 533.0;

impl SsdSheet {
    /// The text of a model file.
    ///
    /// # Errors
    /// All that no disk can have.
    pub fn file(&self) -> Result<String, Vec<SheetProblem>> {
        self.check()?;
        let what = format!(
            "{} solid-state disk, {}, from its datasheet",
            text::capacity(self.capacity),
            self.interface.what
        );
        let mut file = File::new(&self.name, "ssd", &what);
        file.table("interface");
        let standard = format!("K: {}", self.interface.what);
        file.word("kind", self.interface.kind, &standard);
        let link = libm::round(self.link() / 1e6) as u64;
        let why = format!(
            "D: the faster of sequential reading and writing; {} carries {} MB/s with what surrounds data",
            self.interface.what,
            text::figure(self.interface.mb_s)
        );
        file.whole("rate_mb_s", link, &why);

        file.table("drive");
        let (count, how) = sectors(self.capacity);
        file.whole("sectors", count, &how);
        let (size, why) = match self.sector_physical {
            None => (4096, "assumed: flash is mapped by 4 KiB"),
            given => physical(given, true),
        };
        file.whole("physical_sector", u64::from(size), why);
        let (depth, why) = match self.queue {
            Some(depth) => (depth, "K: datasheet".to_owned()),
            None => (
                self.interface.depth,
                format!("assumed: usual on {}", self.interface.what),
            ),
        };
        file.whole("depth", u64::from(depth), &why);
        let (overhead, _) = self.times();
        file.number(
            "overhead_us",
            overhead,
            "assumed: as of the catalogue's drives on such an interface",
        );
        let why = "D: one command of each of the random reads a second";
        file.number("turn_us", self.turn(), why);
        if let Some(iops) = self.written() {
            let why = "D: one command of each of the random writes a second";
            file.number("turn_write_us", 1e6 / iops, why);
        }
        match self.sustained_write_iops {
            None => file.whole("filled_percent", 50, "assumed: half of it in use"),
            Some(_) => {
                let why = "D: sustained random writes are stated of a full drive; 50 for one that has room";
                file.whole("filled_percent", 100, why);
            }
        }
        self.flash(&mut file);

        file.table("buffer");
        let (size, why) = match self.cache {
            Some(cache) => (cache.0, "K: datasheet"),
            None if self.interface.kind == "SATA" => (8 * MIB, "assumed: usual for the class"),
            None => (32 * MIB, "assumed: usual for the class"),
        };
        file.whole("size_kib", size / KIB, why);
        file.flag(
            "protected",
            self.protected,
            if self.protected {
                "K: datasheet, power-loss protection"
            } else {
                "assumed: no capacitors unless the datasheet says so"
            },
        );
        if !self.protected {
            let why = "assumed: the map of pages is written, as of the catalogue's drives";
            file.whole("flush_us", super::super::ssd::FLUSH_US, why);
        }

        file.table("read_ahead");
        file.whole("size_kib", 256, "assumed: as of the catalogue's drives");
        file.whole("runs", 16, "assumed: as of the catalogue's drives");
        readable(file.end(), "write-rate")
    }

    fn check(&self) -> Result<(), Vec<SheetProblem>> {
        let mut check = Check::default();
        check.capacity(self.capacity, GB);
        check.rate("read-rate", Some(self.read_rate), &self.interface);
        check.rate("write-rate", Some(self.write_rate), &self.interface);
        check.rate("sustained-write", self.sustained_write, &self.interface);
        if self
            .sustained_write
            .is_some_and(|rate| rate > self.write_rate)
        {
            check.wrong("sustained-write", "it cannot be above --write-rate");
        }
        for (figure, iops) in [
            ("read-iops", Some(self.read_iops)),
            ("write-iops", self.write_iops),
            ("sustained-write-iops", self.sustained_write_iops),
        ] {
            check.range(figure, iops, 100.0, 1e7, " a second");
            let carried = self.interface.mb_s * 1e6 / 4096.0;
            if let Some(iops) = iops.filter(|iops| *iops > carried && *iops <= 1e7) {
                let message = format!(
                    "{iops} a second of 4 KiB are more than {} carries, {carried:.0}",
                    self.interface.what
                );
                check.wrong(figure, message);
            }
        }
        self.check_sustained(&mut check);
        check.range("queue", self.queue.map(f64::from), 1.0, 65_535.0, "");
        check.buffer_and_sector(self.cache, MIB as f64, self.sector_physical);
        if check.0.is_empty() {
            Ok(())
        } else {
            Err(check.0)
        }
    }

    /// Sustained random writes are no more than others, nor than flash is written at all.
    fn check_sustained(&self, check: &mut Check) {
        let Some(sustained) = self.sustained_write_iops else {
            return;
        };
        if self.write_iops.is_some_and(|iops| sustained > iops) {
            check.wrong("sustained-write-iops", "it cannot be above --write-iops");
        }
        let (carried, of) = match self.sustained_write {
            Some(rate) => (rate / 4096.0, "--sustained-write"),
            None => (self.write_rate / 4096.0, "--write-rate"),
        };
        if sustained > carried {
            let message = format!(
                "{sustained:.0} a second of 4 KiB are more than {of} comes to, {carried:.0}"
            );
            check.wrong("sustained-write-iops", message);
        } else if check.0.is_empty() && self.spare().0 < 10.0 {
            let message = format!(
                "{sustained:.0} a second of 4 KiB beside {carried:.0} that {of} comes to want a spare area of less than a hundredth of the \
                 capacity, which no drive has: is one of the two figures mistaken?"
            );
            check.wrong("sustained-write-iops", message);
        }
    }

    /// Random writes of which the controller's turn is one: those that are stated, or sustained ones beyond the reads.
    fn written(&self) -> Option<f64> {
        let beyond = |iops: &f64| *iops > self.read_iops;
        self.write_iops
            .or_else(|| self.sustained_write_iops.filter(beyond))
    }

    /// Thousandths of spare area that leave so many random writes a second on a full drive, and the write amplification there:
    /// each further copy of a unit is a read and a program of dense flash, (1 + r) / (2 r) programs with a spare ratio of r.
    fn spare(&self) -> (f64, f64) {
        let Some(sustained) = self.sustained_write_iops else {
            return (70.0, 1.0);
        };
        let (unit, _, dense) = self.programs();
        let each = f64::from(self.dies().0) * unit / (sustained * 4096.0) * 1e6;
        let amplification = 1.0 + (each - dense).max(0.0) / (READ_US + dense);
        (
            libm::round(1000.0 / (2.0 * amplification - 1.0)),
            amplification,
        )
    }

    /// Bytes that a die programs at a time, and microseconds of that in the fast area and beyond it. As many planes at a time as
    /// make the rate with the usual time, four pages at most; then the time that makes it.
    fn programs(&self) -> (f64, f64, f64) {
        let dies = f64::from(self.dies().0);
        let planes = libm::round(self.write_rate * FAST_US / 1e6 / dies / PAGE).clamp(1.0, 4.0);
        let unit = planes * PAGE;
        let fast = dies * unit / self.write_rate * 1e6;
        let dense = match (self.sustained_write, self.sustained_write_iops) {
            (Some(rate), _) => dies * unit / rate * 1e6,
            (None, Some(_)) => fast,
            (None, None) => fast * DENSE,
        };
        (unit, fast, dense)
    }

    fn link(&self) -> f64 {
        self.read_rate.max(self.write_rate)
    }

    /// Microseconds of a command, and of a read of 4 KiB on its channel.
    fn times(&self) -> (f64, f64) {
        let overhead = if self.interface.kind == "NVMe" {
            10.0
        } else {
            25.0
        };
        (overhead, 4096.0 / self.channel() * 1e6)
    }

    /// Microseconds between two commands.
    fn turn(&self) -> f64 {
        1e6 / self.read_iops
    }

    /// Bytes a second of one channel: as usual, or together twice the link, so that channels do not limit.
    fn channel(&self) -> f64 {
        let all = 2.0 * self.link() / f64::from(CHANNELS);
        libm::round(all / 1e6).max(CHANNEL_MB_S) * 1e6
    }

    /// Parts of flash that read by themselves: by the capacity, or as many as the random reads want, a third of them idle for
    /// chance has given them nothing.
    fn dies(&self) -> (u32, String) {
        let by_size = (self.capacity.0 / GB)
            .div_ceil(DIE_GB)
            .clamp(u64::from(CHANNELS), 1024) as u32;
        let busy = (READ_US + self.times().1) * self.read_iops / 1e6;
        let by_reads = libm::ceil(busy * 1.5).min(4096.0) as u32;
        if by_reads > by_size {
            return (
                by_reads,
                format!(
                    "D: that many reads of {READ_US} us a second, with a third of the dies idle"
                ),
            );
        }
        (
            by_size,
            format!("assumed: one for each {DIE_GB} GB, half a die of 512 Gbit"),
        )
    }

    fn flash(&self, file: &mut File) {
        let (dies, why) = self.dies();
        file.table("flash");
        file.whole("dies", u64::from(dies), &why);
        file.whole(
            "channels",
            u64::from(CHANNELS),
            "assumed: usual for the class",
        );
        let why = "assumed: usual for the class, or together twice the interface's rate, so that they do not limit";
        file.whole("channel_mb_s", (self.channel() / 1e6) as u64, why);
        file.whole("page_kib", 16, "assumed: usual for three-bit flash");
        file.number("read_us", READ_US, "assumed: usual for three-bit flash");
        let (unit, fast, dense) = self.programs();
        file.whole(
            "program_kib",
            (unit / 1024.0) as u64,
            "assumed: pages that a die programs at a time",
        );
        // A drive whose sustained writes are stated, and its sequential ones once, writes steadily.
        let steady = self.sustained_write.is_none() && self.sustained_write_iops.is_some();
        let why = match self.sustained_write {
            Some(_) => {
                "D: dies by what they program, over the sustained rate of writing".to_owned()
            }
            None if steady => {
                "assumed: no faster area, as --sustained-write is not given".to_owned()
            }
            None => format!("assumed: {DENSE} times the fast area's, as of the catalogue's drives"),
        };
        file.number("program_us", dense, &why);
        let why = "D: dies by what they program, over the rate of sequential writing";
        file.number("program_fast_us", fast, why);
        if steady {
            file.whole("fast_mib", 0, "assumed: none, as the drive writes steadily");
        } else {
            let fast_area = self.capacity.0 / 20 / MIB;
            let why = "assumed: a twentieth of the capacity; 0 for a drive that writes steadily";
            file.whole("fast_mib", fast_area, why);
        }
        file.whole("suspend_us", 50, "assumed: usual for the class");
        let (spare, amplification) = self.spare();
        let why = match self.sustained_write_iops {
            None => "assumed: the difference of GiB and GB".to_owned(),
            Some(_) => format!(
                "D: of so much, garbage collection writes {amplification:.2} units for each at random, which leaves the sustained random \
                 writes; stands for how well the drive's own does"
            ),
        };
        file.whole("spare_permille", spare as u64, &why);
    }

    /// What of the sheet the file cannot express, in sentences.
    #[must_use]
    pub fn unsaid(&self) -> Vec<String> {
        let mut unsaid = Vec::new();
        if self.write_rate > 1.02 * self.read_rate {
            let mb = text::figure(self.write_rate / 1e6);
            unsaid.push(format!(
                "the model reads as fast as it writes, {mb} MB/s: one rate of its link serves both"
            ));
        }
        // What is programmed in sequence is the most that is programmed.
        let carried = self.write_rate / 4096.0;
        if let Some(stated) = self.write_iops.filter(|iops| *iops > 1.05 * carried) {
            unsaid.push(format!(
                "{stated:.0} random writes a second are stated, but the model writes {carried:.0}: as many as sequential writing carries"
            ));
        }
        unsaid
    }
}
