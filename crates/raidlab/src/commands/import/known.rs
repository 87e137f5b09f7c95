//! What of a file is new, and what is there before.
//!
//! A trial is identified by its content and its label. The same text under the same label is taken as the
//! same runs, so that importing again what was imported adds nothing. Two files of one call with equal
//! texts are repeats with equal figures, unless a time stamp tells that they are one run.
use super::input::{InFile, Output};
use crate::args::ImportArgs;
use crate::bench::store_failure;
use crate::exit::Failure;
use crate::talk;
use raidlab_core::words::count;
use raidlab_results::id;
use raidlab_results::record::{Provenance, TrialRecord};
use raidlab_results::store::{Bundle, Kept, Store, figures_digest};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of trials that came before: in the store, and in this call.
pub(super) struct Known {
    /// Trials of this call by id.
    taken: BTreeMap<String, Kept>,
    /// How often each text came in this call under its label, by the session of the first.
    texts: BTreeMap<String, u32>,
    /// What was in the store before, by figures.
    figures: BTreeMap<String, Kept>,
    /// Runs of tools that were left out because they were there before, and whether all of them tell
    /// when they were.
    same: usize,
    same_are_one_run: bool,
}

/// What of a file is new.
pub(super) struct News {
    pub(super) bundle: Bundle,
    pub(super) skipped: usize,
    /// The sessions of what is not new.
    pub(super) sessions: BTreeSet<String>,
    pub(super) notes: Vec<String>,
}

impl News {
    /// Takes out what is there before.
    fn leave_out(&mut self, name: &str, output: Option<&Output>, kept: &BTreeMap<String, Kept>) {
        let mut others = BTreeSet::new();
        self.bundle.trials.retain(|trial| {
            let Some(kept) = kept.get(&trial.id) else {
                return true;
            };
            self.skipped += 1;
            self.sessions.insert(kept.session.clone());
            if kept.label != trial.cell.label {
                others.insert((kept.label.clone(), kept.session.clone()));
            }
            false
        });
        // Of a text whose label is its own, from a store whose trials were known by their text alone.
        for (label, session) in others {
            let remedy = if output.is_some_and(|output| output.is_one_run) {
                format!(
                    "once that is removed: raidlab remove {}",
                    id::short(&session)
                )
            } else {
                "with --again".to_owned()
            };
            self.notes.push(format!(
                "{name}: an earlier version of raidlab imported it under the label '{label}'; it can be \
                 imported under its own {remedy}"
            ));
        }
        if self.bundle.trials.is_empty() {
            // Without its trials it would be a session of nothing.
            self.bundle.sessions.clear();
        }
    }

    /// Tells that a text came before, where that is not why it was left out.
    fn tell_of_repeat(&mut self, name: &str, output: &Output, args: &ImportArgs) {
        if output.repeat > 0 && !self.bundle.trials.is_empty() {
            self.notes.push(format!(
                "{name}: a text that came before, taken as a repeat with equal figures"
            ));
        }
        if output.is_one_run && args.again && self.skipped > 0 {
            self.notes.push(format!(
                "{name}: --again does not apply: a time stamp or seed tells that it is the same run"
            ));
        }
    }
}

impl Known {
    pub(super) fn of(store: Option<&Store>, files: &[InFile]) -> Result<Self, Failure> {
        let outputs = files.iter().filter(|file| file.output.is_some());
        let tools: BTreeSet<&str> = outputs
            .flat_map(|file| &file.bundle.trials)
            .filter_map(tool)
            .collect();
        let figures = match store {
            Some(store) if !tools.is_empty() => store
                .kept_figures(&Vec::from_iter(tools))
                .map_err(store_failure)?,
            _ => BTreeMap::new(),
        };
        Ok(Self {
            taken: BTreeMap::new(),
            texts: BTreeMap::new(),
            figures,
            same: 0,
            same_are_one_run: true,
        })
    }

    /// Takes from a file what is there before.
    pub(super) fn news(
        &mut self,
        name: &str,
        file: InFile,
        args: &ImportArgs,
        store: Option<&Store>,
    ) -> Result<News, Failure> {
        let file = self.as_repeat(file, args, store)?;
        let kept = self.kept(&file, store)?;
        let mut news = News {
            bundle: file.bundle,
            skipped: 0,
            sessions: BTreeSet::new(),
            notes: Vec::new(),
        };
        // An export is stored as it is, since its sessions may have no trials; the store leaves out what
        // it has.
        if file.output.is_some() || args.dry_run {
            news.leave_out(name, file.output.as_ref(), &kept);
        }
        for trial in &news.bundle.trials {
            let kept = Kept {
                label: trial.cell.label.clone(),
                session: trial.session.clone(),
            };
            self.taken.insert(trial.id.clone(), kept);
        }
        if let Some(output) = &file.output {
            self.same += news.skipped;
            self.same_are_one_run &= news.skipped == 0 || output.is_one_run;
            if output.repeat == 0 {
                self.tell_of_figures(name, &mut news);
            }
            news.tell_of_repeat(name, output, args);
        }
        Ok(news)
    }

    /// The file as a repeat, where an equal text came before in this call, or in the store and `--again`
    /// asks for it.
    fn as_repeat(
        &mut self,
        mut file: InFile,
        args: &ImportArgs,
        store: Option<&Store>,
    ) -> Result<InFile, Failure> {
        if file.output.as_ref().is_none_or(|output| output.is_one_run) {
            return Ok(file);
        }
        let session = file.bundle.sessions.first().map(|s| s.id.clone());
        let before = self.texts.entry(session.unwrap_or_default()).or_default();
        let mut repeat = *before;
        *before += 1;
        if repeat > 0 {
            file = file.repeated(args, repeat)?;
        }
        while args.again && !self.kept(&file, store)?.is_empty() {
            repeat += 1;
            file = file.repeated(args, repeat)?;
        }
        Ok(file)
    }

    /// Which trials of a file are there before, by their ids.
    fn kept(
        &self,
        file: &InFile,
        store: Option<&Store>,
    ) -> Result<BTreeMap<String, Kept>, Failure> {
        let trials = &file.bundle.trials;
        let contents = file.output.as_ref().map_or(&[][..], |o| &o.contents);
        let is_repeat = file.output.as_ref().is_some_and(|o| o.repeat > 0);
        let ids = trials.iter().map(|trial| &trial.id).chain(contents);
        let ids: Vec<&str> = ids.map(String::as_str).collect();
        let stored = match store {
            Some(store) => store.kept(&ids).map_err(store_failure)?,
            None => BTreeMap::new(),
        };
        let mut kept = BTreeMap::new();
        for (i, trial) in trials.iter().enumerate() {
            let own = stored.get(&trial.id).or_else(|| self.taken.get(&trial.id));
            // Stores of before have trials by their contents, whatever their label is. One of that
            // label is this one, unless this is a repeat.
            let former = || {
                let content = contents.get(i).filter(|_| !is_repeat)?;
                stored.get(content).filter(|k| k.label == trial.cell.label)
            };
            if let Some(found) = own.or_else(former) {
                kept.insert(trial.id.clone(), found.clone());
            }
        }
        Ok(kept)
    }

    /// Tells of what has the figures of other trials in the store: the same runs under another label, or
    /// in a file that has grown.
    fn tell_of_figures(&self, name: &str, news: &mut News) {
        let mut alike: BTreeMap<(&str, bool, &str), usize> = BTreeMap::new();
        for trial in &news.bundle.trials {
            let digest = figures_digest(trial);
            if let Some(kept) = digest.and_then(|digest| self.figures.get(&digest)) {
                let is_same = kept.label == trial.cell.label;
                let key = (kept.session.as_str(), is_same, kept.label.as_str());
                *alike.entry(key).or_default() += 1;
            }
        }
        for ((session, is_same, label), trials) in alike {
            let trials = match trials {
                1 => "1 trial has".to_owned(),
                more => format!("{} have", count(more, "trial")),
            };
            let session = id::short(session);
            let what = if is_same {
                format!("under the same label '{label}' (a file that has grown?)")
            } else {
                format!("under the label '{label}': kept apart")
            };
            news.notes.push(format!(
                "{name}: {trials} the figures of session {session} {what}; if those are the same runs, \
                 remove one: raidlab remove {session}"
            ));
        }
    }

    /// Tells, once for all files, why runs were left out, and what else they can be.
    pub(super) fn tell_of_the_same(&self, args: &ImportArgs) {
        if self.same == 0 {
            return;
        }
        let apart = match &args.label {
            Some(_) => "another --label keeps them apart",
            None => "a --label keeps them apart",
        };
        let again = if self.same_are_one_run || args.again {
            ""
        } else {
            "; repeats whose figures are equal are imported with --again"
        };
        talk::note(&format!(
            "the same text under the same label is the same run, and was not imported again: {apart}{again}"
        ));
    }
}

fn tool(trial: &TrialRecord) -> Option<&str> {
    match &trial.provenance {
        Provenance::Imported { tool, .. } => Some(tool),
        _ => None,
    }
}
