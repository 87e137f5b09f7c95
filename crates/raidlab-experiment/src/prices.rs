//! What the parts of an experiment cost. No part of what is run: a price that changes leaves every trial as it is.
use crate::Experiment;
use crate::diagnostic::{Diagnostic, Problems};
use crate::read::disks::Group;
use crate::read::topology::DraftTopology;
use crate::read::tree::At;
use crate::setup::Array;
use raidlab_core::price::Price;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The prices that the file gives, all in one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prices {
    /// Of one disk, by the name of its group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, Price>,
    /// Of controllers, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub controllers: BTreeMap<String, Price>,
}

impl Prices {
    /// Whether nothing has a price.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty() && self.controllers.is_empty()
    }
}

impl Experiment {
    /// What an array's members cost, with the controllers that they sit on; a controller without a price is there
    /// already. `None` when the price of a member is not known.
    #[must_use]
    pub fn price(&self, array: &Array) -> Option<Price> {
        let mut controllers = BTreeSet::new();
        let mut sum: Option<Price> = None;
        let mut add = |price: Price| {
            sum = Some(match sum {
                Some(sum) => sum.plus(price)?,
                None => price,
            });
            Some(())
        };
        for member in &array.members {
            let disk = self.disk(member)?;
            add(*self.prices.disks.get(&disk.group)?)?;
            controllers.insert(&disk.controller);
        }
        let known = controllers
            .into_iter()
            .filter_map(|name| self.prices.controllers.get(name));
        for price in known {
            add(*price)?;
        }
        sum
    }
}

/// The prices as declared, and what is wrong with them as a whole: several currencies, prices of controllers that
/// no disk's stands beside.
pub(crate) fn prices(problems: &Problems, groups: &[Group], topology: &DraftTopology) -> Prices {
    let disks: Vec<(&str, &At<Price>)> = groups
        .iter()
        .filter_map(|group| Some((group.name.value.as_str(), group.price.as_ref()?)))
        .collect();
    let controllers: Vec<(&str, &At<Price>)> = topology
        .controllers
        .iter()
        .filter_map(|one| Some((one.name.value.as_str(), one.price.as_ref()?)))
        .collect();
    let mut all = disks.iter().chain(&controllers).map(|(_, price)| *price);
    if let Some(first) = all.next() {
        let other = all.find(|price| price.value.currency() != first.value.currency());
        if let Some(other) = other {
            let message = format!(
                "prices in {} and in {}",
                first.value.currency(),
                other.value.currency()
            );
            let problem = Diagnostic::new(other.at.clone(), message);
            let problem = problem.also(first.at.clone(), "the other currency");
            problems.push(problem.help("write all prices of a file in one currency"));
        }
    }
    if let (true, Some((_, price))) = (disks.is_empty(), controllers.first()) {
        let message = "a controller has a price, and no disk has one";
        let help = "give the disks their price, too: price = \"430 EUR\" beside their model";
        problems.wrong(&price.at, message, help);
    }
    let map = |of: &[(&str, &At<Price>)]| {
        of.iter()
            .map(|(name, price)| ((*name).to_owned(), price.value))
            .collect()
    };
    Prices {
        disks: map(&disks),
        controllers: map(&controllers),
    }
}
