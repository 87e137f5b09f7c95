//! Two lists of nodes, by when they were last made or came again: the inactive one, whose tail is
//! taken first, and the active one.
use super::{NONE, Node};

/// How the active list gives to the inactive one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Balance {
    /// Both lists are scanned in proportion to their lengths (Linux before 2.6.28).
    Proportional,
    /// The active list is cut when it is the longer one (since).
    Half,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    pages: u64,
}

const EMPTY: List = List {
    first: NONE,
    last: NONE,
    pages: 0,
};

#[derive(Clone, Debug)]
pub(super) struct Lists {
    /// Inactive, active.
    lists: [List; 2],
    balance: Balance,
    /// Pages of the active list that should have been scanned by now, in 1/1024.
    debt: u64,
}

impl Lists {
    pub(super) const fn new(balance: Balance) -> Self {
        Self {
            lists: [EMPTY; 2],
            balance,
            debt: 0,
        }
    }

    pub(super) const fn pages(&self) -> u64 {
        self.lists[0].pages + self.lists[1].pages
    }

    /// A node of a list changed the number of its pages.
    pub(super) fn resize(&mut self, active: bool, was: u32, is: u32) {
        let list = &mut self.lists[usize::from(active)];
        list.pages = list.pages + u64::from(is) - u64::from(was);
    }

    /// Puts a node that is in no list at the front of its own.
    pub(super) fn push(&mut self, nodes: &mut [Node], index: u32) {
        let list = &mut self.lists[usize::from(nodes[index as usize].active)];
        let first = list.first;
        nodes[index as usize].previous = NONE;
        nodes[index as usize].next = first;
        match nodes.get_mut(first as usize) {
            Some(node) => node.previous = index,
            None => list.last = index,
        }
        list.first = index;
    }

    pub(super) fn unlink(&mut self, nodes: &mut [Node], index: u32) {
        let node = &nodes[index as usize];
        let (previous, next) = (node.previous, node.next);
        let list = &mut self.lists[usize::from(node.active)];
        match nodes.get_mut(previous as usize) {
            Some(node) => node.next = next,
            None => list.first = next,
        }
        match nodes.get_mut(next as usize) {
            Some(node) => node.previous = previous,
            None => list.last = previous,
        }
    }

    pub(super) fn bring_forward(&mut self, nodes: &mut [Node], index: u32) {
        let active = nodes[index as usize].active;
        if self.lists[usize::from(active)].first != index {
            self.unlink(nodes, index);
            self.push(nodes, index);
        }
    }

    fn transfer(&mut self, nodes: &mut [Node], index: u32, active: bool) {
        self.unlink(nodes, index);
        let node = &mut nodes[index as usize];
        let pages = u64::from(node.held().count_ones());
        self.lists[usize::from(node.active)].pages -= pages;
        node.active = active;
        self.lists[usize::from(active)].pages += pages;
        self.push(nodes, index);
    }

    /// Used again: to the front of the active list.
    pub(super) fn activate(&mut self, nodes: &mut [Node], index: u32) {
        self.transfer(nodes, index, true);
    }

    /// The node that is to give pages next: the tail of the inactive list, after the active one has
    /// given its share.
    pub(super) fn candidate(&mut self, nodes: &mut [Node]) -> Option<u32> {
        loop {
            let [inactive, active] = self.lists;
            let short = match self.balance {
                _ if inactive.last == NONE => true,
                Balance::Half => active.pages > inactive.pages,
                Balance::Proportional => self.debt >= 64 << 10,
            };
            if !short || active.last == NONE {
                break;
            }
            self.debt = self.debt.saturating_sub(64 << 10);
            let node = &mut nodes[active.last as usize];
            // Its use counts from anew.
            node.used = 0;
            self.transfer(nodes, active.last, false);
        }
        let [inactive, active] = self.lists;
        let scanned = nodes.get(inactive.last as usize)?.held().count_ones();
        if self.balance == Balance::Proportional {
            let share = (active.pages << 10) / inactive.pages.max(1);
            self.debt += share * u64::from(scanned);
        }
        Some(inactive.last)
    }
}
