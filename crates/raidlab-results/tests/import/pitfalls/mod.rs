//! One test a pitfall: where an importer that takes the output at its word goes wrong.
mod bonnie;
mod dd;
mod encodings;
mod fio;
mod fio_reports;
mod fio_versions;
mod hdparm;
mod margins;
mod others;
mod tiobench;
mod tiotest;

use crate::{figure, phase, rate, refused, taken, text_of};
use raidlab_core::flag::FlagKind;
use raidlab_results::import::{Format, Source, Wanted, import};
use raidlab_results::record::{Status, Unit};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

#[track_caller]
fn same(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
}
