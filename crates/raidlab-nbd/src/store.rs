//! What is on a modelled disk: zeroes until something is written.
//!
//! | store | for |
//! |---|---|
//! | [`Sparse`] | pages in memory, taken when something other than zeroes is written, up to a budget |
//! | [`Backing`] | a sparse file |
//! | [`Mapped`] | a piece of memory that the guest's kernel does not know, or an anonymous one |
//!
//! Whoever calls has checked that an extent lies within the store.
mod backing;
mod mapped;
mod sparse;

pub use backing::Backing;
pub use mapped::{Mapped, Memory, MemoryError};
pub use sparse::{Budget, PAGE, Sparse};

/// Content of one disk.
#[derive(Debug)]
pub enum Store {
    /// Pages in memory.
    Sparse(Sparse),
    /// A file.
    Backing(Backing),
    /// Memory in one piece.
    Mapped(Mapped),
}

/// Why content could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The budget of memory is used up.
    #[error("the memory for the content of modelled disks is used up")]
    Full,
    /// The backing file.
    #[error("the backing file failed: {0}")]
    Io(#[from] std::io::Error),
}

impl Store {
    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// The backing file.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        match self {
            Self::Sparse(store) => {
                store.read(offset, buffer);
                Ok(())
            }
            Self::Backing(store) => store.read(offset, buffer),
            Self::Mapped(store) => {
                buffer.copy_from_slice(store.slice(offset, buffer.len()));
                Ok(())
            }
        }
    }

    /// Writes `data` from `offset` on.
    ///
    /// # Errors
    /// No memory or space is left; the backing file.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        match self {
            Self::Sparse(store) => store.write(offset, data),
            Self::Backing(store) => store.write(offset, data),
            Self::Mapped(store) => {
                store.slice_mut(offset, data.len()).copy_from_slice(data);
                Ok(())
            }
        }
    }

    /// From `offset` on there are `len` zeroes, which take no space where that is possible.
    ///
    /// # Errors
    /// The backing file.
    pub fn zero(&mut self, offset: u64, len: u64) -> Result<(), StoreError> {
        match self {
            Self::Sparse(store) => {
                store.zero(offset, len);
                Ok(())
            }
            Self::Backing(store) => store.zero(offset, len),
            Self::Mapped(store) => {
                store.zero(offset, len);
                Ok(())
            }
        }
    }

    /// The memory itself, where the content is in one piece: to be written without a copy in between.
    pub fn direct_mut(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        match self {
            Self::Mapped(store) => Some(store.slice_mut(offset, len)),
            _ => None,
        }
    }

    /// The memory itself, where the content is in one piece: to be read without a copy in between.
    #[must_use]
    pub fn direct(&self, offset: u64, len: usize) -> Option<&[u8]> {
        match self {
            Self::Mapped(store) => Some(store.slice(offset, len)),
            _ => None,
        }
    }

    /// Bytes of memory or of the file that content takes.
    #[must_use]
    pub fn used(&self) -> u64 {
        match self {
            Self::Sparse(store) => store.used(),
            Self::Backing(store) => store.used(),
            Self::Mapped(store) => store.touched(),
        }
    }
}

#[cfg(test)]
mod tests;
