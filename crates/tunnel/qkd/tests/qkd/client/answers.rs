//! Refusals and invalid answers.

use crate::client::requests::status;
use crate::client::server::{Reply, Server, http};
use crate::client::setup::run;
use qkd::types::KeyRequest;
use qkd::{Failure, KmeError};
use std::time::Duration;

/// A key in base64; it must not appear in any error.
const SECRET: &str = "c2VjcmV0IGtleSE=";

/// The call's error for this answer of the server.
fn error_of(answer: impl Into<String>, last: bool) -> KmeError {
    let answer = answer.into();
    let server = Server::new(move |_| {
        if last {
            Reply::Last(answer.clone())
        } else {
            Reply::Bytes(answer.clone())
        }
    });
    let error = run(server.client().new_keys("gw2", &KeyRequest::new(1, 88))).unwrap_err();
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains(&SECRET[..4]), "a key in {shown}");
        assert!(!shown.contains("secret"), "a key in {shown}");
        assert!(!shown.contains("99, 114"), "a key in {shown}");
    }
    assert_eq!(server.requests().len(), 1, "called once: {error}");
    error
}

#[track_caller]
fn says(error: &KmeError, expected: &str) {
    let text = error.to_string();
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("/api/v1/keys/gw2/enc_keys: "), "{text}");
}

#[test]
fn refusals_are_reported_with_the_kmes_text() {
    let json = |status: &str, body: &str| error_of(http(status, "application/json", body), false);
    let error = json(
        "400 Bad Request",
        r#"{"message":"size shall be a multiple of 8"}"#,
    );
    says(&error, r#"status 400: "size shall be a multiple of 8""#);
    let error = json("401 Unauthorized", "");
    says(&error, "status 401, without a body (register");
    let error = json(
        "503 Service Unavailable",
        r#"{"message":"no key","details":[{"a":"b"}]}"#,
    );
    says(&error, "no key");
    says(&error, "details");
    assert_eq!(error.retry_after(), None);
    let error = json(
        "503 Service Unavailable",
        &format!(r#"{{"keys":"{SECRET}"}}"#),
    );
    says(&error, "status 503, with 27 bytes of \"application/json\"");
    let error = json(
        "500 Internal Server Error",
        &format!("<html>{SECRET}</html>"),
    );
    says(&error, "status 500, with 29 bytes of");
    let error = json("404 Not Found", "");
    says(&error, "is this a KME, and the path");
}

#[test]
fn retry_after_is_reported() {
    let answer = "HTTP/1.1 503 Wait\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let error = error_of(answer, false);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[test]
fn a_redirect_is_not_followed() {
    let answer =
        "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let error = error_of(answer, false);
    says(
        &error,
        r#"redirects clients to "https://127.0.0.1:1/" (status 302"#,
    );
}

#[test]
fn garbage_is_refused_as_a_whole() {
    let ok = |body: &str| error_of(http("200 OK", "text/html", body), false);
    says(
        &ok(&format!("<html>{SECRET}")),
        "not a JSON object, with 22 bytes of \"text/html\"",
    );
    says(&ok(""), "not a JSON object, without a body");
    says(
        &ok(&format!(r#"{{"keys":[{{"key":"{SECRET}"}}]}}"#)),
        "missing field `key_ID`",
    );
    says(&ok(&format!(r#"{{"keys":["{SECRET}"]}}"#)), "wrong type");
    says(
        &ok(&format!(r#"{{"keys":[{{"key_ID":"x","key":"{SECRET}"#)),
        "ends too early",
    );
    says(
        &ok(&format!(
            r#"{{"keys":[{{"key_ID":"x","key":"{SECRET}%"}}]}}"#
        )),
        "not base64",
    );
    says(
        &ok(&format!(
            r#"{{"keys":[{{"key_ID":"x","key":"{SECRET}"}}]}}"#
        )),
        "not a UUID",
    );
    says(&ok(r#"{"keys":[]}"#), "0 keys where 1");
    let id = "bc490419-7d60-487f-adc1-4ddcc177c139";
    let short = format!(r#"{{"keys":[{{"key_ID":"{id}","key":"c2VjcmV0"}}]}}"#);
    says(&ok(&short), "has 48 bits, not 88");
}

#[test]
fn an_answer_that_is_not_http_is_refused() {
    says(&error_of("SSH-2.0-OpenSSH_9.9\r\n", true), "not HTTP/1.1");
    says(&error_of("HTTP/1.1 abc\r\n\r\n", true), "not HTTP/1.1");
    let heads = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(1 << 20));
    says(&error_of(heads, true), "not HTTP/1.1");
    says(&error_of("", true), "ended before the answer was complete");
    says(
        &error_of("HTTP/1.1 200 OK\r\nContent-", true),
        "ended before the answer was complete",
    );
}

#[test]
fn a_truncated_or_overlong_answer_is_refused() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"keys\":[";
    says(
        &error_of(head, true),
        "ended before the answer was complete",
    );
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n";
    says(&error_of(head, true), "more than 1048576 bytes");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
    error_of(head, true);
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}1\r\n \r\n0\r\n\r\n",
        chunk.repeat(16)
    );
    says(&error_of(chunks, true), "more than 1048576 bytes");
}

#[test]
fn an_answer_may_be_chunked_with_trailers() {
    let body = status("gw1");
    let (first, rest) = body.split_at(17);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x};a=b\r\n{rest}\r\n0\r\nA: b\r\n\r\n",
        first.len(),
        rest.len()
    );
    let server = Server::new(move |_| Reply::Bytes(answer.clone()));
    let kme = server.client();
    run(async {
        kme.status("gw2").await.unwrap();
        kme.status("gw2").await.unwrap();
    });
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_failed_call_does_not_affect_the_next() {
    let server = Server::new(|request| match request.number {
        0 => Reply::Bytes(http("503 Wait", "text/plain", "later")),
        _ => Reply::Bytes(http("200 OK", "application/json", &status("gw1"))),
    });
    let kme = server.client();
    run(async {
        let error = kme.status("gw2").await.unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unavailable { .. }),
            "{error}"
        );
        kme.status("gw2").await.unwrap();
    });
    assert_eq!(server.connections(), 1, "the answer was read to its end");
}
