//! Every sample as records, in snapshots that were compared with the samples by eye.
use crate::render::render;
use crate::{bytes_of, sample_files};
use raidlab_results::import::{Source, detect, import};

#[test]
fn every_sample_is_imported_or_refused_as_recorded() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for sample in sample_files() {
            let bytes = bytes_of(&sample);
            let name = sample.rsplit('/').next().unwrap_or(&sample).to_owned();
            let shown = match import(&bytes, &Source::new(&name)) {
                Ok(imported) => render(&imported),
                Err(error) => format!("refused: {error}\n"),
            };
            insta::assert_snapshot!(name, shown);
        }
    });
}

/// Progress on standard error has no figures, and fio's report for people is refused.
#[test]
fn only_these_samples_are_refused() {
    let refused: Vec<String> = sample_files()
        .into_iter()
        .filter(|sample| import(&bytes_of(sample), &Source::new(sample)).is_err())
        .collect();
    assert_eq!(
        refused,
        [
            "raw/bonnie-1.03e.stderr",
            "raw/bonnie-2.00a.stderr",
            "raw/fio-3.33-normal.txt"
        ]
    );
}

#[test]
fn the_same_bytes_give_the_same_ids_whatever_the_file_is_called() {
    for sample in sample_files() {
        let bytes = bytes_of(&sample);
        let Ok(one) = import(&bytes, &Source::new("one")) else {
            continue;
        };
        let two = import(&bytes, &Source::new("two")).unwrap();
        assert_eq!(one.session, two.session);
        let ids = |imported: &raidlab_results::import::Imported| -> Vec<String> {
            imported
                .trials
                .iter()
                .map(|trial| trial.id.clone())
                .collect()
        };
        assert_eq!(ids(&one), ids(&two));
        let mut unique = ids(&one);
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), one.trials.len(), "{sample}");
        for trial in &one.trials {
            assert!(raidlab_results::id::is_id(&trial.id));
            assert_eq!(trial.session, one.session);
            assert!(!trial.phases.is_empty());
        }
    }
}

#[test]
fn a_format_can_be_forced_by_name() {
    let bytes = bytes_of("raw/hdparm-tT.txt");
    let text = std::str::from_utf8(&bytes).unwrap();
    assert_eq!(detect(text).map(|f| f.name()), Some("hdparm"));
    for format in raidlab_results::import::Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
        let forced = import(&bytes, &Source::new("x").format(format));
        assert_eq!(forced.is_ok(), format.name() == "hdparm", "{format}");
    }
    assert!(
        "hdparm2"
            .parse::<raidlab_results::import::Format>()
            .is_err()
    );
}
