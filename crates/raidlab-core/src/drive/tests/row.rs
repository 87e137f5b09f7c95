//! Calls made in a row against the same ones made turn by turn.
use super::*;
use crate::op::FileOp;
use proptest::prelude::*;

/// What a call comes to.
#[derive(Clone, Copy, Debug)]
struct Answer {
    service: Span,
    result: Result<u32, Errno>,
}

/// Answers one call after the other; one that it would not take yet it takes the second time.
struct Answers {
    now: Instant,
    left: Vec<Answer>,
    running: Option<(Instant, Tag, Result<u32, Errno>)>,
}

impl Target for Answers {
    fn limits(&self) -> Limits {
        Limits {
            max_in_flight: 4,
            alignment: 512,
            size: 1 << 30,
        }
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, tag: Tag, _: Op) -> Result<(), TargetError> {
        assert!(self.running.is_none(), "two calls at once");
        let answer = self.left.pop().expect("an answer for each call");
        self.running = Some((self.now + answer.service, tag, answer.result));
        Ok(())
    }

    fn again(&mut self, tag: Tag, _: Op) -> Result<bool, TargetError> {
        self.running = Some((self.now + Span::from_micros(7), tag, Ok(512)));
        Ok(true)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let until = until.unwrap_or(Instant(u64::MAX));
        match self.running {
            Some((at, tag, result)) if at <= until => {
                self.running = None;
                self.now = at;
                done.push(Completion { tag, result, at });
            }
            _ => self.now = self.now.max(until),
        }
        Ok(())
    }
}

/// One call after the other, some of them after a while or not counted.
struct Calls {
    serial: bool,
    busy: bool,
    count: u64,
    issued: u64,
    records: Vec<OpRecord>,
}

impl Workload for Calls {
    fn next(&mut self, now: Instant) -> Next {
        if self.busy {
            return Next::Idle { until: None };
        }
        if self.issued == self.count {
            return Next::Done;
        }
        let due = Instant(self.issued / 7 * 400_000);
        if due > now {
            return Next::Idle { until: Some(due) };
        }
        (self.busy, self.issued) = (true, self.issued + 1);
        Next::Issue {
            op: Op::File(FileOp::Read {
                file: 0,
                len: 512,
                offset: self.issued * 512,
            }),
            intended: self.issued.is_multiple_of(7).then_some(due),
            counted: !self.issued.is_multiple_of(3),
        }
    }

    fn completed(&mut self, record: &OpRecord) {
        self.busy = false;
        self.records.push(*record);
    }

    fn is_serial(&self) -> bool {
        self.serial
    }
}

/// All that can be seen of a drive.
fn seen(answers: &[Answer], ramp: Span, polls: usize, serial: bool) -> String {
    let workload = Calls {
        serial,
        busy: false,
        count: answers.len() as u64,
        issued: 0,
        records: Vec::new(),
    };
    let mut lanes = [Lane { workload, depth: 3 }];
    let mut target = Answers {
        now: Instant(5),
        left: answers.iter().rev().copied().collect(),
        running: None,
    };
    let options = DriveOptions {
        ramp,
        stall: Span::from_millis(20),
        poll: Span::from_micros(300),
    };
    let mut asked = Vec::new();
    let driven = drive(&mut lanes, &mut target, &options, &mut |progress| {
        asked.push(progress);
        match asked.len() > polls {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let records = &lanes[0].workload.records;
    format!("{driven:#?} {records:#?} {asked:#?} {:?}", target.now)
}

fn answer() -> impl Strategy<Value = Answer> {
    let service = prop_oneof![20 => 0_u64..60_000, 1 => 0_u64..3_000_000, 1 => Just(30_000_000)];
    let result = prop_oneof![
        120 => Just(Ok(512)),
        8 => Just(Err(Errno::AGAIN)),
        1 => Just(Ok(511)),
        1 => Just(Err(Errno(5))),
    ];
    (service, result).prop_map(|(service, result)| Answer {
        service: Span(service),
        result,
    })
}

proptest! {
    /// Same tallies, records, moments of asking the monitor, end and error.
    #[test]
    fn calls_in_a_row_come_to_what_they_come_to_turn_by_turn(
        answers in prop::collection::vec(answer(), 0..120),
        ramp in prop_oneof![Just(0), 0_u64..3_000_000],
        polls in prop_oneof![3 => Just(usize::MAX), 1 => 0_usize..8],
    ) {
        let by_turns = seen(&answers, Span(ramp), polls, false);
        prop_assert_eq!(by_turns, seen(&answers, Span(ramp), polls, true));
    }
}

/// A target that may leap is looked at after each operation, so that nothing is made in a row.
#[test]
fn what_may_be_leapt_over_is_not_made_in_a_row() {
    struct Leaping(Answers, u32);
    impl Target for Leaping {
        fn limits(&self) -> Limits {
            self.0.limits()
        }
        fn now(&self) -> Instant {
            self.0.now()
        }
        fn submit(&mut self, tag: Tag, op: Op) -> Result<(), TargetError> {
            self.0.submit(tag, op)
        }
        fn wait(
            &mut self,
            until: Option<Instant>,
            done: &mut Vec<Completion>,
        ) -> Result<(), TargetError> {
            self.0.wait(until, done)
        }
        fn may_leap(&self) -> bool {
            true
        }
        fn asked_by(&mut self, _: u32) {
            self.1 += 1;
        }
    }
    let ok = Answer {
        service: Span(10),
        result: Ok(512),
    };
    let workload = Calls {
        serial: true,
        busy: false,
        count: 5,
        issued: 0,
        records: Vec::new(),
    };
    let answers = Answers {
        now: Instant(5),
        left: vec![ok; 5],
        running: None,
    };
    let (mut target, mut lanes) = (Leaping(answers, 0), [Lane { workload, depth: 1 }]);
    drive(&mut lanes, &mut target, &DriveOptions::default(), &mut ()).unwrap();
    let records = lanes[0].workload.records.len();
    // One turn for each, and one to hear that there are no more.
    assert_eq!((target.0.left.len(), records, target.1), (0, 5, 6));
}
