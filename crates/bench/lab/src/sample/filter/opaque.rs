//! The filter for frames of a proprietary format: frames that show the stations' data are foreign.
//!
//! Classic BPF has no loops, and kernels before 6.7 limit a socket's filter to 20 KB, with several
//! internal instructions per load. So markers are searched at every offset up to [`MARKERS_UNTIL`],
//! which covers the addresses and the first data of a frame passed on in clear, even behind an
//! encryptor's header. Digits, which fill a tool's whole payload, are searched in windows up to
//! [`WINDOWS_UNTIL`].
//!
//! A load beyond a frame's end ends the filter: the frame is then expected, since offsets rise.
//!
//! Not searched: data farther behind, which samples cover, and data without a known marker.

use super::clear::{DIGITS, DIGITS_MASK};
use super::{Assembler, EXPECTED, FOREIGN};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LDX, BPF_RET,
    BPF_W,
};
use wire::headers::be32;

/// Most markers that the filter looks for; only samples look for more.
const MARKERS_MAX: usize = 4;
/// A marker that begins here or later is not found.
const MARKERS_UNTIL: u32 = 96;
/// Windows of 12 digits begin at this distance up to `NEAR_UNTIL`, so that each run of 27 digits
/// contains one, and at the distance `FAR` beyond.
const NEAR: u32 = 16;
const NEAR_UNTIL: u32 = 256;
const FAR: u32 = 64;
const WINDOWS_UNTIL: u32 = 1536;

/// A marker as two words: by chance a frame shows them once in 2^57.
type Words = [u32; 2];

/// Returns the filter that passes only frames with one of these markers.
pub(super) fn unless_hidden(markers: &[Vec<u8>]) -> Assembler {
    let is_digits = |marker: &&Vec<u8>| !marker.is_empty() && marker.iter().all(u8::is_ascii_digit);
    let has_digits = markers.iter().any(|marker| is_digits(&marker));
    let others = markers.iter().filter(|marker| !is_digits(marker));
    // A shorter marker would match too many frames by chance.
    let others = others.filter_map(|marker| marker.first_chunk());
    let words = |begin: &[u8; 8]| [be32(begin, 0), be32(begin, 4)];
    let others: Vec<Words> = others.map(words).take(MARKERS_MAX).collect();
    let mut program = Assembler::default();
    // All matches of a first word jump to one shared test of the second word. A frame with only the
    // first word, by chance one in 2^23, is searched no further.
    let (mut to_markers, mut to_digits) = (Vec::new(), Vec::new());
    for at in 0..WINDOWS_UNTIL {
        let looks = at < MARKERS_UNTIL && !others.is_empty();
        let apart = if at < NEAR_UNTIL { NEAR } else { FAR };
        let is_window = has_digits && at % apart == 0;
        if !looks && !is_window {
            continue;
        }
        program.load(BPF_W | BPF_ABS, at);
        if looks {
            // A match jumps over the tests that are left to `leave`; the last mismatch jumps over
            // `leave`, which has two instructions.
            for (left, [first, _]) in (0..others.len() as u8).rev().zip(&others) {
                let beyond = if left == 0 { 2 } else { 0 };
                program.jump(BPF_JMP | BPF_JEQ | BPF_K, *first, left, beyond);
            }
            to_markers.push(program.leave(at));
        }
        if is_window {
            program.push(BPF_ALU | BPF_AND | BPF_K, DIGITS_MASK);
            program.jump(BPF_JMP | BPF_JEQ | BPF_K, DIGITS, 0, 2);
            to_digits.push(program.leave(at));
        }
    }
    program.push(BPF_RET | BPF_K, EXPECTED);
    // X is the offset of the match, which is set before the jump.
    program.arrive(&to_markers);
    program.load(BPF_W | BPF_IND, 4);
    for [_, second] in others {
        program.when(BPF_JEQ, second, FOREIGN);
    }
    program.push(BPF_RET | BPF_K, EXPECTED);
    program.arrive(&to_digits);
    for behind in [4, 8] {
        program.load(BPF_W | BPF_IND, behind);
        program.push(BPF_ALU | BPF_AND | BPF_K, DIGITS_MASK);
        program.unless(BPF_JEQ, DIGITS, EXPECTED);
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

impl Assembler {
    /// Sets X to `at` and jumps to the target set by [`Self::arrive`]; returns the jump's index.
    fn leave(&mut self, at: u32) -> usize {
        self.push(BPF_LDX | BPF_IMM, at);
        self.push(BPF_JMP | BPF_JA, 0);
        self.0.len() - 1
    }

    /// Sets the target of these jumps to the next instruction.
    fn arrive(&mut self, jumps: &[usize]) {
        let target = self.0.len();
        for &jump in jumps {
            // Fits: the program has at most 4096 instructions.
            self.0[jump].k = (target - jump - 1) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::Expected;
    use crate::sample::classify::{Classifier, Kind};
    use crate::sample::tests::is_foreign_where;
    use plan::LinkForm;
    use proptest::prelude::*;
    use testbed::protocol::SealedPort;

    const OPAQUE: [SealedPort; 1] = [SealedPort {
        port: 0,
        form: LinkForm::Opaque,
        control: true,
    }];
    const THERE: &[u8] = &[198, 18, 0, 1, 198, 19, 0, 1];
    const BACK: &[u8] = &[198, 19, 0, 1, 198, 18, 0, 1];
    const FIRST_PIECE: &[u8] = b"a piece of it";
    const PIECE: &[u8] = b"another!";

    fn of_frames() -> Vec<Vec<u8>> {
        [THERE, BACK, FIRST_PIECE, PIECE].map(<[u8]>::to_vec).into()
    }

    fn of_tools() -> Vec<Vec<u8>> {
        [b"0123456789", THERE, BACK].map(<[u8]>::to_vec).into()
    }

    fn expected(markers: &[Vec<u8>]) -> Expected<'_> {
        Expected {
            sealed: &OPAQUE,
            control: &[],
            markers,
        }
    }

    fn is_foreign(markers: &[Vec<u8>], frame: &[u8]) -> bool {
        is_foreign_where(expected(markers), frame)
    }

    fn kind(markers: &[Vec<u8>], frame: &[u8]) -> Kind {
        Classifier::new(expected(markers)).kind(frame)
    }

    /// A frame with an unknown EtherType.
    fn frame(payload: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &[0x99, 0x99], payload].concat()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_hidden_is_expected(noise in prop::collection::vec(any::<u8>(), 0..1600)) {
            for markers in [of_frames(), of_tools(), Vec::new()] {
                let frame = frame(&noise);
                prop_assert!(!is_foreign(&markers, &frame));
                prop_assert_eq!(kind(&markers, &frame), Kind::Sealed { id: None });
            }
        }

        #[test]
        fn a_marker_is_found_at_any_offset_near_the_begin_and_by_samples_anywhere(
            noise in prop::collection::vec(any::<u8>(), 200..1600),
            at in 0..1600_usize,
            which in 0..4_usize,
        ) {
            let markers = of_frames();
            let marker = &markers[which];
            let at = at % (noise.len() - marker.len() + 1);
            let mut shown = frame(&noise);
            shown[14 + at..][..marker.len()].copy_from_slice(marker);
            prop_assert_eq!(kind(&markers, &shown), Kind::Other);
            prop_assert_eq!(is_foreign(&markers, &shown), 14 + at < 96);
            // Half of the marker does not count.
            shown[14 + at..][..4].fill(0xa5);
            prop_assert!(!is_foreign(&markers, &shown));
        }

        #[test]
        fn a_run_of_digits_is_found_anywhere(
            noise in prop::collection::vec(128_u8..=255, 100..9200),
            at in 0..9200_usize,
            phase in 0..10_u8,
        ) {
            let markers = of_tools();
            let at = at % noise.len();
            // Long enough to contain a window of 12 digits, at distances of 16 or of 64.
            let run = if 14 + at < 200 { 27 } else { 75 };
            let digits = (0..run).map(|index| b'0' + (phase + index) % 10);
            let mut shown = frame(&noise[..at]);
            shown.extend(digits);
            shown.extend(&noise[at..]);
            // The last window begins at 1472.
            prop_assert_eq!(is_foreign(&markers, &shown), 14 + at <= 1472, "{}", at);
            prop_assert_eq!(kind(&markers, &shown), Kind::Other);
        }
    }

    #[test]
    fn a_frame_of_any_kind_and_length_is_opaque() {
        let markers = of_frames();
        for length in 0..60 {
            assert!(!is_foreign(&markers, &vec![0; length]), "{length}");
        }
        let ipv4 = crate::sample::tests::ipv4(6, &[7; 400]);
        let udp = crate::sample::tests::udp(4500, 9, &[7; 400]);
        for frame in [ipv4, udp, frame(&[0x81, 0, 0, 5])] {
            assert!(!is_foreign(&markers, &frame));
            assert_eq!(kind(&markers, &frame), Kind::Sealed { id: None });
        }
        let mut arp = frame(&[1; 46]);
        arp[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(kind(&markers, &arp), Kind::Control);
        assert!(!is_foreign(&markers, &arp));
    }
}
