//! The settings that are not a profile's own: what they are called and where they stand.
use super::members::MemberChoice;
use crate::dirty::Dirty;
use crate::kernel::{FilesystemKind, JournalMode, Kernel, Scheduler};
use crate::setup::{ArrayLayout, ArrayState, Bitmap, Engine, Metadata};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;

/// What a setting is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Layout,
    Engine,
    Members,
    Channels,
    Roles,
    State,
    Size,
    /// A share of the memory in per cent, or a size.
    Dirty,
    /// A length of time; zero is one.
    Time,
    Rate,
    Count(u32, u32),
    Text,
    Flag,
    Kernel,
    Scheduler,
    Filesystem,
    Journal,
    Metadata,
    Bitmap,
    Profile,
}

/// A value as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Layout(ArrayLayout),
    Engine(Engine),
    Members(MemberChoice),
    Channels(Vec<u32>),
    Roles(Vec<u16>),
    State(ArrayState),
    Size(Bytes),
    Dirty(Dirty),
    Time(Span),
    Rate(u64),
    Count(u32),
    Text(String),
    Flag(bool),
    Kernel(Kernel),
    Scheduler(Scheduler),
    Filesystem(FilesystemKind),
    Journal(JournalMode),
    Metadata(Metadata),
    Bitmap(Bitmap),
    /// Of a profile, as the profile reads it.
    Setting(String),
}

macro_rules! keys {
    ($($key:ident: $name:literal, $section:literal, $short:literal, $form:expr;)+) => {
        /// A setting that is not a profile's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Key {
            $(#[doc = $name] $key,)+
        }

        impl Key {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$key),+];

            /// Its name as a factor; unique.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$key => $name,)+ }
            }

            /// The section it stands in when it is fixed.
            pub(crate) const fn section(self) -> &'static str {
                match self { $(Self::$key => $section,)+ }
            }

            /// Its name in that section.
            pub(crate) const fn short(self) -> &'static str {
                match self { $(Self::$key => $short,)+ }
            }

            pub(super) const fn form(self) -> Form {
                match self { $(Self::$key => $form,)+ }
            }
        }
    };
}

keys! {
    Layout: "layout", "array", "layout", Form::Layout;
    Engine: "engine", "array", "engine", Form::Engine;
    Members: "members", "array", "members", Form::Members;
    Channels: "channels", "array", "channels", Form::Channels;
    Chunk: "chunk", "array", "chunk", Form::Size;
    OuterChunk: "outer-chunk", "array", "outer-chunk", Form::Size;
    MemberSize: "member-size", "array", "member-size", Form::Size;
    MemberStart: "member-start", "array", "member-start", Form::Size;
    State: "state", "array", "state", Form::State;
    Failed: "failed", "array", "failed", Form::Roles;
    Ashift: "ashift", "array", "ashift", Form::Count(0, 64);
    RecordSize: "record-size", "array", "record-size", Form::Size;
    Allocated: "allocated", "array", "allocated", Form::Size;
    Metadata: "metadata", "array", "metadata", Form::Metadata;
    Bitmap: "bitmap", "array", "bitmap", Form::Bitmap;
    BitmapChunk: "bitmap-chunk", "array", "bitmap-chunk", Form::Size;
    InitialSync: "initial-sync", "array", "initial-sync", Form::Flag;
    StripeCache: "stripe-cache", "array", "stripe-cache", Form::Count(17, 32_768);
    GroupThreads: "group-threads", "array", "group-threads", Form::Count(0, 256);
    SyncSpeedMin: "sync-speed-min", "array", "sync-speed-min", Form::Rate;
    SyncSpeedMax: "sync-speed-max", "array", "sync-speed-max", Form::Rate;
    RebuildRate: "rebuild-rate", "array", "rebuild-rate", Form::Count(0, 100);
    Cpu: "cpu", "host", "cpu", Form::Text;
    Cores: "cores", "host", "cores", Form::Count(1, 1024);
    CpuMhz: "cpu-mhz", "host", "cpu-mhz", Form::Count(1, 100_000);
    Memory: "memory", "host", "memory", Form::Size;
    Kernel: "kernel", "host", "kernel", Form::Kernel;
    Scheduler: "scheduler", "host", "scheduler", Form::Scheduler;
    ReadAhead: "read-ahead", "host", "read-ahead", Form::Size;
    RequestSize: "request-size", "host", "request-size", Form::Size;
    QueueRequests: "queue-requests", "host", "queue-requests", Form::Count(4, 2048);
    WriteCache: "write-cache", "host", "write-cache", Form::Flag;
    DriveQueue: "drive-queue", "host", "drive-queue", Form::Count(1, 65_536);
    DirtyLimit: "dirty-limit", "host", "dirty-limit", Form::Dirty;
    DirtyBackground: "dirty-background", "host", "dirty-background", Form::Dirty;
    DirtyExpire: "dirty-expire", "host", "dirty-expire", Form::Time;
    DirtyWriteback: "dirty-writeback", "host", "dirty-writeback", Form::Time;
    Filesystem: "filesystem", "filesystem", "kind", Form::Filesystem;
    FilesystemBlock: "filesystem-block", "filesystem", "block", Form::Size;
    FilesystemJournal: "filesystem-journal", "filesystem", "journal", Form::Size;
    FilesystemMode: "filesystem-mode", "filesystem", "mode", Form::Journal;
    MountOptions: "mount-options", "filesystem", "mount-options", Form::Text;
    Profile: "profile", "profile", "name", Form::Profile;
}

impl Key {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.name() == name)
    }
}

/// Names for what profiles call differently, and what each calls it.
pub(crate) const ALIASES: [(&str, &[(&str, &str)]); 3] = [
    (
        "call-size",
        &[
            ("bonnie", "chunk"),
            ("tiobench", "block"),
            ("hdbench", "call"),
            ("dd", "bs"),
            ("random", "block"),
            ("sequential", "block"),
        ],
    ),
    (
        "file-size",
        &[
            ("bonnie", "size"),
            ("tiobench", "size"),
            ("hdbench", "sizes"),
            ("random", "size"),
            ("sequential", "size"),
        ],
    ),
    (
        "queue-depth",
        &[("random", "depth"), ("sequential", "depth")],
    ),
];
