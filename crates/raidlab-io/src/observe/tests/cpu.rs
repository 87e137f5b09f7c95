use proptest::prelude::*;

use super::*;

const STAT: &str =
    "cpu  2170 10 781 95929 205 3 19 40 7 0\ncpu0 784 0 278 48464 10 0 4 0 0 0\nintr 5 0\nctxt 1\n";

#[test]
fn reads_system_ticks() {
    let ticks = parse_proc_stat(STAT).unwrap();
    assert_eq!(
        (ticks.user, ticks.nice, ticks.system, ticks.idle),
        (2170, 10, 781, 95929)
    );
    assert_eq!(
        (ticks.io_wait, ticks.irq, ticks.soft_irq, ticks.steal),
        (205, 3, 19, 40)
    );
    assert_eq!(
        (ticks.busy(), ticks.interrupts()),
        (2170 + 10 + 781 + 22, 22)
    );
    assert_eq!(ticks.total(), ticks.busy() + 95929 + 205 + 40);
    assert!(
        parse_proc_stat("cpu 1 2 3\n")
            .unwrap_err()
            .to_string()
            .contains("line 1: fewer than 4")
    );
    assert!(
        parse_proc_stat("x\ncpu 1 2 3 q\n")
            .unwrap_err()
            .to_string()
            .contains("line 2: `q`")
    );
    assert!(
        parse_proc_stat("")
            .unwrap_err()
            .to_string()
            .contains("no line `cpu`")
    );
}

#[test]
fn reads_tasks_with_odd_names() {
    let rest = "S 0 0 0 0 -1 2129984 0 0 0 0 11 22 0 0 20 0 1 0 888 0 0";
    let kernel = parse_task_stat(&format!("2 (kthreadd) {rest}")).unwrap();
    assert_eq!(
        (kernel.flags & PF_KTHREAD, kernel.ticks(), kernel.start),
        (PF_KTHREAD, 33, 888)
    );
    assert_eq!(
        parse_task_stat(&format!("7 (a) b (c)) {rest}"))
            .unwrap()
            .name,
        "a) b (c)"
    );
    for bad in ["", "2 (x", "2 x) S", "2 (x) S 1 2", ")("] {
        assert_eq!(parse_task_stat(bad), None, "{bad}");
    }
}

#[test]
fn kernel_threads_are_grouped_by_their_work() {
    for (name, group) in [
        ("md127_raid5", "md_raid5"),
        ("md0_resync", "md_resync"),
        ("kworker/u8:2-events_unbound", "kworker"),
        ("kworker/0:1H", "kworker"),
        ("jbd2/vda-8", "jbd2"),
        ("z_wr_iss_3", "z_wr_iss"),
        ("z_rd_int", "z_rd_int"),
        ("loop0", "loop"),
        ("ksoftirqd/1", "ksoftirqd"),
        ("btrfs-cleaner", "btrfs-cleaner"),
        ("kswapd0", "kswapd"),
        ("dmcrypt_write/253:0", "dmcrypt_write"),
        ("mdadm", "mdadm"),
        ("kdamond.0", "kdamond"),
        ("/x", "x"),
        ("/", "/"),
        ("42", "42"),
        ("md_x", "md_x"),
    ] {
        assert_eq!(group_name(name), group);
    }
}

#[test]
fn reads_pressure_and_io() {
    let text = "some avg10=0.03 avg60=0.15 avg300=0.25 total=2901521\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    let pressure = parse_pressure(text).unwrap();
    assert_eq!(pressure.some.total, Duration::from_micros(2_901_521));
    assert_eq!(pressure.full.unwrap().total, Duration::from_micros(7));
    assert_eq!(parse_pressure("some avg10=0 total=1\n").unwrap().full, None);
    assert_eq!(parse_pressure("some avg10=0\n"), None);
    let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
    let io = parse_proc_io(io).unwrap();
    assert_eq!(
        (io.read_chars, io.written_bytes, io.cancelled_bytes),
        (1, 6, 7)
    );
    assert_eq!(parse_proc_io("rchar: 1\n"), None);
}

fn snapshot(taken: Instant, stat: &str) -> CpuSnapshot {
    CpuSnapshot {
        taken,
        own: OwnCpu::default(),
        threads: BTreeMap::new(),
        kernel: BTreeMap::new(),
        system: parse_proc_stat(stat).unwrap(),
        cpu_pressure: parse_pressure("some total=0\n"),
        io_pressure: None,
        io: None,
        throttled: None,
    }
}

#[test]
fn foreign_is_busy_less_interrupts_own_and_kernel_threads() {
    let start = Instant::now();
    let before = snapshot(start, "cpu 0 0 0 0 0 0 0 0\n");
    let mut after = snapshot(
        start + Duration::from_secs(2),
        "cpu 100 0 100 180 10 5 5 8\n",
    );
    after.own = OwnCpu {
        user: Duration::from_millis(500),
        system: Duration::from_millis(300),
    };
    after.kernel = [
        ((5, 1), ("md0_raid5".to_owned(), Duration::from_millis(400))),
        ((6, 1), ("md1_raid5".to_owned(), Duration::from_millis(100))),
        ((7, 1), ("kworker/0:0".to_owned(), Duration::ZERO)),
    ]
    .into();
    after.cpu_pressure = parse_pressure("some total=200000\n");
    let used = after.since(&before);
    // The tick is 10 ms wherever Linux shows one: 2.0 s of user and system.
    assert_eq!(used.busy, Duration::from_millis(2100));
    assert_eq!(used.foreign, Duration::from_millis(2000 - 800 - 500));
    assert_eq!(used.foreign_cpus(), Some(0.35));
    assert_eq!(
        used.kernel,
        [("md_raid5".to_owned(), Duration::from_millis(500))].into()
    );
    assert!((used.steal_share().unwrap() - 8.0 / 408.0).abs() < 1e-12);
    assert_eq!(
        used.cpu_pressure,
        Some(PressureShare {
            some: 0.1,
            full: None
        })
    );
    assert_eq!(used.io_pressure, None);
}

#[test]
fn a_new_kernel_thread_with_an_old_pid_counts_from_its_start() {
    let start = Instant::now();
    let mut before = snapshot(start, "cpu 0 0 0 0\n");
    let mut after = snapshot(start, "cpu 0 0 0 0\n");
    before.kernel = [((5, 1), ("md0_raid5".to_owned(), Duration::from_secs(9)))].into();
    after.kernel = [((5, 99), ("md0_raid6".to_owned(), Duration::from_secs(1)))].into();
    assert_eq!(
        after.since(&before).kernel,
        [("md_raid6".to_owned(), Duration::from_secs(1))].into()
    );
    assert_eq!(
        after.since(&before).foreign_cpus(),
        None,
        "no time has passed"
    );
}

#[test]
fn the_own_work_is_seen_and_is_not_foreign() {
    let roots = Roots::system();
    let before = CpuSnapshot::take(&roots).unwrap();
    let own = OwnCpu::of_this_thread();
    // Work until the scheduler has seen it, whatever the machine's speed.
    let mut x = 1u64;
    while OwnCpu::of_this_thread().since(&own).total() < Duration::from_millis(30) {
        x = std::hint::black_box(x.wrapping_mul(6364136223846793005));
    }
    let used = CpuSnapshot::take(&roots).unwrap().since(&before);
    assert!(used.own.total() >= Duration::from_millis(30), "{used:?}");
    assert!(
        used.busiest_thread().unwrap().cpu >= Duration::from_millis(29),
        "{used:?}"
    );
}

proptest! {
    #[test]
    fn never_panics(text in "[a-z0-9:()= \n_/-]{0,200}") {
        let _ = parse_proc_stat(&text);
        let _ = parse_task_stat(&text);
        let _ = parse_pressure(&text);
        let _ = parse_proc_io(&text);
        prop_assert_eq!(text.is_empty(), group_name(&text).is_empty());
    }

    #[test]
    fn huge_ticks_do_not_overflow(values in proptest::collection::vec(any::<u64>(), 8)) {
        let line = format!("cpu {}\n", values.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
        let start = Instant::now();
        let before = snapshot(start, "cpu 0 0 0 0\n");
        let _ = snapshot(start + Duration::from_secs(1), &line).since(&before);
    }
}
