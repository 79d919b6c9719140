//! Hexadecimal encoding and decoding without intermediate copies, since the value may be a secret.

/// Appends two digits per byte.
pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

/// Decodes `text` into `bytes`. Returns `None`, with unspecified `bytes`, if `text` is not exactly
/// two hexadecimal digits per byte.
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
