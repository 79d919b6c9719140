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

/// On this kernel nothing breaks our encryptor's path; what its offloads gain may be listed.
pub(crate) fn the_path_through_our_encryptor_is_intact_in_every_combination() {
    let sandbox = Sandbox::new();
    let arguments = [
        "doctor",
        "--offloads",
        "--json",
        "--lab",
        "lab.yaml",
        "--time",
        "5 min",
    ];
    let ended = end(&mut sandbox.program(&arguments));
    let result: Value = serde_json::from_str(&ended.stdout).expect("one document");
    let findings = result["findings"].as_array().expect("a list");
    for finding in findings {
        let symptoms = finding["symptoms"].as_array().expect("a list");
        for symptom in symptoms {
            let words = symptom["words"].as_str().expect("words");
            assert!(words.starts_with("slow"), "{result:#}");
        }
    }
    let as_found = result["as_found"].as_array().expect("a list");
    // TCP, four kinds of UDP, the largest packet and test frames, both ways.
    assert_eq!(as_found.len(), 14, "{result:#}");
    assert!(
        as_found.iter().all(|check| check["fault"].is_null()),
        "{result:#}"
    );
    assert_eq!(result["pairs"], result["pairs_covered"], "{result:#}");
}
