//! Responses of key management entities (ETSI GS QKD 014).

use arbitrary::{Result, Unstructured};
use qkd::answer::Answer;
use qkd::types::KeyRequest;
use std::collections::HashSet;

/// Ids: three valid ones, the first in another case, and an invalid one.
const IDS: [&str; 5] = [
    "bc490419-7d60-487f-adc1-4ddcc177c139",
    "0a782fb5-3434-48fe-aa4d-14f41d46cf92",
    "64a7e9a2-269c-4b2c-832c-5351f3ac5adb",
    "BC490419-7D60-487F-ADC1-4DDCC177C139",
    "bc490419-7d60-487f-adc1-4ddcc177c13",
];
/// Keys of 6 and of 8 bytes, and an invalid one; the four letters that they begin with occur
/// nowhere else.
const KEYS: [(&str, Option<usize>); 4] = [
    ("U0VDUkVU", Some(6)),
    (r"U0VDUkV\u0055IUE", Some(8)),
    ("", Some(0)),
    ("U0VDU", None),
];
const SECRET: &str = "U0VD";
/// Longer than any message with correct quotations.
const MESSAGE_CHARS_MAX: usize = 5000;

/// Any response yields keys as requested, or an error that shows none.
pub(crate) fn response(data: &[u8]) {
    if data.starts_with(b"{") {
        any_text(data);
    } else {
        // Too few bytes for a description.
        let _ = nearly_right(&mut Unstructured::new(data));
    }
}

/// The bytes as the body of responses to each call, with success and error status.
fn any_text(body: &[u8]) {
    // Each key in a response has this name once, so that a good response has exactly as many keys.
    let keys = body
        .windows(8)
        .filter(|part| *part == b"\"key_ID\"")
        .count();
    let request = KeyRequest {
        number: Some(keys as u32),
        ..KeyRequest::default()
    };
    for status in [200, 400, 401, 503, 302, 500] {
        let answer = || answer(status, body.to_vec());
        check_message(answer().status().err().map(|error| error.to_string()));
        match answer().new_keys(&request) {
            Ok(new) => {
                let ids: Vec<_> = new.iter().map(|key| key.id.clone()).collect();
                let distinct: HashSet<_> = ids.iter().map(|id| id.to_lowercase()).collect();
                assert_eq!((distinct.len(), status), (keys, 200));
                // The same response to the other call has the same keys.
                let same = answer().keys_by_id(&ids).expect("they were good");
                assert!(
                    new.iter()
                        .zip(&same)
                        .all(|(a, b)| a.key == b.key && a.id == b.id)
                );
            }
            Err(error) => check_message(Some(error.to_string())),
        }
    }
}

/// A container with possible errors, compared with its description.
fn nearly_right(description: &mut Unstructured<'_>) -> Result<()> {
    let mut keys = Vec::new();
    for _ in 0..description.int_in_range(0..=4)? {
        keys.push((*description.choose(&IDS)?, *description.choose(&KEYS)?));
    }
    let number = description.int_in_range(0..=4)?;
    let size = *description.choose(&[None, Some(48), Some(64)])?;
    let listed: Vec<_> = keys
        .iter()
        .map(|(id, (key, _))| format!(r#"{{"key":"{key}","x":[{{}}],"key_ID":"{id}"}}"#))
        .collect();
    let mut body = format!(r#"{{"keys":[{}]}}"#, listed.join(","));
    // As if the connection had broken.
    if description.ratio(1, 8)? {
        let cut = description.int_in_range(0..=body.len() - 1)?;
        body.truncate(cut);
        keys.clear();
    }
    let whole = body.ends_with("]}");
    let request = KeyRequest {
        number: Some(number),
        size,
        ..KeyRequest::default()
    };

    let lengths: Vec<_> = keys.iter().map(|(_, (_, length))| *length).collect();
    let expected = size.map(|bits| Some(bits as usize / 8));
    // Without a size in the request, all keys must be as long as the first.
    let expected = expected.or(lengths.first().copied());
    let ids: HashSet<_> = keys.iter().map(|(id, _)| id.to_lowercase()).collect();
    let good = whole
        && keys.len() == number as usize
        && ids.len() == keys.len()
        && ids.iter().all(|id| id.len() == 36)
        && lengths
            .iter()
            .all(|length| length.is_some_and(|length| length > 0) && Some(*length) == expected);

    match answer(200, body.into_bytes()).new_keys(&request) {
        Ok(new) => {
            assert!(good, "taken: {keys:?} for {request:?}");
            for (key, (id, (_, length))) in new.iter().zip(&keys) {
                assert_eq!((key.id.as_str(), Some(key.key.len())), (*id, *length));
                assert!(key.key.starts_with(b"SECRE"));
            }
        }
        Err(error) => {
            assert!(!good, "refused: {error}");
            let message = error.to_string();
            assert!(!message.contains(SECRET), "a key: {message}");
            check_message(Some(message));
        }
    }
    Ok(())
}

fn answer(status: u16, body: Vec<u8>) -> Answer {
    Answer {
        status,
        content_type: None,
        location: None,
        retry_after: None,
        body: body.into(),
    }
}

/// The message can be displayed on a terminal, in one line.
fn check_message(message: Option<String>) {
    if let Some(message) = message {
        assert!(message.chars().count() < MESSAGE_CHARS_MAX, "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}
