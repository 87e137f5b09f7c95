//! `raidlab clean`: undoes what runs that were killed left on the machine.
use super::{print_json, print_text};
use crate::args::CleanArgs;
use crate::bench::notes;
use crate::exit::{Failure, Outcome, REFUSED};
use crate::real::{clean_guests, host, host_failure, places};
use crate::talk;
use raidlab_host::alone::Alone;
use raidlab_host::journal::{Report, leftovers};
use raidlab_io::observe::Roots;

pub(crate) fn run(args: &CleanArgs) -> Result<Outcome, Failure> {
    let roots = Roots::system();
    let directory = places::journals()?;
    let (journals, wrong) = leftovers(&directory).map_err(|error| host_failure(&error))?;
    let mut all = Report::default();
    all.left.extend(wrong);
    // Guests of runs that were killed: the kernel has ended them, and their directories are there.
    all.undone.extend(clean_guests()?);
    let places = notes::clean(&places::notes()?);
    let removed = places.removed.iter().map(|path| path.display());
    all.undone
        .extend(removed.map(|path| format!("removed {path}, left by a run that was killed")));
    let left = places.left.iter();
    all.left
        .extend(left.map(|why| format!("the working directory of a run that was killed: {why}")));
    all.left.extend(places.elsewhere.iter().map(|(place, note)| {
        format!(
            "what a run left in {}, on a file system that is not mounted there now, if it left anything: mount it and clean again, or remove {}",
            place.display(),
            note.display()
        )
    }));
    for journal in journals {
        let path = journal.path().to_owned();
        let report = journal
            .finish(&roots)
            .map_err(|error| host_failure(&error))?;
        if !report.left.is_empty() {
            talk::warn(&format!(
                "{} stays until all in it is undone",
                path.display()
            ));
        }
        all.undone.extend(report.undone);
        all.left.extend(report.left);
    }
    let point = without_journal(&roots)?;
    all.undone.extend(point.undone);
    all.left.extend(point.left);
    if args.json {
        print_json(&all)?;
    } else if all == Report::default() {
        talk::note("nothing was left behind");
    } else {
        let undone = all.undone.iter().map(|line| format!("{line}\n"));
        let left = all.left.iter().map(|line| format!("left: {line}\n"));
        print_text(&talk::plain(&undone.chain(left).collect::<String>()))?;
    }
    if all.left.is_empty() {
        Ok(Outcome::Done)
    } else {
        let message = "not everything could be undone, or may be";
        Err(Failure::new(REFUSED, message)
            .remedy("see to what is told above, and run 'raidlab clean' again"))
    }
}

/// What becomes of a mount point that no journal tells of, unless a run is under way.
fn without_journal(roots: &Roots) -> Result<Report, Failure> {
    if !places::mount()?.exists() {
        return Ok(Report::default());
    }
    match Alone::take(&places::state()?, &[]) {
        Ok(alone) => host::forget_point(roots, &alone),
        Err(_) => Ok(Report::default()),
    }
}
