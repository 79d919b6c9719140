//! Refusals and defects of responses, and what messages quote of them.

use super::*;

const ID: [&str; 3] = [
    "bc490419-7d60-487f-adc1-4ddcc177c139",
    "0a782fb5-3434-48fe-aa4d-14f41d46cf92",
    "64a7e9a2-269c-4b2c-832c-5351f3ac5adb",
];

fn answer(status: u16, body: &str) -> Answer {
    Answer {
        status,
        content_type: Some("application/json".to_owned()),
        location: None,
        retry_after: None,
        body: Zeroizing::new(body.as_bytes().to_vec()),
    }
}

/// A container with keys of two bytes.
fn container(keys: &[(&str, &str)]) -> Answer {
    let keys: Vec<_> = keys
        .iter()
        .map(|(id, key)| format!(r#"{{"key_ID":"{id}","key":"{key}"}}"#))
        .collect();
    answer(200, &format!(r#"{{"keys":[{}]}}"#, keys.join(",")))
}

fn ids(of: &[&str]) -> Vec<String> {
    of.iter().map(|&id| id.to_owned()).collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Failure>, expected: &str) {
    let message = result.expect_err(expected).to_string();
    assert!(message.contains(expected), "{message}");
    // The digits of the first key: no message may quote it.
    assert!(!message.contains("AQI"), "a key: {message}");
}

#[test]
fn accepts_the_requested_keys() {
    let request = KeyRequest::new(2, 16);
    let keys = container(&[(ID[0], "AQI="), (ID[1], "AwQ=")])
        .new_keys(&request)
        .unwrap();
    assert_eq!(
        (keys[0].id.as_str(), &keys[0].key[..]),
        (ID[0], &[1, 2][..])
    );
    assert_eq!(
        (keys[1].id.as_str(), &keys[1].key[..]),
        (ID[1], &[3, 4][..])
    );
    let one = container(&[(ID[0], "AQI=")]);
    assert_eq!(one.new_keys(&KeyRequest::default()).unwrap().len(), 1);
}

#[test]
fn returns_keys_in_the_order_of_the_requested_ids() {
    // In another case, as some KMEs write their IDs.
    let upper = ID[2].to_uppercase();
    let answer = container(&[(ID[1], "AwQ="), (&upper, "BQY="), (ID[0], "AQI=")]);
    let keys = answer.keys_by_id(&ids(&ID)).unwrap();
    let got: Vec<_> = keys
        .iter()
        .map(|key| (key.id.as_str(), key.key[0]))
        .collect();
    assert_eq!(got, [(ID[0], 1), (ID[1], 3), (ID[2], 5)]);
}

#[test]
fn rejects_keys_that_do_not_match_the_request() {
    let two = KeyRequest::new(2, 16);
    let one = KeyRequest::new(1, 16);
    let new = |keys: &[(&str, &str)], request: &KeyRequest| container(keys).new_keys(request);
    refused(new(&[(ID[0], "AQI=")], &two), "1 keys where 2");
    refused(new(&[], &one), "0 keys where 1");
    refused(
        new(&[(ID[0], "AQI="), (ID[1], "AwQ=")], &one),
        "2 keys where 1",
    );
    refused(new(&[(ID[0], "AQID")], &one), "has 24 bits, not 16");
    refused(
        new(&[(ID[0], "AQI="), (ID[1], "AQID")], &two),
        "has 24 bits, not 16",
    );
    let unsized_two = KeyRequest {
        number: Some(2),
        ..KeyRequest::default()
    };
    refused(
        new(&[(ID[0], "AQI="), (ID[1], "AQID")], &unsized_two),
        "has 24 bits, not 16",
    );
    refused(new(&[(ID[0], "")], &KeyRequest::default()), "is empty");
    refused(
        new(&[(ID[0], "AQI="), (ID[0], "AwQ=")], &two),
        "delivered twice",
    );
    let upper = ID[0].to_uppercase();
    refused(
        new(&[(ID[0], "AQI="), (&upper, "AwQ=")], &two),
        "delivered twice",
    );
    for id in [
        "",
        "x",
        &ID[0][1..],
        &format!("{}0", ID[0]),
        &ID[0].replace('-', "_"),
    ] {
        refused(new(&[(id, "AQI=")], &one), "not a UUID");
    }
    let by_id = |keys: &[(&str, &str)], of: &[&str]| container(keys).keys_by_id(&ids(of));
    refused(by_id(&[(ID[1], "AQI=")], &ID[..1]), "was not requested");
    refused(by_id(&[], &ID[..1]), "0 keys where 1");
    refused(
        by_id(&[(ID[0], "AQI="), (ID[0], "AQI=")], &ID[..2]),
        "delivered twice",
    );
}

#[test]
fn describes_a_malformed_response_without_quoting_it() {
    let one = KeyRequest::default();
    for (body, expected) in [
        ("", "not a JSON object, without a body"),
        ("<html>AQI=</html>", "not a JSON object, with 17 bytes of"),
        ("{AQI=}", "not JSON, "),
        (r#"{"keys":[{"key_ID":"#, "ends too early"),
        ("[]", "not a JSON object"),
        ("[[],null]", "not a JSON object"),
        ("null", "not a JSON object"),
        (r#""AQI=""#, "not a JSON object"),
        (r#"{"keys":"AQI="}"#, "wrong type"),
        (r#"{"keys":[{"key":"AQI="}]}"#, "missing field `key_ID`"),
        (r#"{"key":"AQI="}"#, "missing field `keys`"),
        (r#"{"keys":[{"key_ID":"x","key":["AQI="]}]}"#, "wrong type"),
        (
            r#"{"keys":[{"key_ID":"x","key":"AQI=-"}]}"#,
            "a key is not base64",
        ),
        (r#"{"keys":[],"keys":["AQI="]}"#, "duplicate field `keys`"),
        (r#"{"message":"AQI="}"#, "missing field `keys`"),
    ] {
        refused(answer(200, body).new_keys(&one), expected);
    }
    refused(answer(200, "{}").status(), "missing field `source_KME_ID`");
    // A parser without a limit of depth would exhaust the stack.
    let deep = format!(r#"{{"keys":{}"#, "[".repeat(100_000));
    assert!(answer(200, &deep).new_keys(&one).is_err());
}

#[test]
fn describes_refusals_of_the_standard_and_others() {
    let one = KeyRequest::default();
    let with_details = r#"{"message":"not all extension_mandatory parameters supported",
        "details":[{"extension_mandatory_unsupported":"abc_route_type"}]}"#;
    for (status, body, expected) in [
        (
            400,
            r#"{"message":"size shall be a multiple of 8"}"#,
            "status 400: \"size shall",
        ),
        (400, with_details, "abc_route_type"),
        (400, "", "status 400, without a body"),
        (
            400,
            r#"{"keys":["AQI="]}"#,
            "status 400, with 17 bytes of \"application/json\"",
        ),
        (
            400,
            r#"{"detail": "size 4096 is too large"}"#,
            r#"of "application/json": {"detail": "size 4096 is too large"}"#,
        ),
        (401, "", "register the SAE id"),
        (
            401,
            r#"{"message":"no\u001b[31m"}"#,
            r#"status 401: "no\u{1b}[31m""#,
        ),
        (
            503,
            r#"{"message":"no keys"}"#,
            "cannot deliver now: status 503: \"no keys\"",
        ),
        (
            404,
            "<html>\n\n<b>x",
            "status 404, with 12 bytes of \"application/json\": <html> <b>x,",
        ),
        (
            405,
            "",
            "accepts neither GET nor POST for this call: status 405, without",
        ),
        (500, "", "does not define"),
        // A success without the body that the standard requires.
        (204, "", "status 204"),
        (302, "", "redirects clients to nowhere (status 302"),
    ] {
        refused(answer(status, body).new_keys(&one), expected);
    }
    let mut redirect = answer(307, "");
    redirect.location = Some("https://other.example/".to_owned());
    refused(redirect.status(), "\"https://other.example/\"");
}

#[test]
fn names_the_field_of_a_status_that_is_no_number() {
    let whole = r#"{"source_KME_ID":"a","target_KME_ID":"b","master_SAE_ID":"c","slave_SAE_ID":"d",
        "key_size":256,"stored_key_count":25000,"max_key_count":100000,"max_key_per_request":128,
        "max_key_size":1024,"min_key_size":64,"max_SAE_ID_count":0}"#;
    let status = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        answer(200, &whole.replace(from, to)).status()
    };
    assert_eq!(status("", "").unwrap().max_key_count, Some(100_000));
    for without in ["", r#""max_key_count":null,"#] {
        let status = status(r#""max_key_count":100000,"#, without).unwrap();
        assert_eq!(status.max_key_count, None);
    }
    for (from, to, expected) in [
        (
            "25000",
            r#""100""#,
            "not a status: `stored_key_count` is the text \"100\", where a whole number",
        ),
        (
            r#""max_SAE_ID_count":0"#,
            r#""max_SAE_ID_count":null"#,
            "`max_SAE_ID_count` is null,",
        ),
        ("1024", "1024.5", "`max_key_size` is 1024.5,"),
        (
            "1024",
            "5000000000",
            "`max_key_size` is 5000000000, above 4294967295",
        ),
        (
            r#""a""#,
            "7",
            "`source_KME_ID` is 7, where a text is expected",
        ),
        (r#""min_key_size":64,"#, "", "missing field `min_key_size`"),
    ] {
        refused(status(from, to), expected);
    }
}

#[test]
fn quotes_the_beginning_of_an_error_on_one_line() {
    let body = format!("\u{1b}]0;x\u{7}a\n\tb {}", "ä".repeat(3000));
    let message = answer(404, &body).status().unwrap_err().to_string();
    assert!(message.contains(": �]0;x�a b ää"), "{message}");
    assert!(message.contains("ä…"), "{message}");
    assert!(message.chars().count() < 500, "{message}");
    let binary = Answer {
        body: Zeroizing::new(vec![0xff; 40]),
        ..answer(404, "")
    };
    refused(
        binary.status(),
        "status 404, with 40 bytes of \"application/json\",",
    );
}

#[test]
fn decodes_needless_escapes_only() {
    for text in [
        r#"{"a":"b\/c\u002b\u002F\u003d"}"#,
        r#""\\/\\u002b\u0022\u005c\n\ud83d\ude00""#,
        r#""\u00e4\u0000""#,
        r#"["\/\/","\u0041"]"#,
    ] {
        let mut plain = text.as_bytes().to_vec();
        unescape(&mut plain);
        let before: Value = serde_json::from_str(text).unwrap();
        let after: Value = serde_json::from_slice(&plain).unwrap();
        assert_eq!(before, after, "{text}");
    }
    let mut key = br#""AQ\/\u002B\u003D""#.to_vec();
    unescape(&mut key);
    assert_eq!(key.trim_ascii_end(), br#""AQ/+=""#);
    // Escapes that end early are left for the parser to refuse.
    for cut in [r#"\"#, r"\u", r"\u002", r"\u00zz", r"a\"] {
        let mut bytes = cut.as_bytes().to_vec();
        unescape(&mut bytes);
        assert_eq!(bytes, cut.as_bytes());
    }
}

#[test]
fn recognizes_a_uuid() {
    assert!(is_uuid(ID[0]) && is_uuid(&ID[0].to_uppercase()));
    assert!(!is_uuid("bc490419-7d60-487f-adc1-4ddcc177c13g"));
    assert!(!is_uuid("bc490419x7d60x487fxadc1x4ddcc177c139"));
    assert!(!is_uuid("{c490419-7d60-487f-adc1-4ddcc177c139"));
}
