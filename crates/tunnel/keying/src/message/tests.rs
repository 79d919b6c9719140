use super::*;
use crate::EPOCH_MAX;

fn offer() -> Offer {
    Offer {
        version: VERSION,
        tunnel: 3,
        suite: "aes-256-gcm".to_owned(),
        lanes: 2,
        payload: "l3 aggregate".to_owned(),
        policy: Policy::Either,
        ppks: vec![
            OfferedPpk {
                id: "alpha".to_owned(),
                required: true,
            },
            OfferedPpk {
                id: "beta".to_owned(),
                required: false,
            },
        ],
        last_epoch: 7,
        live: vec![6, 7],
        sends_in: Some(7),
    }
}

const OFFER: &str = r#"{"version":2,"tunnel":3,"suite":"aes-256-gcm","lanes":2,"payload":"l3 aggregate","policy":"either","ppks":[{"id":"alpha","required":true},{"id":"beta","required":false}],"last_epoch":7,"live":[6,7],"sends_in":7}"#;

fn confirmation() -> Confirmation {
    Confirmation(std::array::from_fn(|index| index as u8 | 0xc0))
}

fn keys(ids: &[&str]) -> Message {
    Message::Keys {
        qkd: ids.iter().map(|id| (*id).to_owned()).collect(),
    }
}

fn refuse(detail: &str) -> Message {
    Message::Refuse {
        why: Refusal::KeysDiffer,
        detail: detail.to_owned(),
    }
}

/// What is wrong with it.
fn error(text: &str) -> String {
    match Message::decode(text.as_bytes()) {
        Err(garbled) => garbled.to_string(),
        Ok(message) => panic!("{text} is accepted as {message:?}"),
    }
}

/// The text of an open message, changed.
fn changed(from: &str, to: &str) -> String {
    let text = format!("{{\"open\":{{\"offer\":{OFFER},\"cause\":\"start\"}}}}");
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

#[test]
fn each_message_has_one_form_and_reads_back() {
    let digits: String = (0..48)
        .map(|index| format!("{:02x}", index | 0xc0))
        .collect();
    let cases = [
        (
            Message::Open {
                offer: offer(),
                cause: Cause::Retry,
            },
            format!("{{\"open\":{{\"offer\":{OFFER},\"cause\":\"retry\"}}}}"),
        ),
        (
            Message::Accept {
                offer: offer(),
                epoch: 8,
            },
            format!("{{\"accept\":{{\"offer\":{OFFER},\"epoch\":8}}}}"),
        ),
        (
            keys(&["a", "b"]),
            r#"{"keys":{"qkd":["a","b"]}}"#.to_owned(),
        ),
        (keys(&[]), r#"{"keys":{"qkd":[]}}"#.to_owned()),
        (
            Message::KeysMissing {
                reason: "depleted".to_owned(),
            },
            r#"{"keys_missing":{"reason":"depleted"}}"#.to_owned(),
        ),
        (
            Message::Ready {
                confirmation: confirmation(),
            },
            format!("{{\"ready\":{{\"confirmation\":\"{digits}\"}}}}"),
        ),
        (
            Message::Switched {
                confirmation: confirmation(),
            },
            format!("{{\"switched\":{{\"confirmation\":\"{digits}\"}}}}"),
        ),
        (Message::Done, r#""done""#.to_owned()),
        (
            Message::Rekey {
                cause: Cause::Desync,
            },
            r#"{"rekey":{"cause":"desync"}}"#.to_owned(),
        ),
        (
            Message::Ping { number: u64::MAX },
            r#"{"ping":{"number":18446744073709551615}}"#.to_owned(),
        ),
        (
            Message::Pong { number: 0 },
            r#"{"pong":{"number":0}}"#.to_owned(),
        ),
        (
            refuse("they differ"),
            r#"{"refuse":{"why":"keys_differ","detail":"they differ"}}"#.to_owned(),
        ),
    ];
    for (message, text) in cases {
        assert_eq!(String::from_utf8(message.encode()).unwrap(), text);
        assert_eq!(Message::decode(text.as_bytes()), Ok(message));
    }
}

#[test]
fn the_longest_message_fits() {
    // Each letter is written with a backslash in front.
    let id = |number: usize| format!("{number}{}", "\"".repeat(254));
    let longest = Offer {
        suite: "\"".repeat(64),
        payload: "\"".repeat(64),
        ppks: (0..LINKS_MAX)
            .map(|number| OfferedPpk {
                id: id(number),
                required: false,
            })
            .collect(),
        last_epoch: EPOCH_MAX,
        live: vec![EPOCH_MAX; LIVE_MAX],
        sends_in: Some(EPOCH_MAX),
        ..offer()
    };
    let messages = [
        Message::Accept {
            offer: longest,
            epoch: EPOCH_MAX,
        },
        Message::Keys {
            qkd: (0..LINKS_MAX).map(id).collect(),
        },
        // Doubled by the encoding, like all quotation marks here.
        refuse(&"\"".repeat(512)),
    ];
    for message in messages {
        let bytes = message.encode();
        assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        assert_eq!(Message::decode(&bytes), Ok(message));
    }
}

#[test]
fn a_display_text_is_truncated_and_loses_control_characters() {
    let cases = [
        ("plain, ünd 🙂".to_owned(), "plain, ünd 🙂".to_owned()),
        (
            "a\u{1b}[2J\nb\u{7f}\u{85}".to_owned(),
            "a [2J b  ".to_owned(),
        ),
        ("x".repeat(512), "x".repeat(512)),
        ("x".repeat(513), format!("{}…", "x".repeat(509))),
        // Never in the middle of a character: 127 of them and the mark have 511 bytes.
        ("🙂".repeat(129), format!("{}…", "🙂".repeat(127))),
    ];
    for (text, shown) in cases {
        assert_eq!(for_people(&text), shown);
        // A receiver checks a text by this, so a truncated one must pass unchanged.
        assert_eq!(for_people(&shown), shown, "once is enough");
        assert_eq!(Message::decode(&refuse(&text).encode()), Ok(refuse(&shown)));
        let reason = |reason: &str| Message::KeysMissing {
            reason: reason.to_owned(),
        };
        assert_eq!(Message::decode(&reason(&text).encode()), Ok(reason(&shown)));
    }
}

#[test]
fn a_part_beyond_its_bounds_is_reported() {
    let epoch = "an epoch is a number from 1 to 1048575, not ";
    let id = "a key's id is empty, longer than 255 bytes, or has control characters";
    let name = "the name of a suite or payload has more than 64 bytes or has control characters";
    let order = "PPKs are not in the order of their ids, or one is named twice";
    let text = "a text has more than 512 bytes or has control characters";
    let many = |id: fn(usize) -> String| (0..9).map(id).collect::<Vec<_>>().join(",");
    let ids = many(|number| format!("\"{number}\""));
    let ppks = many(|number| format!("{{\"id\":\"{number}\",\"required\":true}}"));
    let live = vec!["1"; LIVE_MAX + 1].join(",");
    let cases = [
        (
            changed("\"live\":[6,7]", "\"live\":[6,0]"),
            format!("{epoch}0"),
        ),
        (
            changed("\"sends_in\":7", "\"sends_in\":1048576"),
            format!("{epoch}1048576"),
        ),
        (
            // The highest number that the field can hold; 0 is valid there.
            changed("\"last_epoch\":7", "\"last_epoch\":4294967295"),
            format!("{epoch}4294967295"),
        ),
        (
            changed("[6,7]", &format!("[{live}]")),
            "a message has 65 live epochs, at most 64 are accepted".to_owned(),
        ),
        (changed("alpha", ""), id.to_owned()),
        (changed("alpha", "a\\u0000"), id.to_owned()),
        (changed("alpha", &"a".repeat(256)), id.to_owned()),
        (changed("alpha", "beta2"), order.to_owned()),
        (changed("alpha", "beta"), order.to_owned()),
        (
            changed(
                "[{\"id\":\"alpha\",\"required\":true},{\"id\":\"beta\",\"required\":false}]",
                &format!("[{ppks}]"),
            ),
            "a message has 9 PPKs, at most 8 are accepted".to_owned(),
        ),
        (changed("aes-256-gcm", &"s".repeat(65)), name.to_owned()),
        (changed("l3 aggregate", "l3\\n"), name.to_owned()),
        (
            format!("{{\"accept\":{{\"offer\":{OFFER},\"epoch\":0}}}}"),
            format!("{epoch}0"),
        ),
        (
            format!("{{\"keys\":{{\"qkd\":[{ids}]}}}}"),
            "a message has 9 QKD keys, at most 8 are accepted".to_owned(),
        ),
        (
            r#"{"keys":{"qkd":["a","b","a"]}}"#.to_owned(),
            "QKD key a is named twice".to_owned(),
        ),
        (r#"{"keys":{"qkd":[""]}}"#.to_owned(), id.to_owned()),
        (
            format!(
                "{{\"keys_missing\":{{\"reason\":\"{}\"}}}}",
                "x".repeat(513)
            ),
            text.to_owned(),
        ),
        (
            r#"{"refuse":{"why":"qkd","detail":"\u001b[2J"}}"#.to_owned(),
            text.to_owned(),
        ),
        (
            " ".repeat(MESSAGE_BYTES_MAX + 1),
            "a message has 16385 bytes, at most 16384 are accepted".to_owned(),
        ),
    ];
    for (text, what) in cases {
        assert_eq!(error(&text), what, "{text}");
    }
}

#[test]
fn an_invalid_message_is_reported() {
    let beginning = "this is no message: ";
    let short = format!("{{\"ready\":{{\"confirmation\":\"{}\"}}}}", "0".repeat(95));
    let cases = [
        ("", "EOF while parsing"),
        ("{}", "expected value"),
        ("[]", "expected value"),
        ("\"open\"", "invalid type"),
        (r#""done" "done""#, "trailing characters"),
        // Two messages in one object.
        (r#"{"done":null,"ping":{"number":1}}"#, "expected"),
        (r#"{"pong":{"number":-1}}"#, "invalid value"),
        (r#"{"pong":{"number":1,"more":2}}"#, "unknown field `more`"),
        (r#"{"pong":{"number":1,"number":2}}"#, "duplicate field"),
        (r#"{"pong":{}}"#, "missing field `number`"),
        (r#"{"close":{}}"#, "unknown variant `close`"),
        (
            r#"{"rekey":{"cause":"boredom"}}"#,
            "unknown variant `boredom`",
        ),
        (short.as_str(), "a confirmation has 96 hexadecimal digits"),
    ];
    for (text, what) in cases {
        let error = error(text);
        assert!(
            error.starts_with(beginning) && error.contains(what),
            "{text}: {error}"
        );
    }
    assert!(
        error(&changed(",\"sends_in\":7", ",\"sends_in\":7,\"x\":1")).contains("unknown field `x`")
    );
    assert!(Message::decode(&[0xff; 9]).is_err());
    // A parser without a limit of depth would exhaust the stack.
    let nested = format!("{{\"open\":{}", "[".repeat(10_000));
    assert!(error(&nested).starts_with(beginning));
}

#[test]
fn display_text_of_garbage_is_bounded() {
    let text = format!("{{\"{}\\u001b\":1}}", "x".repeat(10_000));
    let error = error(&text);
    assert!(
        error.len() <= 512 && !error.chars().any(char::is_control),
        "{error}"
    );
}

#[test]
fn foreign_text_neither_controls_a_terminal_nor_reorders_a_line() {
    assert_eq!(for_people("a\u{202e}b\u{9b}2Jc"), "a b 2Jc");
    assert_eq!(for_people("d\u{e9}j\u{e0}"), "d\u{e9}j\u{e0}");
}

#[test]
fn a_peer_with_another_version_is_recognised_by_its_version() {
    let expected = "the peer speaks version 3 of the protocol, this side version 2";
    // Nothing but the version can be expected of another version's offer.
    let offer = r#"{"version":3,"novelty":true}"#;
    for begins in ["open", "accept"] {
        assert_eq!(
            error(&format!("{{\"{begins}\":{{\"offer\":{offer}}}}}")),
            expected
        );
    }
    // An offer in a readable form is for the receiver to refuse.
    let text = changed("\"version\":2", "\"version\":3");
    let Ok(Message::Open { offer, .. }) = Message::decode(text.as_bytes()) else {
        panic!("an offer of this form is read");
    };
    assert_eq!(offer.version, 3);
}

#[test]
#[should_panic(expected = "a message that every peer would reject: an epoch is a number from 1")]
fn a_message_that_would_be_refused_is_not_sent() {
    let _ = Message::Accept {
        offer: offer(),
        epoch: 0,
    }
    .encode();
}

#[test]
fn causes_and_refusals_have_the_names_that_are_sent() {
    for cause in Cause::ALL {
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
    }
    for refusal in Refusal::ALL {
        assert_eq!(serde_json::to_value(refusal).unwrap(), refusal.name());
    }
}
