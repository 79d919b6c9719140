//! Faults injected through the fault address.

use crate::kme::lab::{Answer, Lab, answer};
use crate::kme::schema;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn get(lab: &Lab) -> Answer {
    lab.get("gw1", "/api/v1/keys/gw2/enc_keys")
}

/// The other side's answer for the same keys.
fn find(lab: &Lab, sent: &Answer) -> Answer {
    let container = sent.json(200);
    let id = container["keys"][0]["key_ID"].as_str().unwrap();
    lab.get("gw2", &format!("/api/v1/keys/gw1/dec_keys?key_ID={id}"))
}

#[track_caller]
fn arm(lab: &Lab, body: &Value) {
    let armed = lab.faults("POST", "/faults", &body.to_string());
    assert_eq!((armed.status, armed.body.as_str()), (204, ""), "{body}");
}

#[test]
fn a_kme_is_out_of_service_as_often_as_configured() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(
        &lab,
        &json!({"kme": "kme-a", "fault": "unavailable", "count": 2}),
    );
    for _ in 0..2 {
        let error = get(&lab).json(503);
        schema::check(&schema::error(), &error);
    }
    assert_eq!(get(&lab).status, 200);
    // At all KMEs, one call, until it is cleared.
    arm(&lab, &json!({"fault": "unavailable", "call": "dec_keys"}));
    let sent = get(&lab);
    for _ in 0..3 {
        assert_eq!(find(&lab, &sent).status, 503);
    }
    assert_eq!(lab.faults("DELETE", "/faults", "").status, 204);
    assert_eq!(find(&lab, &sent).status, 200);
}

#[test]
fn an_answer_is_delayed() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(
        &lab,
        &json!({"kme": "kme-a", "fault": "delay", "delay": "700 ms", "count": 1}),
    );
    let start = Instant::now();
    assert_eq!(get(&lab).status, 200);
    assert!(start.elapsed() >= Duration::from_millis(700));
    // A client that does not wait that long has no answer.
    arm(
        &lab,
        &json!({"fault": "delay", "delay": "60 s", "call": "status"}),
    );
    let mut command = lab.curl("gw1", "/api/v1/keys/gw2/status");
    let output = command.args(["--max-time", "0.3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(28), "curl's code for a time-out");
}

#[test]
fn keys_are_depleted_on_demand() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(&lab, &json!({"kme": "kme-a", "fault": "depleted"}));
    let stored = || {
        let status = lab.get("gw1", "/api/v1/keys/gw2/status").json(200);
        status["stored_key_count"].as_u64().unwrap()
    };
    assert_eq!(stored(), 0);
    assert_eq!(
        get(&lab).json(503),
        json!({"message": "there are not enough keys at present"})
    );
    // Only at that KME.
    assert_eq!(lab.get("gw2", "/api/v1/keys/gw1/enc_keys").status, 200);
    let cleared = lab.faults(
        "DELETE",
        "/faults",
        r#"{"kme": "kme-a", "fault": "depleted"}"#,
    );
    assert_eq!(cleared.status, 204);
    assert!(stored() > 0);
    assert_eq!(get(&lab).status, 200);
}

#[test]
fn one_side_gets_another_key() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(
        &lab,
        &json!({"kme": "kme-b", "fault": "wrong_key", "count": 1}),
    );
    let sent = get(&lab);
    let (sent_key, found_key) = (sent.json(200), find(&lab, &sent).json(200));
    schema::check(&schema::key_container(), &found_key);
    let [a, b] = [&sent_key, &found_key].map(|container| &container["keys"][0]);
    assert_eq!(a["key_ID"], b["key_ID"]);
    assert_ne!(a["key"], b["key"]);
    let sent = get(&lab);
    assert_eq!(find(&lab, &sent).json(200), sent.json(200));
}

#[test]
fn a_key_is_delivered_twice() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let first = get(&lab);
    assert_eq!(find(&lab, &first).status, 200);
    arm(
        &lab,
        &json!({"kme": "kme-a", "fault": "double_delivery", "count": 1}),
    );
    let second = get(&lab);
    assert_eq!(second.json(200), first.json(200));
    assert_eq!(find(&lab, &second).json(200), first.json(200));
    assert_eq!(find(&lab, &second).status, 400);
    arm(
        &lab,
        &json!({"kme": "kme-b", "fault": "double_delivery", "count": 1}),
    );
    let third = get(&lab);
    assert_ne!(third.json(200), second.json(200));
    for status in [200, 200, 400] {
        assert_eq!(find(&lab, &third).status, status);
    }
}

#[test]
fn a_key_is_lost_at_one_side() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(
        &lab,
        &json!({"kme": "kme-b", "fault": "lost_key", "count": 1}),
    );
    let sent = get(&lab);
    for _ in 0..2 {
        assert_eq!(
            find(&lab, &sent).json(400),
            json!({"message": "one or more keys specified are not found on KME"})
        );
    }
    let sent = get(&lab);
    assert_eq!(find(&lab, &sent).status, 200);
}

#[test]
fn an_answer_is_garbage() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    arm(
        &lab,
        &json!({"fault": "garbage", "count": 1, "call": "status"}),
    );
    let broken = lab.get("gw1", "/api/v1/keys/gw2/status");
    assert_eq!(broken.status, 200);
    assert!(
        serde_json::from_str::<Value>(&broken.body).is_err(),
        "{broken:?}"
    );
    lab.get("gw1", "/api/v1/keys/gw2/status").json(200);
}

#[test]
fn armed_faults_are_listed() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let asked = [
        json!({"kme": "kme-a", "fault": "delay", "delay": "1500 ms", "call": "enc_keys", "count": 3}),
        json!({"kme": "kme-b", "fault": "lost_key"}),
    ];
    for fault in &asked {
        arm(&lab, fault);
    }
    let armed = lab.faults("GET", "/faults", "").json(200);
    let mut expected = json!(asked);
    expected[0]["delay"] = json!("1.5 s");
    assert_eq!(armed, expected);
    assert_eq!(
        lab.faults("DELETE", "/faults", r#"{"kme": "kme-a"}"#)
            .status,
        204
    );
    let armed = lab.faults("GET", "/faults", "").json(200);
    assert_eq!(armed, json!([expected[1]]));
}

#[test]
fn an_unknown_fault_is_refused_with_its_position() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    for (body, words) in [
        (r#"{"fault": "503"}"#, "`503` is not known"),
        (
            r#"{"kme": "kme-c", "fault": "garbage"}"#,
            "no KME has the name `kme-c`",
        ),
        (r#"{"fault": "delay"}"#, "how long the delay is"),
        (
            r#"{"fault": "garbage", "times": 3}"#,
            "`times` is not known",
        ),
        ("", "`fault` is missing"),
        ("[]", "expected a map"),
        ("{", "error: "),
    ] {
        let refused = lab.faults("POST", "/faults", body);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains(words), "{body}: {}", refused.body);
    }
    assert_eq!(lab.faults("GET", "/faults", "").json(200), json!([]));
}

#[test]
fn all_calls_and_keys_are_counted() {
    let Some(lab) = Lab::with_curl("{ rate: 0, store: 100 }") else {
        return;
    };
    let sent = lab.get("gw1", "/api/v1/keys/gw2/enc_keys?number=3");
    assert_eq!(find(&lab, &sent).status, 200);
    assert_eq!(find(&lab, &sent).status, 400);
    arm(
        &lab,
        &json!({"kme": "kme-b", "fault": "unavailable", "count": 1}),
    );
    assert_eq!(lab.get("gw2", "/api/v1/keys/gw1/status").status, 503);
    let metrics = lab.faults("GET", "/metrics", "");
    assert_eq!(metrics.status, 200);
    for line in [
        "cipherbench_kme_answers_total{kme=\"kme-a\",call=\"enc_keys\",status=\"200\"} 1",
        "cipherbench_kme_answers_total{kme=\"kme-b\",call=\"dec_keys\",status=\"200\"} 1",
        "cipherbench_kme_answers_total{kme=\"kme-b\",call=\"dec_keys\",status=\"400\"} 1",
        "cipherbench_kme_answers_total{kme=\"kme-b\",call=\"status\",status=\"503\"} 1",
        "cipherbench_kme_keys_total{kme=\"kme-a\",to=\"master\"} 3",
        "cipherbench_kme_keys_total{kme=\"kme-b\",to=\"slave\"} 1",
        "cipherbench_kme_faults_total{kme=\"kme-b\",fault=\"unavailable\"} 1",
        "cipherbench_kme_faults_total{kme=\"kme-a\",fault=\"unavailable\"} 0",
        "cipherbench_kme_stored_keys{kme=\"kme-a\",peer=\"kme-b\"} 97",
        "cipherbench_kme_waiting_keys 2",
        "cipherbench_kme_forgotten_keys_total 0",
    ] {
        assert!(
            metrics.body.lines().any(|other| other == line),
            "{line} is missing in\n{}",
            metrics.body
        );
    }
    // Whatever is counted, no key is shown.
    let container = sent.json(200);
    for key in container["keys"].as_array().unwrap() {
        for value in ["key", "key_ID"] {
            assert!(!metrics.body.contains(key[value].as_str().unwrap()));
        }
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let Some(lab) = Lab::with_curl("{}") else {
        return;
    };
    let address = lab.simulator().faults().unwrap();
    let url = format!("http://{address}/api/v1/keys/gw2/enc_keys");
    assert_eq!(answer(&mut lab.bare_curl(&url)).status, 404);
    assert_eq!(lab.faults("PUT", "/faults", "{}").status, 405);
}
