//! A command line of dd above its report: the direction, and what makes another cell of the run.
use crate::import::draft::Draft;
use raidlab_core::units::{GIB, KIB, MIB};
use std::collections::{BTreeSet, VecDeque};

/// Bytes of a block of which no size is given.
const DEFAULT_BLOCK: u64 = 512;

/// Factors of one side of a copy: a write and a read of the same thing may differ by them.
pub(super) const OF_ONE_SIDE: [&str; 6] = ["conv", "conversions", "iflag", "oflag", "ibs", "obs"];

/// A command line found above a report.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    pub(super) text: String,
    input: Option<String>,
    output: Option<String>,
    block: Option<String>,
    input_block: Option<String>,
    output_block: Option<String>,
    count: Option<String>,
    skip: Option<String>,
    seek: Option<String>,
    /// Words of `conv`, `iflag` and `oflag`, each of which may be given several times.
    conversions: BTreeSet<String>,
    input_flags: BTreeSet<String>,
    output_flags: BTreeSet<String>,
}

impl Command {
    /// The calls of dd on a shell's line, with or without a prompt.
    pub(super) fn all_of(trimmed: &str) -> Option<VecDeque<Self>> {
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        let calls = words.iter().enumerate();
        let starts: Vec<usize> = calls
            .filter(|(_, word)| **word == "dd" || word.ends_with("/dd"))
            .map(|(at, _)| at)
            .collect();
        let ends = starts.iter().skip(1).copied().chain([words.len()]);
        let found: VecDeque<Self> = starts
            .iter()
            .zip(ends)
            .map(|(from, to)| Self::of(&words[*from..to]))
            .filter(|command| command.input.is_some() || command.output.is_some())
            .collect();
        (!found.is_empty()).then_some(found)
    }

    fn of(words: &[&str]) -> Self {
        let mut command = Self::default();
        let mut own = Vec::new();
        for word in words {
            let ends = word.ends_with([';', ',']);
            let word = word.trim_end_matches([';', ',']);
            if matches!(word, "&&" | "||" | "|" | "&" | "") || word.starts_with("2>") {
                break;
            }
            match own.last() {
                // Without `of` the shell may send it somewhere.
                Some(&">") => command.output = Some(word.to_owned()),
                _ => command.take(word),
            }
            own.push(word);
            if ends {
                break;
            }
        }
        command.text = own.join(" ");
        command
    }

    /// An operand; of one that is given again the last counts, of lists all do.
    fn take(&mut self, word: &str) {
        let Some((key, value)) = word.split_once('=') else {
            if let Some(output) = word.strip_prefix('>').filter(|path| path.starts_with('/')) {
                self.output = Some(output.to_owned());
            }
            return;
        };
        let list = match key {
            "conv" => Some(&mut self.conversions),
            "iflag" => Some(&mut self.input_flags),
            "oflag" => Some(&mut self.output_flags),
            _ => None,
        };
        if let Some(list) = list {
            list.extend(value.split(',').map(str::to_owned));
            return;
        }
        let slot = match key {
            "if" => &mut self.input,
            "of" => &mut self.output,
            "bs" => &mut self.block,
            "ibs" => &mut self.input_block,
            "obs" => &mut self.output_block,
            "count" => &mut self.count,
            "skip" | "iseek" => &mut self.skip,
            "seek" | "oseek" => &mut self.seek,
            _ => return,
        };
        *slot = Some(value.to_owned());
    }

    /// Bytes of a block on either side: `bs` is that of both whatever else is given.
    fn blocks(&self) -> [Option<u64>; 2] {
        [&self.input_block, &self.output_block].map(|own| {
            let told = self.block.as_ref().or(own.as_ref());
            told.map_or(Some(DEFAULT_BLOCK), |text| size(text))
        })
    }

    /// Sets what tells this run from others: factors, named as those of the profile where it has them.
    pub(super) fn settings(&self, draft: &mut Draft) {
        if self.text.is_empty() {
            return;
        }
        let (phase, _) = self.direction();
        let [input, output] = self.blocks();
        let blocks = match phase {
            "read" => input,
            "write" => output,
            _ => input.filter(|bytes| output == Some(*bytes)),
        };
        if let Some(bytes) = blocks {
            draft.factor("block-size", bytes);
        }
        if self.block.is_none() {
            // The size that is the phase's own is told already.
            let others = [
                ("ibs", &self.input_block, "read"),
                ("obs", &self.output_block, "write"),
            ];
            for (name, told, own) in others {
                if let Some(told) = told.as_ref().filter(|_| phase != own) {
                    draft.factor(name, size(told).map_or(told.clone(), |n| n.to_string()));
                }
            }
        }
        if let Some(count) = &self.count {
            draft.setting("count", count);
        }
        let both = [&self.input_flags, &self.output_flags];
        let sides = match phase {
            "read" => &both[..1],
            "write" => &both[1..],
            _ => &both[..],
        };
        let direct = sides.iter().any(|flags| flags.contains("direct"));
        draft.factor("direct", if direct { "yes" } else { "no" });
        for (name, flags) in [("iflag", both[0]), ("oflag", both[1])] {
            let is_own = sides.iter().any(|side| std::ptr::eq(*side, flags));
            let rest = flags.iter().map(String::as_str);
            let rest: Vec<&str> = rest.filter(|flag| !is_own || *flag != "direct").collect();
            if !rest.is_empty() {
                draft.factor(name, rest.join(","));
            }
        }
        self.conversions(draft, phase);
        self.offsets(draft, phase, [input, output]);
    }

    fn conversions(&self, draft: &mut Draft, phase: &str) {
        let durable = ["fsync", "fdatasync"];
        if phase != "read" {
            let word = durable
                .into_iter()
                .find(|word| self.conversions.contains(*word));
            draft.factor("conv", word.unwrap_or("none"));
        }
        let rest = self.conversions.iter().map(String::as_str);
        let rest: Vec<&str> = rest.filter(|word| !durable.contains(word)).collect();
        if !rest.is_empty() {
            draft.factor("conversions", rest.join(","));
        }
    }

    /// Where it begins, in bytes: a number of blocks, or of bytes where a flag or suffix says so.
    fn offsets(&self, draft: &mut Draft, phase: &str, [input, output]: [Option<u64>; 2]) {
        let sides = [
            (
                &self.skip,
                input,
                &self.input_flags,
                "skip_bytes",
                "read",
                "skip",
            ),
            (
                &self.seek,
                output,
                &self.output_flags,
                "seek_bytes",
                "write",
                "seek",
            ),
        ];
        for (told, block, flags, in_bytes, own, name) in sides {
            let Some(told) = told.as_ref().filter(|told| size(told) != Some(0)) else {
                continue;
            };
            // A number that ends with B counts bytes, but only of coreutils from 9.1 on.
            let unit = match (flags.contains(in_bytes), told.ends_with('B')) {
                (true, _) => Some(1),
                (false, true) => None,
                (false, false) => block,
            };
            let bytes = size(told)
                .zip(unit)
                .and_then(|(n, unit)| n.checked_mul(unit));
            let name = if phase == own { "offset" } else { name };
            draft.factor(name, bytes.map_or(told.clone(), |bytes| bytes.to_string()));
        }
    }

    /// The phase, and what was read or written.
    pub(super) fn direction(&self) -> (&'static str, Option<&str>) {
        let input = self.input.as_deref();
        let output = self.output.as_deref();
        let made = ["/dev/zero", "/dev/urandom", "/dev/random"];
        match (input, output) {
            (Some(from), to) if made.contains(&from) && to != Some("/dev/null") => ("write", to),
            (Some(from), Some("/dev/null")) if !made.contains(&from) => ("read", Some(from)),
            _ => ("copy", output),
        }
    }
}

/// A size as dd's operands have it: `4096k`, `1M` and `1MiB` are binary, `1kB` and `1MB` decimal.
fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    let scale = match suffix {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "kB" | "KB" => 1000,
        "k" | "K" | "KiB" => KIB,
        "MB" => 1_000_000,
        // BSD's m and g are GNU's M and G.
        "M" | "m" | "MiB" => MIB,
        "GB" => 1_000_000_000,
        "G" | "g" | "GiB" => GIB,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}
