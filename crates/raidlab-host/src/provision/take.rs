//! Each kind of step: announced, taken, looked at.
mod mounted;

use super::build::{Built, Context, Stage};
use super::forget::forget;
use super::partition;
use super::step::{Node, Step, UUID};
use super::stripe::Stripe;
use super::sync;
use crate::claim::Claim;
use crate::error::{HostError, Result};
use crate::identity::Identity;
use crate::journal::{Journal, Undo};
use crate::label;
use crate::patience::patiently;
use crate::sysfs;
use crate::system;
use crate::tool::Tool;
use raidlab_experiment::kernel::FilesystemKind;
use raidlab_io::observe::Roots;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A node appears, and is let go of by who looks at every new one, within this time.
pub(super) const APPEARS: Duration = Duration::from_secs(5);

impl Built {
    pub(super) fn take(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        context.tell(&Stage {
            what: step.what(),
            done: 0,
            of: 0,
        })?;
        let roots = context.roots;
        match step {
            Step::Array { .. } => self.make_array(step, claims, journal, context),
            Step::Sync { number } => self.wait_for_sync(*number, context),
            Step::Hold { number } => sync_action(roots, *number, "frozen"),
            Step::Release { number } => sync_action(roots, *number, "idle"),
            Step::Fail {
                words,
                number,
                container,
                ..
            } => {
                let device = words.last().cloned().unwrap_or_default();
                fail(*number, *container, &device, context)
            }
            Step::Replace {
                clear,
                words,
                container,
                ..
            } => [clear, words].into_iter().try_for_each(|words| {
                let tool = in_container(Tool::new(words.clone()), *container);
                tool.run().map(drop)
            }),
            Step::Set {
                node,
                attribute,
                value,
                ..
            } => self.set(node, attribute, value, journal, roots),
            Step::System { name, value } => system::set(roots, name, value, journal),
            Step::WriteCache { member, words, on } => {
                self.write_cache(*member, words, *on, journal, roots)
            }
            Step::Filesystem {
                words,
                on,
                kind,
                stripe,
            } => self.make_filesystem(words, on, claims, (*kind, *stripe), context),
            Step::Miss { member, path } => {
                let uuids = self.plain_uuids();
                if let Some(claim) = claims.get_mut(*member) {
                    // It stays held, so that the kernel cannot take it back.
                    claim.empty(&uuids)?;
                }
                forget(path)
            }
            Step::Mount { .. } => self.mount(step, claims, journal, roots),
            Step::Unmount { .. } => self.unmount(journal, roots),
            Step::Refill { .. } => self.refill(step, claims, journal),
            Step::Convert { words } => Tool::new(words.clone()).run().map(drop),
            Step::Partition { member, id, .. } => self.partition(*member, id, claims),
            Step::Pool { .. } => self.make_pool(step, claims, journal, context),
            Step::Offline { member, name, .. } => self.take_offline(*member, name, claims),
            Step::Resilver { .. } => self.resilver(step, claims, context),
        }
    }

    /// As fast as it goes, whatever else is limited.
    fn wait_for_sync(&mut self, number: u32, context: &mut Context<'_>) -> Result<()> {
        sync::full_speed(context.roots, number);
        let took = sync::wait(context, number)?;
        sync::usual_speed(context.roots, number);
        self.synced.push((number, took));
        Ok(())
    }

    fn make_filesystem(
        &mut self,
        words: &[String],
        on: &[Node],
        claims: &mut [Claim],
        made: (FilesystemKind, Option<Stripe>),
        context: &Context<'_>,
    ) -> Result<()> {
        self.lend(on, claims)?;
        Tool::new(self.filled(words))
            .cancelled_by(context.cancel)
            .run()?;
        self.check_made(words, on, claims, made)
    }

    /// The uuids that were drawn, as labels have them.
    pub(super) fn plain_uuids(&self) -> Vec<String> {
        self.uuids.iter().map(|uuid| label::plain(uuid)).collect()
    }

    pub(super) fn filled(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.filled_word(word)).collect()
    }

    /// A word of a command line with the uuid that was drawn for it.
    pub(crate) fn filled_word(&self, word: &str) -> String {
        let Some((before, number)) = word.split_once(UUID) else {
            return word.to_owned();
        };
        let number = number.parse::<usize>().ok();
        let uuid = number.and_then(|n| self.uuids.get(n.checked_sub(1)?));
        format!("{before}{}", uuid.map_or("", String::as_str))
    }

    fn claim<'c>(&'c mut self, node: &Node, claims: &'c mut [Claim]) -> Option<&'c mut Claim> {
        match node {
            Node::Member(member) => claims.get_mut(*member),
            Node::Array(number) => self.arrays.get_mut(number),
        }
    }

    pub(super) fn lend(&mut self, on: &[Node], claims: &mut [Claim]) -> Result<()> {
        for node in on {
            if let Some(claim) = self.claim(node, claims) {
                claim.lend()?;
            }
        }
        Ok(())
    }

    fn make_array(
        &mut self,
        step: &Step,
        claims: &mut [Claim],
        journal: &mut Journal,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let Step::Array {
            words,
            number,
            on,
            contained,
        } = step
        else {
            return Ok(());
        };
        let roots = context.roots;
        let name = format!("md{number}");
        if roots.block(&name).exists() {
            return Err(HostError::BadRequest(format!(
                "/dev/{name} is there already; plan again"
            )));
        }
        self.lend(on, claims)?;
        let undo = Undo::Array {
            members: self.members.clone(),
            name: name.clone(),
        };
        let taken = journal.intend(&step.what(), &[undo])?;
        let mut tool = Tool::new(self.filled(words)).cancelled_by(context.cancel);
        if *contained {
            tool = tool.with(&super::CONTAINER_ENVIRONMENT);
        }
        let ran = tool.run();
        // Also when raidlab stopped it in the middle: what it has written by then is told by nothing else. When it failed by itself
        // someone may have been faster, whose uuids are not raidlab's.
        let remembered = match &ran {
            Ok(_) | Err(HostError::Interrupted) if *contained => self.remember(journal),
            _ => Ok(()),
        };
        ran.and(remembered)?;
        journal.done(taken)?;
        let container = sysfs::text(&roots.block(&name).join("md/level"));
        if container.is_none_or(|level| level == "container") {
            return Ok(());
        }
        let below = self.below(on, claims, *contained);
        let node = PathBuf::from(format!("/dev/{name}"));
        let claim = patiently(APPEARS, || Claim::of_built(roots, &node, &below))?;
        self.arrays.insert(*number, claim);
        let arrays: Vec<String> = self
            .arrays()
            .iter()
            .map(|number| format!("md{number}"))
            .collect();
        for claim in claims.iter() {
            claim.held_by(&arrays)?;
        }
        Ok(())
    }

    fn below(&mut self, on: &[Node], claims: &mut [Claim], contained: bool) -> Vec<Identity> {
        if contained {
            return self.members.clone();
        }
        let of = |node: &Node| Some(self.claim(node, claims)?.identity().clone());
        on.iter().filter_map(of).collect()
    }

    /// Uuids of containers and pools are their tools' own: they are read back, so that the members are known as raidlab's.
    pub(super) fn remember(&mut self, journal: &mut Journal) -> Result<()> {
        let mut uuids = self.plain_uuids();
        for member in &self.plan.members {
            let file = raidlab_io::observe::safety::open_for_reading(&member.path)?;
            let (size, path) = (member.identity.size, &member.path);
            let mut labels = label::read(&file, size, path)?;
            let partitioned = labels.iter().any(|label| label.what.starts_with("GPT"));
            let extent = match partitioned {
                true => partition::extent(&file, size).map_err(HostError::call("read", path))?,
                false => None,
            };
            if let Some(extent) = extent {
                labels.extend(label::read_partition(&file, extent, path)?);
            }
            uuids.extend(labels.into_iter().filter_map(|label| label.uuid));
        }
        uuids.sort();
        uuids.dedup();
        journal.done_with(self.mark, &self.contents(&uuids))
    }

    fn set(
        &self,
        node: &Node,
        attribute: &str,
        value: &str,
        journal: &mut Journal,
        roots: &Roots,
    ) -> Result<()> {
        match node {
            // An array's settings go with it.
            Node::Array(number) => sysfs::set_verified_loosely(
                &roots.block(&format!("md{number}")).join(attribute),
                value,
            ),
            Node::Member(member) => {
                let device = self.members[*member].clone();
                let file = roots.block(&device.name).join(attribute);
                let Some(now) = sysfs::chosen(&file) else {
                    return Err(HostError::BadRequest(format!(
                        "{} has no {attribute}",
                        self.plan.members[*member].path.display()
                    )));
                };
                if now == value {
                    return Ok(());
                }
                let undo = Undo::Attribute {
                    device,
                    attribute: attribute.to_owned(),
                    value: now,
                };
                let step = journal.intend(&format!("set {attribute}"), &[undo])?;
                sysfs::set_verified(&file, value)?;
                journal.done(step)
            }
        }
    }

    fn write_cache(
        &self,
        member: usize,
        words: &[String],
        on: bool,
        journal: &mut Journal,
        roots: &Roots,
    ) -> Result<()> {
        let device = self.members[member].clone();
        let setting = roots.block(&device.name).join("queue/write_cache");
        let what = format!("switch the write cache of {}", device.name);
        let step = journal.intend(&what, &[Undo::WriteCache { device, on: !on }])?;
        Tool::new(words.to_vec()).run()?;
        let now = sysfs::text(&setting);
        if now.is_some_and(|now| (now == "write back") != on) {
            let path = self.plan.members[member].path.display();
            return Err(HostError::Unexpected(format!(
                "{path} did not take the setting of its write cache"
            )));
        }
        journal.done(step)
    }

    /// The devices are taken back, and carry what was to be made and nothing else, with the stripes that it was told of;
    /// then they are lent for the mount.
    fn check_made(
        &mut self,
        words: &[String],
        on: &[Node],
        claims: &mut [Claim],
        (kind, stripe): (FilesystemKind, Option<Stripe>),
    ) -> Result<()> {
        let filled = self.filled(words);
        let uuids = self.plain_uuids();
        for node in on {
            let Some(claim) = self.claim(node, claims) else {
                continue;
            };
            claim.retake()?;
            if let Some(file) = claim.held() {
                let labels = label::read(file, claim.identity().size, claim.path())?;
                let good = |label: &label::Label| label.is_one_of(&uuids);
                if labels.is_empty() || !labels.iter().all(good) {
                    let found: Vec<&str> = labels.iter().map(|label| label.what.as_str()).collect();
                    return Err(HostError::Unexpected(format!(
                        "after '{}' {} carries: {}",
                        filled.join(" "),
                        claim.path().display(),
                        if found.is_empty() {
                            "nothing known".to_owned()
                        } else {
                            found.join(", ")
                        },
                    )));
                }
                if let Some(stripe) = stripe {
                    stripe.verify(file, kind, claim.path())?;
                }
            }
            claim.lend()?;
        }
        Ok(())
    }
}

/// Holds back what an array would do by itself, or lets it go on.
fn sync_action(roots: &Roots, number: u32, action: &str) -> Result<()> {
    let file = roots.block(&format!("md{number}")).join("md/sync_action");
    sysfs::set(&file, action)
}

/// Fails a member of an array and takes it out: of the container, where the array is a volume of one.
pub(super) fn fail(
    number: u32,
    container: Option<u32>,
    device: &str,
    context: &Context<'_>,
) -> Result<()> {
    let command = |number: u32, what: &str| {
        let words = ["mdadm", &format!("/dev/md{number}"), what, device].map(str::to_owned);
        in_container(Tool::new(words), container).cancelled_by(context.cancel)
    };
    command(number, "--fail").run()?;
    // The kernel lets go of a failed member a moment after it is told.
    let remove = || command(container.unwrap_or(number), "--remove").run();
    patiently(Duration::from_secs(10), remove).map(drop)
}

/// A tool that may have to do with a container.
fn in_container(tool: Tool<'_>, container: Option<u32>) -> Tool<'_> {
    match container {
        Some(_) => tool.with(&super::CONTAINER_ENVIRONMENT),
        None => tool,
    }
}

/// Only one file system of a user's runs is mounted at a time.
pub(super) fn taken(point: &Path) -> HostError {
    HostError::missing(
        format!(
            "{} is there: another run of raidlab is under way",
            point.display()
        ),
        "wait for its end; if there is none, 'raidlab clean' removes what it left",
    )
}
