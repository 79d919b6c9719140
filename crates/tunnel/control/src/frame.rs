//! Messages as they go over a connection: each behind its length in four bytes, big-endian.
//!
//! Bytes in, messages out, in whatever pieces they come. It never holds more than one message of the longest kind and what
//! was pushed last.

use keying::message::MESSAGE_BYTES_MAX;

/// Of the length in front of each message.
const LENGTH_BYTES: usize = 4;

/// A peer announces a message that is longer than any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes is announced: at most {MESSAGE_BYTES_MAX} are taken")]
pub struct TooLong(pub usize);

/// What came, and was not yet taken.
#[derive(Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Takes what came. After each, take messages until there are no more: otherwise what is held has no bound.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// [`TooLong`]: where the next begins is not known any more; the connection is of no more use.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(TooLong(length));
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let message = message.to_vec();
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }

    /// Whether part of a message is there.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// A message as it goes out.
///
/// # Panics
/// If it is longer than [`MESSAGE_BYTES_MAX`].
#[must_use]
pub fn framed(message: &[u8]) -> Vec<u8> {
    assert!(message.len() <= MESSAGE_BYTES_MAX, "no message is so long");
    let length = u32::try_from(message.len()).expect("far below 4 GiB");
    [&length.to_be_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_however_the_bytes_come_in() {
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
    fn a_message_that_is_too_long_is_refused_by_its_length_alone() {
        let mut frames = Frames::default();
        frames.push(&u32::try_from(MESSAGE_BYTES_MAX + 1).unwrap().to_be_bytes());
        assert_eq!(frames.take(), Err(TooLong(MESSAGE_BYTES_MAX + 1)));
        let mut frames = Frames::default();
        frames.push(b"GET / HTTP/1.1\r\n");
        assert_eq!(frames.take(), Err(TooLong(0x4745_5420)));
    }
}
