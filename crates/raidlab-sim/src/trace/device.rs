//! Devices as traces and their users name them.
use super::Format;
use std::fmt;
use std::str::FromStr;

/// Bits of a minor number of Linux, and of a disk of MSR; those above are the major number's, or the host's.
const MINOR_BITS: u32 = 20;
const MINOR: u32 = (1 << MINOR_BITS) - 1;
const MAJOR: u32 = u32::MAX >> MINOR_BITS;

/// Two numbers in one: 12 bits and 20, as the kernel has a device's; what is above is cut off.
pub(super) const fn joined(major: u32, minor: u32) -> u32 {
    (major & MAJOR) << MINOR_BITS | minor & MINOR
}

/// Whether a number is small enough for the second part of [`joined`].
pub(super) const fn is_minor(number: u32) -> bool {
    number <= MINOR
}

/// The hosts of a trace, in the order of appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Number of a host; `None` when there are too many to be numbered.
    pub(super) fn number(&mut self, name: &str) -> Option<u32> {
        let known = self.0.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u32::try_from(at).ok().filter(|at| *at <= MAJOR)
    }

    fn name(&self, number: u32) -> &str {
        self.0.get(number as usize).map_or("?", String::as_str)
    }
}

/// A device's name, from its number; fio's log has its own.
pub(super) fn name(format: Format, hosts: &Hosts, number: u32) -> String {
    let (major, minor) = (number >> MINOR_BITS, number & MINOR);
    match format {
        Format::Blkparse => format!("{major},{minor}"),
        Format::Msr => format!("{}:{minor}", hosts.name(major)),
        Format::Fio | Format::Spc | Format::DiskSim => number.to_string(),
    }
}

/// A device as a user names it: as the trace does. That is a number, two as blkparse prints them (`8,16` or `8:16`), host and
/// disk of a trace of MSR (`usr:0`, or `usr_0` as its files are called), or the file of fio's log (`/dev/sdb`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(String);

/// A name that no device of the trace can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no device of a trace like this: {remedy}")]
pub struct NoDevice {
    name: String,
    /// What to write.
    remedy: &'static str,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "write a device as the trace does, such as 0, 8,16, usr:0 or /dev/sdb".into(),
            );
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DeviceName {
    /// Whether a file of fio's log is meant.
    pub(super) fn is_file(&self, name: &str) -> bool {
        self.0 == name
    }

    /// The part before the last of `between`, and the number behind it.
    fn split(&self, between: &[char]) -> Option<(Option<&str>, u32)> {
        let (first, number) = match self.0.rsplit_once(between) {
            Some((first, number)) => (Some(first), number),
            None => (None, self.0.as_str()),
        };
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        let number = number.parse().ok().filter(|_| digits)?;
        (first != Some("")).then_some((first, number))
    }
}

/// Whose requests are wanted, where devices have numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    mask: u32,
    number: u32,
    /// A disk of MSR whose host was not named.
    pub(super) of_one_host: Option<u32>,
}

impl Wanted {
    /// The device that a name means in a trace of this format, whose hosts get to know the one that is named.
    pub(super) fn of(
        name: &DeviceName,
        format: Format,
        hosts: &mut Hosts,
    ) -> Result<Self, NoDevice> {
        let (wanted, remedy) = match format {
            Format::Blkparse => (
                Self::of_two_numbers(name),
                "blkparse prints two numbers, below 2^12 and 2^20, such as 8,16",
            ),
            Format::Msr => (
                Self::of_host_and_disk(name, hosts),
                "write host and disk, a number below 2^20, such as usr:0",
            ),
            Format::Fio | Format::Spc | Format::DiskSim => (
                match name.split(&[]) {
                    Some((None, number)) => Some(Self::whole(number)),
                    _ => None,
                },
                "it has a number for each, such as 0",
            ),
        };
        wanted.ok_or_else(|| NoDevice {
            name: name.0.clone(),
            remedy,
        })
    }

    const fn whole(number: u32) -> Self {
        Self {
            mask: u32::MAX,
            number,
            of_one_host: None,
        }
    }

    fn of_two_numbers(name: &DeviceName) -> Option<Self> {
        let (first, number) = name.split(&[',', ':'])?;
        let Some(first) = first else {
            return Some(Self::whole(number));
        };
        let major = first.parse::<u32>().ok().filter(|major| *major <= MAJOR)?;
        is_minor(number).then(|| Self::whole(joined(major, number)))
    }

    fn of_host_and_disk(name: &DeviceName, hosts: &mut Hosts) -> Option<Self> {
        let (host, disk) = name.split(&[',', ':', '_', '.'])?;
        if !is_minor(disk) {
            return None;
        }
        let Some(host) = host else {
            return Some(Self {
                mask: MINOR,
                number: disk,
                of_one_host: Some(disk),
            });
        };
        Some(Self::whole(joined(hosts.number(host)?, disk)))
    }

    /// Of a device that was named as a whole.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    pub(super) const fn matches(&self, device: u32) -> bool {
        device & self.mask == self.number
    }
}
