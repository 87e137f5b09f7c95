//! What `zdb -ddddd` tells of objects: where their blocks are.

/// A block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Number of the file's object.
    pub(super) object: u64,
    /// Where in the file, in bytes.
    pub(super) at: u64,
    /// The vdev of its (first) place.
    pub(super) vdev: usize,
    /// The offset there.
    pub(super) offset: u64,
    /// What it takes there, parity and filling included.
    pub(super) asize: u64,
    /// Its length in memory, and as it is written.
    pub(super) lsize: u64,
    pub(super) psize: u64,
}

/// Blocks of data of all objects that are told of, in their order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let (mut object, mut header) = (0, false);
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next();
        if header {
            object = first.and_then(|word| word.parse().ok()).unwrap_or(0);
        }
        header = first == Some("Object") && words.next() == Some("lvl");
        found.extend(block(object, line));
    }
    found
}

/// A line as `20000 L0 0:1a4000:2b000 20000L/20000P F=1 B=8/8`, all numbers but the last ones hexadecimal.
fn block(object: u64, line: &str) -> Option<Block> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split_whitespace();
    let at = hex(words.next()?)?;
    if words.next()? != "L0" {
        return None;
    }
    let mut place = words.next()?.split(':');
    let (vdev, offset, asize) = (place.next()?, place.next()?, place.next()?);
    let (lsize, psize) = words.next()?.split_once("L/")?;
    Some(Block {
        object,
        at,
        vdev: vdev.parse().ok()?,
        offset: hex(offset)?,
        asize: hex(asize)?,
        lsize: hex(lsize)?,
        psize: hex(psize.strip_suffix('P')?)?,
    })
}

#[test]
fn blocks_are_read_with_their_object() {
    let text = "\
    Object  lvl   iblk   dblk  dsize  dnsize  lsize   %full  type
         3    2   128K    64K  4.05M     512     4M  100.00  ZFS plain file
Indirect blocks:
               0 L1  0:41c000:2000 20000L/1000P F=2 B=8/8 cksum=1:2:3:4
               0  L0 0:1000:16000 10000L/10000P F=1 B=8/8 cksum=1:2:3:4
           10000  L0 1:a1000:16000 10000L/10000P F=1 B=8/8 cksum=1:2:3:4
";
    let found = blocks(text);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|block| block.object == 3));
    let second = &found[1];
    assert_eq!((second.at, second.vdev), (0x10000, 1));
    assert_eq!((second.offset, second.asize), (0xa1000, 0x16000));
    assert_eq!((second.lsize, second.psize), (0x10000, 0x10000));
}
