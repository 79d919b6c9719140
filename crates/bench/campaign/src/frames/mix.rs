//! Frame sizes and mixes of them, as campaigns write them.
//!
//! `64 B`; `imix`; `{ 64 B: 7, 594 B: 4, 1518 B: 1 }`, or with shares in per cent.

use units::{Bytes, Ratio};
use wire::mix::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameMix, Share};
use yaml::{Node, Reported, Spanned, Value};

/// The mixes that have a name.
pub(crate) const NAMES: [&str; 5] = ["imix", "imix0", "imix1", "imix2", "baikal"];

/// A size or a mix as declared keys have it.
pub(crate) const VALUE: Value = Value::Any(&[
    Value::Size(FRAME_BYTES_MIN as u64, FRAME_BYTES_MAX as u64),
    Value::Name(|| NAMES.to_vec()),
    Value::Entries(&Value::Any(&[
        Value::Integer(1, ROUND_FRAMES_MAX),
        Value::Ratio(Ratio::from_ppm(1), Ratio::from_percent(100)),
    ])),
]);

/// Most sizes of one mix.
const SIZES_MAX: usize = 32;
/// Most frames in one round of a mix: short enough that the shortest trial has many rounds.
const ROUND_FRAMES_MAX: u64 = 10_000;

/// Reads a size, a mix's name, or a mix spelled out.
pub(crate) fn read(node: Node<'_>) -> Result<FrameMix, Reported> {
    if node.is_map() {
        return spelled_out(node);
    }
    let text = node.text()?;
    if let Some(mix) = FrameMix::named(text) {
        return Ok(mix);
    }
    // No mix has a name that begins so: the message is about sizes, not about unknown names.
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let size = node.size(Bytes::new(0)..=Bytes::new(u64::MAX))?;
        let bytes = in_range(size).map_err(|(what, help)| node.mistake(what, help))?;
        return Ok(FrameMix::fixed(bytes));
    }
    let known = NAMES.map(|name| (name, name));
    node.one_of("mix name", &known)
        .map(|name| FrameMix::named(name).unwrap_or_else(|| FrameMix::fixed(FRAME_BYTES_MIN)))
}

/// Returns the size, or the mistake and the help.
fn in_range(size: Bytes) -> Result<u16, (String, String)> {
    let bytes = size.get();
    let (min, max) = (u64::from(FRAME_BYTES_MIN), u64::from(FRAME_BYTES_MAX));
    if (min..=max).contains(&bytes) {
        // In range, so it fits.
        return Ok(bytes as u16);
    }
    if bytes < min {
        let what = format!("frame size {bytes} B is below the Ethernet minimum of {min} B");
        let help = format!(
            "sizes include the FCS of 4 B and the Ethernet header of 14 B: an IP packet of \
             {bytes} B is a frame of {} B",
            (bytes + 18).max(min)
        );
        return Err((what, help));
    }
    let what = format!("frame size {bytes} B is above {max} B, the longest jumbo frame in use");
    Err((what, format!("write a size from {min} B to {max} B")))
}

/// The frequency of a size.
#[derive(Clone, Copy)]
enum Amount {
    Weight(u32),
    Ratio(Ratio),
}

/// Reads sizes with their weights, or with their shares in per cent.
fn spelled_out(node: Node<'_>) -> Result<FrameMix, Reported> {
    let entries = node.entries(|key, value| {
        let size = Bytes::parse(key.value)
            .map_err(|error| (error.to_string(), error.help().to_owned()))
            .and_then(in_range)
            .map_err(|(what, help)| node.mistake_at(&key.place, what, help));
        let text = value.text()?;
        let is_ratio = text.ends_with('%') || text.ends_with("ppm");
        let amount = if is_ratio {
            let range = Ratio::from_ppm(1)..=Ratio::from_percent(100);
            value.ratio(range).map(Amount::Ratio)
        } else {
            value
                .integer(1..=ROUND_FRAMES_MAX as u32)
                .map(Amount::Weight)
        };
        // The size's mistake is reported by now, so this `?` hides none.
        let amount = value.spanned(amount?);
        Ok((
            Spanned {
                value: size?,
                place: key.place,
            },
            amount,
        ))
    })?;
    check_sizes(node, &entries)?;
    let weights = weights(node, &entries)?;
    // Shares in per cent are parts per million: 50 % and 50 % become a round of two frames.
    let divisor = weights
        .iter()
        .copied()
        .fold(0, greatest_common_divisor)
        .max(1);
    let weights: Vec<u64> = weights.iter().map(|weight| weight / divisor).collect();
    let round: u64 = weights.iter().sum();
    if round > ROUND_FRAMES_MAX {
        let what = format!("one round of this mix has {round} frames");
        let help = format!("at most {ROUND_FRAMES_MAX} are possible: write smaller weights");
        return Err(node.mistake(what, help));
    }
    // Equal to the size alone, in ids too.
    if let [(size, _)] = entries.as_slice() {
        return Ok(FrameMix::fixed(size.value));
    }
    let shares = entries
        .iter()
        .zip(weights)
        .map(|((size, _), weight)| Share {
            frame_bytes: size.value,
            // No more than a round.
            weight: weight as u32,
        });
    Ok(FrameMix {
        name: "mix".to_owned(),
        shares: shares.collect(),
    })
}

type Entry = (Spanned<u16>, Spanned<Amount>);

fn check_sizes(node: Node<'_>, entries: &[Entry]) -> Result<(), Reported> {
    if entries.is_empty() || entries.len() > SIZES_MAX {
        let what = format!("a mix of {} sizes is not possible", entries.len());
        return Err(node.mistake(what, format!("write 1 to {SIZES_MAX} sizes")));
    }
    let mut result = Ok(());
    for (index, (size, _)) in entries.iter().enumerate() {
        let earlier = &entries[..index];
        if earlier
            .iter()
            .any(|(earlier, _)| earlier.value == size.value)
        {
            let what = format!("the size {} B is there already", size.value);
            // Weights of equal sizes would be added silently, and one of them may be a typing
            // mistake.
            result = Err(node.mistake_at(&size.place, what, "add the two up to one"));
        }
    }
    result
}

/// Weights as given, or shares in parts per million, which must sum to one.
fn weights(node: Node<'_>, entries: &[Entry]) -> Result<Vec<u64>, Reported> {
    let is_ratio = |entry: &&Entry| matches!(entry.1.value, Amount::Ratio(_));
    let ratios = entries.iter().filter(is_ratio).count();
    if ratios > 0 && ratios < entries.len() {
        // There is one, since fewer than all are ratios.
        let odd = entries.iter().find(|entry| !is_ratio(entry));
        let place = odd.map_or_else(|| node.place(), |(_, amount)| amount.place.clone());
        let help = "write all of them in per cent, or all of them as weights";
        return Err(node.mistake_at(&place, "a weight stands among shares in per cent", help));
    }
    let numbers = entries.iter().map(|(_, amount)| match amount.value {
        Amount::Weight(weight) => u64::from(weight),
        Amount::Ratio(ratio) => ratio.ppm(),
    });
    let numbers: Vec<u64> = numbers.collect();
    let sum = Ratio::from_ppm(numbers.iter().sum());
    if ratios > 0 && sum != Ratio::from_percent(100) {
        let what = format!("the shares of this mix are {sum} together, not 100 %");
        let help = "correct one of them, or write weights: `{ 64 B: 7, 594 B: 4, 1518 B: 1 }`";
        return Err(node.mistake(what, help));
    }
    Ok(numbers)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}
