//! CSV lines: 27 fields from 1.03, 48 from 1.9x, 50 from 1.98 and 2.00 (whose printed header has 48
//! names: the number of seeks and of seekers are not in it).
//!
//! There is no quoting, so a line is its fields split at commas, and a comma in the machine name
//! makes more of them: they are counted from the end then.
use super::row::{
    FIRST_OF_FILES, Files, Origin, PHASES, Rate, Row, Size, cpu, files, is_1_9x, latency, paired,
    plain_rate, size,
};
use crate::import::draft::Harvest;
use crate::import::error::Fault;
use crate::import::format::is_bonnie_row;
use crate::import::scan::{parse_part, whole};
use crate::import::text::{Line, quoted};
use winnow::Parser as _;

/// Where the fields are, counted as if the machine name had no comma.
struct Shape {
    fields: usize,
    name: usize,
    size: usize,
    /// Chunk (`None`: in the size field), seeks and seekers, when they have fields.
    chunk: Option<usize>,
    seeks: Option<usize>,
    io: usize,
    files: usize,
    file_rates: usize,
    latencies: Option<usize>,
}

const SHAPE_1_03: Shape = Shape {
    fields: 27,
    name: 0,
    size: 1,
    chunk: None,
    seeks: None,
    io: 2,
    files: 14,
    file_rates: 15,
    latencies: None,
};

const SHAPE_1_9X: Shape = Shape {
    fields: 48,
    name: 2,
    size: 5,
    chunk: Some(6),
    seeks: None,
    io: 7,
    files: 19,
    file_rates: 24,
    latencies: Some(36),
};

const SHAPE_1_98: Shape = Shape {
    fields: 50,
    name: 2,
    size: 5,
    chunk: Some(6),
    seeks: Some(7),
    io: 9,
    files: 21,
    file_rates: 26,
    latencies: Some(38),
};

pub(super) fn is_header(line: &str) -> bool {
    line.starts_with("name,file_size,putc,") || line.starts_with("format_version,bonnie_version,")
}

pub(super) fn is_row(line: &str) -> bool {
    let begins_as_one = line.starts_with("1.9") && line.contains(',');
    is_bonnie_row(line) || begins_as_one || line.matches(',').count() >= 19
}

pub(super) fn row(line: Line<'_>, harvest: &mut Harvest) -> Result<Row, Fault> {
    let fields: Vec<&str> = line.text.split(',').collect();
    let shape = match fields[0] {
        "1.98" => &SHAPE_1_98,
        version if is_1_9x(version) => &SHAPE_1_9X,
        version if version.starts_with("1.9") || version.starts_with("2.") => {
            return Err(line
                .fault(0, format!("CSV format {}", quoted(version)))
                .expected("format 1.93 to 1.98, or the 27 fields of version 1.03"));
        }
        _ => &SHAPE_1_03,
    };
    let Some(extra) = fields.len().checked_sub(shape.fields) else {
        return Err(line
            .cut(format!("{} fields", fields.len()))
            .expected(format!("{} fields", shape.fields)));
    };
    let name = fields[shape.name..=shape.name + extra].join(",");
    // A name that swallowed fields of another kind would be damage, not a comma.
    let has_size =
        fields[shape.size + extra].is_empty() || size.parse(fields[shape.size + extra]).is_ok();
    if !has_size || name.len() > 255 {
        return Err(line
            .fault_at(fields[shape.size], format!("{} fields", fields.len()))
            .expected(format!("{} fields with a size such as 2G", shape.fields)));
    }
    if extra > 0 {
        harvest.remark(
            line.number,
            format!(
                "a comma in the machine name: {} is taken whole",
                quoted(&name)
            ),
        );
    }
    let field = |i: usize| fields[if i > shape.name { i + extra } else { i }];
    let mut row = Row::new(Origin::Csv, line.number, "1.03");
    row.name = name;
    row.printed = None;
    if shape.name == 2 {
        row.version = field(1).to_owned();
        row.printed = Some(row.version.clone());
        row.seed = optional(line, field(4), "the seed")?;
        // The seed is the time of the start unless it was given.
        row.identity = Some(line.text.to_owned());
    }
    row.size = read_size(line, shape, &field, harvest)?;
    row.files = read_files(line, shape, &field)?;
    read_phases(line, shape, &field, &mut row)?;
    Ok(row)
}

fn optional(line: Line<'_>, cell: &str, what: &str) -> Result<Option<u64>, Fault> {
    if cell.is_empty() {
        Ok(None)
    } else {
        whole(line, cell, what).map(Some)
    }
}

fn read_size<'a>(
    line: Line<'a>,
    shape: &Shape,
    field: &impl Fn(usize) -> &'a str,
    harvest: &mut Harvest,
) -> Result<Option<Size>, Fault> {
    let cell = field(shape.size);
    if cell.is_empty() {
        return Ok(None);
    }
    let mut told = parse_part(line, cell, "a size such as 1G or 512M:64k", size)?;
    if let Some(chunk) = shape.chunk.map(field).filter(|c| !c.is_empty()) {
        let chunk_of = |cell: &str| {
            size.parse(&*format!("0G:{cell}"))
                .ok()
                .and_then(|s| s.chunk)
        };
        told.chunk = Some(chunk_of(chunk).ok_or_else(|| {
            line.fault_at(chunk, quoted(chunk))
                .expected("a chunk size such as 64k")
        })?);
    }
    if let Some(at) = shape.seeks {
        told.concurrency = optional(line, field(3), "the concurrency")?;
        told.seeks = optional(line, field(at), "the number of seeks")?;
        told.seekers = optional(line, field(at + 1), "the number of seekers")?;
        if told.chunk.is_none() {
            harvest.remark_once(
                "bonnie++ 1.98 to 2.00 leaves the chunk size out of its CSV line even when it is \
                 not the default: block-size is set only where the table tells it",
            );
        }
    }
    Ok(Some(told))
}

fn read_files<'a>(
    line: Line<'a>,
    shape: &Shape,
    field: &impl Fn(usize) -> &'a str,
) -> Result<Option<Files>, Fault> {
    let cell = field(shape.files);
    if cell.is_empty() {
        return Ok(None);
    }
    let mut told = parse_part(
        line,
        cell,
        "a number of files such as 16 or 64:1024:128/4",
        files,
    )?;
    if shape.latencies.is_none() {
        return Ok(Some(told));
    }
    let largest = field(shape.files + 1);
    if !largest.is_empty() {
        if !matches!(largest, "link" | "symlink") {
            whole(line, largest, "the largest file size")?;
        }
        told.largest = Some(largest.to_owned());
    }
    told.smallest = optional(line, field(shape.files + 2), "the smallest file size")?;
    // 1.98 and later print the directories in the last of the two fields, its header says the first.
    let [a, b] = [field(shape.files + 3), field(shape.files + 4)];
    let directories = if shape.seeks.is_some() { b } else { a };
    told.directories = optional(line, directories, "the number of directories")?;
    Ok(Some(told))
}

fn read_phases<'a>(
    line: Line<'a>,
    shape: &Shape,
    field: &impl Fn(usize) -> &'a str,
    row: &mut Row,
) -> Result<(), Fault> {
    for i in 0..PHASES.len() {
        let at = if i < FIRST_OF_FILES {
            shape.io + 2 * i
        } else {
            shape.file_rates + 2 * (i - FIRST_OF_FILES)
        };
        let (rate, percent) = (field(at), field(at + 1));
        let measured = &mut row.phases[i];
        measured.rate = plain_rate(line, rate, i)?;
        measured.cpu_percent = cpu(line, percent)?;
        paired(line, (rate, measured.rate), percent)?;
        if let Some(from) = shape.latencies {
            let told = latency(line, field(from + i))?;
            // 2.00 prints a latency of phases it did not run as empty; of others always.
            measured.latency_max = told.filter(|_| measured.rate != Rate::Skipped);
        }
    }
    Ok(())
}
