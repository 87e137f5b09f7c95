//! Which parity covers an array sector, level by level.
use crate::layout::Layout;
use crate::parity::ParityLevel;
use crate::types::{Content, Member, MemberSet, ParityKind, Place, Places};
use raidlab_core::units::Lba;

/// A parity that covers an array sector, and a place where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityPlace {
    /// P or Q.
    pub kind: ParityKind,
    /// Its stripe, as the array that computes it counts them.
    pub stripe: u64,
    /// The level of the array that computes it, where that is an array of arrays; `None` where its members are disks.
    pub outer: Option<ParityLevel>,
    /// Where it is. Parity that an outer array keeps on inner arrays that copy is in so many places.
    pub place: Place,
}

/// The parity that covers array sector `lba`: of each copy what its own array has, then what the arrays over it have. Parity of
/// parity is not among it. Empty beyond the end.
#[must_use]
pub fn covering(layout: &Layout, lba: Lba) -> Vec<ParityPlace> {
    let Some(places) = layout.locate(lba) else {
        return Vec::new();
    };
    let Layout::Nested(nested) = layout else {
        return places
            .iter()
            .flat_map(|place| in_row(layout, *place))
            .collect();
    };
    let bases: Vec<usize> = nested.bases().collect();
    let flat = |inner: usize, place: Place| Place {
        member: Member::new(bases[inner] + place.member.index()),
        ..place
    };
    let outer = nested.outer();
    let mut found = Vec::new();
    for Place { member, sector } in outer.locate(lba).unwrap_or_default() {
        let inner = member.index();
        for parity in covering(&nested.inner()[inner], sector) {
            let place = flat(inner, parity.place);
            found.push(ParityPlace { place, ..parity });
        }
    }
    let level = match outer {
        Layout::Parity(parity) => Some(parity.level()),
        _ => None,
    };
    for parity in covering(outer, lba) {
        let inner = parity.place.member.index();
        let array = &nested.inner()[inner];
        let places: Places = array.locate(parity.place.sector).unwrap_or_default();
        found.extend(places.iter().map(|place| ParityPlace {
            place: flat(inner, *place),
            outer: parity.outer.or(level),
            ..parity
        }));
    }
    found
}

/// The parity in the row of a place in an array of disks.
fn in_row(array: &Layout, Place { sector, .. }: Place) -> impl Iterator<Item = ParityPlace> {
    let members: Vec<Member> = MemberSet::first(array.members()).iter().collect();
    members.into_iter().filter_map(move |member| {
        let Content::Parity { stripe, kind } = array.content(member, sector) else {
            return None;
        };
        let (outer, place) = (None, Place { member, sector });
        Some(ParityPlace {
            kind,
            stripe,
            outer,
            place,
        })
    })
}

/// The level of the array of arrays that computed what is at `place`, if one did: parity of an inner array is none of its business.
pub(crate) fn outer_of(layout: &Layout, place: Place) -> Option<ParityLevel> {
    let Layout::Nested(nested) = layout else {
        return None;
    };
    let bases = nested
        .bases()
        .take_while(|base| *base <= place.member.index());
    let (inner, base) = bases.enumerate().last()?;
    let member = Member::new(place.member.index() - base);
    let array = &nested.inner()[inner];
    let local = Place { member, ..place };
    match array.content(member, place.sector) {
        Content::Data(_) => match nested.outer() {
            Layout::Parity(parity) => Some(parity.level()),
            _ => None,
        },
        _ => outer_of(array, local),
    }
}
