//! What `tunnel-check` reads from a network: lines of the control connection, datagrams, frames.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tunnelcheck::{Answer, Ask, LINE_BYTES_MAX, form_of_frame, is_of_check, parse};

/// Any bytes are a message that is the same when it is written and read again, or an error; any
/// frame has a form.
pub(crate) fn body(data: &[u8]) {
    survives::<Ask>(data);
    survives::<Answer>(data);
    let _: String = form_of_frame(data);
    // Of another key it is none of this check.
    assert!(!(is_of_check(data, 1) && is_of_check(data, 2)));
}

fn survives<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(data: &[u8]) {
    let Ok(message) = parse::<T>(data) else {
        return;
    };
    let written = serde_json::to_vec(&message).expect("a message can be written");
    // A canonical line may be longer than its source: escapes of characters.
    if written.len() <= LINE_BYTES_MAX {
        let again: T = parse(&written).expect("a written message can be read");
        assert_eq!(again, message);
    }
}
