//! Arguments of `raidlab disk new`: what datasheets say.
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use raidlab_sim::catalogue::datasheet::{HDD_INTERFACES, Interface, SSD_INTERFACES};

#[derive(Debug, Args)]
#[command(after_help = "\
A disk that is not in the catalogue is described by a model file. This writes one from what its
datasheet says, with a comment to each value: given (K), by arithmetic from that (D), or assumed,
and how. The file goes to standard output; put right in it what you know better.

What to look for on the sheet of a hard disk: 'max. sustained transfer rate OD' is --outer-rate (not
the 600 MB/s of the interface), 'average seek, read' --seek-average, 'random read 4K QD16'
--read-iops with --read-iops-depth 16, 'cache, multisegmented' --cache. Of a solid-state disk:
sequential and random reads and writes 'up to'; --sustained-write, if it says so, is the rate once
the fast area (SLC, TurboWrite) is full.

Examples:
  raidlab disk new hdd --capacity 8TB --rpm 5640 --outer-rate 215MB/s --cache 256MiB > my-8tb.toml
  raidlab disk new ssd --capacity 4TB --interface pcie-4x4 --read-rate 7000MB/s \\
      --write-rate 6500MB/s --read-iops 1000k --write-iops 1000k > my-nvme.toml
  raidlab disk show ./my-8tb.toml                 what it comes to
  disks = { model = \"./my-8tb.toml\", count = 6 }   in an experiment")]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    pub(crate) kind: NewDisk,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewDisk {
    /// A hard disk: capacity, speed and sustained rate, and what else the sheet says
    Hdd(Box<NewHdd>),
    /// A solid-state disk: capacity, interface, sequential and random rates
    Ssd(Box<NewSsd>),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  raidlab disk new hdd --name WD80EFPX --capacity 8TB --rpm 5640 --outer-rate 215MB/s \\
      --cache 256MiB > WD80EFPX.toml
  raidlab disk new hdd --capacity 24TB --rpm 7200 --outer-rate 285MB/s --read-iops 168 \\
      --read-iops-depth 16 > nearline.toml      random reads in place of the average seek")]
pub(crate) struct NewHdd {
    /// What to call the model [default: by capacity and speed]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Capacity as the drive is sold: 8TB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) capacity: Bytes,

    /// Turns a minute
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) rpm: f64,

    /// Highest sustained rate, of the outermost tracks: 215MB/s
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) outer_rate: u64,

    /// Sustained rate of the innermost tracks [default: half of the outer]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) inner_rate: Option<u64>,

    /// Average seek of a read: 8.5ms [default: usual at the speed]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) seek_average: Option<Span>,

    /// Average seek of a write [default: 0.5ms more]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) seek_average_write: Option<Span>,

    /// Seek to the next track [default: 0.15 of the average]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) seek_track: Option<Span>,

    /// Seek over all tracks [default: 1.92 times the average]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) seek_full: Option<Span>,

    /// Random reads of 4 KiB a second: 168. The average seek follows from them when it is not given, and must agree when it is
    #[arg(long, value_name = "N", value_parser = many, allow_hyphen_values = true)]
    pub(crate) read_iops: Option<f64>,

    /// How many were in flight for --read-iops: 16 where the sheet says QD16 [default: 1]
    #[arg(long, value_name = "N", requires = "read_iops")]
    pub(crate) read_iops_depth: Option<u32>,

    /// The buffer: 256MiB [default: usual at the capacity]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache: Option<Bytes>,

    /// The interface
    #[arg(long, value_name = "NAME", default_value = "sata-6", value_parser = interface(HDD_INTERFACES), hide_possible_values = false)]
    pub(crate) interface: Interface,

    /// Surfaces in use, twice the discs as a rule [default: by density]
    #[arg(long, value_name = "N")]
    pub(crate) heads: Option<u32>,

    /// Physical sector [default: 4096B from 1 TB on]
    #[arg(long, value_name = "SIZE")]
    pub(crate) sector_physical: Option<Bytes>,

    /// Commands that the drive takes at a time [default: the interface's]
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  raidlab disk new ssd --name MX500 --capacity 1TB --interface sata-6 --read-rate 560MB/s \\
      --write-rate 510MB/s --read-iops 95k --write-iops 90k > MX500.toml
  raidlab disk new ssd --capacity 3.84TB --interface pcie-4x4 --protected --read-rate 6500MB/s \\
      --write-rate 3500MB/s --read-iops 1000k --sustained-write-iops 180k > server.toml")]
pub(crate) struct NewSsd {
    /// What to call the model [default: by capacity and interface]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Capacity as the drive is sold: 1TB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) capacity: Bytes,

    /// The interface
    #[arg(long, value_name = "NAME", value_parser = interface(SSD_INTERFACES))]
    pub(crate) interface: Interface,

    /// Sequential reading: 560MB/s
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) read_rate: u64,

    /// Sequential writing: 510MB/s
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) write_rate: u64,

    /// Sequential writing once the fast area is full [default: 3.4 times slower than before]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    pub(crate) sustained_write: Option<u64>,

    /// Random reads of 4 KiB a second, many in flight: 95000 or 95k
    #[arg(long, value_name = "N", value_parser = many, allow_hyphen_values = true)]
    pub(crate) read_iops: f64,

    /// Random writes of 4 KiB a second, many in flight, on a drive with room [default: as many as reads]
    #[arg(long, value_name = "N", value_parser = many, allow_hyphen_values = true)]
    pub(crate) write_iops: Option<f64>,

    /// The same of a full drive that has been written at random for long, as servers' drives state it: it says how much garbage
    /// collection takes, and the drive of the file is full
    #[arg(long, value_name = "N", value_parser = many, allow_hyphen_values = true)]
    pub(crate) sustained_write_iops: Option<f64>,

    /// The write buffer [default: 8 MiB, with NVMe 32 MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache: Option<Bytes>,

    /// It has capacitors: what was acknowledged survives a loss of power, and flushes take no time
    /// [default: none, so that a flush of what was written takes 0.9 ms]
    #[arg(long)]
    pub(crate) protected: bool,

    /// Physical sector [default: 4096B]
    #[arg(long, value_name = "SIZE")]
    pub(crate) sector_physical: Option<Bytes>,

    /// Commands that the drive takes at a time [default: the interface's]
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
}

fn interface(known: &'static [Interface]) -> impl TypedValueParser<Value = Interface> {
    let names = PossibleValuesParser::new(known.iter().map(|interface| interface.name));
    // The parser has let nothing else through.
    names.map(|name| *known.iter().find(|i| i.name == name).unwrap_or(&known[0]))
}

/// Bytes a second.
fn rate(text: &str) -> Result<u64, String> {
    let size = text
        .strip_suffix("/s")
        .ok_or("write bytes a second, such as 215MB/s")?;
    let size: Bytes = size.parse().map_err(|error| format!("{error}"))?;
    Ok(size.0)
}

/// A count as datasheets write it: `95000`, `95k`, `1000K`, `1.2M`, `1,000,000`.
fn many(text: &str) -> Result<f64, String> {
    let plain = text.replace(',', "");
    let (digits, scale) = match plain.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1e3),
        Some((at, 'M')) => (&plain[..at], 1e6),
        _ => (plain.as_str(), 1.0),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "write a number, such as 95000 or 95k")?;
    Ok(number * scale)
}
