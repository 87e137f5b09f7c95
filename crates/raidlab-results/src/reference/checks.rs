//! Do a study's rows bear out what it concluded? Each claim as data, checked on the figures.
use super::{Published, Study, sweeps};
use serde::{Deserialize, Serialize};

/// What the rows say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The rows bear it out.
    Holds,
    /// The rows contradict it.
    DoesNot,
    /// A figure that it needs is withheld.
    Withheld,
    /// The study's file gives no figure that it could be checked with.
    NoFigures,
}

impl Told {
    /// In words, for a report.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNot => "does not hold",
            Self::Withheld => "cannot be told (withheld)",
            Self::NoFigures => "cannot be told (no figures)",
        }
    }
}

/// A part of a finding, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Number of the finding.
    pub finding: u32,
    /// What was looked at.
    pub claim: String,
    /// The figures, in words.
    pub evidence: String,
    /// What they say.
    pub told: Told,
    /// Where predicted or measured figures were looked at: what the study's own say of the same claim. `None` when
    /// the study gives none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
}

/// What a study's own figures say of one of its claims. It need not be that they bear it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// The figures, in words.
    pub evidence: String,
    /// What they say.
    pub told: Told,
}

/// What must be true of a number for the claim to hold.
#[derive(Clone, Copy)]
pub(super) enum Must {
    /// It is this to one decimal.
    Round1(f64),
    /// It is this to two decimals.
    Round2(f64),
    Below(f64),
    Above(f64),
    Within(f64, f64),
}

impl Must {
    fn holds(self, x: f64) -> bool {
        match self {
            Self::Round1(to) => (x - to).abs() <= 0.05 + 1e-9,
            Self::Round2(to) => (x - to).abs() <= 0.005 + 1e-9,
            Self::Below(limit) => x < limit,
            Self::Above(limit) => x > limit,
            Self::Within(lo, hi) => (lo..=hi).contains(&x),
        }
    }
}

/// `row`'s figure over `base`'s, or the figure itself in the tool's K when there is no base.
struct Claim {
    finding: u32,
    claim: &'static str,
    row: &'static str,
    base: Option<&'static str>,
    phase: &'static str,
    must: Must,
}

const fn ratio(
    finding: u32,
    claim: &'static str,
    (row, base): (&'static str, &'static str),
    phase: &'static str,
    must: Must,
) -> Claim {
    Claim {
        finding,
        claim,
        row,
        base: Some(base),
        phase,
        must,
    }
}

const fn figure(finding: u32, claim: &'static str, row: &'static str, must: Must) -> Claim {
    Claim {
        finding,
        claim,
        row,
        base: None,
        phase: "read-0.1gb",
        must,
    }
}

const ONE: &str = "md raid0 1 disk";
const MD_2CH: &str = "md raid0 2 disks, 2 channels";
const MD_1CH: &str = "md raid0 2 disks, 1 channel";
const BIOS_2CH: &str = "bios raid0 2 disks, 2 channels";
const BIOS_1CH: &str = "bios raid0 2 disks, 1 channel";
const TWO_ON_TWO: (&str, &str) = (MD_2CH, ONE);
const TWO_ON_ONE: (&str, &str) = (MD_1CH, ONE);
const ENGINES_2CH: (&str, &str) = (MD_2CH, BIOS_2CH);
const ENGINES_1CH: (&str, &str) = (MD_1CH, BIOS_1CH);
const THREE: &str = "md raid0 3 disks";
const FOUR: &str = "md raid0 4 disks";

#[rustfmt::skip]
const PATA: &[Claim] = &[
    ratio(1, "two disks on two channels write 2.0x one", TWO_ON_TWO, "block-write", Must::Round1(2.0)),
    ratio(1, "… and read 1.5x", TWO_ON_TWO, "block-read", Must::Round1(1.5)),
    ratio(2, "two disks on one channel write slower than one disk", TWO_ON_ONE, "block-write", Must::Below(1.0)),
    ratio(2, "… and read slower", TWO_ON_ONE, "block-read", Must::Below(1.0)),
    ratio(3, "three disks write faster than one", (THREE, ONE), "block-write", Must::Above(1.0)),
    ratio(3, "… but slower than two on two channels", (THREE, MD_2CH), "block-write", Must::Below(1.0)),
    ratio(3, "four disks write faster than one", (FOUR, ONE), "block-write", Must::Above(1.0)),
    ratio(3, "… but slower than two on two channels", (FOUR, MD_2CH), "block-write", Must::Below(1.0)),
    ratio(4, "md beats the controller, two channels: write", ENGINES_2CH, "block-write", Must::Above(1.0)),
    ratio(4, "… rewrite", ENGINES_2CH, "rewrite", Must::Above(1.0)),
    ratio(4, "… read", ENGINES_2CH, "block-read", Must::Above(1.0)),
    ratio(4, "md beats the controller, one channel: write", ENGINES_1CH, "block-write", Must::Above(1.0)),
    ratio(4, "… rewrite", ENGINES_1CH, "rewrite", Must::Above(1.0)),
    ratio(4, "… read", ENGINES_1CH, "block-read", Must::Above(1.0)),
    ratio(4, "md beats the controller, three disks: read", (THREE, "bios raid0 3 disks"), "block-read", Must::Above(1.0)),
    ratio(4, "md beats the controller, four disks: read", (FOUR, "bios raid0 4 disks"), "block-read", Must::Above(1.0)),
];

const INTERNAL: &str = "single internal";
const EXTERNAL: &str = "single external";
const R0_INT: &str = "raid0 2 internal";
const R1_INT: &str = "raid1 2 internal";
const R01_EXT: &str = "raid0+1 4 external";
const R5_EXT: &str = "raid5 3 external";
/// "105-113 MB/s": the study's MB is 1000 of HDBench's K.
const IN_CACHE: Must = Must::Within(104_500.0, 113_499.0);
/// "agree with each other".
const AGREE: Must = Must::Within(0.9, 1.1);

#[rustfmt::skip]
const SCSI: &[Claim] = &[
    figure(1, "a 100 MB file reads at 105-113 MB/s: one internal disk", INTERNAL, IN_CACHE),
    figure(1, "… one external disk", EXTERNAL, IN_CACHE),
    figure(1, "… RAID0, two internal disks", R0_INT, IN_CACHE),
    figure(1, "… RAID1, two internal disks", R1_INT, IN_CACHE),
    figure(1, "… RAID0+1, four external disks", R01_EXT, IN_CACHE),
    figure(1, "… RAID5, three external disks", R5_EXT, IN_CACHE),
    ratio(2, "reads stop at about 1.2x one disk: RAID0, two internal disks", (R0_INT, INTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(2, "… RAID0+1, four external disks", (R01_EXT, EXTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(2, "… RAID5, three external disks", (R5_EXT, EXTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(2, "… RAID50, six external disks", ("raid50 6 external", EXTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(2, "… RAID0+1, six external disks", ("raid0+1 6 external", EXTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(2, "… RAID5, six external disks", ("raid5 6 external", EXTERNAL), "read-2gb", Must::Round1(1.2)),
    ratio(3, "mirrors write at 0.6-0.7x one disk: RAID1, two internal disks", (R1_INT, INTERNAL), "write-2gb", Must::Within(0.55, 0.75)),
    ratio(3, "… RAID0+1, four external disks", (R01_EXT, EXTERNAL), "write-2gb", Must::Within(0.55, 0.75)),
    ratio(3, "RAID5 on three disks writes at 0.78x", (R5_EXT, EXTERNAL), "write-2gb", Must::Round2(0.78)),
    ratio(3, "… and better with more disks", ("raid5 6 external", R5_EXT), "write-2gb", Must::Above(1.0)),
    ratio(4, "external disks write slower than internal ones", (EXTERNAL, INTERNAL), "write-2gb", Must::Below(1.0)),
];

const ASHIFT: (&str, &str) = ("ashift 12", "ashift 9");
/// Less is no gain: rounds differ by as much.
const GAIN: f64 = 1.02;

#[rustfmt::skip]
const ZFS: &[Claim] = &[
    ratio(1, "ashift 12 writes 10-20 % more", ASHIFT, "block-write", Must::Within(1.095, 1.205)),
    ratio(1, "… and reads 10-20 % more", ASHIFT, "block-read", Must::Within(1.095, 1.205)),
    ratio(2, "per-character writing does not change (within 10 %)", ASHIFT, "putc", Must::Within(0.9, 1.1)),
    ratio(2, "… nor does per-character reading", ASHIFT, "getc", Must::Within(0.9, 1.1)),
    ratio(3, "random create gains", ASHIFT, "ran-create", Must::Above(GAIN)),
    ratio(3, "… random delete gains", ASHIFT, "ran-delete", Must::Above(GAIN)),
];

const READ: &str = "buffered-read";
/// Not a phase: the share of second failures that an array survives.
pub(super) const SECOND_FAILURES: &str = "second-failures";

const fn survives(finding: u32, claim: &'static str, row: &'static str, must: Must) -> Claim {
    Claim {
        finding,
        claim,
        row,
        base: None,
        phase: SECOND_FAILURES,
        must,
    }
}

/// The cells of `hdparm -t` and of the larger of the two dd runs, which no cache holds.
macro_rules! md {
    ($array:literal) => {
        concat!($array, ", hdparm -t")
    };
    (dd $array:literal) => {
        concat!($array, ", dd count=250")
    };
}

/// Claims on cells of the experiment, whose figures the study does not give.
#[rustfmt::skip]
const SATA: &[Claim] = &[
    ratio(1, "RAID0 writes up to 3x one disk", (md!(dd "raid0 sdc sdd"), md!(dd "single 250 GB")), "write", Must::Within(1.5, 3.2)),
    ratio(1, "… and reads about 1.5x (hdparm)", (md!("raid0 sda sdb"), md!("single 250 GB")), READ, Must::Within(1.3, 2.05)),
    ratio(2, "RAID1 reads slightly slower than one disk", (md!("raid1 sda sdb"), md!("single 250 GB")), READ, Must::Within(0.85, 1.0)),
    ratio(3, "RAID5 reads faster with four disks than with three", (md!("raid5 4 disks"), md!("raid5 3 disks")), READ, Must::Above(1.0)),
    ratio(3, "… and writes faster", (md!(dd "raid5 4 disks"), md!(dd "raid5 3 disks")), "write", Must::Above(1.0)),
    ratio(3, "RAID5 on four disks reads faster than RAID0 on two", (md!("raid5 4 disks"), md!("raid0 sda sdb")), READ, Must::Above(1.0)),
    ratio(3, "… than RAID6", (md!("raid5 4 disks"), md!("raid6 4 disks")), READ, Must::Above(1.0)),
    ratio(3, "… than RAID10", (md!("raid5 4 disks"), md!("raid10 n2 4 disks")), READ, Must::Above(1.0)),
    ratio(3, "… and writes like RAID0 (within 20 %)", (md!(dd "raid5 4 disks"), md!(dd "raid0 sda sdb")), "write", Must::Within(0.8, 1.2)),
    ratio(4, "RAID6 writes a little slower than RAID10", (md!(dd "raid6 4 disks"), md!(dd "raid10 n2 4 disks")), "write", Must::Within(0.7, 1.0)),
    ratio(4, "… and reads the same (within 10 %)", (md!("raid6 4 disks"), md!("raid10 n2 4 disks")), READ, Must::Within(0.9, 1.1)),
    survives(5, "RAID6 survives any two failed disks", md!("raid6 4 disks"), Must::Above(0.999)),
    survives(5, "RAID10 on four disks survives two of three second failures", md!("raid10 n2 4 disks"), Must::Round2(2.0 / 3.0)),
    ratio(6, "a degraded RAID5 is usable: it reads at least half as fast", (md!("raid5 4 disks, degraded"), md!("raid5 4 disks")), READ, Must::Above(0.5)),
    ratio(6, "a degraded RAID10 is, too", (md!("raid10 n2 4 disks, degraded"), md!("raid10 n2 4 disks")), READ, Must::Above(0.5)),
    ratio(6, "a rebuilding RAID5 is far slower than a degraded one", (md!("raid5 4 disks, rebuilding"), md!("raid5 4 disks, degraded")), READ, Must::Below(0.5)),
];

/// Figures by row (or cell) and phase: what claims are checked on.
pub(super) type Figures<'f> = &'f dyn Fn(&str, &str) -> Option<Published>;

impl Study {
    /// The findings, part by part, with what the study's own rows say of each. A finding that
    /// figures of this kind cannot tell of is listed as that.
    #[must_use]
    pub fn check_findings(&self) -> Vec<Checked> {
        let claims = match self.id.as_str() {
            // Its claims are on cells of the experiment; the study gives none of their figures.
            "sata-md-levels" => &[],
            _ => self.claims(),
        };
        self.check_own(claims)
    }

    /// The same on the predicted figures of `cells`: rows by their name, and cells of the study's
    /// experiment by their label where the study gives no rows.
    pub(super) fn check_predicted(&self, cells: &[&str], figures: Figures<'_>) -> Vec<Checked> {
        let claims = self.claims();
        let mut all = self.check_claims(claims, cells, figures);
        // Claim by claim: their words alone ("… rewrite") do not tell them apart.
        for (checked, own) in all.iter_mut().zip(self.check_own(claims)) {
            checked.own = (own.told != Told::NoFigures).then_some(Own {
                evidence: own.evidence,
                told: own.told,
            });
        }
        if self.id == "pata-blocksize" {
            let told = sweeps::check(cells, figures);
            all.retain(|known| told.iter().all(|new| new.finding != known.finding));
            all.extend(told);
            all.sort_by_key(|checked| checked.finding);
        }
        all
    }

    fn claims(&self) -> &'static [Claim] {
        match self.id.as_str() {
            "pata-raid0" => PATA,
            "scsi-hdbench" => SCSI,
            "zfs-ashift" => ZFS,
            "sata-md-levels" => SATA,
            _ => &[],
        }
    }

    fn check_own(&self, claims: &[Claim]) -> Vec<Checked> {
        let rows: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        self.check_claims(claims, &rows, &|row, phase| self.figure(row, phase))
    }

    fn check_claims(&self, claims: &[Claim], rows: &[&str], figures: Figures<'_>) -> Vec<Checked> {
        let mut all: Vec<_> = claims.iter().map(|claim| check(claim, figures)).collect();
        if self.id == "scsi-hdbench" {
            let columns = ["read", "write", "copy"];
            all.extend(columns.map(|column| sizes_agree(column, rows, figures)));
        }
        for finding in &self.findings {
            if !all.iter().any(|checked| checked.finding == finding.number) {
                all.push(Checked {
                    finding: finding.number,
                    claim: "the whole finding".to_owned(),
                    evidence: "the study's file has no figure of it".to_owned(),
                    told: Told::NoFigures,
                    own: None,
                });
            }
        }
        all.sort_by_key(|checked| checked.finding);
        all
    }
}

fn check(claim: &Claim, figures: Figures<'_>) -> Checked {
    let of = |row: &str| figures(row, claim.phase);
    let (told, evidence) = match (of(claim.row), claim.base.map(of)) {
        (Some(Published::Value(share)), None) if claim.phase == SECOND_FAILURES => {
            let evidence = format!("{:.0} % of second failures", 100.0 * share);
            (judge(claim.must, share), evidence)
        }
        (Some(Published::Value(a)), None) => {
            let k = a / 1024.0;
            (judge(claim.must, k), format!("{k:.0} K/s"))
        }
        (Some(Published::Value(a)), Some(Some(Published::Value(b)))) => {
            let unit = |figure| tool_unit(claim.phase, figure);
            let evidence = format!("{} / {} = {:.2}", unit(a), unit(b), a / b);
            (judge(claim.must, a / b), evidence)
        }
        (a, b) if [a, b.flatten()].contains(&Some(Published::Withheld)) => {
            (Told::Withheld, "withheld".to_owned())
        }
        _ => (Told::NoFigures, "no figure".to_owned()),
    };
    Checked {
        finding: claim.finding,
        claim: claim.claim.to_owned(),
        evidence,
        told,
        own: None,
    }
}

/// Finding 1 of `scsi-hdbench`: from 0.5 GB up the size of the file does not matter. The row
/// that strays most is named.
fn sizes_agree(column: &str, rows: &[&str], figures: Figures<'_>) -> Checked {
    let spread = |row: &str| {
        let values: Vec<f64> = ["0.5gb", "1gb", "2gb"]
            .iter()
            .filter_map(|size| match figures(row, &format!("{column}-{size}")) {
                Some(Published::Value(value)) => Some(value),
                _ => None,
            })
            .collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (values.len() > 1).then_some(high / low)
    };
    let widest = rows
        .iter()
        .filter_map(|row| Some((*row, spread(row)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let claim = format!("0.5, 1 and 2 GB agree with each other (within 10 %): {column}");
    let (told, evidence) = match widest {
        Some((row, ratio)) => (
            judge(AGREE, ratio),
            format!("farthest apart: {row}, {ratio:.2}x"),
        ),
        None => (Told::NoFigures, "no figure".to_owned()),
    };
    Checked {
        finding: 1,
        claim,
        evidence,
        told,
        own: None,
    }
}

/// Whole K/s or operations a second, as the tools print; only ratios of two figures of one phase are formed, so
/// that the unit cancels.
fn tool_unit(phase: &str, figure: f64) -> String {
    let per_second = ["seeks", "seq-", "ran-"].iter();
    let scale = if per_second.into_iter().any(|begin| phase.starts_with(begin)) {
        1.0
    } else {
        1024.0
    };
    format!("{:.0}", figure / scale)
}

pub(super) fn judge(must: Must, x: f64) -> Told {
    if must.holds(x) {
        Told::Holds
    } else {
        Told::DoesNot
    }
}
