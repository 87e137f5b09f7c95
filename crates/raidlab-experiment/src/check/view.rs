//! The settings of one cell: the fixed ones, overruled by those of its levels.
use crate::dirty::Dirty;
use crate::kernel::{FilesystemKind, JournalMode, Kernel, Scheduler};
use crate::read::key::{Key, Value};
use crate::read::members::MemberChoice;
use crate::read::setting::{Bound, What};
use crate::read::tree::At;
use crate::setup::{ArrayLayout, ArrayState, Bitmap, Engine, Metadata};
use raidlab_core::time::Span;
use raidlab_core::units::Bytes;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Which declared values made a difference in some cell, by their place.
pub(super) type Used = RefCell<BTreeSet<(usize, usize)>>;

/// The settings of one cell.
pub(super) struct View<'b> {
    keys: BTreeMap<Key, &'b Bound>,
    /// Settings of the profile, in the order in which they are given.
    pub(super) settings: Vec<&'b Bound>,
    used: &'b Used,
}

macro_rules! getters {
    ($($name:ident: $variant:ident -> $type:ty;)+) => {
        impl View<'_> {
            $(
                /// The value when there is one; it then counts as used.
                pub(super) fn $name(&self, key: Key) -> Option<At<$type>> {
                    let bound = self.bound(key)?;
                    match &bound.value {
                        Some(Value::$variant(value)) => {
                            self.mark(bound);
                            Some(At::new(value.clone(), bound.at.clone()))
                        }
                        _ => None,
                    }
                }
            )+
        }
    };
}

getters! {
    layout: Layout -> ArrayLayout;
    engine: Engine -> Engine;
    members: Members -> MemberChoice;
    channels: Channels -> Vec<u32>;
    roles: Roles -> Vec<u16>;
    state: State -> ArrayState;
    size: Size -> Bytes;
    dirty: Dirty -> Dirty;
    time: Time -> Span;
    rate: Rate -> u64;
    count: Count -> u32;
    text: Text -> String;
    flag: Flag -> bool;
    kernel: Kernel -> Kernel;
    scheduler: Scheduler -> Scheduler;
    filesystem: Filesystem -> FilesystemKind;
    journal: Journal -> JournalMode;
    metadata: Metadata -> Metadata;
    bitmap: Bitmap -> Bitmap;
}

impl<'b> View<'b> {
    /// Later bounds overrule earlier ones; a choice of members overrules the other kind of choice.
    pub(super) fn new(bounds: impl IntoIterator<Item = &'b Bound>, used: &'b Used) -> Self {
        let mut view = Self {
            keys: BTreeMap::new(),
            settings: Vec::new(),
            used,
        };
        for bound in bounds {
            match &bound.what {
                What::Key(key) => {
                    match key {
                        Key::Members => view.keys.remove(&Key::Channels),
                        Key::Channels => view.keys.remove(&Key::Members),
                        _ => None,
                    };
                    view.keys.insert(*key, bound);
                }
                What::Setting { .. } => view.settings.push(bound),
            }
        }
        view
    }

    /// The same cell without these keys, which make no difference in it.
    pub(super) fn without(&self, hidden: &[Key]) -> Self {
        let mut keys = self.keys.clone();
        keys.retain(|key, _| !hidden.contains(key));
        Self {
            keys,
            settings: self.settings.clone(),
            used: self.used,
        }
    }

    pub(super) fn bound(&self, key: Key) -> Option<&'b Bound> {
        self.keys.get(&key).copied()
    }

    /// The label of a setting as this cell has it.
    pub(super) fn label(&self, what: &What) -> Option<&'b str> {
        match what {
            What::Key(key) => self.bound(*key).map(|b| b.label.as_str()),
            setting => {
                let mut found = self.settings.iter().rev();
                let found = found.find(|b| b.what == *setting);
                found.map(|b| b.label.as_str())
            }
        }
    }

    pub(super) fn mark(&self, bound: &Bound) {
        self.used
            .borrow_mut()
            .insert((bound.at.start, bound.at.end));
    }

    /// Whether a value of the section could not be read, so that what follows from it is unknown.
    pub(super) fn is_broken(&self, section: &str) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|(key, bound)| key.section() == section && bound.value.is_none())
    }

    /// Whether a value of one of these keys could not be read.
    pub(super) fn lacks(&self, keys: &[Key]) -> bool {
        let mut found = keys.iter().filter_map(|key| self.bound(*key));
        found.any(|bound| bound.value.is_none())
    }

    /// The first of these keys that was given; the start of the file when none was.
    pub(super) fn place(&self, keys: &[Key]) -> Range<usize> {
        let mut found = keys.iter().filter_map(|key| self.bound(*key));
        found.next().map_or(0..0, |bound| bound.at.clone())
    }
}
