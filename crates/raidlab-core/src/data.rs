//! What the bytes are: incompressible and seeded unless the user says otherwise.
//!
//! The content of a file is a function of (policy, seed, offset), so any part can be checked later
//! without keeping it. Sequential tools of old write zeros or one repeated buffer, and any
//! comparison of compressing storage by them is void.
use crate::rng::Stream;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The unit of the compressible policy: each block of this size is compressible by itself.
pub const COMPRESS_BLOCK: usize = 4096;

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPolicy {
    /// Zeros, as dd and tiotest write.
    Zeros,
    /// Incompressible, different everywhere, the same for the same seed.
    #[default]
    Seeded,
    /// Each 4 KiB block compresses by about this factor: one part random, the rest zeros.
    Compressible(f64),
}

impl fmt::Display for DataPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => f.write_str("zeros"),
            Self::Seeded => f.write_str("seeded"),
            Self::Compressible(n) => write!(f, "compressible={n}"),
        }
    }
}

impl FromStr for DataPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "zeros" => Ok(Self::Zeros),
            "seeded" => Ok(Self::Seeded),
            other => match other.strip_prefix("compressible=").map(str::parse::<f64>) {
                Some(Ok(n)) if n.is_finite() && (1.0..=1000.0).contains(&n) => {
                    Ok(Self::Compressible(n))
                }
                Some(_) => Err(
                    "compressible= takes a factor from 1 to 1000, such as compressible=2".into(),
                ),
                None => Err(format!(
                    "'{other}' is not known: write zeros, seeded or compressible=N"
                )),
            },
        }
    }
}

/// Fills `buffer` with the content that belongs at `offset` of a file.
///
/// `offset` should be a multiple of 8; the content at unaligned offsets is that of the aligned word
/// below.
pub fn fill(policy: DataPolicy, stream: Stream, offset: u64, buffer: &mut [u8]) {
    match policy {
        DataPolicy::Zeros => buffer.fill(0),
        DataPolicy::Seeded => fill_random(stream, offset, buffer),
        DataPolicy::Compressible(factor) => {
            let random = ((COMPRESS_BLOCK as f64 / factor) as usize)
                .next_multiple_of(8)
                .min(COMPRESS_BLOCK);
            let mut at = offset;
            let mut rest = buffer;
            while !rest.is_empty() {
                let within = (at % COMPRESS_BLOCK as u64) as usize;
                let length = rest.len().min(COMPRESS_BLOCK - within);
                let (block, tail) = rest.split_at_mut(length);
                let filled = random.saturating_sub(within).min(length);
                fill_random(stream, at, &mut block[..filled]);
                block[filled..].fill(0);
                at += length as u64;
                rest = tail;
            }
        }
    }
}

fn fill_random(stream: Stream, offset: u64, buffer: &mut [u8]) {
    let mut word = offset / 8;
    let mut chunks = buffer.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&stream.at(word).to_le_bytes());
        word += 1;
    }
    let tail = chunks.into_remainder();
    let bytes = stream.at(word).to_le_bytes();
    tail.copy_from_slice(&bytes[..tail.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policies_are_read_as_printed() {
        for policy in [
            DataPolicy::Zeros,
            DataPolicy::Seeded,
            DataPolicy::Compressible(2.5),
        ] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        for wrong in [
            "",
            "random",
            "compressible=0.5",
            "compressible=x",
            "compressible=inf",
        ] {
            assert!(wrong.parse::<DataPolicy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_compressible_block_is_random_in_its_first_part_only() {
        let mut block = vec![1_u8; 2 * COMPRESS_BLOCK];
        fill(DataPolicy::Compressible(4.0), Stream::new(1), 0, &mut block);
        for half in block.chunks(COMPRESS_BLOCK) {
            assert!(half[1024..].iter().all(|&b| b == 0));
            assert!(half[..1024].iter().filter(|&&b| b == 0).count() < 32);
        }
    }

    proptest! {
        #[test]
        fn content_depends_on_the_offset_alone(start in 0_u64..10_000, len in 0_usize..9000, factor in 1.0..8.0_f64) {
            let start = start * 8;
            for policy in [DataPolicy::Seeded, DataPolicy::Compressible(factor)] {
                let mut whole = vec![0; len + 16];
                fill(policy, Stream::new(3), start, &mut whole);
                let mut part = vec![0; len];
                fill(policy, Stream::new(3), start + 16, &mut part);
                prop_assert_eq!(&part[..], &whole[16..]);
            }
        }
    }
}
