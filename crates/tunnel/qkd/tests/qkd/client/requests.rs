//! The requests that the client sends.

use crate::client::server::{Reply, Server, http, json};
use crate::client::setup::{run, url};
use qkd::types::{Extension, KeyRequest};
use qkd::{Failure, Kme};
use serde_json::{Value, json as value};

const IDS: [&str; 2] = [
    "bc490419-7d60-487f-adc1-4ddcc177c139",
    "0a782fb5-3434-48fe-aa4d-14f41d46cf92",
];

pub(crate) fn status(master: &str) -> String {
    value!({
        "source_KME_ID": "kme1", "target_KME_ID": "kme2", "master_SAE_ID": master, "slave_SAE_ID": "gw2",
        "key_size": 256, "stored_key_count": 25000, "max_key_count": 100_000, "max_key_per_request": 128,
        "max_key_size": 1024, "min_key_size": 64, "max_SAE_ID_count": 0
    })
    .to_string()
}

/// A container of keys of two bytes.
pub(crate) fn container(keys: &[(&str, &str)]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|(id, key)| value!({"key_ID": id, "key": key}))
        .collect();
    value!({ "keys": keys }).to_string()
}

fn extension(name: &str, value: Value) -> Extension {
    [(name.to_owned(), value)].into_iter().collect()
}

#[test]
fn get_is_used_where_it_suffices_and_post_elsewhere() {
    let server = Server::new(|request| {
        let body = match (request.path.contains("/status"), request.number) {
            (true, _) => status("gw1"),
            (_, 1) => container(&[(IDS[0], "AQI=")]),
            (_, 2) => container(&[(IDS[1], "AwQ=")]),
            (_, 3) => container(&[("64a7e9a2-269c-4b2c-832c-5351f3ac5adb", "BQY=")]),
            (_, 4) => container(&[("550e8400-e29b-41d4-a716-446655440000", "Bwg=")]),
            _ => container(&[
                ("7c9e6679-7425-40de-944b-e07fc1f90ae7", "CQo="),
                ("16fd2706-8baf-433b-82eb-8c7fada847da", "Cww="),
            ]),
        };
        json(&body)
    });
    let kme = server.client();
    run(async {
        let status = kme.status("gw2").await.unwrap();
        assert_eq!((status.key_size, status.max_key_per_request), (256, 128));
        let keys = kme.new_keys("gw2", &KeyRequest::new(1, 16)).await.unwrap();
        assert_eq!(
            (keys[0].id.as_str(), &keys[0].key[..]),
            (IDS[0], &[1, 2][..])
        );
        kme.new_keys("gw2", &KeyRequest::default()).await.unwrap();
        let request = KeyRequest {
            size: Some(16),
            additional_slave_sae_ids: vec!["gw3".to_owned()],
            extension_mandatory: vec![extension("abc_route_type", "direct".into())],
            extension_optional: vec![extension("abc_max_age", 30_000.into())],
            ..KeyRequest::default()
        };
        kme.new_keys("gw2", &request).await.unwrap();
        let one = ["550e8400-e29b-41d4-a716-446655440000".to_owned()];
        kme.keys_by_id("gw2", &one).await.unwrap();
        let two = [
            "16fd2706-8baf-433b-82eb-8c7fada847da".to_owned(),
            "7c9e6679-7425-40de-944b-e07fc1f90ae7".to_owned(),
        ];
        let keys = kme.keys_by_id("gw2", &two).await.unwrap();
        assert_eq!(&keys[0].key[..], [11, 12], "in the requested order");
    });
    let requests = server.requests();
    let lines: Vec<_> = requests
        .iter()
        .map(|request| format!("{} {}", request.method, request.path))
        .collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/keys/gw2/status",
            "GET /api/v1/keys/gw2/enc_keys?number=1&size=16",
            "GET /api/v1/keys/gw2/enc_keys",
            "POST /api/v1/keys/gw2/enc_keys",
            "GET /api/v1/keys/gw2/dec_keys?key_ID=550e8400-e29b-41d4-a716-446655440000",
            "POST /api/v1/keys/gw2/dec_keys",
        ]
    );
    let body = |at: usize| serde_json::from_str::<Value>(&requests[at].body).unwrap();
    assert_eq!(
        body(3),
        value!({
            "size": 16, "additional_slave_SAE_IDs": ["gw3"],
            "extension_mandatory": [{"abc_route_type": "direct"}],
            "extension_optional": [{"abc_max_age": 30_000}]
        })
    );
    assert_eq!(
        body(5),
        value!({"key_IDs": [
            {"key_ID": "16fd2706-8baf-433b-82eb-8c7fada847da"},
            {"key_ID": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}
        ]})
    );
    let host = format!("host: {}", server.address);
    for request in &requests {
        assert!(request.headers.contains(&host));
        assert!(
            request
                .headers
                .contains(&"accept: application/json".to_owned())
        );
        let typed = request
            .headers
            .contains(&"content-type: application/json".to_owned());
        assert_eq!(typed, request.method == "POST");
        assert_eq!(request.body.is_empty(), request.method == "GET");
    }
}

#[test]
fn post_is_used_for_a_kme_that_refuses_get() {
    let server = Server::new(|request| {
        if request.method == "GET" && !request.path.contains("/status") {
            let kind = "application/json";
            return Reply::Bytes(http("405 Method Not Allowed", kind, r#"{"detail":"no"}"#));
        }
        json(&match request.path.as_str() {
            path if path.contains("/status") => status("gw1"),
            path if path.contains("/enc_keys") => container(&[(IDS[0], "AQI=")]),
            _ => container(&[(IDS[1], "AwQ=")]),
        })
    });
    let kme = server.client();
    run(async {
        kme.status("gw2").await.unwrap();
        let keys = kme.new_keys("gw2", &KeyRequest::new(1, 16)).await.unwrap();
        assert_eq!(keys[0].id, IDS[0]);
        let keys = kme.keys_by_id("gw2", &[IDS[1].to_owned()]).await.unwrap();
        assert_eq!(keys[0].id, IDS[1]);
    });
    let requests = server.requests();
    let lines: Vec<_> = requests
        .iter()
        .map(|request| format!("{} {} {}", request.method, request.path, request.body))
        .collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/keys/gw2/status ",
            "GET /api/v1/keys/gw2/enc_keys?number=1&size=16 ",
            r#"POST /api/v1/keys/gw2/enc_keys {"number":1,"size":16}"#,
            &format!(
                r#"POST /api/v1/keys/gw2/dec_keys {{"key_IDs":[{{"key_ID":"{}"}}]}}"#,
                IDS[1]
            ),
        ]
    );
}

#[test]
fn a_kme_that_refuses_both_methods_is_quoted() {
    let server = Server::new(|_| {
        let body = r#"{"detail":"Method Not Allowed"}"#;
        Reply::Bytes(http("405 Method Not Allowed", "application/json", body))
    });
    let error = run(async { server.client().status("gw2").await.unwrap_err() });
    let text = error.to_string();
    assert!(
        text.contains("accepts neither GET nor POST for this call"),
        "{text}"
    );
    assert!(
        text.contains(r#": {"detail":"Method Not Allowed"} ("#),
        "{text}"
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_sae_id_is_one_path_segment() {
    let server = Server::new(|_| json(&status("gw1")));
    let setup = server
        .files
        .setup(&format!("{}/site/one/", url(server.address)));
    let kme = Kme::new(&setup).unwrap();
    run(async {
        kme.status("gw/2?a ä%").await.unwrap();
        for bad in ["", "..", "a\0"] {
            let error = kme.status(bad).await.unwrap_err();
            assert!(matches!(error.failure, Failure::Request(_)), "{error}");
        }
    });
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        requests[0].path,
        "/site/one/api/v1/keys/gw%2F2%3Fa%20%C3%A4%25/status"
    );
}

#[test]
fn impossible_requests_are_not_sent() {
    let server = Server::new(|_| Reply::Silence);
    let kme = server.client();
    let [first, second] = IDS.map(str::to_owned);
    run(async {
        for (request, expected) in [
            (KeyRequest::new(0, 256), "0 keys"),
            (KeyRequest::new(1, 0), "multiple of 8"),
            (KeyRequest::new(1, 255), "multiple of 8"),
        ] {
            let error = kme.new_keys("gw2", &request).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for (ids, expected) in [
            (vec![], "no key id"),
            (
                vec!["x\r\nHost: y".to_owned()],
                r#""x\r\nHost: y" is not a key id"#,
            ),
            (vec![first.clone(), second, first.to_uppercase()], "twice"),
        ] {
            let error = kme.keys_by_id("gw2", &ids).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_certificate_of_another_sae_is_reported() {
    let server = Server::new(|_| json(&status("gw9")));
    let kme = server.client();
    let error = run(kme.status("gw2")).unwrap_err().to_string();
    assert!(
        error.contains(r#"SAE "gw9", but the configuration says "gw1""#),
        "{error}"
    );
}

#[test]
fn a_key_is_returned_once_whatever_the_kme_delivers() {
    let server = Server::new(|request| {
        json(&match request.number {
            0 => container(&[(IDS[0], "AQI=")]),
            1 => container(&[(&IDS[0].to_uppercase(), "AwQ=")]),
            2 => container(&[(IDS[1], "AQI=")]),
            3 => container(&[("64a7e9a2-269c-4b2c-832c-5351f3ac5adb", "BQY=")]),
            _ => panic!("nothing else is requested"),
        })
    });
    let kme = server.client();
    run(async {
        let request = KeyRequest::new(1, 16);
        kme.new_keys("gw2", &request).await.unwrap();
        let error = kme.new_keys("gw2", &request).await.unwrap_err();
        assert!(matches!(error.failure, Failure::SameId { .. }), "{error}");
        let error = kme.new_keys("gw3", &request).await.unwrap_err();
        assert!(matches!(error.failure, Failure::SameKey { .. }), "{error}");
        let id = ["64A7E9A2-269C-4B2C-832C-5351F3AC5ADB".to_owned()];
        let keys = kme.keys_by_id("gw2", &id).await.unwrap();
        assert_eq!(keys[0].id, id[0], "as the peer names it");
        // The client does not request a received key again, even if the peer names it.
        let error = kme.clone().keys_by_id("gw2", &id).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Used { .. }), "{error}");
        let ids = [IDS[0].to_owned()];
        let error = kme.keys_by_id("gw2", &ids).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Used { .. }), "{error}");
    });
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn needless_escapes_and_missing_padding_are_accepted() {
    let body = r#"{ "keys" : [ { "key_ID" : "bc490419\u002d7d60-487f-adc1-4ddcc177c139",
        "key" : "\/\u002B8", "key_ID_extension": null, "vendor": [1, {"a": "b"}] } ] }"#;
    let server = Server::new(move |_| Reply::Bytes(http("200 OK", "text/plain", body)));
    let keys = run(server.client().new_keys("gw2", &KeyRequest::new(1, 16))).unwrap();
    assert_eq!(
        (keys[0].id.as_str(), &keys[0].key[..]),
        (IDS[0], &[255, 239][..])
    );
}
