//! An independent peer: scapy opens what we seal, and we open what it seals, with ESN beyond 32
//! bits and with short sequence numbers.

use super::peer::Scapy;
use super::*;

#[test]
fn scapy_opens_what_we_seal_and_we_open_what_it_seals() {
    let Some(mut scapy) = Scapy::start() else {
        return;
    };
    // Lengths around every cipher's and every hash's block boundaries.
    let mut longer = INNER.to_vec();
    longer.extend((0..1400).map(|at| at as u8));
    for (suite, numbers, selection) in suites()
        .into_iter()
        .filter(|suite| Suite::COMMON.contains(suite))
        .flat_map(|suite| selections(suite).into_iter().map(move |each| (suite, each)))
        .flat_map(|(suite, selection)| {
            let both = [SequenceNumbers::Extended, SequenceNumbers::Short];
            both.map(|numbers| (suite, numbers, selection.clone()))
        })
    {
        let made = || selection.transform_with(&keymat(suite), numbers);
        let mut outbound = OutboundSa::new(SPI, made());
        let mut inbound = InboundSa::new(SPI, made(), WindowSize::DEFAULT);
        let what = |sequence| {
            format!(
                "{suite} by {} {sequence:#x} {numbers:?}",
                selection.engine()
            )
        };
        let sequences = [
            1,
            2,
            0xffff_ffff,
            0x1_0000_0000,
            0x1_0000_0001,
            0x7_1234_5678,
        ];
        for (sequence, length) in sequences.into_iter().zip([29, 30, 38, 46, 64, 1429]) {
            if numbers == SequenceNumbers::Short && sequence > 0xffff_ffff {
                continue;
            }
            let inner = ipv4(&longer[..length]);
            // Both ends jump: the peer has no state between requests.
            outbound.skip_to(sequence);
            let packet = seal(&mut outbound, &inner, 4);
            let opened = scapy.open((suite, numbers), sequence, &packet);
            assert_eq!(opened, inner, "{}", what(sequence));

            if sequence as u32 == 0 {
                continue; // scapy takes 0 for "not given"
            }
            let iv = &packet[8..8 + suite.iv_bytes()];
            let theirs = scapy.seal((suite, numbers), sequence, iv, &inner);
            assert_eq!(theirs, packet, "{}", what(sequence));
            let mut packet = theirs;
            inbound.skip_to(sequence);
            let opened = inbound.open(&mut packet).unwrap();
            assert_eq!(packet[opened.inner], inner, "{}", what(sequence));
            assert_eq!(opened.next_header, 4);
        }
    }
}

/// The packet with its total length corrected, so that scapy does not parse it as another protocol.
fn ipv4(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    packet
}
