//! Arrays that a controller made and shows as one device. raidlab can neither make nor see them: the user says what
//! they are, in the allow-list.
use raidlab_core::units::Bytes;
use raidlab_experiment::setup::{Array, ArrayLayout, Engine};
use std::fmt;

/// What a device is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Which sector is where.
    pub layout: ArrayLayout,
    /// How many disks.
    pub disks: usize,
    /// Unit of striping; `None` where the layout has none.
    pub chunk: Option<Bytes>,
}

impl Volume {
    /// The volume that an array of an experiment stands for; `None` when it is not the controller's. A single disk behind
    /// such a controller is a disk.
    #[must_use]
    pub fn of(array: &Array) -> Option<Self> {
        let made = array.engine == Engine::Controller && array.layout != ArrayLayout::Single;
        made.then(|| Self {
            layout: array.layout.clone(),
            disks: array.members.len(),
            chunk: array.chunk.filter(|_| array.layout.uses_chunk()),
        })
    }

    /// Whether two mean the same, however the layout is written.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let layout = match (&self.layout, &other.layout) {
            (ArrayLayout::Fixed(one, _), ArrayLayout::Fixed(two, _)) => one == two,
            (one, two) => one == two,
        };
        layout && self.disks == other.disks && self.chunk == other.chunk
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} disks", self.layout, self.disks)?;
        match self.chunk {
            Some(chunk) => write!(f, ", chunk {chunk}"),
            None => Ok(()),
        }
    }
}
