//! What a workload will ask for.
use raidlab_core::op::{BlockKind, FileOp, Op, OpenMode};
use raidlab_core::time::Instant;
use raidlab_core::workload::{Next, OpRecord, Workload, stream_digest};
use std::cell::Cell;
use std::rc::Rc;

/// What a workload will ask for, found by asking it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// Bytes of the largest of its first operations.
    pub(super) largest: u32,
    /// Whether any of them writes.
    pub(super) writes: bool,
}

impl Asked {
    pub(super) fn of<W: Workload>(workload: W) -> Self {
        struct Spy<W> {
            workload: W,
            asked: Rc<Cell<Asked>>,
        }
        impl<W: Workload> Workload for Spy<W> {
            fn next(&mut self, now: Instant) -> Next {
                let next = self.workload.next(now);
                if let Next::Issue { op, .. } = next {
                    let asked = self.asked.get();
                    self.asked.set(Asked {
                        largest: asked.largest.max(op.bytes()),
                        writes: asked.writes || writes(op),
                    });
                }
                next
            }

            fn completed(&mut self, record: &OpRecord) {
                self.workload.completed(record);
            }
        }
        let asked = Rc::new(Cell::new(Self::default()));
        stream_digest(Spy {
            workload,
            asked: asked.clone(),
        });
        asked.get()
    }
}

fn writes(op: Op) -> bool {
    match op {
        Op::Block(block) => block.kind == BlockKind::Write,
        Op::File(FileOp::Open { mode, .. }) => mode != OpenMode::Read,
        Op::File(
            FileOp::Write { .. }
            | FileOp::PutChars { .. }
            | FileOp::Remove { .. }
            | FileOp::Create { .. }
            | FileOp::Unlink { .. }
            | FileOp::MakeDirectory { .. }
            | FileOp::RemoveDirectory { .. },
        ) => true,
        Op::File(_) => false,
    }
}
