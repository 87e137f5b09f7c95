//! Where ZFS puts a block's columns, beside where `raidlab-layout` says: pools of files in a guest, with blocks at the
//! places that `zdb` tells.
mod parity;
mod told;

use crate::inside::{in_guest, tool};
use crate::lab::Lab;
use raidlab_core::rng::mix;
use raidlab_core::units::Bytes;
use raidlab_layout::raidz::{Column, ColumnKind};
use raidlab_layout::{Member, Pool, PoolSpec, Vdev};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use told::Block;

/// Pools, with their members, ashift and record size.
const POOLS: [(&str, usize, u32, u64); 5] = [
    ("zfs-stripe", 3, 12, 64 << 10),
    ("raidz1", 4, 12, 64 << 10),
    ("raidz2", 4, 9, 32 << 10),
    ("raidz3", 6, 12, 128 << 10),
    ("zfs-mirror 2x2", 4, 12, 128 << 10),
];
/// Bytes of a member.
const MEMBER: Bytes = Bytes::mib(128);
/// Bytes of the file of many records: several MiB of each vdev, so that RAID-Z with one parity is seen in MiB of both kinds.
const MANY: u64 = 4 << 20;
/// Bytes of files of one block: below a row, a row, some rows, and no multiple of a unit of 4 KiB.
const SMALL: [u64; 8] = [
    512,
    1536,
    4096,
    5 << 10,
    8 << 10,
    12 << 10,
    13 << 10,
    15_872,
];
const SECTOR: usize = 512;

#[test]
fn zfs_puts_data_and_parity_of_each_block_where_the_layout_says() {
    let lab = Lab::new();
    let ran = in_guest(&lab, "places::blocks_of_real_pools");
    let lines = ran.out.lines().filter(|line| line.starts_with('{'));
    let seen: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("a result"))
        .collect();
    assert_eq!(seen.len(), POOLS.len(), "{}", ran.out);
    for (pool, (text, _, ashift, record)) in seen.iter().zip(POOLS) {
        let number = |key: &str| pool[key].as_u64().unwrap_or_else(|| panic!("{pool:#}"));
        assert_eq!(
            (pool["pool"].as_str(), number("ashift")),
            (Some(text), u64::from(ashift))
        );
        assert_eq!(number("wrong"), 0, "{pool:#}");
        // Every record and every small file; of each all sectors.
        let blocks = MANY / record + SMALL.len() as u64;
        assert_eq!(number("blocks"), blocks, "{pool:#}");
        let bytes = MANY + SMALL.iter().sum::<u64>();
        let copies = if text.starts_with("zfs-mirror") { 2 } else { 1 };
        assert!(number("data") >= copies * bytes / SECTOR as u64, "{pool:#}");
        for (parity, name) in ["P", "Q", "R"].iter().enumerate() {
            let has = text.starts_with(&format!("raidz{}", parity + 1))
                || (parity < 2 && text.starts_with("raidz3"))
                || (parity < 1 && text.starts_with("raidz2"));
            assert_eq!(number(name) > 0, has, "{name}: {pool:#}");
        }
        // In every second MiB a single parity changes places with the first data.
        let turned = number("turned");
        assert!((1..blocks).contains(&turned), "{pool:#}");
        let vdevs = pool["vdevs"].as_array().expect("vdevs").iter();
        assert!(vdevs.into_iter().all(|n| n.as_u64() > Some(0)), "{pool:#}");
        // Another layout than the pool's is noticed.
        assert!(number("otherwise") > 0, "{pool:#}");
    }
    assert!(crate::guest::left(&lab).is_empty());
}

#[test]
#[ignore = "run in a guest by the test above"]
fn blocks_of_real_pools() {
    for (number, (text, members, ashift, record)) in POOLS.into_iter().enumerate() {
        let spec: PoolSpec = text.parse().expect("a pool");
        let sizes = vec![MEMBER; members];
        let pool = spec.build(&sizes, ashift).expect("a pool");
        let made = Made::new(number, &pool, text, ashift, record);
        let seen = made.compare(&pool, ashift);
        // Parity elsewhere, or the vdevs of another pool.
        let other: PoolSpec = match text {
            "zfs-mirror 2x2" | "raidz1" => "raidz2",
            _ => "raidz1",
        }
        .parse()
        .expect("a pool");
        let other = other.build(&sizes, ashift).expect("a pool");
        let otherwise = made.compare(&other, ashift).wrong;
        let line = json!({
            "pool": text, "members": members, "ashift": ashift, "record": record, "blocks": made.blocks.len(),
            "data": seen.data, "P": seen.parity[0], "Q": seen.parity[1], "R": seen.parity[2], "turned": seen.turned,
            "vdevs": seen.vdevs, "wrong": seen.wrong, "told": seen.told, "otherwise": otherwise,
        });
        println!("\n{line}");
        fs::remove_dir_all(&made.directory).expect("removed");
    }
}

/// A pool that was made, written and exported.
struct Made {
    directory: PathBuf,
    members: Vec<PathBuf>,
    /// Blocks of its files.
    blocks: Vec<Block>,
    /// Size of each file, by the number of its object.
    files: Vec<(u64, u64)>,
}

/// What was compared, in sectors.
#[derive(Default)]
struct Seen {
    data: u64,
    parity: [u64; 3],
    wrong: u64,
    /// Blocks in a MiB with parity and data exchanged, if they have one parity.
    turned: u64,
    /// Blocks by vdev.
    vdevs: Vec<u64>,
    /// The first differences, in words.
    told: Vec<String>,
}

impl Made {
    fn new(number: usize, pool: &Pool, text: &str, ashift: u32, record: u64) -> Self {
        let directory = std::env::temp_dir().join(format!("pool{number}"));
        let (mount, name) = (directory.join("mnt"), format!("places{number}"));
        fs::create_dir_all(&mount).expect("directories");
        let members: Vec<PathBuf> = (0..pool.members())
            .map(|member| directory.join(format!("member{member}")))
            .collect();
        for member in &members {
            let file = File::create(member).expect("a member");
            file.set_len(MEMBER.0).expect("its size");
        }
        let (ashift, record) = (format!("ashift={ashift}"), format!("recordsize={record}"));
        let mountpoint = format!("mountpoint={}", mount.display());
        let mut words = vec!["zpool", "create", "-o", "cachefile=none", "-o", &ashift];
        for property in [&record, &mountpoint, "compression=off", "atime=off"] {
            words.extend(["-O", property]);
        }
        words.push(&name);
        let kind = text.split(' ').next().unwrap_or(text).replace("zfs-", "");
        let mut rest = members.as_slice();
        for vdev in pool.vdevs() {
            let (own, others) = rest.split_at(vdev.children());
            if kind != "stripe" {
                words.push(&kind);
            }
            words.extend(own.iter().map(|path| path.to_str().expect("a name")));
            rest = others;
        }
        tool(&words);
        let sizes = SMALL.iter().copied().chain([MANY]);
        let files: Vec<(u64, u64)> = sizes.map(|size| (written(&mount, size), size)).collect();
        tool(&["zpool", "export", &name]);
        let objects: Vec<String> = files.iter().map(|(object, _)| object.to_string()).collect();
        let place = directory.to_str().expect("a name");
        // With a slash it is the file system; without, the pool's own objects.
        let root = format!("{name}/");
        let mut words = vec!["zdb", "-e", "-p", place, "-ddddd", &root];
        words.extend(objects.iter().map(String::as_str));
        Self {
            blocks: told::blocks(&tool(&words)),
            directory,
            members,
            files,
        }
    }

    /// Compares all blocks with what a pool says of them.
    fn compare(&self, pool: &Pool, ashift: u32) -> Seen {
        let members: Vec<File> = self
            .members
            .iter()
            .map(|path| File::open(path).expect("a member"))
            .collect();
        let vdevs: Vec<&Vdev> = pool.vdevs().collect();
        let mut seen = Seen {
            vdevs: vec![0; vdevs.len()],
            ..Seen::default()
        };
        for block in &self.blocks {
            let content = self.content(block, ashift);
            let Some(vdev) = vdevs.get(block.vdev) else {
                seen.wrong(format!("{block:?} is on a vdev that there is not"), 1);
                continue;
            };
            let before: usize = vdevs[..block.vdev].iter().map(|vdev| vdev.children()).sum();
            seen.vdevs[block.vdev] += 1;
            seen.turned += u64::from(block.offset & (1 << 20) != 0);
            let psize = Bytes(block.psize);
            let (allocated, columns) = match vdev {
                Vdev::Mirror(mirror) => (mirror.allocated(psize), copies(mirror, block)),
                Vdev::Raidz(raidz) => (
                    raidz.allocated(psize),
                    raidz.columns(Bytes(block.offset), psize),
                ),
            };
            if allocated.0 != block.asize {
                seen.wrong(format!("{block:?} takes {allocated}"), 1);
            }
            let wanted = parity::columns(&columns, &content);
            for (column, wanted) in columns.iter().zip(wanted) {
                let mut has = vec![0; wanted.len()];
                members[before + column.child.index()]
                    .read_exact_at(&mut has, column.at.0)
                    .expect("read");
                seen.column(block, column, &has, &wanted);
            }
        }
        seen
    }

    /// What a block holds: the file's bytes, and zeros up to whole units.
    fn content(&self, block: &Block, ashift: u32) -> Vec<u8> {
        let known = self
            .files
            .iter()
            .find(|(object, _)| *object == block.object);
        let (object, size) = *known.expect("a block of a file of this test");
        let end = (block.at + block.psize).min(size);
        let mut bytes = content(size, block.at, end);
        assert_eq!(block.lsize, block.psize, "{object}: nothing is compressed");
        let whole = block.psize.next_multiple_of(1 << ashift);
        bytes.resize(whole as usize, 0);
        bytes
    }
}

impl Seen {
    fn column(&mut self, block: &Block, column: &Column, has: &[u8], wanted: &[u8]) {
        let pairs = has.chunks(SECTOR).zip(wanted.chunks(SECTOR));
        let wrong = pairs.filter(|(has, wanted)| has != wanted).count() as u64;
        let sectors = (wanted.len() / SECTOR) as u64;
        match column.kind {
            ColumnKind::Data(_) => self.data += sectors,
            ColumnKind::Parity(parity) => self.parity[parity] += sectors,
        }
        if wrong > 0 {
            self.wrong(
                format!("{wrong} of {sectors} sectors of {column:?} of {block:?}"),
                wrong,
            );
        }
    }

    fn wrong(&mut self, what: String, sectors: u64) {
        self.wrong += sectors;
        if self.told.len() < 8 {
            self.told.push(what);
        }
    }
}

/// A mirror's copies, as columns that each hold the whole block.
fn copies(mirror: &raidlab_layout::ZfsMirror, block: &Block) -> Vec<Column> {
    let copy = |child| Column {
        kind: ColumnKind::Data(0),
        child: Member::new(child),
        at: Bytes(mirror.data_start().0 + block.offset),
        size: mirror.allocated(Bytes(block.psize)),
    };
    (0..mirror.children()).map(copy).collect()
}

/// Bytes of the file of this size: each sector says which it is.
fn content(size: u64, from: u64, to: u64) -> Vec<u8> {
    let first = from / SECTOR as u64;
    let sectors = first..to.div_ceil(SECTOR as u64);
    let words = sectors.flat_map(|sector| {
        let seed = mix((size << 32) | sector);
        (0..SECTOR as u64 / 8).map(move |word| mix(seed ^ word))
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes a file; the number of its object.
fn written(directory: &Path, size: u64) -> u64 {
    let path = directory.join(format!("file{size}"));
    let mut file = File::create(&path).expect("a file");
    file.write_all(&content(size, 0, size))
        .and_then(|()| file.sync_all())
        .expect("written");
    file.metadata().expect("its number").ino()
}
