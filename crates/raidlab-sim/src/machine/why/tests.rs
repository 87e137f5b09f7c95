use super::*;
use crate::block::Way;

fn busy(name: &str, kind: ResourceKind, units: u32, ms: u64) -> Busy {
    Busy {
        name: name.to_owned(),
        kind,
        units,
        busy: Span::from_millis(ms),
        parts: Vec::new(),
        way: None,
    }
}

fn disk(name: &str, ms: u64, seek: u64) -> Busy {
    Busy {
        parts: vec![
            ("transfer", Span::from_millis(ms - seek)),
            ("seek", Span::from_millis(seek)),
        ],
        ..busy(name, ResourceKind::Disk, 1, ms)
    }
}

/// The sentence for one second in which things were busy for so many milliseconds.
fn second(busy: Vec<Busy>, in_flight: f64, moved: u64) -> String {
    let account = Account {
        at: Instant(1_000_000_000),
        busy,
        moved,
        ..Account::default()
    };
    let load = Load {
        in_flight,
        open: false,
    };
    Why::between(&Account::default(), &account, load).sentence
}

#[test]
fn a_volume_that_takes_one_command_at_a_time_is_named_when_nothing_below_is_busy() {
    let volume = Busy {
        parts: vec![
            ("in the firmware", Span::from_millis(600)),
            ("on the disks", Span::from_millis(390)),
        ],
        ..busy("volume of card", ResourceKind::Volume, 1, 990)
    };
    let told = second(vec![disk("disk0", 500, 0), volume.clone()], 1.0, 0);
    assert_eq!(
        told,
        "volume of card takes one command at a time, and one is in service 99 % of the time, of that 61 % in the firmware"
    );
    let told = second(vec![disk("disk0", 980, 0), volume], 1.0, 0);
    assert!(told.starts_with("disk0 is 98 % busy"), "{told}");
}

#[test]
fn the_busiest_thing_is_named_with_what_it_does() {
    let channel = |ms| busy("channel 0 of card", ResourceKind::Channel, 1, ms);
    let cpu = busy("CPU", ResourceKind::Cpu, 1, 300);
    assert_eq!(
        second(
            vec![
                disk("disk0", 510, 0),
                disk("disk1", 490, 0),
                channel(970),
                cpu.clone()
            ],
            1.0,
            0
        ),
        "channel 0 of card is 97 % busy"
    );
}

/// The share of a channel has in it what its data and the waits of others take, and not what it is held for by its only disk. Of a channel
/// that was busy all the time nothing was told when its disk was 97 % busy.
#[test]
fn what_is_busy_all_the_time_is_told_however_busy_the_disks_are() {
    let told = |disk_ms, channel_ms| {
        let channel = busy("channel 0 of card", ResourceKind::Channel, 1, channel_ms);
        let cpu = busy("CPU", ResourceKind::Cpu, 1, 300);
        second(vec![disk("disk1", disk_ms, disk_ms), channel, cpu], 1.0, 0)
    };
    let both = [(971, 1000), (985, 1000), (1000, 1000), (1000, 985)].map(|(d, c)| told(d, c));
    assert_eq!(
        both,
        [
            "channel 0 of card is 100 % busy; disk1 is 97 % busy",
            "channel 0 of card is 100 % busy; disk1 is 99 % busy",
            "disk1 is 100 % busy; channel 0 of card is 100 % busy",
            "disk1 is 100 % busy; channel 0 of card is 99 % busy",
        ]
    );
    assert_eq!(told(960, 1000), "channel 0 of card is 100 % busy");
    assert_eq!(told(1000, 960), "disk1 is 100 % busy");
    // Below what is told of anything else, too.
    assert_eq!(
        told(790, 800),
        "disk1 is 79 % busy; channel 0 of card is 80 % busy"
    );
}

/// Three at a time.
#[test]
fn all_that_is_within_the_tie_is_told() {
    let all = vec![
        disk("disk0", 980, 0),
        busy("link of disk0", ResourceKind::Channel, 1, 1000),
        busy("pci", ResourceKind::Bus, 1, 990),
        busy("CPU", ResourceKind::Cpu, 1, 1000),
        busy("thread of md", ResourceKind::Thread, 1, 1000),
    ];
    assert_eq!(
        second(all, 1.0, 133_000_000),
        "link of disk0 is 100 % busy; the CPU is 100 % busy; thread of md is 100 % busy; the pci moves 133 MB/s, its limit: it is 99 % \
         busy; disk0 is 98 % busy"
    );
}

#[test]
fn things_that_are_alike_are_told_together() {
    let disks = |ms: &[u64]| -> Vec<Busy> {
        let each = ms.iter().enumerate();
        each.map(|(i, ms)| disk(&format!("disk{i}"), *ms, ms / 5))
            .collect()
    };
    let of = |ms: &[u64]| second(disks(ms), 4.0, 0);
    assert_eq!(
        of(&[930, 940, 950, 945]),
        "all four disks are 93-95 % busy, of that 80 % transferring"
    );
    assert_eq!(
        of(&[950, 950]),
        "both disks are 95 % busy, of that 80 % transferring"
    );
    assert_eq!(
        of(&[950, 950, 10]),
        "disk0 and disk1 are 95 % busy, of that 80 % transferring"
    );
    assert_eq!(
        of(&[950, 950, 930, 10]),
        "3 of 4 disks are 93-95 % busy, of that 80 % transferring"
    );
}

#[test]
fn waiting_is_told_apart_from_work() {
    let disks = vec![
        disk("disk0", 620, 300),
        busy("CPU", ResourceKind::Cpu, 1, 100),
    ];
    assert_eq!(
        second(disks.clone(), 1.0, 0),
        "nothing is busy above 70 % (disk0 most, 62 %): each request waits for the one before"
    );
    // A mirror that is read by one, now here and now there.
    let mirror = vec![disk("disk0", 520, 52), disk("disk1", 470, 47)];
    assert_eq!(
        second(mirror.clone(), 1.0, 0),
        "nothing is busy above 70 % (disk0 most, 52 %), the disks together as much as one that is 99 % busy, of that 90 % transferring: \
         each request waits for the one before"
    );
    // A stream that goes from one disk of a linear array to the next, however many of its requests are in flight.
    assert_eq!(
        second(mirror, 8.0, 0),
        "nothing is busy above 70 % (disk0 most, 52 %), the disks together as much as one that is 99 % busy, of that 90 % transferring: \
         the 8 requests in flight are on one of them at a time"
    );
    let idle = vec![disk("disk0", 480, 52), disk("disk1", 470, 47)];
    assert_eq!(
        second(idle, 3.0, 0),
        "nothing is busy above 70 % (disk0 most, 48 %): the 3 requests in flight do not keep more of it at work"
    );
    assert_eq!(
        second(disks.clone(), 5.0, 0),
        "nothing is busy above 70 % (disk0 most, 62 %): the 5 requests in flight do not keep more of it at work"
    );
    assert_eq!(
        second(Vec::new(), 1.0, 0),
        "nothing is busy above 70 %: each request waits for the one before"
    );
}

#[test]
fn processors_and_controllers_have_words_of_their_own() {
    let cpu = |units, ms| busy("CPU", ResourceKind::Cpu, units, ms);
    assert_eq!(second(vec![cpu(1, 1000)], 1.0, 0), "the CPU is 100 % busy");
    assert_eq!(
        second(vec![cpu(4, 1000)], 1.0, 0),
        "the CPU is 100 % busy as far as this load can use its 4 cores"
    );
    assert_eq!(
        second(vec![cpu(4, 1000)], 4.0, 0),
        "nothing is busy above 70 % (the CPU most, 25 %): the 4 requests in flight do not keep more of it at work"
    );
    // The list of shares has 5 % for it.
    assert_eq!(
        second(vec![cpu(8, 400)], 1.0, 0),
        "nothing is busy above 70 % (the CPU most, 40 % as far as this load can use its 8 cores): each request waits for the one before"
    );
    let card = busy("way of reads of card", ResourceKind::Controller, 1, 990);
    assert_eq!(
        second(
            vec![card, disk("disk0", 500, 0), cpu(1, 950)],
            1.0,
            57_300_000
        ),
        "the way of reads of card moves 57 MB/s, its limit: it is 99 % busy; the CPU is 95 % busy"
    );
    let card = busy("way of reads of card", ResourceKind::Controller, 1, 750);
    assert_eq!(
        second(vec![card], 1.0, 57_300_000),
        "the way of reads of card moves 57 MB/s: it is 75 % busy"
    );
    let memory = busy("memory of card", ResourceKind::Controller, 1, 980);
    let both = vec![
        busy("processor of card", ResourceKind::Controller, 1, 200),
        memory,
    ];
    assert_eq!(second(both, 1.0, 0), "the memory of card is 98 % busy");
}

#[test]
fn only_the_time_between_the_accounts_counts() {
    let at = |s: u64, ms, seek| Account {
        at: Instant(s * 1_000_000_000),
        busy: vec![disk("disk0", ms, seek)],
        moved: 0,
        ..Account::default()
    };
    let why = Why::between(&at(1, 1000, 1000), &at(3, 2500, 1000), Load::default());
    let share = why.busiest().unwrap();
    assert!((share.busy - 0.75).abs() < 1e-12);
    assert_eq!(share.parts, [("transfer", 1.0)]);
    // No time between them: no share.
    let none = Why::between(&at(1, 1000, 0), &at(1, 1000, 0), Load::default());
    assert_eq!(none.shares[0].busy.to_bits(), 0);
}

/// Disks that a rebuild keeps busy were told to be the limit of the load beside it, as if they had nothing else to do.
#[test]
fn what_a_rebuild_moves_beside_a_load_is_told() {
    let told = |refilled: u64, load| {
        let account = Account {
            at: Instant(2_000_000_000),
            busy: vec![disk("disk0", 1980, 1500)],
            moved: 20_000_000,
            refilled,
            refill: Refill::Rebuild,
            ..Account::default()
        };
        Why::between(&Account::default(), &account, load).sentence
    };
    let deep = Load {
        in_flight: 16.0,
        open: false,
    };
    let seeks = "disk0 is 99 % busy, of that 76 % seeking";
    assert_eq!(
        told(16_000_000, deep),
        format!("{seeks}; 8.0 of the 10.0 MB/s that the disks move are the rebuild's")
    );
    // What is asked for at the end has not been moved.
    assert!(told(20_500_000, deep).contains("; 10 of the 10 MB/s"));
    assert_eq!(told(0, deep), seeks);
    assert_eq!(told(200_000, deep), seeks);
    // By itself it is what the sentence is about.
    assert_eq!(told(20_000_000, Load::default()), seeks);
}

/// Small calls that the buffer serves keep neither arm nor cable busy, and a cable of a disk's own is a limit like any.
#[test]
fn what_takes_a_disks_commands_is_a_limit_of_its_own() {
    let commands = |name, ms| busy(name, ResourceKind::Electronics, 1, ms);
    let told = |busy| second(busy, 8.0, 0);
    assert_eq!(
        told(vec![disk("disk0", 420, 0), commands("disk0", 1000)]),
        "disk0 is 100 % busy taking commands"
    );
    assert_eq!(
        told(vec![commands("disk0", 990), commands("disk1", 980)]),
        "both disks are 98-99 % busy taking commands"
    );
    assert_eq!(
        told(vec![disk("disk0", 990, 900), commands("disk0", 1000)]),
        "disk0 is 99 % busy, of that 91 % seeking, and 100 % busy taking commands: about the same, and either may be the limit"
    );
    // Clearly behind, it is none.
    assert_eq!(
        told(vec![disk("disk0", 1000, 900), commands("disk0", 920)]),
        "disk0 is 100 % busy, of that 90 % seeking"
    );
    assert_eq!(
        told(vec![disk("disk0", 100, 0), commands("disk0", 250)]),
        "nothing is busy above 70 % (the commands of disk0 most, 25 %): the 8 requests in flight do not keep more \
         of it at work"
    );
    let link = busy("link of disk0", ResourceKind::Channel, 1, 970);
    assert_eq!(
        told(vec![disk("disk0", 300, 0), commands("disk0", 90), link]),
        "link of disk0 is 97 % busy"
    );
}

#[test]
fn of_what_goes_both_ways_at_a_time_the_busier_way_is_told() {
    let link = |way: Way, ms| Busy {
        way: Some(way),
        ..busy("link of disk0", ResourceKind::Channel, 1, ms)
    };
    for (reads, writes) in [(970, 300), (300, 970)] {
        let account = Account {
            at: Instant(1_000_000_000),
            busy: vec![link(Way::Reads, reads), link(Way::Writes, writes)],
            moved: 0,
            ..Account::default()
        };
        let why = Why::between(&Account::default(), &account, Load::default());
        assert_eq!(why.sentence, "link of disk0 is 97 % busy");
        assert_eq!(why.shares.len(), 1);
    }
}

/// Nothing keeps disks from more than the memory takes that their data go to.
#[test]
fn what_memory_could_not_take_is_told() {
    let told = |moved| {
        let account = Account {
            at: Instant(1_000_000_000),
            busy: vec![busy("CPU", ResourceKind::Cpu, 1, 950)],
            moved,
            memory: 51_200_000_000,
            ..Account::default()
        };
        Why::between(&Account::default(), &account, Load::default()).sentence
    };
    assert_eq!(told(51_000_000_000), "the CPU is 95 % busy");
    assert_eq!(
        told(165_000_000_000),
        "the CPU is 95 % busy; the disks move 165 GB/s, and memory of this class 51, which is no limit here: no such computer does this"
    );
}

/// Four readers of a degraded array wait for pages that were read ahead in vain.
#[test]
fn read_ahead_that_the_stripe_cache_refuses_is_told() {
    let told = |refused| {
        let account = Account {
            at: Instant(1_000_000_000),
            busy: vec![disk("disk0", 950, 0)],
            moved: 1 << 30,
            refused,
            ..Account::default()
        };
        Why::between(&Account::default(), &account, Load::default()).sentence
    };
    assert!(!told(1 << 20).contains("stripe cache"));
    let much = told(1 << 29);
    assert!(
        much.starts_with("disk0 is 95 % busy")
            && much.contains("; the stripe cache had no room for much of the read-ahead"),
        "{much}"
    );
}

/// One reader of a mirror of btrfs.
#[test]
fn copies_that_nobody_reads_are_told() {
    let told = |apart: &[u64], moved| {
        let account = Account {
            at: Instant(1_000_000_000),
            busy: vec![disk("disk0", 950, 0)],
            moved,
            apart: apart.to_vec(),
            ..Account::default()
        };
        Why::between(&Account::default(), &account, Load::default()).sentence
    };
    let told_of = |apart: &[u64], moved| told(apart, moved).contains("btrfs");
    assert!(told(&[1 << 30, 1 << 20], 1 << 30).ends_with(
        "; btrfs has each process read one of two copies, and the disks of the others, 1 of 2, read next to nothing"
    ));
    assert!(!told_of(&[1 << 30, 1 << 29], 3 << 29));
    assert!(!told_of(&[1 << 20, 0], 1 << 30), "it is written");
    assert!(
        !told_of(&[1 << 30, 0, 0, 0], 1 << 30),
        "it is little that is read"
    );
    assert!(!told_of(&[], 1 << 30));
}
