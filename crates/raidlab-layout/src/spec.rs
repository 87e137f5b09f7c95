//! From what a user writes (`raid10-f2`, `raid50 2x3`) to a [`Layout`].
use crate::error::{LayoutError, SpecError};
use crate::layout::Layout;
use crate::mirror::Copies;
use crate::parity::{ParityAlgorithm, ParityLevel};
use crate::stripe::Raid0Order;
use crate::types::MAX_MEMBERS;
use raidlab_core::units::{Bytes, SECTOR, Sectors};
use std::str::FromStr;

/// A level with its variant, without members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Linear,
    Raid0(Raid0Order),
    Raid1,
    Parity(ParityLevel, ParityAlgorithm),
    Raid10(Copies),
}

/// What kind of array is asked for. Read from a text:
///
/// | text | meaning |
/// |---|---|
/// | `linear` | members one after the other |
/// | `raid0`, `raid0-original`, `raid0-alternate` | order of chunks in zones before and since Linux 3.14 |
/// | `raid1`, `raid4` | |
/// | `raid5`, `raid5-la` ... `raid6-ls`, `raid6-ddf-N-continue` | rotation: `la ra ls rs` or mdadm's name; left-symmetric without |
/// | `raid10`, `raid10-f2`, `raid10-o3`, `raid10-n2f2` | near, far or offset copies; `n2` without |
/// | `raid50 2x3`, `raid01 2x2`, `raid10 3x2`, `raid60 2x4` | nested: groups x members of a group |
/// | `raid5-la+0 2x3`, `raid1+0 3x2`, `raid0+1 2x2` | the same with variants: inner + outer digit |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Of the members, or of the inner arrays.
    inner: Level,
    /// Over the inner arrays, and how many groups of how many members.
    outer: Option<(Level, usize, usize)>,
}

/// The members and chunks to build a [`Spec`] with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Data area of each member (without superblock), in role order.
    pub sizes: Vec<Sectors>,
    /// Chunk; ignored by linear and raid1.
    pub chunk: Sectors,
    /// Chunk of the outer layout of a nested array; that of the inner ones when absent.
    pub outer_chunk: Option<Sectors>,
}

impl Geometry {
    /// `members` members of the same size (rounded down to sectors), one chunk for all.
    ///
    /// # Errors
    /// [`SpecError::OddChunk`] when the chunk is no whole number of sectors,
    /// [`LayoutError::TooManyMembers`].
    pub fn equal(members: usize, size: Bytes, chunk: Bytes) -> Result<Self, SpecError> {
        if !chunk.0.is_multiple_of(SECTOR) {
            return Err(SpecError::OddChunk(chunk));
        }
        if members > MAX_MEMBERS {
            return Err(LayoutError::TooManyMembers { given: members }.into());
        }
        let sizes = vec![size.to_sectors(); members];
        Ok(Self {
            sizes,
            chunk: chunk.to_sectors(),
            outer_chunk: None,
        })
    }
}

impl Spec {
    /// The number of members that the shape of a nested array fixes.
    #[must_use]
    pub fn shape_members(&self) -> Option<usize> {
        self.outer.map(|(_, groups, each)| groups * each)
    }

    /// The least number of members that this can be built with.
    #[must_use]
    pub fn least_members(&self) -> usize {
        self.shape_members().unwrap_or(match self.inner {
            Level::Linear | Level::Raid0(_) => 1,
            Level::Raid1 => 2,
            Level::Parity(level, _) => level.least_members(),
            Level::Raid10(copies) => copies.total(),
        })
    }

    /// As many members as show what it does, for whoever names no number: raid5 of two is a mirror, and so is raid10.
    #[must_use]
    pub fn telling_members(&self) -> usize {
        self.shape_members()
            .unwrap_or_else(|| self.inner.telling_members())
    }

    /// A nested level that was written without its shape, with the least one that shows what it does.
    ///
    /// # Errors
    /// As reading a text does that has a shape.
    pub fn with_telling_shape(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let mut spec: Self = format!("{text} 2x2").parse()?;
        if let Some((outer, groups, each)) = &mut spec.outer {
            (*groups, *each) = (outer.telling_members(), spec.inner.telling_members());
        }
        Ok(spec)
    }

    /// The shape of a nested array: groups, and members of each.
    #[must_use]
    pub fn shape(&self) -> Option<(usize, usize)> {
        self.outer.map(|(_, groups, each)| (groups, each))
    }

    /// The layout over the members of `geometry`.
    ///
    /// # Errors
    /// [`SpecError::Members`] when the shape has another number of members,
    /// [`SpecError::Layout`] when the geometry is no array.
    pub fn build(&self, geometry: &Geometry) -> Result<Layout, SpecError> {
        let Geometry {
            sizes,
            chunk,
            outer_chunk,
        } = geometry;
        let Some((outer, groups, each)) = self.outer else {
            return Ok(self.inner.build(sizes, *chunk)?);
        };
        if sizes.len() != groups * each {
            return Err(SpecError::Members {
                groups,
                each,
                given: sizes.len(),
            });
        }
        let inner = sizes.chunks(each).enumerate().map(|(index, sizes)| {
            let array = self.inner.build(sizes, *chunk);
            array.map_err(|error| error.of_members_from(index * each))
        });
        let inner: Result<Vec<Layout>, LayoutError> = inner.collect();
        Ok(Layout::nested(inner?, |sizes| {
            outer.build(sizes, outer_chunk.unwrap_or(*chunk))
        })?)
    }
}

impl Level {
    fn telling_members(self) -> usize {
        match self {
            Self::Linear | Self::Raid0(_) | Self::Raid1 => 2,
            // One more than the least, which of raid4 and raid5 is a mirror.
            Self::Parity(ParityLevel::Raid4 | ParityLevel::Raid5, _) => 3,
            Self::Parity(ParityLevel::Raid6, _) => 4,
            Self::Raid10(copies) => copies.total().max(4),
        }
    }

    fn build(self, sizes: &[Sectors], chunk: Sectors) -> Result<Layout, LayoutError> {
        match self {
            Self::Linear => Layout::linear(sizes, None),
            Self::Raid0(order) => Layout::raid0(sizes, chunk, order),
            Self::Raid1 => Layout::raid1(sizes),
            Self::Parity(ParityLevel::Raid4, _) => Layout::raid4(sizes, chunk),
            Self::Parity(ParityLevel::Raid5, a) => Layout::raid5(sizes, chunk, a),
            Self::Parity(ParityLevel::Raid6, a) => Layout::raid6(sizes, chunk, a),
            Self::Raid10(copies) => Layout::raid10(sizes, chunk, copies),
        }
    }

    /// A level by its digits, with the text after its `-`.
    fn parse(digits: &str, variant: Option<&str>) -> Option<Result<Self, SpecError>> {
        let level = match digits {
            "0" => raid0_order(variant)
                .map(Self::Raid0)
                .ok_or("original or alternate"),
            "1" => variant
                .is_none()
                .then_some(Self::Raid1)
                .ok_or("it without one"),
            "4" => variant
                .is_none()
                .then_some(Self::Parity(
                    ParityLevel::Raid4,
                    ParityAlgorithm::ParityLast,
                ))
                .ok_or("it without one"),
            "5" => rotation(variant, ParityLevel::Raid5)
                .ok_or("la, ra, ls, rs, parity-first or parity-last"),
            "6" => rotation(variant, ParityLevel::Raid6).ok_or(
                "la, ra, ls, rs, parity-first, parity-last, ddf-zero-restart, ddf-N-restart, \
                 ddf-N-continue, or one of the first five with -6",
            ),
            "10" => copies(variant)
                .map(Self::Raid10)
                .ok_or("n2, f2, o2, n3 ... or n2f2"),
            _ => return None,
        };
        Some(level.map_err(|known| SpecError::Variant {
            level: format!("raid{digits}"),
            variant: variant.unwrap_or_default().into(),
            known,
        }))
    }
}

fn raid0_order(variant: Option<&str>) -> Option<Raid0Order> {
    match variant {
        None | Some("alternate") => Some(Raid0Order::Alternate),
        Some("original") => Some(Raid0Order::Original),
        Some(_) => None,
    }
}

fn rotation(variant: Option<&str>, level: ParityLevel) -> Option<Level> {
    let Some(variant) = variant else {
        return Some(Level::Parity(level, ParityAlgorithm::default()));
    };
    let (stem, six) = variant
        .strip_suffix("-6")
        .map_or((variant, ""), |stem| (stem, "-6"));
    let long = match stem {
        "la" => "left-asymmetric",
        "ra" => "right-asymmetric",
        "ls" => "left-symmetric",
        "rs" => "right-symmetric",
        other => other,
    };
    let wanted = format!("{long}{six}");
    let found = ParityAlgorithm::ALL
        .into_iter()
        .find(|a| a.name().eq_ignore_ascii_case(&wanted))?;
    (level == ParityLevel::Raid6 || found.is_raid5()).then_some(Level::Parity(level, found))
}

/// `n2`, `f3`, `o2`, or near and far or offset together: `n2f2`.
fn copies(variant: Option<&str>) -> Option<Copies> {
    let Some(variant) = variant else {
        return Some(Copies::near(2));
    };
    let mut copies = Copies {
        near: 1,
        far: 1,
        offset: false,
    };
    let mut rest = variant;
    let (mut near_given, mut far_given) = (false, false);
    while !rest.is_empty() {
        let kind = rest.chars().next()?;
        let tail = rest.get(1..)?;
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        // More than three digits is more than any array has members.
        let n = tail[..digits]
            .parse()
            .ok()
            .filter(|n: &usize| (1..1000).contains(n))?;
        let seen = if kind == 'n' {
            &mut near_given
        } else {
            &mut far_given
        };
        if std::mem::replace(seen, true) {
            return None;
        }
        match kind {
            'n' => copies.near = n,
            'f' => copies.far = n,
            'o' => (copies.far, copies.offset) = (n, true),
            _ => return None,
        }
        rest = &tail[digits..];
    }
    (near_given || far_given).then_some(copies)
}

/// Groups x members of each.
pub(crate) fn shape(text: &str) -> Result<(usize, usize), SpecError> {
    let wrong = || SpecError::Shape(text.into());
    let (groups, each) = text.split_once('x').ok_or_else(wrong)?;
    let number = |number: &str| {
        let number = number.trim();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let n = number.parse().ok().filter(|n| (1..1000).contains(n));
        n.ok_or_else(|| SpecError::ShapeSize(text.into()))
    };
    Ok((number(groups)?, number(each)?))
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let (name, dims) = match lower.split_once(char::is_whitespace) {
            Some((name, dims)) => (name, Some(dims.trim())),
            None => (lower.as_str(), None),
        };
        if name.starts_with("zfs") || name.starts_with("raidz") {
            return Err(SpecError::Zfs(name.into()));
        }
        if name == "linear" || name == "jbod" {
            return simple(name, Level::Linear, dims);
        }
        let unknown = || SpecError::Level {
            text: text.into(),
            nearest: guess(&lower),
        };
        let level = name.strip_prefix("raid").map(|l| l.trim_start_matches('-'));
        let level = level.ok_or_else(unknown)?;
        let (inner, outer) = match level.rsplit_once('+') {
            Some((inner, outer)) => (inner, Some(outer)),
            None => (level, None),
        };
        let (digits, variant) = match inner.split_once('-') {
            Some((digits, variant)) => (digits, Some(variant)),
            None => (inner, None),
        };
        if let Some(outer) = outer {
            return nested(name, digits, variant, outer, dims).ok_or_else(unknown)?;
        }
        let two_levels = digits.len() == 2 && digits.is_ascii();
        // A number alone is no shape of raid10 either, which is mostly meant as the level of that name.
        let shaped = dims.is_some_and(|dims| dims.contains('x')) && variant.is_none();
        if two_levels && (digits != "10" || shaped) {
            let (inner, outer) = digits.split_at(1);
            return nested(name, inner, variant, outer, dims).ok_or_else(unknown)?;
        }
        simple(
            name,
            Level::parse(digits, variant).ok_or_else(unknown)??,
            dims,
        )
    }
}

fn simple(name: &str, level: Level, dims: Option<&str>) -> Result<Spec, SpecError> {
    if dims.is_some() {
        return Err(SpecError::NotNested(name.into()));
    }
    Ok(Spec {
        inner: level,
        outer: None,
    })
}

fn nested(
    name: &str,
    inner: &str,
    variant: Option<&str>,
    outer: &str,
    dims: Option<&str>,
) -> Option<Result<Spec, SpecError>> {
    let (outer_digits, outer_variant) = match outer.split_once('-') {
        Some((digits, variant)) => (digits, Some(variant)),
        None => (outer, None),
    };
    let inner = match Level::parse(inner, variant)? {
        Ok(inner) => inner,
        Err(error) => return Some(Err(error)),
    };
    let outer = match Level::parse(outer_digits, outer_variant)? {
        Ok(outer) => outer,
        Err(error) => return Some(Err(error)),
    };
    let (groups, each) = match dims.map(shape) {
        Some(Ok(shape)) => shape,
        Some(Err(error)) => return Some(Err(error)),
        None => return Some(Err(SpecError::NoShape(name.into()))),
    };
    Some(Ok(Spec {
        inner,
        outer: Some((outer, groups, each)),
    }))
}

/// The level that a mistyped one most likely meant.
fn guess(text: &str) -> Option<&'static str> {
    let compact: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let digits: String = compact.chars().filter(char::is_ascii_digit).collect();
    if compact.starts_with("str") {
        return Some("raid0");
    }
    if compact.starts_with("mirr") {
        return Some("raid1");
    }
    match digits.as_str() {
        "0" => Some("raid0"),
        "1" => Some("raid1"),
        "3" | "4" => Some("raid4"),
        "5" => Some("raid5"),
        "6" => Some("raid6"),
        "10" => Some("raid10"),
        _ => None,
    }
}
