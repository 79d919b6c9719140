//! The largest packet that arrives, compared with the MTU that the kernel uses.

use crate::datagrams::{Datagrams, Kind};
use probe::{LEAST_BYTES, PathMtu, largest_packet};
use std::io;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Shortest time for an answer, and how many round trips are waited for.
const ANSWER_LEAST: Duration = Duration::from_millis(80);
const ROUND_TRIPS: u32 = 4;
const ATTEMPTS: usize = 3;
/// Longest search.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

struct Search<'a> {
    datagrams: &'a Datagrams,
    interrupt: &'a Interrupt,
    answer: Duration,
    end: Instant,
    number: u32,
}

/// Finds the largest packet to the other end. An error is a clause for people.
pub(crate) fn find(
    datagrams: &Datagrams,
    round_trip: Duration,
    interrupt: &Interrupt,
) -> Result<PathMtu, String> {
    Search {
        datagrams,
        interrupt,
        answer: ANSWER_LEAST.max(round_trip * ROUND_TRIPS),
        end: Instant::now() + LIMIT,
        number: 0,
    }
    .find()
}

impl Search<'_> {
    fn find(mut self) -> Result<PathMtu, String> {
        let datagrams = self.datagrams;
        let found = largest_packet(|| known(datagrams), |bytes| self.passes(bytes))?;
        if found.passed_bytes == 0 {
            let least = LEAST_BYTES.min(found.known_bytes);
            return Err(format!("not even packets of {least} B arrive"));
        }
        Ok(found)
    }

    /// Whether a packet of this length is answered; also false if the kernel refuses it as too
    /// long.
    fn passes(&mut self, packet_bytes: u16) -> Result<bool, String> {
        let payload = packet_bytes.saturating_sub(self.datagrams.ip_bytes());
        for _ in 0..ATTEMPTS {
            if self.interrupt.is_set() {
                return Err("interrupted".to_owned());
            }
            if Instant::now() >= self.end {
                return Err(format!(
                    "no answer in time about packets of {packet_bytes} B"
                ));
            }
            self.number += 1;
            match self
                .datagrams
                .send(Kind::Probe, self.number, (payload.into(), &[0]))
            {
                Err(error) if is_too_long(&error) => return Ok(false),
                // A report of a router about an earlier packet ends the next call.
                Err(_) => continue,
                Ok(()) => {}
            }
            let by = Instant::now() + self.answer;
            while let Some(answer) = self.datagrams.next(by) {
                if answer.kind == Kind::Probed && answer.number == self.number {
                    // A tunnel that cuts packets would answer with another length.
                    return Ok(answer.length == payload);
                }
            }
        }
        Ok(false)
    }
}

fn known(datagrams: &Datagrams) -> Result<u16, String> {
    let known = datagrams.known_mtu();
    known.map_err(|error| format!("the kernel does not report the path's MTU: {error}"))
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::errno::Errno::EMSGSIZE as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::tests::pair;

    #[test]
    fn the_loopback_interface_carries_its_mtu() {
        let [asker, _listener] = pair();
        let found = find(&asker, Duration::ZERO, &Interrupt::new()).unwrap();
        assert_eq!(found.known_bytes, u16::MAX);
        assert!(!found.is_black_hole(), "{found:?}");
    }

    #[test]
    fn nobody_answers() {
        let [asker, listener] = pair();
        drop(listener);
        let said = find(&asker, Duration::ZERO, &Interrupt::new()).unwrap_err();
        assert_eq!(said, "not even packets of 576 B arrive");
    }
}
