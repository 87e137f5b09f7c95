//! The average seek of a hard disk whose sheet states random reads a second instead.
use super::hdd::HddSheet;
use super::{SheetProblem, text};
use crate::catalogue;
use crate::disk::asked::random_reads_roughly;

/// Average seeks as shares of what is usual at the speed: no disk is known beyond. Reads that would want a shorter one were
/// made with more in flight than it was said, or on a part of the disk.
const FASTEST: f64 = 0.5;
const SLOWEST: f64 = 4.0;
/// Times that the range is halved: it is narrower than a microsecond then.
const HALVINGS: u32 = 16;
/// Stated reads and a stated seek agree when the model comes this near: sheets round, and the rest of the model is assumed.
const AGREES: f64 = 0.15;

impl HddSheet {
    /// The average seek with which the model reads as many as are stated, and how that was found; `None` when no reads are
    /// stated, or a seek is, too. Of a sheet that was checked.
    ///
    /// # Errors
    /// Reads that no seek makes, or not the one that is stated.
    pub(super) fn seek_of_reads(&self) -> Result<Option<(f64, String)>, Vec<SheetProblem>> {
        let Some(wanted) = self.read_iops else {
            return Ok(None);
        };
        if let Some(average) = self.seek_average {
            let reads = self.reads(average)?;
            let agree = (wanted / reads - 1.0).abs() <= AGREES;
            return if agree {
                Ok(None)
            } else {
                Err(self.contradict(average, reads))
            };
        }
        let (mut least, mut most) = self.averages();
        let (fast, slow) = (self.reads(least)?, self.reads(most)?);
        if !(slow..=fast).contains(&wanted) {
            return Err(self.beyond(fast, slow));
        }
        for _ in 0..HALVINGS {
            let middle = (least + most) / 2.0;
            if self.reads(middle)? > wanted {
                least = middle;
            } else {
                most = middle;
            }
        }
        let average = libm::round((least + most) / 2.0 * 100.0) / 100.0;
        let queue = match self.in_flight() {
            1 => "",
            _ => ", reordered as it is assumed under [queue]",
        };
        let why = format!(
            "D: with it the model reads {} random 4 KiB a second with {} in flight, as the datasheet says{queue}",
            text::figure(wanted),
            self.in_flight()
        );
        Ok(Some((average, why)))
    }

    fn in_flight(&self) -> u32 {
        self.read_iops_depth.unwrap_or(1)
    }

    /// Averages that a seek curve can have beside what else is stated of it. The curve lies between a straight line, whose mean over
    /// random distances is a third of the way from the shortest to the longest seek, and a square root, whose mean is 8/15 of it.
    fn averages(&self) -> (f64, f64) {
        let between = |track: f64, full: f64| {
            let at = |share: f64| track + share * (full - track);
            // Not on the very edge, where the curve is solved by rounding.
            (at(1.02 / 3.0), at(0.98 * 8.0 / 15.0))
        };
        let usual = self.usual_average();
        let (fastest, slowest) = (FASTEST * usual, SLOWEST * usual);
        let (least, most) = match (self.seek_track, self.seek_full) {
            (Some(track), Some(full)) => between(track, full),
            // The other end follows the average: 0.15 and 1.92 of it.
            (None, Some(full)) => (0.38 * full, 0.56 * full),
            (Some(track), None) => (1.9 * track, slowest),
            (None, None) => (fastest, slowest),
        };
        let least = least.clamp(fastest, slowest);
        (least, most.clamp(least, slowest))
    }

    /// Random reads a second that the model makes with an average seek.
    fn reads(&self, average: f64) -> Result<f64, Vec<SheetProblem>> {
        let sheet = Self {
            seek_average: Some(average),
            seek_average_write: None,
            ..self.clone()
        };
        let text = sheet.text(&sheet.check()?, None)?;
        let model = catalogue::parse("the model", &text).map_err(|_| self.none())?;
        let reads = random_reads_roughly(&model.disk, self.in_flight());
        reads.ok_or_else(|| self.none())
    }

    fn wrong(message: String) -> Vec<SheetProblem> {
        vec![SheetProblem {
            figure: "read-iops",
            message,
        }]
    }

    fn none(&self) -> Vec<SheetProblem> {
        Self::wrong("no model can be made of the other figures to ask".to_owned())
    }

    fn contradict(&self, average: f64, reads: f64) -> Vec<SheetProblem> {
        Self::wrong(format!(
            "at {} rpm and with a --seek-average of {} ms a disk makes about {reads:.0} with {} in flight, not {}: was it with more or \
             fewer (--read-iops-depth), or of a part of the disk? Leave one of the two out",
            text::figure(self.rpm),
            text::figure(average),
            self.in_flight(),
            self.stated()
        ))
    }

    fn beyond(&self, fast: f64, slow: f64) -> Vec<SheetProblem> {
        let (slow, fast) = inwards(slow, fast);
        Self::wrong(format!(
            "{} with {} in flight is no disk's of {} rpm: between {slow} and {fast} is; was it with more or fewer \
             (--read-iops-depth), of writes, or of a part of the disk?",
            self.stated(),
            self.in_flight(),
            text::figure(self.rpm)
        ))
    }

    fn stated(&self) -> String {
        text::figure(self.read_iops.unwrap_or_default())
    }
}

/// The ends of a range as they are told: rounded to its inside, so that what is told is taken; to whole numbers, where some are
/// in it.
fn inwards(least: f64, most: f64) -> (f64, f64) {
    let rounded = |scale: f64| {
        (
            libm::ceil(least * scale) / scale,
            libm::floor(most * scale) / scale,
        )
    };
    let mut all = [1.0, 10.0, 100.0, 1000.0].map(rounded).into_iter();
    all.find(|(least, most)| least <= most)
        .unwrap_or((least, most))
}
