//! Checks that sampled sealed packets look random, as the output of a cipher does.
//!
//! Two tests, which no cipher known to be good fails except by chance:
//!
//! - Pearson's chi-square over the counts of the 256 values of a byte. For random bytes it has 255
//!   degrees of freedom, and exceeds [`CHI_SQUARE_MOST_MILLI`] in one of 10^9 trials. Text that is
//!   hidden by a constant (XOR, a fixed table) exceeds it if it makes up more than sqrt(12 / bytes)
//!   of them: 2.7 % of [`BYTES_LEAST`], 0.8 % of three full samples.
//! - Blocks of 16 bytes that occur twice: in 192 KiB of random bytes two blocks are equal once in
//!   10^30 trials. Equal text that is sealed block by block (ECB), or under a key stream that
//!   repeats, has equal blocks.

use super::check;
use super::cipher::CipherTraffic;
use super::failure::{count, then_repeat_or};
use journal::record::{Check, Explanation, SealedContents};
use plan::{Adapter, LinkForm};
use testbed::protocol::Contents;

/// Minimum number of bytes for a test of their counts: 64 of each value.
const BYTES_LEAST: u64 = 16 << 10;
/// The chi-square of 255 degrees of freedom that random bytes exceed once in 10^9 times, in
/// thousandths.
const CHI_SQUARE_MOST_MILLI: u64 = 415_000;

/// Whether a DUT's sealed packets must look random: it encrypts, the start of its cipher text is
/// known, and it was not asked for a mode that keeps equal blocks equal.
pub(crate) fn must_look_random(adapter: &Adapter) -> bool {
    let is_known = adapter.form().is_some_and(|form| form != LinkForm::Opaque);
    let profile = adapter.profile();
    let carrier = profile.carrier;
    let repeats_blocks = carrier.is_some_and(|carrier| carrier.suite.repeats_blocks());
    is_known && adapter.encrypts() && !profile.is_readable && !repeats_blocks
}

/// Adds a sample's contents to those before it.
pub(crate) fn add_contents(sum: &mut Contents, more: &Contents) {
    sum.packets += more.packets;
    sum.repeated_blocks += more.repeated_blocks;
    sum.byte_counts.resize(256, 0);
    for (sum, more) in sum.byte_counts.iter_mut().zip(&more.byte_counts) {
        *sum += more;
    }
}

/// The record of contents; `not_whole` frames had no readable ones.
pub(crate) fn recorded(found: &Contents, not_whole: u64) -> SealedContents {
    let bytes: u64 = found.byte_counts.iter().sum();
    let squares = found.byte_counts.iter();
    let squares: u128 = squares.map(|&count| u128::from(count).pow(2)).sum();
    // For n bytes, chi-square is 256 / n times the sum of the squared counts, minus n; here in
    // thousandths, in integers.
    let milli = (256_000 * squares)
        .checked_div(u128::from(bytes))
        .map_or(0, |ratio| ratio.saturating_sub(1000 * u128::from(bytes)));
    SealedContents {
        packets: found.packets,
        bytes,
        chi_square_milli: u64::try_from(milli).unwrap_or(u64::MAX),
        repeated_blocks: found.repeated_blocks,
        not_whole,
    }
}

impl CipherTraffic<'_> {
    /// Checks that the sampled sealed packets look random.
    pub(super) fn looks_random(&self, adapter: &Adapter) -> Option<Check> {
        let contents = self.link.contents.filter(|_| must_look_random(adapter))?;
        let SealedContents {
            packets,
            bytes,
            chi_square_milli,
            repeated_blocks,
            not_whole,
        } = contents;
        let is_counted = bytes >= BYTES_LEAST;
        let chi_square = format!(
            "chi-square of the values of bytes {:.1}, of {} or less expected",
            chi_square_milli as f64 / 1e3,
            CHI_SQUARE_MOST_MILLI / 1000
        );
        let mut detail = format!(
            "of {packets} sealed packets sampled whole {bytes} B behind their headers were read: \
             {repeated_blocks} blocks of 16 B were there before; {}",
            if is_counted {
                chi_square
            } else {
                format!("too few to judge the values of bytes, of {BYTES_LEAST} B or more")
            }
        );
        if not_whole > 0 {
            detail += &format!("; {not_whole} sealed frames had no whole packet");
        }
        // A single one is enough, as random blocks are never equal in practice.
        let difference = if repeated_blocks > 0 {
            Some(format!(
                "{} of 16 B in sealed packets were there before",
                count(repeated_blocks, bytes / 16, "block")
            ))
        } else if is_counted && chi_square_milli > CHI_SQUARE_MOST_MILLI {
            Some(format!(
                "the values of bytes in {} are not equally frequent",
                count(packets, 0, "sealed packet")
            ))
        // Fragments and super-packets have contents that cannot be read, which proves nothing
        // against the device.
        } else if packets == 0 && not_whole == 0 && self.link.esp_frames > 0 {
            Some("no whole sealed packet could be read".to_owned())
        } else {
            None
        };
        let failure = difference.map(|difference| {
            Explanation::new(
                difference,
                "what has the form of sealed packets is no cipher text: text under a constant, or sealed block by \
                 block (ECB), or something else sends such packets",
                then_repeat_or(
                    "stop other programs that use the lab's links",
                    "do not trust this encryptor's cipher, and report it to its maker",
                ),
            )
        });
        check("sealed-looks-random", failure, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without a pattern, always the same for a seed (SplitMix64).
    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31).to_le_bytes()
        };
        (0..bytes.div_ceil(8))
            .flat_map(|_| next())
            .take(bytes)
            .collect()
    }

    fn chi_square(bytes: &[u8]) -> f64 {
        let mut found = Contents {
            byte_counts: vec![0; 256],
            ..Contents::default()
        };
        for &byte in bytes {
            found.byte_counts[usize::from(byte)] += 1;
        }
        let recorded = recorded(&found, 0);
        assert_eq!(recorded.bytes, bytes.len() as u64);
        recorded.chi_square_milli as f64 / 1e3
    }

    const MOST: f64 = CHI_SQUARE_MOST_MILLI as f64 / 1e3;

    /// The mean of chi-square is 255, its variance 510; one trial in 3 * 10^6 comes to 385, and
    /// none near the bound.
    #[test]
    fn random_bytes_of_the_least_number_stay_below_the_bound() {
        let trials = 2000;
        let found = (0..trials).map(|seed| chi_square(&noise(BYTES_LEAST as usize, seed << 20)));
        let (mut sum, mut squares, mut most) = (0.0, 0.0, 0.0_f64);
        for found in found {
            sum += found;
            squares += found * found;
            most = most.max(found);
        }
        let mean = sum / trials as f64;
        let variance = squares / trials as f64 - mean * mean;
        assert!((mean - 255.0).abs() < 2.5, "{mean}");
        assert!((variance - 510.0).abs() < 90.0, "{variance}");
        assert!(most < 385.0, "{most}");
    }

    /// The share that the description promises, of the fewest bytes and of three full samples.
    #[test]
    fn text_under_a_constant_is_found_at_the_stated_share() {
        for (bytes, trials) in [(BYTES_LEAST as usize, 400_u64), (192 << 10, 50)] {
            let share = (12.0 / bytes as f64).sqrt();
            let hidden = (share * bytes as f64).ceil() as usize;
            let found = (0..trials).filter(|seed| {
                let mut sealed = noise(bytes, seed << 24 | 1);
                for (at, byte) in sealed[..hidden].iter_mut().enumerate() {
                    *byte = (b'0' + (at % 10) as u8) ^ 0x5a;
                }
                chi_square(&sealed) > MOST
            });
            let found = found.count() as u64;
            let most_missed = trials / 100 + 1;
            assert!(
                found + most_missed >= trials,
                "{found} of {trials} with {hidden} of {bytes} B"
            );
        }
    }

    #[test]
    fn samples_add_up() {
        let one = Contents {
            packets: 2,
            byte_counts: vec![3; 256],
            repeated_blocks: 1,
        };
        let mut sum = Contents::default();
        add_contents(&mut sum, &one);
        add_contents(&mut sum, &one);
        assert_eq!((sum.packets, sum.repeated_blocks), (4, 2));
        assert_eq!(sum.byte_counts, vec![6; 256]);
        let equal = recorded(&sum, 7);
        assert_eq!((equal.bytes, equal.chi_square_milli), (6 * 256, 0));
        assert_eq!(equal.not_whole, 7);
        assert_eq!(recorded(&Contents::default(), 0), SealedContents::default());
    }
}
