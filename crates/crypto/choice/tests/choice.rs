//! Choices of engines in files.

use std::time::Duration;

use catalog::{Choice, CpuChoice, EngineModel};
use proptest::prelude::*;

fn read(text: &str, insecure: bool) -> Result<Choice, String> {
    let document = yaml::parse("c.yaml", &format!("engine: {text}\n")).unwrap();
    let choice = document.decode(|root| {
        root.map(|map| {
            map.required("engine")
                .and_then(|node| choice::read(node, insecure))
        })
    });
    choice.map_err(|mistakes| mistakes.to_string())
}

fn named(name: &str) -> Choice {
    Choice::Named(name.to_owned())
}

fn model() -> EngineModel {
    EngineModel {
        latency: Duration::from_micros(50),
        rate_bps: 10_000_000_000,
        queue: 64,
        parallel: 2,
        errors_ppm: 1_000,
        engine: CpuChoice::Auto,
    }
}

#[test]
fn a_name_a_threshold_and_a_model_are_read() {
    assert_eq!(read("auto", false), Ok(Choice::Auto));
    assert_eq!(read("aws-lc", false), Ok(named("aws-lc")));
    assert_eq!(
        read("{ below: 128 B, use: aws-lc, else: ipsec-mb }", false),
        Ok(Choice::Threshold {
            below: 128,
            small: "aws-lc".to_owned(),
            large: "ipsec-mb".to_owned(),
        })
    );
    let text = "{ model: { latency: 50 us, rate: 10 Gbit/s, queue: 64, parallel: 2, \
                errors: 0.001, engine: auto }, else: auto }";
    assert_eq!(
        read(text, false),
        Ok(Choice::Model {
            model: model(),
            otherwise: Some(CpuChoice::Auto),
        })
    );
    assert_eq!(
        read(
            "{ model: { latency: 1 ms, rate: 1 Gbit/s, engine: aws-lc, errors: 2 % } }",
            false
        ),
        Ok(Choice::Model {
            model: EngineModel {
                latency: Duration::from_millis(1),
                rate_bps: 1_000_000_000,
                queue: 64,
                parallel: 1,
                errors_ppm: 20_000,
                engine: CpuChoice::Named("aws-lc".to_owned()),
            },
            otherwise: None,
        })
    );
}

#[test]
fn every_mistake_is_reported_with_its_position_and_a_correction() {
    let mistakes: [(&str, &str, &[&str]); 16] = [
        (
            "aws",
            "c.yaml:1:9",
            &["engine `aws` is not known", "known engines are auto, "],
        ),
        (
            "[auto]",
            "c.yaml:1:1",
            &["expected an engine, found a list"],
        ),
        (
            "{}",
            "c.yaml:1:1",
            &["does not select an engine", "below: 128 B"],
        ),
        (
            "{ use: aws-lc, else: aws-lc }",
            "c.yaml:1:1",
            &["does not select an engine"],
        ),
        (
            "{ below: 0 B, use: aws-lc, else: aws-lc }",
            "c.yaml:1:18",
            &["`0 B` is out of range", "from 1 B to 65535 B"],
        ),
        (
            "{ below: 65 KiB, use: aws-lc, else: aws-lc }",
            "c.yaml:1:18",
            &["`65 KiB` is out of range"],
        ),
        (
            "{ below: 128, use: aws-lc, else: aws-lc }",
            "c.yaml:1:18",
            &["has no unit", "128 B"],
        ),
        (
            "{ below: 64 B, use: aws-lc }",
            "c.yaml:1:1",
            &["has no key `else`"],
        ),
        (
            "{ below: 64 B, use: auto, else: aws-lc }",
            "c.yaml:1:29",
            &["engine `auto` is not known"],
        ),
        (
            "{ below: 64 B, use: aws-lc, else: aws-lc, more: 1 }",
            "c.yaml:1:51",
            &["key `more` is not known here"],
        ),
        (
            "{ below: 64 B, use: aws-lc, model: { latency: 1 us, rate: 1 Gbit/s } }",
            "c.yaml:1:37",
            &["either a threshold or a model", "remove"],
        ),
        (
            "{ model: { latency: 1 us, rate: 0 Gbit/s } }",
            "c.yaml:1:41",
            &["out of range", "`rate` must be from 1 Mbit/s to"],
        ),
        (
            "{ model: { latency: 1 us } }",
            "c.yaml:1:11",
            &["`model` has no key `rate`"],
        ),
        (
            "{ model: { latency: 1 us, rate: 1 Gbit/s, errors: 1.5 } }",
            "c.yaml:1:59",
            &["a share of 1.5", "from 0 to 1"],
        ),
        (
            "{ model: { latency: 1 us, rate: 1 Gbit/s, errors: 0.12345678 } }",
            "c.yaml:1:59",
            &["finer than a millionth"],
        ),
        (
            "{ model: { latency: 1 us, rate: 1 Gbit/s, errors: 120 % } }",
            "c.yaml:1:59",
            &["out of range"],
        ),
    ];
    for (text, place, words) in mistakes {
        let report = read(text, false).expect_err(text);
        assert!(report.contains(place), "{place} is not in:\n{report}");
        for words in words {
            assert!(report.contains(words), "{words} is not in:\n{report}");
        }
    }
}

#[test]
fn the_control_requires_insecure_everywhere() {
    let texts = [
        "\"null\"",
        "{ below: 64 B, use: \"null\", else: aws-lc }",
        "{ below: 64 B, use: aws-lc, else: \"null\" }",
        "{ model: { latency: 1 us, rate: 1 Gbit/s, engine: \"null\" } }",
        "{ model: { latency: 1 us, rate: 1 Gbit/s }, else: \"null\" }",
    ];
    for text in texts {
        let report = read(text, false).expect_err(text);
        assert!(
            report.contains("neither encrypts nor authenticates"),
            "{report}"
        );
        assert!(report.contains("insecure: true"), "{report}");
        let choice = read(text, true).expect(text);
        assert!(choice.is_null(), "{text}");
    }
    assert!(!Choice::Auto.is_null());
    assert!(
        !read("{ below: 64 B, use: aws-lc, else: ipsec-mb }", true)
            .unwrap()
            .is_null()
    );
}

#[test]
fn errors_of_parsing_give_a_reason() {
    let error = "aws".parse::<Choice>().unwrap_err().to_string();
    assert!(
        error.starts_with("the engine `aws` is not known: "),
        "{error}"
    );
    assert!("".parse::<Choice>().is_err());
    assert!("{ below: ".parse::<Choice>().is_err());
    assert_eq!("null".parse(), Ok(named("null")));
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("aws-lc"), Just("ipsec-mb"), Just("null")].prop_map(str::to_owned)
}

fn any_cpu() -> impl Strategy<Value = CpuChoice> {
    prop_oneof![Just(CpuChoice::Auto), any_name().prop_map(CpuChoice::Named)]
}

fn any_choice() -> impl Strategy<Value = Choice> {
    let model = (
        0u64..1_000_000_000,
        1_000_000u64..10_000_000_000_000,
        1u32..=4096,
        1u16..=256,
    );
    let model = (model, 0u32..=1_000_000, any_cpu()).prop_map(|(numbers, errors_ppm, engine)| {
        let (latency_ns, rate_bps, queue, parallel) = numbers;
        EngineModel {
            latency: Duration::from_nanos(latency_ns),
            rate_bps,
            queue,
            parallel,
            errors_ppm,
            engine,
        }
    });
    prop_oneof![
        Just(Choice::Auto),
        any_name().prop_map(Choice::Named),
        (1usize..=65_535, any_name(), any_name()).prop_map(|(below, small, large)| {
            Choice::Threshold {
                below,
                small,
                large,
            }
        }),
        (model, proptest::option::of(any_cpu()))
            .prop_map(|(model, otherwise)| Choice::Model { model, otherwise }),
    ]
}

proptest! {
    #[test]
    fn a_choice_survives_a_round_trip(choice in any_choice()) {
        let text = choice.to_string();
        prop_assert_eq!(read(&text, true), Ok(choice.clone()));
        prop_assert_eq!(text.parse(), Ok(choice.clone()));
        let json = serde_json::to_string(&choice).unwrap();
        prop_assert_eq!(serde_json::from_str::<Choice>(&json).unwrap(), choice);
    }
}
