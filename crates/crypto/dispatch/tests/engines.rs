//! The dispatcher on real engines, compared with a single engine.

use std::time::Duration;

use dispatch::{Choice, CpuChoice, Direction, Dispatch, EngineModel};
use engine::{Packet, Transform};
use wire::Suite;
use wire::overhead::esp_bytes;

fn prepare(choice: &Choice, suite: Suite) -> Dispatch {
    Dispatch::prepare(choice, suite).unwrap()
}

/// Engines on this host that have the suite.
fn usable(suite: Suite) -> Vec<&'static str> {
    let usable = engine::engines()
        .iter()
        .filter(|engine| engine.version.is_ok() && catalog::serves(engine.name, suite));
    usable.map(|engine| engine.name).collect()
}

fn plain(suite: Suite) -> Box<dyn Transform> {
    let choice = CpuChoice::Named("aws-lc".to_owned());
    engine::select(&choice, suite)
        .unwrap()
        .transform(&dispatch::pace::keymat(suite))
}

fn model(latency: Duration, errors_ppm: u32) -> EngineModel {
    EngineModel {
        latency,
        rate_bps: 10_000_000_000_000,
        queue: 64,
        parallel: 4,
        errors_ppm,
        engine: CpuChoice::Named("aws-lc".to_owned()),
    }
}

/// A device with the shortest predicted times.
fn fast(errors_ppm: u32) -> Choice {
    Choice::Model {
        model: model(Duration::ZERO, errors_ppm),
        otherwise: Some(CpuChoice::Auto),
    }
}

/// Checks that batches of many shapes, in place and from separate texts, are sealed the same way
/// and opened.
fn assert_as_one_engine(dispatch: &Dispatch) {
    let suite = dispatch.suite();
    let keymat = dispatch::pace::keymat(suite);
    let (mut sealing, mut opening) = (dispatch.sealing(&keymat), dispatch.opening(&keymat));
    let mut either = dispatch.transform(&keymat);
    let mut plain = plain(suite);
    assert_eq!(either.suite(), suite);
    let shapes: [&[usize]; 8] = [
        &[20],
        &[1400; 32],
        &[64; 32],
        &[60, 1400, 60, 9000, 128, 127],
        &[65_000],
        &[576; 7],
        &[40; 3],
        &[1500; 64],
    ];
    let mut sequence = 0u64;
    for inner in shapes.into_iter().cycle().take(3 * shapes.len()) {
        let (mut text, mut packets) = (Vec::new(), Vec::new());
        for &inner in inner {
            sequence += 1;
            let (at, bytes) = (text.len(), esp_bytes(suite, inner));
            text.extend((0..bytes).map(|byte| (byte as u64 ^ sequence) as u8));
            text[at + 4..at + 8].copy_from_slice(&(sequence as u32).to_be_bytes());
            text[at + 8..at + 16].copy_from_slice(&sequence.to_be_bytes());
            packets.push(Packet {
                at,
                bytes,
                sequence_high: 3,
            });
        }
        let mut expected = text.clone();
        plain.seal(&mut expected, &packets).unwrap();
        for transform in [&mut sealing, &mut either] {
            let mut sealed = text.clone();
            transform.seal(&mut sealed, &packets).unwrap();
            assert!(
                sealed == expected,
                "{dispatch:?} seals {inner:?} differently"
            );

            let Packet { at, bytes, .. } = packets[0];
            let inside = at + 16..at + bytes - suite.icv_bytes();
            let mut single = text[at..at + bytes].to_vec();
            transform.seal_from(3, &text[inside], &mut single).unwrap();
            assert!(
                single == expected[at..at + bytes],
                "{dispatch:?}, {inner:?}"
            );
        }
        for transform in [&mut opening, &mut either] {
            let mut opened = expected.clone();
            let mut authentic = vec![false; packets.len()];
            transform
                .open(&mut opened, &packets, &mut authentic)
                .unwrap();
            assert!(authentic.iter().all(|&authentic| authentic), "{dispatch:?}");
            for packet in &packets {
                let text_end = packet.at + packet.bytes - suite.icv_bytes();
                assert!(opened[packet.at..text_end] == text[packet.at..text_end]);
            }
        }
    }
}

#[test]
fn every_choice_gives_the_packets_of_one_engine() {
    for suite in Suite::AEADS {
        let mut choices = vec![Choice::Auto, fast(0)];
        for small in usable(suite) {
            choices.push(Choice::Named(small.to_owned()));
            choices.extend(usable(suite).into_iter().map(|large| Choice::Threshold {
                below: 128,
                small: small.to_owned(),
                large: large.to_owned(),
            }));
        }
        for choice in &choices {
            assert_as_one_engine(&prepare(choice, suite));
        }
    }
}

#[test]
fn every_suite_that_an_engine_has_can_be_prepared() {
    for suite in Suite::ALL {
        let Ok(dispatch) = Dispatch::prepare(&Choice::Auto, suite) else {
            continue;
        };
        let mut workload = dispatch::pace::Workload::new(suite, 300, 8, 8 << 10);
        let mut transform = dispatch.transform(&dispatch::pace::keymat(suite));
        for direction in Direction::ALL {
            workload.round(&mut *transform, direction).unwrap();
        }
    }
}

#[test]
fn a_failed_device_is_replaced_without_loss() {
    for errors_ppm in [1_000_000, 500_000, 100_000] {
        let dispatch = prepare(&fast(errors_ppm), Suite::Aes256Gcm);
        assert!(
            dispatch.engine().contains("model of aws-lc"),
            "{dispatch:?}"
        );
        assert_as_one_engine(&dispatch);
        let replaced = dispatch.replaced();
        assert_eq!(replaced.len(), 1, "{errors_ppm}: {replaced:?}");
        assert_eq!(replaced[0].engine, "model");
        // At most one for each of the three SAs.
        assert!((1..=3).contains(&replaced[0].sas), "{replaced:?}");
    }
}

#[test]
fn a_single_device_returns_its_errors_and_an_unchanged_batch() {
    let alone = Choice::Model {
        model: model(Duration::ZERO, 1_000_000),
        otherwise: None,
    };
    let dispatch = prepare(&alone, Suite::Aes256Gcm);
    assert_eq!(dispatch.engine(), "model of aws-lc");
    let mut transform = dispatch.transform(&dispatch::pace::keymat(Suite::Aes256Gcm));
    let before: Vec<u8> = (0..200).collect();
    let mut buffer = before.clone();
    let packets = [Packet {
        at: 0,
        bytes: 200,
        sequence_high: 0,
    }];
    let error = transform.seal(&mut buffer, &packets).unwrap_err();
    assert_eq!(error.engine, "model");
    assert_eq!(buffer, before);
    transform
        .open(&mut buffer, &packets, &mut [false])
        .unwrap_err();
    assert_eq!(buffer, before);
}

#[test]
fn a_device_with_too_much_latency_gets_no_key() {
    let far = Choice::Model {
        model: model(Duration::from_secs(1), 0),
        otherwise: Some(CpuChoice::Auto),
    };
    let dispatch = prepare(&far, Suite::Aes256Gcm);
    assert!(!dispatch.engine().contains("model"), "{dispatch:?}");
    assert!(!dispatch.curves().is_empty());
    assert_as_one_engine(&dispatch);
}

#[test]
fn a_device_is_used_only_where_it_finishes_earlier() {
    // It fails every batch, which shows whether it was used.
    let near = Choice::Model {
        model: model(Duration::from_micros(10), 1_000_000),
        otherwise: Some(CpuChoice::Auto),
    };
    let suite = Suite::Aes256Gcm;
    let dispatch = prepare(&near, suite);
    let keymat = dispatch::pace::keymat(suite);
    let turns = dispatch.turns(Direction::Seal, 32);
    assert!(!turns[0].engine.starts_with("model"), "{turns:?}");
    assert!(
        turns.last().unwrap().engine.starts_with("model"),
        "{turns:?}"
    );

    let mut transform = dispatch.transform(&keymat);
    let mut seal = |inner_bytes, packets| {
        let bytes = esp_bytes(suite, inner_bytes);
        let packet = |index| Packet {
            at: index * bytes,
            bytes,
            sequence_high: 0,
        };
        let packets: Vec<_> = (0..packets).map(packet).collect();
        transform
            .seal(&mut vec![0; packets.len() * bytes], &packets)
            .unwrap();
        dispatch.replaced().len()
    };
    // Nanoseconds on the CPU against 10 µs; then 4 MB, hundreds of microseconds on any CPU.
    assert_eq!((0..100).map(|_| seal(40, 1)).sum::<usize>(), 0);
    assert_eq!(seal(65_000, 64), 1);
}

#[test]
fn a_named_engine_is_not_compared() {
    let dispatch = prepare(&Choice::Named("aws-lc".to_owned()), Suite::Aes256Gcm);
    assert_eq!(dispatch.engine(), "aws-lc");
    assert!(dispatch.version().starts_with("aws-lc-rs "));
    assert!(dispatch.curves().is_empty() && dispatch.turns(Direction::Seal, 32).is_empty());
    assert!(dispatch.passed_over().is_empty() && dispatch.replaced().is_empty());
    let unknown = Choice::Named("opensll".to_owned());
    let error = Dispatch::prepare(&unknown, Suite::Aes256Gcm).unwrap_err();
    assert!(
        error.to_string().contains("there is no engine `opensll`"),
        "{error}"
    );
}

#[test]
fn all_engines_that_have_the_suite_are_compared() {
    let dispatch = prepare(&Choice::Auto, Suite::Aes256Gcm);
    let compared: Vec<_> = dispatch
        .curves()
        .iter()
        .map(|curves| curves.engine.as_str())
        .collect();
    if usable(Suite::Aes256Gcm).len() > 1 {
        assert_eq!(compared, usable(Suite::Aes256Gcm));
    }
    for direction in Direction::ALL {
        let turns = dispatch.turns(direction, 32);
        assert!(
            turns
                .windows(2)
                .all(|two| two[0].from_inner_bytes < two[1].from_inner_bytes)
        );
    }
    // The description has the engine of the last turn.
    let last = dispatch.turns(Direction::Seal, 32).pop();
    let last = last.map_or(dispatch.engine().to_owned(), |turn| turn.engine);
    assert!(dispatch.engine().contains(&last), "{dispatch:?}");
}
