//! Raid1 and raid10: every sector on several members.
use crate::error::LayoutError;
use crate::stripe::{check_chunk, check_least, check_members};
use crate::types::{Content, Member, MemberSet, Place, Places};
use raidlab_core::units::{Lba, Sectors};

/// The same on every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid1 {
    members: usize,
    size: u64,
}

impl Raid1 {
    pub(crate) fn new(sizes: &[Sectors]) -> Result<Self, LayoutError> {
        check_members("raid1", sizes, 2, Some("linear"))?;
        check_least("raid1", sizes, 1)?;
        let size = sizes.iter().map(|size| size.0).min().unwrap_or(0);
        Ok(Self {
            members: sizes.len(),
            size,
        })
    }

    pub(crate) const fn members(&self) -> usize {
        self.members
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.size
    }

    pub(crate) fn places(&self, lba: u64) -> Places {
        (0..self.members)
            .map(|m| Place {
                member: Member::new(m),
                sector: Lba(lba),
            })
            .collect()
    }

    pub(crate) const fn content(&self, sector: u64) -> Content {
        if sector < self.size {
            Content::Data(Lba(sector))
        } else {
            Content::Unused
        }
    }
}

/// How many copies raid10 keeps, and where. The product is the number of copies of each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copies {
    /// Copies on neighbouring members in the same row (mdadm `n2`).
    pub near: usize,
    /// Copies in other sections of the members (mdadm `f2`), or in the next rows (`o2`).
    pub far: usize,
    /// Put the far copies in the next rows instead of far away (mdadm `o2`).
    pub offset: bool,
}

impl Copies {
    /// mdadm `nN`.
    #[must_use]
    pub const fn near(n: usize) -> Self {
        Self {
            near: n,
            far: 1,
            offset: false,
        }
    }

    /// mdadm `fN`.
    #[must_use]
    pub const fn far(n: usize) -> Self {
        Self {
            near: 1,
            far: n,
            offset: false,
        }
    }

    /// mdadm `oN`.
    #[must_use]
    pub const fn offset(n: usize) -> Self {
        Self {
            near: 1,
            far: n,
            offset: true,
        }
    }

    /// Copies of each chunk.
    #[must_use]
    pub const fn total(self) -> usize {
        self.near * self.far
    }
}

/// md's raid10: chunks dealt to the members in turn, each several times. Any number of members.
///
/// The first section is a raid0 in which each chunk appears `near` times in succession. Each
/// further copy is the same section again, shifted by `near` members: half a member away (far) or
/// in the next row (offset). The old ("far sets off") placement of md is meant, which mdadm makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raid10 {
    members: usize,
    copies: Copies,
    shift: u32,
    /// Chunks of the array.
    chunks: u64,
    /// Rows from one far copy to the next: of a section, or 1 for offset.
    stride: u64,
    /// Rows used on a member.
    rows: u64,
}

impl Raid10 {
    pub(crate) fn new(
        sizes: &[Sectors],
        chunk: Sectors,
        copies: Copies,
    ) -> Result<Self, LayoutError> {
        check_members("raid10", sizes, 2, Some("linear"))?;
        let room = sizes.iter().map(|size| size.0 / copies.far.max(1) as u64);
        check_chunk("raid10", chunk, Sectors(room.min().unwrap_or(0)))?;
        let total = copies.near.saturating_mul(copies.far);
        if total < 2 {
            return Err(LayoutError::TooFewCopies { copies: total });
        }
        if total > sizes.len() {
            let Copies { near, far, .. } = copies;
            return Err(LayoutError::TooManyCopies {
                near,
                far,
                members: sizes.len(),
            });
        }
        let (n, near, far) = (sizes.len() as u64, copies.near as u64, copies.far as u64);
        check_least("raid10", sizes, chunk.0.saturating_mul(far))?;
        // The arithmetic of raid10.c:calc_sectors: whole sections, then whole chunks.
        let size = sizes.iter().map(|size| size.0).min().unwrap_or(0);
        let sections = size / chunk.0 / far;
        let chunks = sections * n / near;
        let rows = (chunks * near * far).div_ceil(n);
        let stride = if copies.offset { 1 } else { rows / far };
        // An offset section may end within a row that the shifted copies share, so that a row more
        // than the even share is used; members have it, for sections are whole.
        let rows = if copies.offset {
            (chunks * near).div_ceil(n) * far
        } else {
            rows
        };
        let shift = chunk.0.trailing_zeros();
        Ok(Self {
            members: sizes.len(),
            copies,
            shift,
            chunks,
            stride,
            rows,
        })
    }

    /// Unit of striping.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        Sectors(1 << self.shift)
    }

    /// Copies and where they are.
    #[must_use]
    pub const fn copies(&self) -> Copies {
        self.copies
    }

    /// Where each far section starts on the members; one entry for near and offset.
    pub fn section_starts(&self) -> impl ExactSizeIterator<Item = Sectors> {
        let sections = if self.copies.offset {
            1
        } else {
            self.copies.far as u64
        };
        let size = self.stride << self.shift;
        (0..sections as usize).map(move |section| Sectors(section as u64 * size))
    }

    pub(crate) const fn members(&self) -> usize {
        self.members
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.chunks << self.shift
    }

    pub(crate) const fn used(&self) -> u64 {
        self.rows << self.shift
    }

    /// Puts the places of array sector `lba`, which must exist, into `places`, lowest section first;
    /// gives how many sectors follow contiguously in all of them.
    pub fn places(&self, lba: u64, places: &mut Places) -> u64 {
        places.clear();
        let n = self.members as u64;
        let (number, offset) = (lba >> self.shift, lba & (self.chunk().0 - 1));
        let slot = number * self.copies.near as u64;
        for section in 0..self.copies.far as u64 {
            for copy in 0..self.copies.near as u64 {
                let slot = slot + copy;
                let (row, column) = (slot / n, slot % n);
                let row = if self.copies.offset {
                    row * self.copies.far as u64 + section
                } else {
                    row + section * self.stride
                };
                let member = (column + section * self.copies.near as u64) % n;
                let sector = Lba((row << self.shift) + offset);
                places.push(Place {
                    member: Member(member as u16),
                    sector,
                });
            }
        }
        // Each member has all, at the same places.
        if self.copies.near == self.members {
            return self.capacity() - lba;
        }
        self.chunk().0 - offset
    }

    pub(crate) fn content(&self, member: usize, sector: u64) -> Content {
        let (n, far) = (self.members as u64, self.copies.far as u64);
        let (row, offset) = (sector >> self.shift, sector & (self.chunk().0 - 1));
        let (row, section) = if self.copies.offset {
            (row / far, row % far)
        } else {
            (row % self.stride, row / self.stride)
        };
        if section >= far {
            return Content::Unused;
        }
        // The shift is below n: (far - 1) * near < far * near <= n.
        let column = (member as u64 + n - section * self.copies.near as u64) % n;
        let number = (row * n + column) / self.copies.near as u64;
        if number < self.chunks {
            Content::Data(Lba((number << self.shift) + offset))
        } else {
            Content::Unused
        }
    }

    /// Members that hold all copies of some chunk lie in a ring window of this many members ...
    pub(crate) const fn window(&self) -> usize {
        self.copies.total()
    }

    /// ... that starts at a multiple of this (`raid10.c:enough` walks the same windows).
    pub(crate) const fn window_step(&self) -> usize {
        gcd(self.copies.near, self.members)
    }

    pub(crate) fn is_lost(&self, failed: MemberSet) -> bool {
        (0..self.members).step_by(self.window_step()).any(|start| {
            (start..start + self.window()).all(|m| failed.contains(Member::new(m % self.members)))
        })
    }
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
