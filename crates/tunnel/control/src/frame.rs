//! Framing of messages: each is preceded by its length in four bytes, big-endian.
//!
//! The decoder accepts bytes in pieces of any size. It buffers at most one message of maximum
//! length plus the last piece.

use keying::message::MESSAGE_BYTES_MAX;

/// Size of the length prefix.
const LENGTH_BYTES: usize = 4;

/// A peer announces a message longer than [`MESSAGE_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes is announced: at most {MESSAGE_BYTES_MAX} are accepted")]
pub struct TooLong(pub usize);

/// A decoder: received bytes that do not yet form a message.
#[derive(Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Appends received bytes. The caller must then take all complete messages: otherwise the
    /// buffer is unbounded.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next complete message, if any.
    ///
    /// # Errors
    /// [`TooLong`]: the start of the next message is lost, so the connection is unusable.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        // From the announcement alone, before a byte of the message is buffered.
        if length > MESSAGE_BYTES_MAX {
            return Err(TooLong(length));
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        // Copied, so that the buffer can be shortened while the message is in use.
        let message = message.to_vec();
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }

    /// Whether the buffer holds part of a message.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// Encodes a message with its length prefix.
///
/// # Panics
/// If it is longer than [`MESSAGE_BYTES_MAX`].
#[must_use]
pub fn framed(message: &[u8]) -> Vec<u8> {
    assert!(
        message.len() <= MESSAGE_BYTES_MAX,
        "a message exceeds the maximum length"
    );
    let length = u32::try_from(message.len()).expect("far below 4 GiB");
    // In one piece: two writes would be two records of TLS.
    [&length.to_be_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_decode_from_pieces_of_any_size() {
        let messages = [&b"one"[..], b"", b"three", &[7; MESSAGE_BYTES_MAX]];
        let stream: Vec<u8> = messages
            .iter()
            .flat_map(|message| framed(message))
            .collect();
        for piece in [1, 2, 3, 5, 1000, stream.len()] {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for bytes in stream.chunks(piece) {
                frames.push(bytes);
                while let Some(message) = frames.take().unwrap() {
                    got.push(message);
                }
                assert!(frames.bytes.len() < LENGTH_BYTES + MESSAGE_BYTES_MAX);
            }
            assert_eq!(got, messages, "in pieces of {piece}");
            assert!(!frames.is_inside());
        }
    }

    #[test]
    fn an_overlong_message_is_rejected_by_its_length_alone() {
        let mut frames = Frames::default();
        frames.push(&u32::try_from(MESSAGE_BYTES_MAX + 1).unwrap().to_be_bytes());
        assert_eq!(frames.take(), Err(TooLong(MESSAGE_BYTES_MAX + 1)));
        let mut frames = Frames::default();
        frames.push(b"GET / HTTP/1.1\r\n");
        assert_eq!(frames.take(), Err(TooLong(0x4745_5420)));
    }
}
