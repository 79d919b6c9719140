//! Random numbers.

/// SplitMix64 (Steele, Lea and Flood 2014). A recorded seed must give the same fates in every later
/// version, so the generator is part of the model.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

const PPM: u64 = 1_000_000;

impl Random {
    /// The generator of one cause: causes do not disturb each other's sequences.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        // Mixed once: states that differ by a multiple of the step below give shifted copies of one
        // sequence.
        let mut mixed = Self(seed ^ stream.wrapping_mul(0xd605_1f2a_6d3f_9c3b));
        Self(mixed.next())
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// True with this probability in parts per million. Draws only where it is neither 0 nor 1.
    #[inline]
    pub(crate) fn happens(&mut self, ppm: u32) -> bool {
        match u64::from(ppm) {
            0 => false,
            PPM.. => true,
            ppm => self.below(PPM) < ppm,
        }
    }

    /// A number from 0 to `limit` - 1, `limit` being at least 1. Its bias is below `limit` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The upper half of the product scales the draw without a division (Lemire 2019).
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number above 0 and up to 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        // A float holds 53 bits exactly; the 1 excludes 0, which has no logarithm.
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        // The sine would be a second number. It is not kept: each frame draws the same count.
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
