//! A bad network between the two: every packet that comes out was sent, comes once, and all are
//! accounted for.

use crate::clear_link::memory_clear_pair;
use crate::lanes::bench::*;
use crate::lanes::network::{Faults, FaultyCipher};
use encryptor::payload::IpRules;
use port::{ClearPort, memory_cipher_pair};
use proptest::prelude::*;
use std::collections::BTreeSet;
use wire::Suite;
use wire::vnet::VnetHeader;

/// Number of packets in one test; far below the anti-replay window.
const PACKETS: u32 = 400;

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..0.3f64]
}

fn faults() -> impl Strategy<Value = Faults> {
    let rates = (
        probability(),
        probability(),
        probability(),
        probability(),
        probability(),
        probability(),
    );
    (any::<u64>(), rates, 1u64..5).prop_map(|(seed, rates, delay_batches)| Faults {
        seed,
        loss: rates.0,
        duplicate: rates.1,
        corrupt: rates.2,
        truncate: rates.3,
        reorder: rates.4,
        delay: rates.5,
        delay_batches,
    })
}

/// Unauthenticated suites accept a damaged packet.
fn authenticated() -> Vec<Suite> {
    let all = Suite::ALL.into_iter();
    all.filter(|suite| suite.icv_bytes() > 0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_bad_network_delivers_no_packet_twice_and_none_that_was_not_sent(
        faults in faults(),
        suite in prop::sample::select(authenticated()),
        aggregate: bool,
        bytes in 4usize..600,
    ) {
        let rules = IpRules { aggregate, ..IpRules::NONE };
        let setup = Setup { suite, joinable: SINGLE, inner_bytes_max: 1400, ..Setup::ip(rules) };
        let (mut a, left_clear) = memory_clear_pair(SINGLE);
        let (right_clear, mut b) = memory_clear_pair(SINGLE);
        let (left_cipher, right_cipher) = memory_cipher_pair();
        let mut left = setup.worker((left_clear, left_cipher), LEFT_SPI, RIGHT_SPI);
        let faulty = FaultyCipher::new(right_cipher, faults);
        let mut right = setup.worker((right_clear, faulty), RIGHT_SPI, LEFT_SPI);
        let packet = |number: u32| {
            let payload: Vec<u8> = number.to_be_bytes().into_iter().cycle().take(bytes).collect();
            udp([10, 0, 0, 1], &payload)
        };
        let mut received = BTreeSet::new();
        for number in 0..PACKETS {
            a.send(&VnetHeader::PLAIN, &packet(number), &[]).unwrap();
            if number % 16 == 15 {
                left.step().unwrap();
            }
            right.step().unwrap();
            for out in drain_clear(&mut b, false) {
                let number = u32::from_be_bytes(out[28..32].try_into().unwrap());
                prop_assert_eq!(&out, &packet(number));
                prop_assert!(received.insert(number), "{} came twice", number);
            }
        }
        // Delayed packets arrive with the calls that they wait for.
        for _ in 0..16 {
            right.step().unwrap();
        }
        for out in drain_clear(&mut b, false) {
            let number = u32::from_be_bytes(out[28..32].try_into().unwrap());
            prop_assert!(received.insert(number), "{} came twice", number);
        }
        let (sent, opened) = (tally(&left), tally(&right));
        prop_assert_eq!(opened.clear_tx.packets, received.len() as u64);
        if (faults.loss, faults.corrupt, faults.truncate) == (0.0, 0.0, 0.0) {
            prop_assert_eq!(opened.clear_tx.packets, sent.clear_rx.packets);
        }
    }
}
