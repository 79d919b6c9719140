//! Hexadecimal digits, without copies of what they tell: it may be a secret.

/// Writes two digits a byte.
pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

/// Fills `bytes` with what the digits tell; `None`, and `bytes` is anything, when they are not exactly so many.
pub(crate) fn read(text: &str, bytes: &mut [u8]) -> Option<()> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(())
}
