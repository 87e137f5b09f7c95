//! From the number of a chunk of a file to its node, in two steps as a page table.
use super::NONE;

/// Chunks of a leaf: 64 MiB of the file.
const LEAF: usize = 256;

#[derive(Clone, Debug)]
struct Leaf {
    nodes: [u32; LEAF],
    used: u16,
    /// A bit for each chunk with dirty pages.
    marks: [u64; LEAF / 64],
}

/// The chunks of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    leaves: Vec<Option<Box<Leaf>>>,
}

const fn split(chunk: u64) -> (usize, usize) {
    (
        (chunk / LEAF as u64) as usize,
        (chunk % LEAF as u64) as usize,
    )
}

impl Map {
    #[inline]
    pub(super) fn get(&self, chunk: u64) -> Option<u32> {
        let (leaf, at) = split(chunk);
        let node = self.leaves.get(leaf)?.as_ref()?.nodes[at];
        (node != NONE).then_some(node)
    }

    /// Sets a chunk that has no node.
    pub(super) fn set(&mut self, chunk: u64, node: u32) {
        let (leaf, at) = split(chunk);
        if self.leaves.len() <= leaf {
            self.leaves.resize(leaf + 1, None);
        }
        let leaf = self.leaves[leaf].get_or_insert_with(|| {
            Box::new(Leaf {
                nodes: [NONE; LEAF],
                used: 0,
                marks: [0; LEAF / 64],
            })
        });
        leaf.nodes[at] = node;
        leaf.used += 1;
    }

    /// The chunk has no node any more.
    pub(super) fn clear(&mut self, chunk: u64) {
        let (leaf, at) = split(chunk);
        let place = &mut self.leaves[leaf];
        if let Some(leaf) = place {
            leaf.nodes[at] = NONE;
            leaf.marks[at / 64] &= !(1 << (at % 64));
            leaf.used -= 1;
            if leaf.used == 0 {
                *place = None;
            }
        }
    }

    /// Whether the chunk has dirty pages.
    pub(super) fn mark(&mut self, chunk: u64, dirty: bool) {
        let (leaf, at) = split(chunk);
        if let Some(leaf) = &mut self.leaves[leaf] {
            let bit = 1 << (at % 64);
            if dirty {
                leaf.marks[at / 64] |= bit;
            } else {
                leaf.marks[at / 64] &= !bit;
            }
        }
    }

    /// The first chunk from `chunk` on with dirty pages; `chunk` becomes it, and `first`, the page to
    /// begin with, 0 when it is another one.
    pub(super) fn next_marked(&self, chunk: &mut u64, first: &mut u64) -> Option<u32> {
        let (mut leaf, mut at) = split(*chunk);
        while leaf < self.leaves.len() {
            if let Some(found) = &self.leaves[leaf] {
                while at < LEAF {
                    let rest = found.marks[at / 64] >> (at % 64);
                    if rest == 0 {
                        at = (at / 64 + 1) * 64;
                        continue;
                    }
                    at += rest.trailing_zeros() as usize;
                    let number = (leaf * LEAF + at) as u64;
                    if number != *chunk {
                        (*chunk, *first) = (number, 0);
                    }
                    return Some(found.nodes[at]);
                }
            }
            (leaf, at) = (leaf + 1, 0);
        }
        None
    }

    /// The nodes of the chunks `from..to`.
    pub(super) fn within(&self, from: u64, to: u64) -> Vec<u32> {
        let end = (self.leaves.len() * LEAF) as u64;
        let leaves = split(from).0..split(to.min(end).saturating_add(LEAF as u64 - 1)).0;
        let mut found = Vec::new();
        for number in leaves {
            let Some(Some(leaf)) = self.leaves.get(number) else {
                continue;
            };
            for (at, node) in leaf.nodes.iter().enumerate() {
                let chunk = (number * LEAF + at) as u64;
                if *node != NONE && (from..to).contains(&chunk) {
                    found.push(*node);
                }
            }
        }
        found
    }
}
