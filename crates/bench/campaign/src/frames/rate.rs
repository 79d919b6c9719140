//! Loads as campaigns write them: frames per second, or bits per second at a layer.

use plan::{Value, compact};
use std::fmt;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, PREAMBLE_AND_GAP_BYTES};
use units::{BitRate, FrameRate, Layer};
use wire::mix::FrameMix;
use yaml::{FromNode, Node, Reported, Value as Declared};

/// Highest load: the line rate of 100 Gbit/s with the smallest frames is a sixth of it.
const FRAMES_MAX: u64 = 1_000_000_000;
/// Below it, a second is too short for a frame of the largest size.
const BPS_MIN: u64 = 100_000;
const BPS_MAX: u64 = 1_000_000_000_000;

/// A load as declared keys have it.
pub(crate) const LOAD: Declared = Declared::Notation("^[0-9]+(\\.[0-9]+)? ?[A-Za-z0-9/ ]+$");

impl FromNode for Rate {
    fn from_node(node: Node<'_>, _value: &Declared) -> Result<Self, Reported> {
        read(node)
    }
}

/// A load in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Frames per second.
    Frames(u64),
    /// Bits per second at L1, L2 or IP.
    Bits(BitRate),
}

impl Rate {
    /// Frames per second of this mix, rounded down; at least 1.
    pub(crate) fn frames_per_s(self, mix: &FrameMix) -> u64 {
        match self {
            Self::Frames(frames) => frames,
            Self::Bits(rate) => frames_per_s(rate.bps(), rate.layer(), mix).max(1),
        }
    }
}

/// Exact: `1.5 Mpps`, `1 Gbit/s L1`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(frames) => write!(f, "{}", FrameRate::new(*frames)),
            Self::Bits(rate) => write!(f, "{rate:#}"),
        }
    }
}

impl From<Rate> for Value {
    fn from(rate: Rate) -> Self {
        compact(&rate).into()
    }
}

/// Whole frames of a mix in a second of that bit rate. Payload is counted as IP is.
fn frames_per_s(bps: u64, layer: Layer, mix: &FrameMix) -> u64 {
    let (round, frames) = (u128::from(mix.round_bytes()), u128::from(mix.weight()));
    // Bytes of a whole round, since the mean size of a mix need not be whole.
    let bytes = match layer {
        Layer::L1 => round + frames * u128::from(PREAMBLE_AND_GAP_BYTES),
        Layer::L2 => round,
        Layer::Ip | Layer::Payload => {
            round.saturating_sub(frames * u128::from(HEADER_BYTES + FCS_BYTES))
        }
    };
    u64::try_from(u128::from(bps) * frames / (8 * bytes).max(1)).unwrap_or(u64::MAX)
}

/// A rate whose unit is another spelling of bits per second, as this project spells it: `1 Gbit`,
/// `1 Gbps`, `1 Gb/s`.
fn in_bits(text: &str) -> Option<String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let unit = text[end..].trim();
    let prefix = ["k", "M", "G", "T"];
    let found = prefix.iter().find(|prefix| {
        let unit = unit.to_lowercase();
        let bare = unit.strip_prefix(&prefix.to_lowercase());
        bare.is_some_and(|bare| ["bit", "bits", "bps", "b/s", "bit/sec", "b"].contains(&bare))
    })?;
    Some(format!("{} {found}bit/s", text[..end].trim()))
}

/// Reads a load.
pub(crate) fn read(node: Node<'_>) -> Result<Rate, Reported> {
    let text = node.text()?;
    let layers = [Layer::L1, Layer::L2, Layer::Ip];
    let named = layers.iter().find_map(|layer| {
        let number = text.strip_suffix(layer.name())?;
        Some((number.trim_end(), *layer))
    });
    let rate = match named {
        Some((number, layer)) => BitRate::parse(number, layer).map(Rate::Bits),
        // The layer only completes the type here. With frames of 64 B, L1 counts 84 B and IP 46 B
        // of each: no layer would be a safe default.
        None => match BitRate::parse(text, Layer::L1) {
            Ok(rate) => return Err(no_layer(node, rate)),
            Err(_) if text.contains("bit/s") => {
                let what = format!("`{text}` is no bit rate of a layer");
                let help =
                    "write for example `1 Gbit/s L1`, `1 Gbit/s L2` or `1 Gbit/s IP`, or frames/s";
                return Err(node.mistake(what, help));
            }
            Err(_) => {
                if let Some(rate) = in_bits(text) {
                    let what = format!("`{text}` is no bit rate of a layer");
                    let help = format!("write `{rate} L2`, or L1 or IP, or a rate in frames/s");
                    return Err(node.mistake(what, help));
                }
                FrameRate::parse(text).map(|rate| Rate::Frames(rate.fps()))
            }
        },
    };
    let rate = rate.map_err(|error| node.mistake(error.to_string(), error.help()))?;
    let fits = match rate {
        Rate::Frames(frames) => (1..=FRAMES_MAX).contains(&frames),
        Rate::Bits(rate) => (BPS_MIN..=BPS_MAX).contains(&rate.bps()),
    };
    if fits {
        return Ok(rate);
    }
    let help = format!(
        "write a load from {} to {}, or from {} to {} at a layer",
        FrameRate::new(1),
        FrameRate::new(FRAMES_MAX),
        BitRate::new(BPS_MIN, Layer::L1),
        BitRate::new(BPS_MAX, Layer::L1)
    );
    Err(node.mistake(format!("`{text}` is out of range"), help))
}

fn no_layer(node: Node<'_>, rate: BitRate) -> Reported {
    let what = format!("bit rate `{rate}` names no layer");
    let help = format!(
        "write `{rate} L1` (preamble and gap counted), `{rate} L2` (frames with FCS), \
         `{rate} IP`, or frames/s"
    );
    node.mistake(what, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_rate_of_gigabit_ethernet_is_the_known_one() {
        let rate = |bytes| frames_per_s(1_000_000_000, Layer::L1, &FrameMix::fixed(bytes));
        // RFC 2544 practice.
        assert_eq!(rate(64), 1_488_095);
        assert_eq!(rate(512), 234_962);
        assert_eq!(rate(1518), 81_274);
    }

    #[test]
    fn a_mix_is_counted_with_its_mean_size() {
        // 7×64 + 4×594 + 1×1518 = 4342 bytes in 12 frames.
        let imix = FrameMix::named("imix").unwrap();
        assert_eq!(frames_per_s(4342 * 8, Layer::L2, &imix), 12);
        assert_eq!(frames_per_s((4342 + 240) * 8, Layer::L1, &imix), 12);
        assert_eq!(frames_per_s((4342 - 216) * 8, Layer::Ip, &imix), 12);
    }
}
