//! Valid uses of the three calls.

use crate::kme::lab::{Lab, wait_for};
use crate::kme::schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Keys of a container by ID; checked against the standard.
#[track_caller]
fn keys(container: &Value) -> BTreeMap<String, String> {
    schema::check(&schema::key_container(), container);
    let keys = container["keys"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found: BTreeMap<_, _> = keys
        .iter()
        .map(|key| (text(&key["key_ID"]), text(&key["key"])))
        .collect();
    assert_eq!(found.len(), keys.len(), "an ID occurs twice: {container:#}");
    found
}

/// Length in bits of the decoded base64.
fn bits(base64: &str) -> usize {
    let padding = base64.bytes().filter(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3 - padding) * 8
}

fn key_ids<'a>(ids: impl IntoIterator<Item = &'a String>) -> String {
    let ids: Vec<_> = ids.into_iter().map(|id| json!({"key_ID": id})).collect();
    json!({"key_IDs": ids}).to_string()
}

#[test]
fn the_status_reports_the_available_keys() {
    let Some(lab) = Lab::with_curl("{ store: 500, max_per_request: 20 }") else {
        return;
    };
    let status = lab.get("gw2", "/api/v1/keys/gw1/status").json(200);
    schema::check(&schema::status(), &status);
    let expected = json!({
        "source_KME_ID": "kme-b", "target_KME_ID": "kme-a",
        "master_SAE_ID": "gw2", "slave_SAE_ID": "gw1",
        "key_size": 256, "stored_key_count": 500, "max_key_count": 500,
        "max_key_per_request": 20, "max_key_size": 1024, "min_key_size": 64, "max_SAE_ID_count": 8,
    });
    assert_eq!(status, expected);
}

#[test]
fn the_slave_gets_the_masters_keys_once() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let requests = [
        (lab.get("gw1", "/api/v1/keys/gw2/enc_keys"), 1, 256),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?number=3&size=1024"),
            3,
            1024,
        ),
        (lab.get("gw1", "/api/v1/keys/gw2/enc_keys?size=64"), 1, 64),
        (lab.post("gw1", "/api/v1/keys/gw2/enc_keys", "{}"), 1, 256),
        (lab.post("gw1", "/api/v1/keys/gw2/enc_keys", ""), 1, 256),
        (
            lab.post(
                "gw1",
                "/api/v1/keys/gw2/enc_keys",
                r#"{"number": 128, "size": 504}"#,
            ),
            128,
            504,
        ),
    ];
    for (answer, number, size) in requests {
        let sent = keys(&answer.json(200));
        assert_eq!(sent.len(), number);
        assert!(sent.values().all(|key| bits(key) == size), "{sent:?}");
        // One by GET, with its ID in capital letters; the rest by POST.
        let first = sent.keys().next().unwrap();
        let path = format!("/api/v1/keys/gw1/dec_keys?key_ID={}", first.to_uppercase());
        let mut found = keys(&lab.get("gw2", &path).json(200));
        if number > 1 {
            let rest = key_ids(sent.keys().skip(1));
            found.extend(keys(
                &lab.post("gw2", "/api/v1/keys/gw1/dec_keys", &rest)
                    .json(200),
            ));
        }
        assert_eq!(found, sent);
        let again = lab.post("gw2", "/api/v1/keys/gw1/dec_keys", &key_ids(sent.keys()));
        let error = again.json(400);
        schema::check(&schema::error(), &error);
        let expected = json!({"message": "one or more keys specified are not found on KME"});
        assert_eq!(error, expected);
    }
}

#[test]
fn several_slaves_share_a_key() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    // The standard's own example with other names.
    let request = json!({
        "number": 20, "size": 512, "additional_slave_SAE_IDs": ["gw3", "gw4"],
        "extension_optional": [{"abc_max_age": 30000}],
    });
    let sent = lab.post("gw1", "/api/v1/keys/gw2/enc_keys", &request.to_string());
    let sent = keys(&sent.json(200));
    for slave in ["gw2", "gw3", "gw4"] {
        let found = lab.post(slave, "/api/v1/keys/gw1/dec_keys", &key_ids(sent.keys()));
        assert_eq!(keys(&found.json(200)), sent, "{slave}");
    }
}

#[test]
fn fields_for_future_use_are_accepted() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let sent = keys(&lab.get("gw1", "/api/v1/keys/gw2/enc_keys").json(200));
    let id = sent.keys().next().unwrap();
    let request = json!({
        "key_IDs": [{"key_ID": id, "key_ID_extension": {"a": 1}}],
        "key_IDs_extension": {"b": null},
    });
    let found = lab.post("gw2", "/api/v1/keys/gw1/dec_keys", &request.to_string());
    assert_eq!(keys(&found.json(200)), sent);
}

#[test]
fn keys_run_out_and_are_replenished_at_the_links_rate() {
    let Some(lab) = Lab::with_curl("{ rate: 5, store: 20, stored: 3 }") else {
        return;
    };
    let get = |number: u32| lab.get("gw1", &format!("/api/v1/keys/gw2/enc_keys?number={number}"));
    // The link never stores more than its capacity.
    let error = get(21).json(503);
    schema::check(&schema::error(), &error);
    let expected = json!({"message": "there are not enough keys at present"});
    assert_eq!(error, expected);
    assert_eq!(keys(&get(3).json(200)).len(), 3);
    let container = wait_for("5 keys", || {
        let answer = get(5);
        (answer.status != 503).then(|| answer.json(200))
    });
    assert_eq!(keys(&container).len(), 5);
}

#[test]
fn answers_with_keys_must_not_be_cached() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let mut command = lab.curl("gw1", "/api/v1/keys/gw2/enc_keys");
    let output = command.arg("--include").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().to_lowercase();
    assert!(text.contains("\r\ncache-control: no-store\r\n"), "{text}");
}
