//! IKE messages: any bytes, messages that the codec accepts, and such messages with changed bytes.

use arbitrary::{Result, Unstructured};
use ike::message::{LENGTH_AT, Message, PayloadType, emit_payloads, parse_payloads};
use ike::oracle;

pub(crate) fn body(data: &[u8]) {
    check(data);
    // An exhausted input ends the run.
    let _ = structured(&mut Unstructured::new(data));
}

/// The slow parser accepts the same messages, and the codec emits its canonical form.
fn check(bytes: &[u8]) {
    let canonical = oracle::canonical(bytes);
    match Message::parse(bytes) {
        Ok(message) => {
            let mut emitted = Vec::new();
            message.emit(&mut emitted).expect("it was in a datagram");
            assert_eq!(Some(&emitted), canonical.as_ref());
            assert_eq!(Message::parse(&emitted), Ok(message));
        }
        Err(malformed) => {
            assert_eq!(canonical, None, "{malformed}");
            let shown = malformed.to_string();
            assert!(shown.contains("RFC") && shown.len() < 256, "{shown:?}");
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }
}

fn structured(u: &mut Unstructured<'_>) -> Result<()> {
    let changes: [(u16, u8); 3] = u.arbitrary()?;
    let message = oracle::message(u)?;
    let mut bytes = Vec::new();
    message.emit(&mut bytes).expect("short payloads");
    assert_eq!(Message::parse(&bytes).as_ref(), Ok(&message));
    check(&bytes);
    for (at, value) in changes {
        let at = usize::from(at) % bytes.len();
        bytes[at] = value;
        check(&bytes);
    }
    // Cut anywhere, with a header that states the new length.
    bytes.truncate(usize::from(changes[0].0) % bytes.len());
    let length = bytes.len() as u32;
    if let Some(field) = bytes.get_mut(LENGTH_AT..LENGTH_AT + 4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    check(&bytes);
    inner(u)
}

/// Decrypted payloads, which have no header.
fn inner(u: &mut Unstructured<'_>) -> Result<()> {
    let payloads = oracle::payloads(u)?;
    let mut bytes = Vec::new();
    let first = emit_payloads(&payloads, &mut bytes).expect("short payloads");
    assert_eq!(parse_payloads(first, &bytes), Ok(payloads));
    let rest = u.bytes(u.len())?;
    let (kind, rest) = rest.split_first().unwrap_or((&0, &[]));
    let parsed = parse_payloads(PayloadType(*kind), rest);
    let canonical = oracle::canonical_payloads(*kind, rest);
    assert_eq!(parsed.is_ok(), canonical.is_some());
    Ok(())
}
