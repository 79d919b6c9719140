//! The bridge of an impaired path on ports of lists, with a clock that stands still between steps.

use impair::{Impairment, Jitter, Loss, Profile, Queue, Rate, Reorder};
use port::{CLEAR_ROOM_BYTES, ClearPort, Stop};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use traffic::{Bridge, BridgePort};
use traffic_spec::Clock;
use wire::coalesce::Joinable;
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

const FRAME_BYTES: usize = 128;

/// A clock that its owner sets.
struct SetClock(Cell<u64>);

impl Clock for &SetClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn wait_until(&self, _: u64, _: &Stop) {}
}

/// A port that has frames to lend, and keeps those that it sends.
struct ListPort {
    coming: VecDeque<(Vec<u8>, u64)>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    lent: Vec<u8>,
}

impl ListPort {
    fn new(coming: impl IntoIterator<Item = (Vec<u8>, u64)>) -> Self {
        Self {
            coming: coming.into_iter().collect(),
            sent: Arc::default(),
            lent: Vec::new(),
        }
    }
}

impl BridgePort for ListPort {
    fn recv_timed(&mut self) -> io::Result<(&mut [u8], usize, Option<u64>)> {
        let (frame, at_ns) = self.coming.pop_front().ok_or(ErrorKind::WouldBlock)?;
        self.lent = [&VnetHeader::PLAIN.to_bytes()[..], &frame].concat();
        self.lent.extend([0; CLEAR_ROOM_BYTES]);
        let bytes = VNET_HEADER_BYTES + frame.len();
        Ok((&mut self.lent, bytes, Some(at_ns)))
    }
}

impl ClearPort for ListPort {
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        let (frame, bytes, _) = self.recv_timed()?;
        Ok((frame, bytes))
    }

    fn send(&mut self, _: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let frame = [headers, &payload.concat()].concat();
        self.sent.lock().unwrap().push(frame);
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        Joinable::NONE
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A frame whose first bytes are its number.
fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; FRAME_BYTES];
    frame[..8].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u64 {
    u64::from_be_bytes(*frame.first_chunk().unwrap())
}

/// Carries this many frames, one each microsecond, from A to B, and returns the counts with what
/// left at B.
fn carried(a_to_b: Impairment, frames: u64) -> (impair::Counts, Vec<Vec<u8>>) {
    let profile = Profile {
        seed: 3,
        a_to_b,
        ..Profile::none()
    };
    let clock = SetClock(Cell::new(0));
    let coming = (0..frames).map(|at| (frame(at), at * 1000));
    let ports = [ListPort::new(coming), ListPort::new([])];
    let sent = Arc::clone(&ports[1].sent);
    let mut bridge = Bridge::new(&profile, FRAME_BYTES, ports, &clock);
    // Time goes on in steps of one batch, to well after the last frame is due.
    for step in 0..frames / 32 + 1000 {
        clock.0.set(step * 64_000);
        bridge.step().unwrap();
    }
    let counts = bridge.end().a_to_b;
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    (counts, sent)
}

#[test]
fn without_impairments_every_frame_passes_unchanged_and_in_order() {
    let (counts, sent) = carried(Impairment::default(), 1000);
    assert_eq!((counts.received, counts.sent), (1000, 1000));
    assert!(counts.balances());
    let frames: Vec<_> = (0..1000).map(frame).collect();
    assert!(sent == frames);
}

#[test]
fn added_delay_is_the_time_from_when_a_frame_was_due_until_it_left() {
    // Due when it came, and sent with the rest of its batch, up to 64 us later.
    let (counts, _) = carried(Impairment::default(), 64);
    assert_eq!(counts.added_ns_max, 0);
    let late = Impairment {
        delay_ns: 32_000,
        ..Impairment::default()
    };
    let (counts, _) = carried(late, 64);
    assert!(
        counts.added_ns_max > 30_000 && counts.added_ns_max <= 64_500,
        "{counts:?}"
    );
}

#[test]
fn frames_longer_than_a_slot_are_the_testers_own_loss() {
    let delayed = Profile {
        a_to_b: Impairment {
            delay_ns: 1,
            ..Impairment::default()
        },
        ..Profile::none()
    };
    let clock = SetClock(Cell::new(0));
    let ports = [ListPort::new([(vec![0; 9000], 0)]), ListPort::new([])];
    let mut bridge = Bridge::new(&delayed, FRAME_BYTES, ports, &clock);
    bridge.step().unwrap();
    let counts = bridge.end().a_to_b;
    assert_eq!((counts.received, counts.lost_by_tester), (1, 1));
    assert!(counts.balances());
}

fn any_impairment() -> impl Strategy<Value = Impairment> {
    let shares = prop::array::uniform4(0_u32..300_000);
    (shares, 0_u64..3_000_000, any::<bool>(), any::<bool>()).prop_map(
        |([loss, reorder, duplicate, corrupt], time_ns, varies, is_narrow)| Impairment {
            delay_ns: time_ns,
            jitter: varies.then_some(Jitter {
                time_ns: time_ns / 3,
                distribution: impair::Distribution::Normal,
            }),
            loss: Some(Loss::Random { ppm: loss }),
            reorder: Some(Reorder {
                ppm: reorder,
                by_ns: 500_000,
            }),
            duplicate_ppm: duplicate,
            corrupt_ppm: corrupt,
            rate: is_narrow.then_some(Rate {
                bps: 1_000_000_000,
                queue: Queue::Packets(50),
            }),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Every frame has one end, copies included; damage is one bit behind the headers; and the same
    /// frames in give the same frames out.
    #[test]
    fn every_frame_has_one_end_and_runs_repeat(impairment in any_impairment()) {
        let (counts, sent) = carried(impairment.clone(), 2000);
        prop_assert!(counts.balances());
        prop_assert_eq!(counts.received, 2000);
        prop_assert_eq!(counts.lost_by_tester, 0);
        prop_assert_eq!(counts.sent, sent.len() as u64);
        prop_assert_eq!(counts.waiting, 0);
        let mut copies = vec![0_u64; 2000];
        let mut damaged = 0;
        for frame in &sent {
            copies[number(frame) as usize] += 1;
            let bits: u32 = frame[8..].iter().map(|byte| byte.count_ones()).sum();
            prop_assert!(bits <= 1);
            prop_assert!(frame[8..impair::SPARED_BYTES].iter().all(|byte| *byte == 0));
            damaged += u64::from(bits);
        }
        let doubled = copies.iter().filter(|count| **count == 2).count();
        prop_assert_eq!(doubled as u64, counts.duplicated);
        prop_assert!((counts.corrupted..=2 * counts.corrupted).contains(&damaged));
        let (same, again) = carried(impairment, 2000);
        prop_assert_eq!(counts, same);
        prop_assert_eq!(sent, again);
    }
}
