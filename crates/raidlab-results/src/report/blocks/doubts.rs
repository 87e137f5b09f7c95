//! Footnotes for doubts about runs.
use crate::report::document::{Cell, Table};
use raidlab_core::flag::FlagKind;
use std::collections::BTreeMap;

/// One note a kind, with the first figure's reason and the number of further ones, so that a table of twenty figures that
/// share a doubt has one note and not twenty. Sides of a comparison have notes of their own.
#[derive(Default)]
pub(crate) struct Doubts {
    by_kind: BTreeMap<(&'static str, FlagKind), (u32, usize)>,
}

impl Doubts {
    /// Marks a figure with its doubts, each of a side, of a kind, and in words.
    pub(crate) fn mark(
        &mut self,
        table: &mut Table,
        cell: Cell,
        remarks: impl Iterator<Item = (&'static str, FlagKind, String)>,
    ) -> Cell {
        remarks.fold(cell, |cell, (side, kind, text)| {
            let (number, figures) = self
                .by_kind
                .entry((side, kind))
                .or_insert_with(|| (table.footnote(&text), 0));
            *figures += 1;
            cell.mark(*number)
        })
    }

    /// Says in each note how many figures share it.
    pub(crate) fn tell_how_many(self, table: &mut Table) {
        for (number, figures) in self
            .by_kind
            .into_values()
            .filter(|(_, figures)| *figures > 1)
        {
            if let Some(note) = table.footnotes.get_mut(number as usize - 1) {
                let others = figures - 1;
                let verb = if others == 1 {
                    "figure has"
                } else {
                    "figures have"
                };
                note.push_str(&format!(
                    " (this one; {others} more {verb} such a doubt, see 'raidlab show')"
                ));
            }
        }
    }
}
