//! Arguments of `layout`.
use clap::Args;
use raidlab_core::units::Bytes;

#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Levels: linear, raid0, raid1, raid4, raid5 (raid5-la, -ra, -ls, -rs), raid6, raid10 (raid10-n2, -f2,
-o2), and nested ones such as 'raid50 2x3' or 'raid01 2x2'; of ZFS zfs-stripe, zfs-mirror, raidz1,
raidz2, raidz3, and pools of several such as 'raidz1 2x3', whose blocks have no fixed places; of
btrfs btrfs-single, btrfs-raid0, btrfs-raid1, btrfs-raid1c3, btrfs-raid1c4, btrfs-raid10,
btrfs-raid5, btrfs-raid6, of which the chunks of a full file system are told.

Examples:
  raidlab layout raid5 --members 4
  raidlab layout raidz2 --members 6 --ashift 12 --member-size 8TB
  raidlab layout raid5 --members 6 --member-size 24TB --read-errors 1e15  is one parity enough?
  raidlab layout raid10-f2 --members 4 --chunk 64KiB --sector 123456
  raidlab layout raid0 --member-size 1TB,2TB,2TB  unequal members: stripes of all, then of the rest
  raidlab layout btrfs-raid1 --member-size 8TB,8TB,4TB,2TB  what has room, and which share chunks?")]
pub(crate) struct LayoutArgs {
    /// The level, with its variant
    #[arg(value_name = "LEVEL", index = 1)]
    pub(crate) level: String,

    /// Shape of a nested level that was not quoted: 2x3
    #[arg(value_name = "SHAPE", index = 2, hide = true)]
    pub(crate) shape: Option<String>,

    /// Number of members (the shape of a nested level says it itself) [default: so many that it shows what the level does]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) members: Option<u32>,

    /// Chunk size; raid1, linear, pools of ZFS and btrfs have none [default: 64KiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) chunk: Option<Bytes>,

    /// Size of each member; several, such as 1TB,2TB,2TB, one for each
    #[arg(
        long,
        default_value = "1GiB",
        value_name = "SIZE",
        value_delimiter = ',',
        value_parser = member_size
    )]
    pub(crate) member_size: Vec<Bytes>,

    /// Of ZFS alone: log2 of the unit of allocation in bytes, 9 to 16 [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(9..=16))]
    pub(crate) ashift: Option<u32>,

    /// Where is this array sector (512 bytes)?
    #[arg(long, value_name = "LBA")]
    pub(crate) sector: Option<u64>,

    /// Tell what a rebuild reads, and how likely it meets a sector that cannot be read: so many bits are
    /// read for each, by the data sheet, such as 1e15. That is a limit that makers vouch for; most
    /// disks keep well below it
    #[arg(long, value_name = "BITS", value_parser = read_errors, requires = "member_size")]
    pub(crate) read_errors: Option<ReadErrors>,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// So many bits are read for each sector that cannot be, and how that was written.
#[derive(Clone, Debug)]
pub(crate) struct ReadErrors {
    pub(crate) bits: f64,
    pub(crate) stated: String,
}

/// A sector at least: what is less was written without its unit.
fn member_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if size.0 < 512 {
        return Err(format!(
            "a member of {} is less than a sector of 512 bytes: give the size with its unit, such as 1GiB or 24TB",
            raidlab_core::words::count(size.0, "byte")
        ));
    }
    Ok(size)
}

/// `1e15`, as data sheets have it; no disk is known outside of 1e10 to 1e20.
fn read_errors(text: &str) -> Result<ReadErrors, String> {
    let stated = text.trim().to_owned();
    match stated.parse::<f64>() {
        Ok(bits) if (1e10..=1e20).contains(&bits) => Ok(ReadErrors { bits, stated }),
        _ => Err(format!(
            "'{text}' is no number of bits: write what the data sheet has under nonrecoverable read errors, 1e14 to 1e17 \
             as a rule"
        )),
    }
}
