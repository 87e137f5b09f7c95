//! The allow-list: which devices of this machine may be overwritten. It is the user's word, in a file of this machine,
//! and names each device three times: by an id that stays, by serial number and by size.
use crate::identity::Identity;
use crate::inventory::Device;
use crate::volume::Volume;
use raidlab_core::units::Bytes;
use raidlab_experiment::setup::ArrayLayout;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// One device that may be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// A name that stays: of a link in `/dev/disk/by-id` or `by-partuuid`, a world-wide name, or `loop:FILE`.
    pub id: String,
    /// Its serial number.
    pub serial: String,
    /// Its size in bytes.
    pub size: u64,
    /// What the user wrote about it.
    pub note: Option<String>,
    /// What a controller made it of; `None`: it is one disk.
    pub array: Option<Volume>,
    /// The line of its entry, from 1.
    pub line: usize,
}

/// Something wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What, with the remedy.
    pub message: String,
}

/// Why the allow-list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AllowError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others than its owner may write to it.
    #[error("{} can be written to by others, and says what may be overwritten; chmod go-w it", .0.display())]
    Loose(PathBuf),
    /// It belongs to someone who is neither this user nor root.
    #[error("{} belongs to another user, and says what may be overwritten", .0.display())]
    Foreign(PathBuf),
    /// It says something wrong; nothing in it is used.
    #[error("{}", told(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All that is wrong.
        problems: Vec<Problem>,
    },
}

fn told(path: &Path, problems: &[Problem]) -> String {
    let lines = problems
        .iter()
        .map(|problem| format!("{}:{}: {}", path.display(), problem.line, problem.message));
    lines.collect::<Vec<_>>().join("\n")
}

/// The devices that may be overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    /// As in the file.
    pub devices: Vec<Allowed>,
}

/// What the list says of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<'l> {
    /// It may be overwritten.
    Yes(&'l Allowed),
    /// Nothing.
    Silent,
    /// An entry names it, but not all three fit: it is another device, or has changed.
    Mismatch(String),
}

impl Allowed {
    /// Whether a device has the serial number and the size of this entry.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, found: &Identity) -> Result<(), String> {
        let line = self.line;
        match &found.serial {
            None => Err("it has no serial number, so that it could be any".to_owned()),
            Some(serial) if *serial != self.serial => Err(format!(
                "its serial number is {serial}, and line {line} of the allow-list says {}: it is \
                 another device",
                self.serial
            )),
            _ if found.size != self.size => Err(format!(
                "its size is {} bytes, and line {line} of the allow-list says {}",
                found.size, self.size
            )),
            _ => Ok(()),
        }
    }
}

impl AllowList {
    /// Reads a list; a file that is not there is an empty one.
    ///
    /// # Errors
    /// [`AllowError`]: nothing of a list that is wrong anywhere is used.
    pub fn read(path: &Path) -> Result<Self, AllowError> {
        let read = |source| AllowError::Read {
            path: path.to_owned(),
            source,
        };
        let mut file = match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            other => other.map_err(read)?,
        };
        // Of this very file: another one may have its name by now.
        let found = file.metadata().map_err(read)?;
        if found.mode() & 0o022 != 0 {
            return Err(AllowError::Loose(path.to_owned()));
        }
        if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
            return Err(AllowError::Foreign(path.to_owned()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(read)?;
        Self::parse(&text).map_err(|problems| AllowError::Wrong {
            path: path.to_owned(),
            problems,
        })
    }

    /// Parses a list.
    ///
    /// # Errors
    /// All that is wrong with it, by line.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![Problem {
                line: line(at),
                message: error.message().to_owned(),
            }]
        })?;
        let mut reader = Reader {
            line: &line,
            problems: Vec::new(),
        };
        let devices = reader.list(table.get_ref());
        if reader.problems.is_empty() {
            Ok(Self { devices })
        } else {
            reader.problems.sort_by_key(|problem| problem.line);
            Err(reader.problems)
        }
    }

    /// What it says of a device.
    #[must_use]
    pub fn word_on(&self, device: &Device) -> Word<'_> {
        let identity = &device.identity;
        let named = |entry: &&Allowed| device.ids.contains(&entry.id);
        if let Some(entry) = self.devices.iter().find(named) {
            return match entry.check(identity) {
                Ok(()) => Word::Yes(entry),
                Err(why) => Word::Mismatch(why),
            };
        }
        let serial = |entry: &&Allowed| Some(&entry.serial) == identity.serial.as_ref();
        match self.devices.iter().find(serial) {
            Some(entry) => Word::Mismatch(format!(
                "line {} of the allow-list has its serial number, but calls it {}",
                entry.line, entry.id
            )),
            None => Word::Silent,
        }
    }
}

/// The lines that allow a device; `None` when it has no id that stays or no serial number.
#[must_use]
pub fn entry_for(device: &Device) -> Option<String> {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let id = device.ids.first()?;
    let serial = device.identity.serial.as_ref()?;
    let size = device.identity.size;
    Some(format!(
        "[[device]]\nid = {}\nserial = {}\nsize = {size}  # {}\n",
        quoted(id),
        quoted(serial),
        Bytes(size)
    ))
}

struct Reader<'t> {
    line: &'t dyn Fn(usize) -> usize,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn wrong(&mut self, at: usize, message: impl Into<String>) {
        self.problems.push(Problem {
            line: (self.line)(at),
            message: message.into(),
        });
    }

    fn list(&mut self, table: &DeTable<'_>) -> Vec<Allowed> {
        let mut found: Vec<Allowed> = Vec::new();
        for (key, value) in table {
            if key.get_ref() != "device" {
                let message = format!("'{}' means nothing here; write [[device]]", key.get_ref());
                self.wrong(key.span().start, message);
                continue;
            }
            let DeValue::Array(entries) = value.get_ref() else {
                self.wrong(key.span().start, "write [[device]], with two brackets");
                continue;
            };
            for entry in entries.iter() {
                let at = entry.span().start;
                let DeValue::Table(table) = entry.get_ref() else {
                    self.wrong(at, "a device is a table: id, serial, size");
                    continue;
                };
                let Some(device) = self.device(at, table) else {
                    continue;
                };
                if let Some(first) = found.iter().find(|d| d.id == device.id) {
                    let message = format!("'{}' is in line {} already", device.id, first.line);
                    self.wrong(at, message);
                    continue;
                }
                found.push(device);
            }
        }
        found
    }

    fn device(&mut self, at: usize, table: &DeTable<'_>) -> Option<Allowed> {
        let (mut id, mut serial, mut size, mut note) = (None, None, None, None);
        let mut array = None;
        let problems = self.problems.len();
        for (key, value) in table {
            let start = value.span().start;
            match key.get_ref().as_ref() {
                "id" => id = self.text(start, "id", value.get_ref()),
                "serial" => serial = self.text(start, "serial", value.get_ref()),
                "note" => note = self.text(start, "note", value.get_ref()),
                "size" => size = self.size(start, value.get_ref()),
                "array" => array = self.array(start, value.get_ref()),
                other => {
                    let message = format!(
                        "a device has no '{other}': it has id, serial, size, note and array"
                    );
                    self.wrong(key.span().start, message);
                }
            }
        }
        let needed = [
            ("id", id.is_none()),
            ("serial", serial.is_none()),
            ("size", size.is_none()),
        ];
        if self.problems.len() == problems {
            for (name, _) in needed.into_iter().filter(|(_, missing)| *missing) {
                let message = format!("{name} is missing; 'raidlab devices' prints all three");
                self.wrong(at, message);
            }
        }
        Some(Allowed {
            id: id?,
            serial: serial?,
            size: size?,
            note,
            array,
            line: (self.line)(at),
        })
    }

    fn array(&mut self, at: usize, value: &DeValue<'_>) -> Option<Volume> {
        let DeValue::Table(table) = value else {
            self.wrong(at, ARRAY);
            return None;
        };
        let (mut layout, mut disks, mut chunk) = (None, None, None);
        let problems = self.problems.len();
        for (key, value) in table {
            let start = value.span().start;
            match key.get_ref().as_ref() {
                "layout" => layout = self.parsed::<ArrayLayout>(start, "layout", value.get_ref()),
                "chunk" => chunk = self.parsed::<Bytes>(start, "chunk", value.get_ref()),
                "disks" => match whole(value.get_ref()) {
                    Some(count) => disks = Some(count),
                    None => self.wrong(start, "disks is how many disks the array has"),
                },
                other => {
                    let message = format!("an array has no '{other}'; {ARRAY}");
                    self.wrong(key.span().start, message);
                }
            }
        }
        if self.problems.len() > problems {
            return None;
        }
        let (Some(layout), Some(disks)) = (layout, disks) else {
            self.wrong(at, ARRAY);
            return None;
        };
        if layout.uses_chunk() && chunk.is_none() {
            self.wrong(
                at,
                format!("say the chunk of this {layout}, too: chunk = \"64KiB\""),
            );
            return None;
        }
        Some(Volume {
            chunk: chunk.filter(|_| layout.uses_chunk()),
            disks: usize::try_from(disks).ok()?,
            layout,
        })
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        at: usize,
        key: &str,
        value: &DeValue<'_>,
    ) -> Option<T> {
        let text = self.text(at, key, value)?;
        match text.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.wrong(at, format!("{key}: {error}"));
                None
            }
        }
    }

    fn text(&mut self, at: usize, key: &str, value: &DeValue<'_>) -> Option<String> {
        match value {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => {
                self.wrong(at, format!("{key} is a text in quotes"));
                None
            }
        }
    }

    fn size(&mut self, at: usize, value: &DeValue<'_>) -> Option<u64> {
        let number = whole(value);
        if number.is_none() {
            self.wrong(at, "size is the exact number of bytes, without a unit");
        }
        number
    }
}

/// What an `array` of a device looks like.
const ARRAY: &str =
    "a controller's array is told as { layout = \"raid5\", disks = 4, chunk = \"64KiB\" }";

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else {
        return None;
    };
    let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
    number.filter(|number| *number > 0)
}

#[cfg(test)]
mod tests;
