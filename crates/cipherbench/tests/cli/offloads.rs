//! The examination of offloads on this machine.

use crate::support::{Sandbox, end};
use serde_json::Value;

pub(crate) fn a_lab_without_interfaces_is_refused() {
    let sandbox = Sandbox::new();
    let ended = end(&mut sandbox.program(&["doctor", "--offloads", "--lab", "memory"])).exits(2);
    ended
        .says("has no network interfaces")
        .says("labs of kind `namespaces`");
    let ended = end(&mut sandbox.program(&["doctor", "--time", "1 min"])).exits(2);
    ended.says("--offloads");
}

/// On this kernel nothing damages packets on our encryptor's path; other findings depend on the
/// machine's load.
pub(crate) fn no_combination_damages_packets_through_our_encryptor() {
    let sandbox = Sandbox::new();
    let arguments = [
        "doctor",
        "--offloads",
        "--json",
        "--lab",
        "lab.yaml",
        "--time",
        "90 s",
    ];
    let ended = end(&mut sandbox.program(&arguments));
    let result: Value = serde_json::from_str(&ended.stdout).expect("one document");
    let findings = result["findings"].as_array().expect("a list");
    for finding in findings {
        let symptoms = finding["symptoms"].as_array().expect("a list");
        for symptom in symptoms {
            let words = symptom["words"].as_str().expect("words");
            assert!(!words.starts_with("corrupted"), "{result:#}");
        }
    }
    let as_found = result["as_found"].as_array().expect("a list");
    // TCP, four kinds of UDP and the largest packet, both ways.
    assert_eq!(as_found.len(), 12, "{result:#}");
    assert!(
        as_found.iter().all(|check| check["fault"].is_null()),
        "{result:#}"
    );
}
