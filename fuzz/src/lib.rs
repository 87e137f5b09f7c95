//! What every fuzz target checks: an importer never panics, refuses with a place, and gives only
//! possible figures, the same ones each time.
#![forbid(unsafe_code)]
use raidlab_results::import::{Format, ImportError, Imported, Source, import};

/// Imports the bytes as each of the formats.
pub fn import_as(bytes: &[u8], formats: &[Format]) {
    for format in formats {
        for tiotest_random_ops in [None, Some(4000)] {
            let mut source = Source::new("fuzz").format(*format);
            source.tiotest_random_ops = tiotest_random_ops;
            check(&import(bytes, &source));
        }
    }
}

/// Imports the bytes as what they look like.
pub fn import_guessed(bytes: &[u8]) {
    let source = Source::new("fuzz");
    let one = import(bytes, &source);
    check(&one);
    assert_eq!(one, import(bytes, &source), "twice the same bytes");
}

fn check(result: &Result<Imported, ImportError>) {
    match result {
        Ok(imported) => {
            assert!(!imported.trials.is_empty(), "an import of nothing");
            for trial in &imported.trials {
                assert_eq!(trial.session, imported.session);
                assert!(raidlab_results::id::is_id(&trial.id));
            }
            for phase in imported.trials.iter().flat_map(|trial| &trial.phases) {
                let figures = phase.figures.iter().map(|figure| figure.value);
                for value in figures.chain(phase.rate).chain(phase.cpu_percent) {
                    assert!(value.is_finite() && value >= 0.0, "{value} in {}", phase.phase);
                }
                assert!(phase.rate.is_some() || !phase.flags.is_empty(), "no reason given");
            }
        }
        Err(error) => {
            assert!(error.line > 0 && error.column > 0, "{error}");
            assert!(!error.expected.is_empty() && !error.remedy.is_empty(), "{error}");
        }
    }
}

/// What a session of the NBD server makes of bytes that come in pieces of this size: requests with the
/// data of their writes, and all that it answers.
fn nbd(mut session: raidlab_nbd::session::Session, bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    use raidlab_nbd::session::Event;
    let (mut seen, mut said, mut due) = (Vec::new(), Vec::new(), 0);
    for mut input in bytes.chunks(piece.max(1)) {
        while !input.is_empty() {
            let Some(event) = session.take(&mut input) else {
                let output = session.output();
                assert!(input.is_empty() || !output.is_empty(), "bytes are left");
                said.append(output);
                continue;
            };
            if let Event::Data(data) = event {
                due -= data.len() as u64;
            } else {
                assert_eq!(due, 0, "a message among the data of a write");
                seen.push(format!("{event:?}"));
                due = session.payload();
            }
            assert_eq!(due, session.payload());
        }
    }
    seen.push(format!("{:?}", session.end()));
    said.append(session.output());
    (seen, said)
}

/// Feeds the server's side of NBD: however the bytes are cut, the outcome is the same. The first byte
/// is the size of the pieces.
pub fn nbd_session(bytes: &[u8], negotiated: bool) {
    use raidlab_nbd::session::{Export, Session};
    use raidlab_nbd::wire::BlockSizes;
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    let export = |name: &str, flags| Export {
        name: name.to_owned(),
        description: "a disk".to_owned(),
        size: 1 << 20,
        flags,
        blocks: BlockSizes {
            minimum: 512,
            preferred: 4096,
            maximum: 1 << 16,
        },
    };
    let exports: std::sync::Arc<[Export]> = [export("a", 0x16d), export("b", 3)].into();
    let new = || match negotiated {
        true => Session::transmitting(exports.clone(), 0),
        false => Session::new(exports.clone()),
    };
    let whole = nbd(new(), bytes, usize::MAX);
    assert_eq!(whole, nbd(new(), bytes, usize::from(*piece)));
}
