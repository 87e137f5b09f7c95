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

/// A device's name, from its number.
pub(super) fn name(format: Format, hosts: &Hosts, number: u32) -> String {
    let (major, minor) = (number >> MINOR_BITS, number & MINOR);
    match format {
        Format::Blkparse => format!("{major},{minor}"),
        Format::Msr => format!("{}:{minor}", hosts.name(major)),
        Format::Fio | Format::Spc | Format::DiskSim => number.to_string(),
    }
}

/// A device as a user names it: its number, two numbers as blkparse prints them (`8,16` or `8:16`), or
/// host and disk of a trace of MSR (`usr:0`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    text: String,
    /// Major number or host.
    first: Option<String>,
    number: u32,
}

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
        let (first, number) = match text.rsplit_once([',', ':']) {
            Some((first, number)) => (Some(first.to_owned()), number),
            None => (None, text),
        };
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        let number = number.parse().ok().filter(|_| digits);
        let first_is_empty = first.as_ref().is_some_and(String::is_empty);
        match number.filter(|_| !first_is_empty) {
            Some(number) => Ok(Self {
                text: text.to_owned(),
                first,
                number,
            }),
            None => Err("write a number, two such as 8,16, or host and disk such as usr:0".into()),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whose requests are wanted.
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
        let wrong = |remedy| NoDevice {
            name: name.text.clone(),
            remedy,
        };
        let whole = |number| Self {
            mask: u32::MAX,
            number,
            of_one_host: None,
        };
        let Some(first) = &name.first else {
            if format != Format::Msr {
                return Ok(whole(name.number));
            }
            return Ok(Self {
                mask: MINOR,
                number: name.number,
                of_one_host: Some(name.number),
            });
        };
        match format {
            Format::Blkparse => {
                let major = first.parse::<u32>().ok().filter(|major| *major <= MAJOR);
                let major = major.filter(|_| is_minor(name.number));
                let major = major.ok_or_else(|| {
                    wrong("blkparse prints two numbers, below 2^12 and 2^20, such as 8,16")
                });
                Ok(whole(joined(major?, name.number)))
            }
            Format::Msr => {
                let host = hosts.number(first).filter(|_| is_minor(name.number));
                let host = host.ok_or_else(|| {
                    wrong("write host and disk, a number below 2^20, such as usr:0")
                });
                Ok(whole(joined(host?, name.number)))
            }
            Format::Fio | Format::Spc | Format::DiskSim => {
                Err(wrong("it has a number for each, such as 0"))
            }
        }
    }

    /// Of a device that was named as a whole.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    pub(super) const fn matches(&self, device: u32) -> bool {
        device & self.mask == self.number
    }
}
