//! What is written back, and when.
use super::*;

/// A file of 512 MiB that is written over anywhere in calls of 8 KiB, with as much memory. A guest with Linux 6.1 on such a disk has
/// 12 to 14 MiB/s. While the flusher sent off in requests of 8 KiB as much as the queue takes in large ones, 55 MiB, it went over
/// the file with half as many dirty pages on its way, at 9.0.
#[test]
fn what_becomes_dirty_while_the_flusher_sleeps_is_found_on_its_way() {
    let text = r#"
title = "Written over"
disks = { model = "ST3250624AS", count = 1 }
filesystem = "ext4"
profile = { name = "random", size = "512MiB", block = "8KiB", read-percent = 0, total = "256MiB", direct = false }
array = { layout = "single", member-size = "4GiB" }
host = { memory = "512MiB", kernel = "6.1" }
"#;
    let experiment = experiment(text);
    let mut machine = machine(&experiment, &experiment.cells[0]);
    let outcome = &run(&mut machine)[0].outcome;
    let rate = 256.0 / outcome.elapsed.as_secs_f64();
    assert!((11.0..17.5).contains(&rate), "{rate:.1} MiB/s");
}
