//! A system call in flight: what it does next and what it waits for.
use super::device::{Device, Wish};
use super::fs::{Place, Synced};
use super::inode::Wants;
use super::readahead::Windows;
use super::{EINVAL, Host, META, PAGE, SECTOR, What};
use crate::block::Origin;
use raidlab_core::op::{BlockKind, FileId, FileOp, Op};
use raidlab_core::target::{Errno, TargetError};
use raidlab_core::time::{Instant, Span};

/// What a call does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing more: it has ended.
    #[default]
    End,
    /// From the page cache.
    Read,
    /// Into the page cache.
    Write,
    /// Past the page cache: what is dirty there is written first.
    DirectFirst,
    /// Past the page cache: the process has come to the file system.
    DirectNext,
    /// Past the page cache: to the device.
    Direct,
    /// Names and attributes; metadata is read, the rest is done.
    Names,
    /// Makes durable.
    Sync(super::sync::Part),
}

/// One call, by the tag of its process.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    pub(super) busy: bool,
    /// The process that makes it.
    pub(super) process: u16,
    /// It is an operation on a block target.
    pub(super) block: bool,
    pub(super) direct: bool,
    /// Ends with making durable what it wrote.
    pub(super) durable: bool,
    pub(super) write: bool,
    pub(super) error: Option<Errno>,
    /// Bytes that it reports.
    pub(super) bytes: u32,
    pub(super) file: u32,
    pub(super) work: Work,
    /// Where it is and where it ends, in bytes of the file.
    pub(super) at: u64,
    pub(super) end: u64,
    /// Where it began.
    pub(super) begin: u64,
    /// The file system has given room up to here.
    pub(super) reserved: u64,
    /// Page at which read-ahead is looked at next.
    pub(super) look: u64,
    /// Which of the file's ways of reading it goes on with.
    pub(super) ahead: u32,
    /// Requests of its own in the device.
    pub(super) left: u32,
    /// Page it waits for, and of which file.
    pub(super) page: (u32, u64),
    /// Time in user mode for each byte, see `user_time`.
    pub(super) user: User,
    /// The processor works on it until then.
    pub(super) until: Instant,
    /// Metadata to be read before it goes on, one after the other.
    pub(super) meta: Vec<Place>,
    pub(super) met: usize,
    /// What the small file has that it makes and makes durable.
    pub(super) content: Vec<Place>,
    /// Runs to be read once the metadata is there.
    pub(super) windows: Windows,
    pub(super) window: usize,
    /// Pages that it still has to write out, as a throttled writer or to make them durable.
    pub(super) budget: u64,
    /// Write-back up to this number is waited for.
    pub(super) mark: u64,
    /// What making durable comes to.
    pub(super) synced: Synced,
    pub(super) stage: usize,
    /// The file that is made durable (`None`: names, or all), without metadata where possible, and
    /// whether the file system was asked how.
    pub(super) made_durable: Option<FileId>,
    pub(super) data_only: bool,
    pub(super) planned: bool,
    pub(super) transaction: u64,
    /// Bytes that it frees and that no transaction has counted yet.
    pub(super) frees: u64,
    /// Commits that it has waited for because there was no space.
    pub(super) tries: u8,
    /// What did so, of names.
    pub(super) refused: Option<FileOp>,
    /// Makes all files durable, the names with them.
    pub(super) all: bool,
    /// Closes a device that nobody else has open.
    pub(super) closes: bool,
    /// A worker of the kernel carries it out.
    pub(super) by_worker: bool,
    /// What it has of its file's inode: until it gives that back, or, of a look, goes on.
    pub(super) inode: Option<Wants>,
    /// When it looked at the clock for the file's time, which it does before it waits.
    pub(super) looked: Instant,
}

/// What a process does with the bytes itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum User {
    #[default]
    Nothing,
    /// `getc`, byte by byte.
    Gets,
    /// `putc`, byte by byte.
    Puts,
    /// Looks at a byte of each sector.
    Looks,
}

impl Call {
    /// How it ended.
    pub(super) fn result(&self) -> Result<u32, Errno> {
        self.error.map_or(Ok(self.bytes), Err)
    }

    /// Ready for another operation, with its allocations kept.
    #[inline]
    fn renew(&mut self, file: u32, offset: u64, len: u64, bytes: u32) {
        self.busy = true;
        (self.direct, self.durable, self.write) = (false, false, false);
        self.block = false;
        (self.all, self.closes, self.by_worker) = (false, false, false);
        self.inode = None;
        self.error = None;
        self.bytes = bytes;
        self.file = file;
        (self.at, self.end) = (offset, offset.saturating_add(len));
        (self.begin, self.reserved, self.look) = (offset, offset, 0);
        (self.left, self.frees, self.tries) = (0, 0, 0);
        self.user = User::Nothing;
        self.until = Instant::ZERO;
        self.meta.clear();
        self.content.clear();
        self.met = 0;
        (self.windows, self.window) = (Windows::default(), 0);
        self.budget = 0;
    }
}

impl<D: Device> Host<D> {
    /// A process makes a call.
    #[inline]
    pub(super) fn begin(&mut self, tag: u32, op: Op) -> Result<(), TargetError> {
        if self.calls.len() <= tag as usize {
            self.calls.resize_with(tag as usize + 1, Call::default);
        }
        self.calls[tag as usize].process = self.process;
        self.in_flight += 1;
        if !self.holds_back(tag, op) {
            self.begin_call(tag, op);
        }
        Ok(())
    }

    /// A call that was handed over begins.
    #[inline]
    pub(super) fn begin_call(&mut self, tag: u32, op: Op) {
        let bytes = op.bytes();
        let (file, offset, len, kind, user) = match op {
            Op::Block(block) => {
                let file = self.known(0);
                if block.kind.is_flush() {
                    self.calls[tag as usize].renew(file, 0, 0, 0);
                    self.begin_sync(tag, Some(0), block.kind == BlockKind::FlushData);
                    return;
                }
                let write = block.kind == BlockKind::Write;
                (
                    file,
                    block.offset,
                    block.len,
                    (write, self.direct_blocks && self.traits.direct, false),
                    User::Nothing,
                )
            }
            Op::File(FileOp::Read { file, len, offset }) => {
                self.opened(file, offset, len, false, User::Nothing)
            }
            Op::File(FileOp::Write { file, len, offset }) => {
                self.opened(file, offset, len, true, User::Nothing)
            }
            Op::File(FileOp::Scan { file, len, offset }) => {
                self.opened(file, offset, len, false, User::Looks)
            }
            Op::File(FileOp::GetChars { file, len, offset }) => {
                self.opened(file, offset, len, false, User::Gets)
            }
            Op::File(FileOp::PutChars { file, len, offset }) => {
                self.opened(file, offset, len, true, User::Puts)
            }
            Op::File(other) => {
                self.calls[tag as usize].renew(META, 0, 0, bytes);
                self.begin_names(tag, &other);
                return;
            }
        };
        let (write, direct, durable) = kind;
        let call = &mut self.calls[tag as usize];
        call.renew(file, offset, u64::from(len), bytes);
        (call.write, call.direct, call.durable, call.user) = (write, direct, durable, user);
        call.block = matches!(op, Op::Block(_));
        self.begin_data(tag);
    }

    /// A call on an open data file: file, offset, length, (write, direct, durable), user's part.
    #[inline]
    fn opened(
        &mut self,
        file: u32,
        offset: u64,
        len: u32,
        write: bool,
        user: User,
    ) -> (u32, u64, u32, (bool, bool, bool), User) {
        let file = self.known(file);
        let open = &self.files[file as usize];
        (
            file,
            offset,
            len,
            (write, open.direct, write && open.sync),
            user,
        )
    }

    #[inline]
    fn begin_data(&mut self, tag: u32) {
        let call = &mut self.calls[tag as usize];
        let size = self.files[call.file as usize].size;
        if !call.write && call.end > size {
            // A read ends where the file does.
            call.end = size.max(call.at);
            call.bytes = (call.end - call.at) as u32;
        }
        if call.direct {
            if !(call.at | call.end).is_multiple_of(SECTOR) && call.end < size {
                return self.fail(tag, EINVAL);
            }
            call.work = Work::DirectFirst;
            if !call.write && self.punts_read(tag) {
                return self.by_worker(tag, None);
            }
            return self.step(tag);
        }
        if call.write {
            call.work = Work::Write;
            if self.punts_cached(tag) {
                let file = self.calls[tag as usize].file;
                return self.by_worker(tag, Some(file));
            }
            self.write_on(tag, self.costs.call);
        } else {
            call.work = Work::Read;
            call.look = call.at / PAGE;
            self.choose_ahead(tag);
            if self.punts_read(tag) {
                return self.by_worker(tag, None);
            }
            self.read_on(tag, self.costs.call);
        }
    }

    /// A call goes on.
    pub(super) fn step(&mut self, tag: u32) {
        match self.calls[tag as usize].work {
            Work::End => {}
            Work::Read => self.read_on(tag, Span::ZERO),
            Work::Write => self.write_on(tag, Span::ZERO),
            Work::DirectFirst => self.direct_first(tag),
            Work::DirectNext => self.direct_next(tag),
            Work::Direct => self.direct_submit(tag),
            Work::Names => self.names_on(tag),
            Work::Sync(part) => self.sync_on(tag, part),
        }
    }

    /// The process works for so long; returns when it is through. Its only thread submits direct calls, and hears of them; it copies
    /// what goes through the cache, unless workers of the kernel do, each on a core of its own.
    #[inline]
    pub(super) fn work(&mut self, tag: u32, system: Span, user: Span) -> Instant {
        let Call {
            direct,
            write,
            process,
            by_worker,
            ..
        } = self.calls[tag as usize];
        let workers = if write {
            self.era.workers_write || by_worker
        } else {
            self.era.workers_read
        };
        if direct || !workers {
            self.cores.thread(process, self.now, system, user)
        } else {
            self.cores.process(self.now, system, user)
        }
    }

    /// The process works for so long, then goes on.
    pub(super) fn work_then_step(&mut self, tag: u32, system: Span, user: Span) {
        let at = self.work(tag, system, user);
        self.at(at, What::Step(tag));
    }

    /// The call is over after so much work.
    #[inline]
    pub(super) fn finish(&mut self, tag: u32, system: Span, user: Span) {
        let at = self.work(tag, system, user);
        if self.calls[tag as usize].inode.is_some() {
            self.gives_inode(tag);
        }
        let call = &mut self.calls[tag as usize];
        call.work = Work::End;
        let at = at.max(call.until);
        self.at(at, What::Done(tag));
    }

    /// The call fails.
    #[cold]
    pub(super) fn fail(&mut self, tag: u32, errno: Errno) {
        self.calls[tag as usize].error = Some(errno);
        self.finish(tag, self.costs.call, Span::ZERO);
    }

    /// Time in user mode for so many bytes of a call.
    #[inline]
    pub(super) fn user_time(&self, user: User, bytes: u64) -> Span {
        match user {
            User::Nothing => Span::ZERO,
            User::Gets => Span(self.costs.gets(bytes)),
            User::Puts => Span(self.costs.puts(bytes)),
            User::Looks => Span(self.costs.looks(bytes / SECTOR)),
        }
    }

    /// The call waits for a page: what was held back in the queues goes off.
    pub(super) fn wait_for_page(&mut self, tag: u32, file: u32, page: u64) {
        self.calls[tag as usize].page = (file, page);
        self.sleepers.push(tag);
        self.below.unplug(self.now);
    }

    /// Who asks for something on behalf of a call, urgently or not.
    pub(super) fn origin(&self, tag: u32, sync: bool) -> Origin {
        Origin {
            task: self.calls[tag as usize].process,
            sync,
            ..Origin::default()
        }
    }

    /// Of what a call writes for `fsync`: it waits for it, and writes nothing more then.
    pub(super) fn durable(&self, tag: u32) -> Origin {
        Origin {
            last: true,
            ..self.origin(tag, self.era.marks_durable)
        }
    }

    /// Submits requests of a call's own, none larger than the device takes; returns how many.
    pub(super) fn submit_own(&mut self, tag: u32, wish: Wish) -> u32 {
        let count = self.submit_split(wish, super::Owner::Call(tag));
        self.calls[tag as usize].left += count;
        count
    }

    /// Submits in pieces that the device takes; returns how many.
    pub(super) fn submit_split(&mut self, wish: Wish, owner: super::Owner) -> u32 {
        let most = u64::from(self.below.hints.max_sectors.max(8));
        let mut done = 0;
        let mut count = 0;
        loop {
            let part = (wish.sectors - done).min(most);
            let piece = Wish {
                lba: wish.lba + done,
                sectors: part,
                ..wish
            };
            self.below.submit(self.now, piece, owner);
            (done, count) = (done + part, count + 1);
            if done >= wish.sectors {
                return count;
            }
        }
    }

    /// One of a call's own requests has ended.
    pub(super) fn request_of_call(&mut self, tag: u32, good: bool) {
        let call = &mut self.calls[tag as usize];
        if !good {
            call.error = Some(super::EIO);
        }
        call.left -= 1;
        if call.left > 0 {
            return;
        }
        match call.work {
            Work::Direct => self.direct_ended(tag),
            _ => self.step(tag),
        }
    }

    /// Metadata that the call needs is in memory; false when it waits for some.
    pub(super) fn metadata_there(&mut self, tag: u32) -> bool {
        loop {
            let call = &self.calls[tag as usize];
            let Some(place) = call.meta.get(call.met) else {
                return true;
            };
            let offset = place.lba.0 * SECTOR;
            let (page, pages) = super::pages_of(offset, u64::from(place.sectors) * SECTOR);
            if self.cache.present_run(META, page, pages) == pages {
                self.cache.touch_run(META, page, pages);
                self.calls[tag as usize].met += 1;
                continue;
            }
            if self.calls[tag as usize].error.is_some() {
                return true;
            }
            self.fill_metadata(tag, page, pages);
            let gap = page + self.cache.present_run(META, page, pages);
            self.wait_for_page(tag, META, gap);
            return false;
        }
    }
}
