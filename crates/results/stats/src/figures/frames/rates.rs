//! One frame rate, converted to the bit rate of each layer.

use crate::figures::estimate::Estimate;
use journal::record::FrameTrial;
use plan::Traffic;
use schemars::JsonSchema;
use serde::Serialize;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, PREAMBLE_AND_GAP_BYTES};
use wire::mix::FrameMix;

/// A frame rate of one direction with its bit rates, which are the same figure in other units,
/// converted with the mix's mean size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LayerRates {
    /// Frames per second.
    pub frames_per_s: Estimate,
    /// On the line: preamble and gap included.
    pub l1_bps: Estimate,
    /// Frames, FCS included.
    pub l2_bps: Estimate,
    /// IP packets.
    pub ip_bps: Estimate,
}

/// Mean lengths of a mix's frames at each layer, and the number of directions that carry them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    round_bytes: u64,
    weight: u64,
    /// Directions over which counts are summed.
    pub(super) directions: u64,
}

impl Lengths {
    pub(crate) fn of(traffic: &Traffic) -> Self {
        Self {
            directions: if traffic.duplex { 2 } else { 1 },
            ..Self::of_mix(&traffic.frames.mix)
        }
    }

    /// Directions over which the counts of a trial are summed. Older journals have only the sum of
    /// both.
    pub(super) fn directions_of(self, trial: &FrameTrial) -> f64 {
        (trial.directions.len() as u64).max(self.directions) as f64
    }

    fn of_mix(mix: &FrameMix) -> Self {
        Self {
            round_bytes: mix.round_bytes(),
            // A mix without a share, in a changed journal, must not divide by 0.
            weight: mix.weight().max(1),
            directions: 1,
        }
    }

    /// Mean bits of a frame, each frame `more` bytes longer.
    fn bits(self, more: u64) -> f64 {
        8.0 * (self.round_bytes + more * self.weight) as f64 / self.weight as f64
    }

    pub(crate) fn l1_bits(self) -> f64 {
        self.bits(PREAMBLE_AND_GAP_BYTES)
    }

    /// Frames of a mix carry exactly their IP packet: none is padded.
    fn ip_bits(self) -> f64 {
        let headers = (HEADER_BYTES + FCS_BYTES) * self.weight;
        8.0 * self.round_bytes.saturating_sub(headers) as f64 / self.weight as f64
    }

    /// The rates that correspond to a frame rate.
    pub(super) fn rates(self, frames_per_s: Estimate) -> LayerRates {
        LayerRates {
            l1_bps: frames_per_s.scaled(self.l1_bits()),
            l2_bps: frames_per_s.scaled(self.bits(0)),
            ip_bps: frames_per_s.scaled(self.ip_bits()),
            frames_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::estimate::Sample;

    fn rates(mix: &FrameMix, frames_per_s: f64) -> [f64; 3] {
        let value = Sample {
            repeat: 1,
            value: frames_per_s,
        };
        let found = Lengths::of_mix(mix).rates(Estimate::of(vec![value]).unwrap());
        [found.l1_bps.mean, found.l2_bps.mean, found.ip_bps.mean]
    }

    #[test]
    fn the_line_rate_of_64_byte_frames_is_10_gbit_per_second_at_l1_only() {
        // As in docs/units.md.
        let [l1, l2, ip] = rates(&FrameMix::fixed(64), 14_880_952.0);
        assert!((l1 / 1e9 - 10.0).abs() < 1e-3, "{l1}");
        assert!((l2 / 1e9 - 7.62).abs() < 5e-3, "{l2}");
        assert!((ip / 1e9 - 5.48).abs() < 5e-3, "{ip}");
    }

    #[test]
    fn a_mix_counts_by_its_mean_size() {
        // 7×64, 4×594, 1×1518: 4342 bytes in 12 frames.
        let [l1, l2, ip] = rates(&FrameMix::named("imix").unwrap(), 12.0);
        assert!((l2 - 8.0 * 4342.0).abs() < 1e-9, "{l2}");
        assert!((l1 - 8.0 * (4342.0 + 240.0)).abs() < 1e-9, "{l1}");
        assert!((ip - 8.0 * (4342.0 - 216.0)).abs() < 1e-9, "{ip}");
    }
}
