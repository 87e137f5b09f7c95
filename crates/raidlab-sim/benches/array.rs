//! What an array costs for each request to a member, over members that end each after a fixed time.
//!
//! `cargo bench -p raidlab-sim --bench array`; an argument picks the cases whose name contains it.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
mod shared;

use raidlab_core::op::BlockKind;
use raidlab_core::rng::Stream;
use raidlab_core::time::Instant as Now;
use raidlab_core::units::{Lba, Sectors};
use raidlab_layout::{Geometry, Spec};
use raidlab_sim::array::{Array, ArrayKind, ArraySpec, MemberBio};
use raidlab_sim::block::{Bio, Ended, Origin};
use shared::{Arguments, on_processor};
use std::collections::VecDeque;
use std::time::Instant;

struct Case {
    name: &'static str,
    layout: &'static str,
    members: usize,
    state: &'static str,
    failed: &'static [u16],
    read_percent: u64,
    /// Sectors of a request; sequential from 128 on.
    sectors: u32,
    depth: u64,
    xor: u64,
}

const RANDOM: Case = Case {
    name: "raid5-random-4k",
    layout: "raid5",
    members: 9,
    state: "clean",
    failed: &[],
    read_percent: 50,
    sectors: 8,
    depth: 5,
    xor: 0,
};

const CASES: &[Case] = &[
    RANDOM,
    Case {
        name: "raid5-random-4k-read",
        read_percent: 100,
        ..RANDOM
    },
    Case {
        name: "raid5-random-4k-write",
        read_percent: 0,
        ..RANDOM
    },
    Case {
        name: "raid5-random-4k-with-parity-cost",
        xor: 5_000_000_000,
        ..RANDOM
    },
    Case {
        name: "raid5-random-4k-degraded",
        state: "degraded 1",
        failed: &[3],
        ..RANDOM
    },
    Case {
        name: "raid6-random-4k",
        layout: "raid6",
        ..RANDOM
    },
    Case {
        name: "raid5-sequential-256k-write",
        read_percent: 0,
        sectors: 512,
        ..RANDOM
    },
    Case {
        name: "raid0-random-4k",
        layout: "raid0",
        ..RANDOM
    },
    Case {
        name: "raid1-random-4k",
        layout: "raid1",
        members: 2,
        ..RANDOM
    },
    Case {
        name: "raid10-random-4k",
        layout: "raid10",
        members: 8,
        ..RANDOM
    },
    Case {
        name: "raid10-nested-random-4k",
        layout: "raid10 4x2",
        members: 8,
        ..RANDOM
    },
    Case {
        name: "raid6-rebuild",
        layout: "raid6",
        members: 12,
        state: "rebuilding 1",
        failed: &[3],
        read_percent: 100,
        sectors: 8,
        depth: 0,
        xor: 0,
    },
];

/// Member requests so far.
struct Run {
    array: Array,
    wanted: Vec<MemberBio>,
    flight: VecDeque<(u64, u16, u64)>,
    asked: u64,
}

impl Run {
    fn take(&mut self, now: u64) {
        self.array.take(&mut self.wanted);
        self.asked += self.wanted.len() as u64;
        for MemberBio { member, bio } in self.wanted.drain(..) {
            self.flight.push_back((now + 100_000, member, bio.id));
        }
    }
}

fn array(case: &Case) -> Array {
    let layout: Spec = case.layout.parse().expect("a layout");
    let geometry = Geometry {
        sizes: vec![Sectors(1 << 31); case.members],
        chunk: Sectors(128),
        outer_chunk: None,
    };
    let mut spec = ArraySpec::new(ArrayKind::Md(layout.build(&geometry).expect("an array")));
    spec.state = case.state.parse().expect("a state");
    spec.failed = case.failed.to_vec();
    spec.sync_speed_max = u64::MAX;
    spec.cost.xor = case.xor;
    Array::new(&spec).expect("an array")
}

fn request(case: &Case, stream: Stream, sectors: u64, i: u64) -> Bio {
    let len = u64::from(case.sectors);
    let at = if len >= 128 {
        i * len % (sectors - len)
    } else {
        stream.below(2 * i, sectors / len) * len
    };
    let read = stream.below(2 * i + 1, 100) < case.read_percent;
    Bio {
        id: i,
        kind: if read {
            BlockKind::Read
        } else {
            BlockKind::Write
        },
        lba: Lba(at),
        sectors: case.sectors,
        fua: false,
        origin: Origin {
            task: 1,
            sync: true,
            ..Origin::default()
        },
    }
}

/// Keeps `depth` requests in flight until so many member requests have been made.
fn run(case: &Case, target: u64) -> (u64, u64) {
    let mut run = Run {
        array: array(case),
        wanted: Vec::new(),
        flight: VecDeque::new(),
        asked: 0,
    };
    let stream = Stream::new(1);
    let sectors = run.array.sectors();
    let (mut now, mut given, mut done) = (0, 0, Vec::<Ended>::new());
    let mut ends = 0;
    while given < case.depth {
        run.array
            .submit(Now(now), request(case, stream, sectors, given));
        given += 1;
    }
    run.array.unplug(Now(now));
    run.take(now);
    while run.asked < target {
        let next = run.flight.front().map_or(u64::MAX, |f| f.0);
        now = run
            .array
            .next_event()
            .map_or(next, |event| next.min(event.0))
            .max(now);
        while let Some((end, member, id)) = run.flight.front().copied() {
            if end > now {
                break;
            }
            run.flight.pop_front();
            run.array.member_ended(Now(now), member, id, Ok(()));
        }
        run.array.advance(Now(now), &mut done);
        for _ in done.drain(..) {
            ends += 1;
            run.array
                .submit(Now(now), request(case, stream, sectors, given));
            given += 1;
        }
        run.array.unplug(Now(now));
        run.take(now);
    }
    (run.asked, ends)
}

fn main() {
    let arguments = Arguments::read();
    println!(
        "{:36} {:>12} {:>12} {:>10}",
        "case", "member ops/s", "requests/s", "ns/op"
    );
    for case in CASES {
        if !arguments.want(case.name) {
            continue;
        }
        run(case, 100_000);
        let begin = Instant::now();
        let before = on_processor(begin);
        let (asked, ends) = run(case, 8_000_000);
        let seconds = on_processor(begin) - before;
        println!(
            "{:36} {:>10.2} M {:>10.2} M {:>10.1}",
            case.name,
            asked as f64 / seconds / 1e6,
            ends as f64 / seconds / 1e6,
            seconds * 1e9 / asked as f64
        );
    }
}
