//! Detection of ends that no longer have the same keys, from packets that cannot be opened.
//!
//! For each tunnel, a lane counts the packets in a row that fail: not authentic, or of an unknown
//! epoch. One authentic packet ends the row. A long row is reported, and repeated only after
//! [`REPORT_AGAIN_AFTER`]; its end is reported with the packets and the time lost.
//!
//! An attacker who forges packets for a tunnel that is otherwise idle can cause a long row. It
//! costs that tunnel a new epoch, at most one every [`REPORT_AGAIN_AFTER`], and nothing else.

use std::time::{Duration, Instant};

/// Length of a row that is reported. A network damages or delays single packets.
pub(crate) const REPORTED_ROW: u64 = 32;
/// Time after which an ongoing row is reported again: the repair has not helped.
pub(crate) const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A lane's report on a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desync {
    /// This many packets in a row could not be opened.
    Ongoing(u64),
    /// Packets can be opened again.
    Over {
        /// Packets that could not be opened.
        packets: u64,
        /// Time from the first of them to the first that could be opened.
        outage: Duration,
    },
}

/// The rows of a lane's tunnels.
pub(crate) struct Watch {
    rows: Vec<Row>,
    /// Number of tunnels with a row: usually none, and then an authentic packet costs nothing.
    begun: usize,
}

/// The row of one tunnel; there is none while `packets` is 0.
#[derive(Clone, Copy, Default)]
struct Row {
    packets: u64,
    since: Option<Instant>,
    reported: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(tunnels: usize) -> Self {
        Self {
            rows: vec![Row::default(); tunnels],
            begun: 0,
        }
    }

    /// Counts a failed packet of the tunnel, and returns the report that is due. Reads the clock
    /// for the first packet of a row, and when the row has grown by [`REPORTED_ROW`].
    pub(crate) fn failed(&mut self, tunnel: u16) -> Option<Desync> {
        let row = &mut self.rows[usize::from(tunnel)];
        if row.packets == 0 {
            row.since = Some(Instant::now());
            self.begun += 1;
        }
        row.packets += 1;
        if !row.packets.is_multiple_of(REPORTED_ROW) {
            return None;
        }
        let due = row
            .reported
            .is_none_or(|reported| reported.elapsed() >= REPORT_AGAIN_AFTER);
        due.then(|| {
            row.reported = Some(Instant::now());
            Desync::Ongoing(row.packets)
        })
    }

    /// Whether any tunnel has a row.
    #[inline]
    pub(crate) const fn any(&self) -> bool {
        self.begun > 0
    }

    /// Ends the tunnel's row at an authentic packet, and returns the report that is due.
    pub(crate) fn authentic(&mut self, tunnel: u16) -> Option<Desync> {
        let row = &mut self.rows[usize::from(tunnel)];
        let since = row.since?;
        let Row {
            packets, reported, ..
        } = std::mem::take(row);
        self.begun -= 1;
        reported.map(|_| Desync::Over {
            packets,
            outage: since.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_row_and_its_end_are_reported_once() {
        let mut watch = Watch::new(2);
        for _ in 0..REPORTED_ROW - 1 {
            assert_eq!(watch.failed(1), None);
        }
        assert!(watch.any());
        // Not long enough to matter.
        assert_eq!(watch.authentic(1), None);
        assert!(!watch.any());
        for number in 1..4 * REPORTED_ROW {
            let reported = (number == REPORTED_ROW).then_some(Desync::Ongoing(REPORTED_ROW));
            assert_eq!(watch.failed(1), reported);
            assert_eq!(watch.authentic(0), None, "another tunnel's");
        }
        let over = watch.authentic(1);
        assert!(
            matches!(over, Some(Desync::Over { packets, .. }) if packets == 4 * REPORTED_ROW - 1),
            "{over:?}"
        );
        assert_eq!(watch.authentic(1), None);
    }
}
