//! Every sealed packet opens again, with any engine in either direction.

use super::*;
use proptest::prelude::*;

fn suite() -> impl Strategy<Value = Suite> {
    prop::sample::select(suites())
}

fn inner_packets() -> impl Strategy<Value = Vec<(Vec<u8>, u8)>> {
    let packet = (prop::collection::vec(any::<u8>(), 0..2000), any::<u8>());
    prop::collection::vec(packet, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_engine_opens_what_any_engine_seals(suite in suite(), packets in inner_packets()) {
        for sealer in transforms(suite) {
            let mut outbound = OutboundSa::new(SPI, sealer);
            let sealed: Vec<_> =
                packets.iter().map(|(inner, next)| seal(&mut outbound, inner, *next)).collect();
            for opener in transforms(suite) {
                let mut inbound = InboundSa::new(SPI, opener, WindowSize::DEFAULT);
                for ((inner, next_header), sealed) in packets.iter().zip(&sealed) {
                    let mut packet = sealed.clone();
                    let opened = inbound.open(&mut packet).unwrap();
                    prop_assert_eq!(&packet[opened.inner], &inner[..]);
                    prop_assert_eq!(opened.next_header, *next_header);
                }
            }
        }
    }

    #[test]
    fn sealing_any_slice_restores_the_source(
        suite in suite(),
        source in prop::collection::vec(any::<u8>(), TRAILER_ROOM..3000),
        slice in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let (mut outbound, mut inbound) = pair(suite);
        let end = slice.0.index(source.len() - TRAILER_ROOM + 1);
        let start = slice.1.index(end + 1);
        let mut src = source.clone();
        let mut dst = vec![0; 4000];
        let length = outbound.seal(&mut src[start..], end - start, 4, &mut dst).unwrap();
        prop_assert_eq!(&src, &source);
        prop_assert_eq!(length, outbound.sealed_len(end - start));
        prop_assert!(dst[length..].iter().all(|&byte| byte == 0));
        let opened = inbound.open(&mut dst[..length]).unwrap();
        prop_assert_eq!(&dst[opened.inner], &source[start..end]);
    }

    /// Three ways of staging and single sealing give the same packets, except for the IVs of CBC.
    #[test]
    fn all_ways_of_sealing_produce_equivalent_packets(
        suite in suite(),
        packets in inner_packets(),
        gap in 0usize..40,
    ) {
        let (mut outbound, mut inbound) = pair(suite);
        let (mut single, _) = pair(suite);
        // A pattern in the gaps shows writes beyond a packet.
        let mut buffer = vec![0xcc; 8 * (2100 + gap)];
        let mut staged = Vec::new();
        let mut at = gap;
        for (number, (inner, next)) in packets.iter().enumerate() {
            // In turns within one batch, as workers mix them.
            let packet = match number % 3 {
                0 => outbound.stage(inner, *next, &mut buffer, at),
                1 => outbound.stage_with(inner.len(), *next, &mut buffer, at, |text| {
                    text.copy_from_slice(inner);
                }),
                _ => {
                    let from = at + outbound.inner_offset();
                    buffer[from..from + inner.len()].copy_from_slice(inner);
                    outbound.stage_in_place(inner.len(), *next, &mut buffer, at)
                }
            };
            let packet = packet.unwrap();
            prop_assert_eq!((packet.at, packet.bytes), (at, outbound.sealed_len(inner.len())));
            at += packet.bytes + gap;
            staged.push(packet);
        }
        outbound.seal_staged(&mut buffer, &staged).unwrap();
        for (packet, (inner, next)) in staged.iter().zip(&packets) {
            let range = packet.at..packet.at + packet.bytes;
            if Suite::AEADS.contains(&suite) || suite.iv_bytes() == 0 {
                prop_assert_eq!(&buffer[range.clone()], &seal(&mut single, inner, *next));
            }
            prop_assert!(buffer[range.end..range.end + gap].iter().all(|&byte| byte == 0xcc));
            let opened = inbound.open(&mut buffer[range.clone()]).unwrap();
            prop_assert_eq!(&buffer[range][opened.inner], &inner[..]);
            prop_assert_eq!(opened.next_header, *next);
        }
    }
}

#[test]
fn the_wire_carries_the_low_half_of_the_number_and_an_aeads_iv_is_all_of_it() {
    for suite in extended() {
        let (mut outbound, mut inbound) = pair(suite);
        let first = 0xffff_fffe;
        outbound.skip_to(first);
        inbound.skip_to(first);
        for sequence in first..0x1_0000_0004 {
            let mut packet = seal(&mut outbound, INNER, 4);
            assert_eq!(packet[..4], SPI.to_be_bytes());
            assert_eq!(packet[4..8], (sequence as u32).to_be_bytes());
            if Suite::AEADS.contains(&suite) {
                assert_eq!(packet[8..16], sequence.to_be_bytes());
            }
            let opened = inbound.open(&mut packet).unwrap();
            assert_eq!(packet[opened.inner], *INNER);
        }
        assert_eq!(sealed_packets(&outbound), 0x1_0000_0003);
    }
}

#[test]
fn packets_that_arrive_late_across_the_32_bit_boundary_open_once() {
    let (mut outbound, mut inbound) = pair(Suite::Aes256Gcm);
    outbound.skip_to((1 << 32) - 4000);
    inbound.skip_to((1 << 32) - 4000);
    let sealed: Vec<_> = (0..8000).map(|_| seal(&mut outbound, INNER, 4)).collect();
    // The whole batch is shorter than the window, so that even the oldest is accepted last.
    for packet in sealed.iter().rev() {
        inbound.open(&mut packet.clone()).unwrap();
    }
    for packet in &sealed {
        assert_eq!(
            inbound.open(&mut packet.clone()),
            Err(crate::OpenError::Replayed)
        );
    }
}

#[test]
fn a_dummy_packet_is_recognised_by_its_next_header() {
    for suite in suites() {
        let (mut outbound, mut inbound) = pair(suite);
        let mut packet = seal(&mut outbound, &[], 59);
        let opened = inbound.open(&mut packet).unwrap();
        assert_eq!((opened.inner.len(), opened.next_header), (0, 59));
    }
}
