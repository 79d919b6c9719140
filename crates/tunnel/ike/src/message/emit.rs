//! Appends structures with lengths to a buffer.

pub(super) use super::error::TooLong;

pub(super) struct Emitter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Emitter<'a> {
    pub(super) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    pub(super) const fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn set(&mut self, at: usize, byte: u8) {
        self.out[at] = byte;
    }

    pub(super) fn set_u32(&mut self, at: usize, value: u32) {
        self.out[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// A count of one byte.
    pub(super) fn count(&mut self, count: usize, what: &'static str) -> Result<(), TooLong> {
        let Ok(byte) = u8::try_from(count) else {
            return Err(TooLong {
                what,
                actual: count,
                limit: u8::MAX.into(),
            });
        };
        self.u8(byte);
        Ok(())
    }

    /// Bytes after their length.
    pub(super) fn sized(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.u16(length(bytes.len())?);
        self.bytes(bytes);
        Ok(())
    }

    /// A length, which also counts the `before` bytes ahead of it and itself, then a body.
    pub(super) fn with_length(
        &mut self,
        before: usize,
        body: impl FnOnce(&mut Self) -> Result<(), TooLong>,
    ) -> Result<(), TooLong> {
        let at = self.out.len();
        self.u16(0);
        body(self)?;
        let length = length(self.out.len() - at + before)?;
        self.out[at..at + 2].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

fn length(actual: usize) -> Result<u16, TooLong> {
    u16::try_from(actual).map_err(|_| TooLong {
        what: "length",
        actual,
        limit: u16::MAX.into(),
    })
}
