//! Arrays of which less is used than their file says.
use crate::check::{NO_CHUNK, btrfs_capacity, share};
use crate::setup::{Array, ArrayLayout, Engine};
use raidlab_core::units::Bytes;
use raidlab_layout::{Geometry, SpecError};

impl Array {
    /// What is used of a disk that has `has` bytes.
    #[must_use]
    pub fn used_of(&self, has: Bytes) -> Bytes {
        let begins = self.member_start.unwrap_or_default();
        let left = Bytes(has.0.saturating_sub(begins.0));
        self.member_size.map_or(left, |used| used.min(left))
    }

    /// Uses `size` bytes of each member, and holds accordingly less.
    ///
    /// # Errors
    /// When there is no such array of members so small.
    pub fn use_of_members(&mut self, size: Bytes) -> Result<(), SpecError> {
        let sizes = vec![size; self.members.len()];
        let capacity = match &self.layout {
            ArrayLayout::Single => size,
            ArrayLayout::Zfs(pool) => pool.build(&sizes, self.ashift.unwrap_or(12))?.capacity(),
            // All are of one size, so that the kernel makes no difference.
            ArrayLayout::Fixed(_, text) if self.engine == Engine::Btrfs => {
                btrfs_capacity(text, &sizes, true).unwrap_or_default()
            }
            ArrayLayout::Fixed(spec, _) => {
                let geometry = Geometry {
                    sizes: sizes.iter().map(|size| size.to_sectors()).collect(),
                    chunk: self.chunk.unwrap_or(NO_CHUNK).to_sectors(),
                    outer_chunk: self.outer_chunk.map(Bytes::to_sectors),
                };
                spec.build(&geometry)?.capacity().to_bytes()
            }
        };
        self.member_size = Some(size);
        self.capacity = Some(capacity);
        self.capacity_disks = share(capacity.0, size.0.max(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Known, KnownDisk, parse};

    /// The arrays of an experiment that uses so much of each disk by its file.
    fn arrays(member_size: &str) -> Vec<Array> {
        let md = ["raid0", "raid5", "raid10", "raid50 2x3", "raid1", "linear"];
        let md = md.map(|level| format!("{{ name = '{level}', layout = '{level}' }},"));
        let md = md.join("\n");
        let text = format!(
            "title = 't'\ndisks = {{ model = 'm', count = 6 }}\nprofile = 'random'\n[array]\n{member_size}\n\
             [factors]\nlayout = [\n{md}\n\
             {{ name = 'z', layout = 'raidz2' }}, {{ name = 'm', layout = 'zfs-mirror 3x2' }},\n\
             {{ name = 'b', layout = 'raid1', engine = 'btrfs', filesystem = 'btrfs' }},\n\
             {{ name = 'one', layout = 'single' }}]\n"
        );
        let known = Known {
            disks: vec![KnownDisk {
                name: "m",
                capacity: Some(Bytes(1_000_204_886_016)),
                link: None,
            }],
            ..Known::default()
        };
        let experiment =
            parse(&text, "x.toml", &known).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let cells = experiment.cells.into_iter();
        cells.map(|cell| cell.setup.array).collect()
    }

    #[test]
    fn a_size_that_is_given_later_is_as_good_as_the_files() {
        let mut later = arrays("");
        for array in &mut later {
            array.use_of_members(Bytes::gib(2)).unwrap();
        }
        assert_eq!(later, arrays("member-size = '2GiB'"));
        assert_eq!(later[1].capacity, Some(Bytes::gib(10)));
        // A chunk is more than there is.
        assert!(later[1].use_of_members(Bytes(1536)).is_err());
        assert_eq!(
            later[1].capacity,
            Some(Bytes::gib(10)),
            "nothing was changed"
        );
    }
}
