//! Refused calls: status codes and texts.

use crate::kme::lab::{AT_B, EXPIRED, FOREIGN, Lab, STRANGER, answer};
use crate::kme::schema;
use serde_json::json;

#[test]
fn texts_and_codes_are_the_standards() {
    let keys = "{ extensions: { abc_route_type: [direct] } }";
    let Some(lab) = Lab::with_curl(keys) else {
        return;
    };
    let enc_keys = "/api/v1/keys/gw2/enc_keys";
    let dec_keys = "/api/v1/keys/gw1/dec_keys";
    let refused = [
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?size=257"),
            json!({"message": "size shall be a multiple of 8"}),
        ),
        (
            lab.post("gw1", enc_keys, r#"{"size": 129}"#),
            json!({"message": "size shall be a multiple of 8"}),
        ),
        (
            lab.post(
                "gw1",
                enc_keys,
                r#"{"extension_mandatory": [{"abc_route_type": "direct"}, {"abc_transfer_method": "qkd"}]}"#,
            ),
            json!({
                "message": "not all extension_mandatory parameters are supported",
                "details": [{"extension_mandatory_unsupported": "abc_transfer_method is not supported"}],
            }),
        ),
        (
            lab.post("gw1", enc_keys, r#"{"extension_mandatory": [{"abc_route_type": "indirect"}]}"#),
            json!({"message": "not all extension_mandatory request options could be met"}),
        ),
        (
            lab.get("gw2", &format!("{dec_keys}?key_ID=bc490419-7d60-487f-adc1-4ddcc177c139")),
            json!({"message": "one or more keys specified are not found on KME"}),
        ),
        (
            lab.post("gw2", dec_keys, r#"{"key_IDs": [{"key_ID": "no UUID at all"}]}"#),
            json!({"message": "one or more keys specified are not found on KME"}),
        ),
    ];
    for (answer, expected) in refused {
        let error = answer.json(400);
        schema::check(&schema::error(), &error);
        assert_eq!(error, expected);
    }
}

#[test]
fn a_bad_request_is_answered_with_the_reason() {
    let Some(lab) = Lab::with_curl("{ max_per_request: 4, max_sae_ids: 1 }") else {
        return;
    };
    let enc_keys = "/api/v1/keys/gw2/enc_keys";
    let dec_keys = "/api/v1/keys/gw1/dec_keys";
    let long = format!(
        r#"{{"key_IDs": [{{"key_ID": "{}"}}]}}"#,
        "x".repeat(600_000)
    );
    std::fs::write(lab.folder().join("long.json"), long).unwrap();
    for (answer, words) in [
        (lab.get("gw1", "/api/v1/keys/gw9/status"), "is not known"),
        (lab.get("gw1", "/api/v1/keys/gw9/enc_keys"), "is not known"),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?number=5"),
            "1 to 4 keys",
        ),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?number=0"),
            "1 to 4 keys",
        ),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?number=x"),
            "not a whole number",
        ),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?size=32"),
            "from 64 to 1024",
        ),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?size=1032"),
            "from 64 to 1024",
        ),
        (
            lab.get("gw1", "/api/v1/keys/gw2/enc_keys?sise=64"),
            "use POST",
        ),
        (
            lab.post(
                "gw1",
                enc_keys,
                r#"{"additional_slave_SAE_IDs": ["gw3", "gw4"]}"#,
            ),
            "more than 1",
        ),
        (
            lab.post("gw1", enc_keys, r#"{"additional_slave_SAE_IDs": ["gw9"]}"#),
            "is not known",
        ),
        (lab.post("gw1", enc_keys, "[1]"), "not a JSON object"),
        (
            lab.post("gw1", enc_keys, "{"),
            "the body is not a Key request",
        ),
        (lab.get("gw2", dec_keys), "one `key_ID`"),
        (
            lab.post("gw2", dec_keys, r#"{"key_IDs": []}"#),
            "1 to 4 keys",
        ),
        (
            lab.post("gw2", dec_keys, r#"{"keyIDs": []}"#),
            "the body is not a Key IDs",
        ),
        (lab.post("gw2", dec_keys, "@long.json"), "longer than"),
        (
            lab.post(
                "gw2",
                dec_keys,
                r#"{"key_IDs": [{"key_ID": "a"}, {"key_ID": "A"}]}"#,
            ),
            "twice",
        ),
    ] {
        let error = answer.json(400);
        schema::check(&schema::error(), &error);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "`{words}` is not in `{message}`");
    }
}

#[test]
fn undefined_calls_are_refused_with_http_statuses() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    for path in [
        "/",
        "/api/v1/keys/gw2",
        "/api/v1/keys/gw2/keys",
        "/metrics",
        "/faults",
    ] {
        let error = lab.get("gw1", path).json(404);
        schema::check(&schema::error(), &error);
    }
    let posted = lab.post("gw1", "/api/v1/keys/gw2/status", "{}");
    schema::check(&schema::error(), &posted.json(405));
}

#[test]
fn an_sae_of_another_kme_gets_401_and_no_body() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let kme_a = lab.kme_of("gw1");
    for caller in AT_B.into_iter().chain([STRANGER]) {
        for path in [
            "gw1/status",
            "gw1/enc_keys",
            "gw1/dec_keys",
            "gw1/enc_keys?size=257",
        ] {
            let refused = lab.get(caller, &format!("{kme_a}/api/v1/keys/{path}"));
            assert_eq!(
                (refused.status, refused.body.as_str()),
                (401, ""),
                "{caller} {path}"
            );
        }
    }
}

#[test]
fn a_key_is_refused_to_saes_that_the_master_did_not_name() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let sent = lab.get("gw1", "/api/v1/keys/gw2/enc_keys").json(200);
    let id = sent["keys"][0]["key_ID"].as_str().unwrap();
    let path = format!("/api/v1/keys/gw1/dec_keys?key_ID={id}");
    // Another SAE of the right KME, one of the master's KME, and the master itself.
    for other in ["gw4", "gw3", "gw1"] {
        let refused = lab.get(other, &path);
        assert_eq!(
            (refused.status, refused.body.as_str()),
            (401, ""),
            "{other}"
        );
    }
    // The path names the master; under the slave's own name the key is not found.
    let own = format!("/api/v1/keys/gw2/dec_keys?key_ID={id}");
    assert_eq!(lab.get("gw2", &own).status, 400);
    assert_eq!(lab.get("gw2", &path).json(200), sent);
}

#[test]
fn without_a_good_certificate_there_is_no_connection() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let url = lab.kme_of("gw1") + "/api/v1/keys/gw2/status";
    let commands = || {
        [
            lab.bare_curl(&url),
            lab.curl(FOREIGN, &url),
            lab.curl(EXPIRED, &url),
        ]
    };
    for version in [["--tls-max", "1.2"], ["--tls-max", "1.3"]] {
        for mut command in commands() {
            let output = command.args(version).output().unwrap();
            assert!(!output.status.success(), "{command:?}");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.ends_with("\n000 "), "{command:?}: {text}");
        }
    }
    // The same with a good one.
    assert_eq!(lab.get("gw1", &url).status, 200);
    let old = answer(lab.curl("gw1", &url).args(["--tls-max", "1.2"]));
    assert_eq!(old.status, 200);
}
