//! The frames that compare clocks.

/// Local experimental EtherType 1 (IEEE Std 802): no protocol that passes gateways.
pub(crate) const ETHERTYPE: u16 = 0x88b5;
/// First bytes of every probe, in two words.
pub(crate) const MAGIC: [u32; 2] = [0x4342_636c, 0x6f63_6b73];
/// Length of a probe, without FCS.
pub(crate) const PROBE_BYTES: usize = 72;

/// What a probe, or its answer, carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) is_answer: bool,
    pub(super) number: u32,
    /// Of an answer: when the probe arrived, and when the answer to the one before left, by
    /// CLOCK_REALTIME; 0 if that one was not answered.
    pub(super) received_ns: i64,
    pub(super) last_answered_ns: i64,
    /// Of an answer: how far that clock is ahead of the answering side's CLOCK_MONOTONIC, and by
    /// how much that may be wrong.
    pub(super) ahead_ns: i64,
    pub(super) within_ns: u64,
    /// Of an answer: by how much the kernel corrects the clock's rate, in parts of 10^9.
    pub(super) corrected_ppb: i64,
}

/// More than two readings of a clock are apart.
const WITHIN_NS_MAX: u64 = 1_000_000_000;
/// More than a kernel corrects: a tenth and 500 ppm (adjtimex(2)).
const CORRECTED_PPB_MAX: u64 = 200_000_000;
/// Times of day until the year 2067 fit, and differences of two leave room for a third.
const TIME_NS_MAX: i64 = i64::MAX / 3;

impl Probe {
    pub(super) fn write(self, target: [u8; 6], source: [u8; 6]) -> [u8; PROBE_BYTES] {
        let mut frame = [0; PROBE_BYTES];
        let fields: [&[u8]; 12] = [
            &target,
            &source,
            &ETHERTYPE.to_be_bytes(),
            &MAGIC[0].to_be_bytes(),
            &MAGIC[1].to_be_bytes(),
            &[u8::from(self.is_answer)],
            &self.number.to_be_bytes(),
            &self.received_ns.to_be_bytes(),
            &self.last_answered_ns.to_be_bytes(),
            &self.ahead_ns.to_be_bytes(),
            &self.within_ns.to_be_bytes(),
            &self.corrected_ppb.to_be_bytes(),
        ];
        let mut rest = &mut frame[..];
        for field in fields {
            let (here, behind) = rest.split_at_mut(field.len());
            here.copy_from_slice(field);
            rest = behind;
        }
        frame
    }

    /// Reads a frame, with the source's MAC address; `None` if it is no probe.
    pub(super) fn read(frame: &[u8]) -> Option<(Self, [u8; 6])> {
        fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
            let (field, behind) = rest.split_first_chunk::<N>()?;
            *rest = behind;
            Some(*field)
        }
        let mut rest = (frame.len() == PROBE_BYTES).then_some(frame)?;
        let _target: [u8; 6] = take(&mut rest)?;
        let source = take(&mut rest)?;
        let ethertype = u16::from_be_bytes(take(&mut rest)?);
        let magic = [take(&mut rest)?, take(&mut rest)?].map(u32::from_be_bytes);
        let [is_answer] = take(&mut rest)?;
        let is_answer = is_answer != 0;
        let probe = Self {
            is_answer,
            number: u32::from_be_bytes(take(&mut rest)?),
            received_ns: i64::from_be_bytes(take(&mut rest)?),
            last_answered_ns: i64::from_be_bytes(take(&mut rest)?),
            ahead_ns: i64::from_be_bytes(take(&mut rest)?),
            within_ns: u64::from_be_bytes(take(&mut rest)?),
            corrected_ppb: i64::from_be_bytes(take(&mut rest)?),
        };
        (ethertype == ETHERTYPE && magic == MAGIC).then_some((probe, source))
    }

    /// Whether times and rates are possible.
    pub(super) fn is_plausible(&self) -> bool {
        let times = [self.received_ns, self.last_answered_ns];
        times.iter().all(|time| (0..TIME_NS_MAX).contains(time))
            && self.ahead_ns.unsigned_abs() < TIME_NS_MAX.unsigned_abs()
            && self.within_ns <= WITHIN_NS_MAX
            && self.corrected_ppb.unsigned_abs() <= CORRECTED_PPB_MAX
    }
}

/// Whether a frame is a probe or its answer.
pub(crate) fn is_probe(frame: &[u8]) -> bool {
    Probe::read(frame).is_some()
}

#[cfg(test)]
mod tests;
