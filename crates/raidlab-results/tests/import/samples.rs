//! Every sample as records, in snapshots that were compared with the samples by eye.
use crate::render::render;
use crate::{bytes_of, sample_files};
use raidlab_results::import::{Imported, Source, detect, import};

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
fn the_same_bytes_give_the_same_ids_in_whatever_directory_the_file_is() {
    for sample in sample_files() {
        let bytes = bytes_of(&sample);
        let Ok(one) = import(&bytes, &Source::new("one/file.txt")) else {
            continue;
        };
        let two = import(&bytes, &Source::new("two/file.csv")).unwrap();
        assert_eq!(one.session, two.session);
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

fn ids(imported: &Imported) -> Vec<String> {
    let ids = imported.trials.iter().map(|trial| trial.id.clone());
    ids.collect()
}

#[test]
fn labels_and_repeats_make_other_ids_of_the_same_content() {
    for sample in sample_files() {
        let bytes = bytes_of(&sample);
        let import = |label, repeat| {
            let source = Source {
                label,
                repeat,
                ..Source::new("file.txt")
            };
            import(&bytes, &source)
        };
        let Ok(plain) = import(None, 0) else {
            continue;
        };
        let [a, b, again] = [(Some("a"), 0), (Some("b"), 0), (Some("a"), 1)]
            .map(|(label, repeat)| import(label, repeat).unwrap());
        for other in [&a, &b, &again] {
            assert_eq!(plain.contents, other.contents, "{sample}");
        }
        assert_ne!(ids(&a), ids(&b), "{sample}");
        assert_ne!(a.session, b.session, "{sample}");
        // What tells when it was is one run.
        assert_eq!(ids(&a) == ids(&again), a.is_one_run, "{sample}");
        assert_eq!(a.session == again.session, a.is_one_run, "{sample}");
        let timed = ["2.00a", "1.96", "elbencho", "json"];
        assert_eq!(
            a.is_one_run,
            timed.iter().any(|part| sample.contains(part)),
            "{sample}"
        );
    }
}

/// As earlier versions made them: where the label is in the text, that is still all that counts.
#[test]
fn ids_of_stores_of_before_are_the_contents() {
    for (sample, id, session) in [
        (
            "raw/hdparm-tT.txt",
            "dd447c75a975ae83e66039c8df3438d8",
            "1bb09bf09f2d75fbdc23d166a888190a",
        ),
        (
            "raw/dd-coreutils-9.1.txt",
            "2a9dff4cf8cf742a1aa1d95080e82e60",
            "78a47995b6b71d6c1e2d406fec683f77",
        ),
        (
            "raw/fio-3.33-jsonplus.json",
            "60bf3235b7dfd541cf1858095e434d36",
            "9709e066687f7d1018ce6144d233a23b",
        ),
    ] {
        let imported = import(&bytes_of(sample), &Source::new(sample)).unwrap();
        assert_eq!(imported.contents[0], id, "{sample}");
        let own = imported.trials[0].id == id;
        assert_eq!(own, sample.contains("hdparm"), "{sample}");
        assert_eq!(imported.session == session, own, "{sample}");
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
