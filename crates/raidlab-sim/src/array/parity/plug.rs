//! What the thread of a parity array has asked for and not handed over yet.
//!
//! The thread works under a plug (`raid5.c:raid5d`): what it asks of the members is handed over when it has
//! nothing more to do, so that rows side by side are one request by then, or when the plug is full.
use crate::array::core::{Child, Core, Op};
use raidlab_core::op::BlockKind;

/// Size of the newest request from which on another one makes the plug be emptied (`BLK_PLUG_FLUSH_SIZE`,
/// 128 KiB), in sectors.
const LARGE: u64 = 256;

/// What would be one request: side by side on one member.
#[derive(Clone, Copy, Debug)]
struct Request {
    role: u16,
    kind: BlockKind,
    end: u64,
    sectors: u64,
}

/// The plug.
#[derive(Clone, Debug)]
pub(super) struct Plug {
    ops: Vec<(Child, Op)>,
    requests: Vec<Request>,
    /// Requests that it holds at most.
    most: usize,
}

impl Plug {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            ops: Vec::new(),
            requests: Vec::new(),
            most,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Whether the kernel has one: before 2.6.39 what the thread asks goes to the members' queues at once, and
    /// those collect.
    pub(super) const fn is_used(&self) -> bool {
        self.most < usize::MAX
    }

    /// Holds an op back; before that all others are handed over when there is no room for it.
    pub(super) fn hold(&mut self, core: &mut Core, child: Child, op: Op) {
        let sectors = u64::from(op.sectors);
        let last = self.requests.iter_mut().rev().find(|r| r.role == op.role);
        match last.filter(|r| r.kind == op.kind && r.end == op.lba && !op.fua) {
            Some(request) => {
                request.end += sectors;
                request.sectors += sectors;
            }
            None => {
                let large = self.requests.last().is_some_and(|r| r.sectors >= LARGE);
                if large || self.requests.len() >= self.most {
                    self.release(core);
                }
                self.requests.push(Request {
                    role: op.role,
                    kind: op.kind,
                    end: op.lba + sectors,
                    sectors,
                });
            }
        }
        self.ops.push((child, op));
    }

    /// Hands over all that is held, in order.
    pub(super) fn release(&mut self, core: &mut Core) {
        self.requests.clear();
        for (child, op) in self.ops.drain(..) {
            core.ask(child, op);
        }
    }
}
