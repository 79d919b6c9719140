//! Texts of choices of engines in journals.

use catalog::{Choice, CpuChoice, EngineModel};
use std::time::Duration;

fn named(name: &str) -> Choice {
    Choice::Named(name.to_owned())
}

#[test]
fn texts_in_journals_are_read_as_they_were_written() {
    let model = EngineModel {
        latency: Duration::from_micros(50),
        rate_bps: 10_000_000_000,
        queue: 64,
        parallel: 2,
        errors_ppm: 1_000,
        engine: CpuChoice::Named("null".to_owned()),
    };
    let choices = [
        ("auto", Choice::Auto),
        ("ipsec-mb", named("ipsec-mb")),
        ("\"null\"", named("null")),
        (
            "{ below: 128 B, use: rustcrypto, else: \"null\" }",
            Choice::Threshold {
                below: 128,
                small: "rustcrypto".to_owned(),
                large: "null".to_owned(),
            },
        ),
        (
            "{ model: { latency: 50 µs, rate: 10 Gbit/s, queue: 64, parallel: 2, errors: 0.1 %, \
             engine: \"null\" }, else: auto }",
            Choice::Model {
                model: model.clone(),
                otherwise: Some(CpuChoice::Auto),
            },
        ),
        (
            "{ model: { latency: 50 µs, rate: 10 Gbit/s, queue: 64, parallel: 2, errors: 0.1 %, \
             engine: \"null\" } }",
            Choice::Model {
                model,
                otherwise: None,
            },
        ),
    ];
    for (text, choice) in choices {
        assert_eq!(choice.to_string(), text);
        assert_eq!(text.parse().as_ref(), Ok(&choice), "{text}");
        let json = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<Choice>(&json).unwrap(), choice);
    }
}

#[test]
fn what_no_choice_can_be_is_refused() {
    for text in [
        "",
        "ipsec",
        "{}",
        "{ use: aws-lc, else: aws-lc }",
        "{ below: 0 B, use: aws-lc, else: aws-lc }",
        "{ below: 128, use: aws-lc, else: aws-lc }",
        "{ below: 64 B, use: aws-lc }",
        "{ below: 64 B, use: auto, else: aws-lc }",
        "{ below: 64 B, use: aws-lc, else: aws-lc, more: 1 }",
        "{ below: 64 B, use: aws-lc, model: { latency: 1 us, rate: 1 Gbit/s } }",
        "{ model: { latency: 1 us, rate: 0 Gbit/s } }",
        "{ model: { latency: 1 us } }",
        "{ model: { latency: 1 us, rate: 1 Gbit/s, queue: 0 } }",
        "{ model: { latency: 1 us, rate: 1 Gbit/s, errors: 120 % } }",
    ] {
        assert!(text.parse::<Choice>().is_err(), "{text}");
    }
}
