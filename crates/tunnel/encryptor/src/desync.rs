//! Two ends that no longer have the same keys: noticed by the packets that cannot be opened.
//!
//! A lane counts, for each tunnel, the packets in a row that fail: not authentic, or of an epoch that is not known. One
//! authentic packet ends the row. A row that gets long is told, again only after a while, and so is its end, with what
//! it cost.
//!
//! Who forges packets for a tunnel on which nothing else comes can make a long row. It costs that tunnel a new epoch, at
//! most one every [`TOLD_AGAIN_AFTER`], and nothing else.

use std::time::{Duration, Instant};

/// Packets in a row that fail until it is told. A network damages or delays single ones.
pub(crate) const ROW_TOLD: u64 = 32;
/// A row that goes on is told again then: what was done about it has not helped.
pub(crate) const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// What a lane tells of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Desync {
    /// So many packets in a row cannot be opened.
    Goes(u64),
    /// Packets can be opened again.
    Over {
        /// Packets that could not.
        packets: u64,
        /// From the first of them to the first that could.
        outage: Duration,
    },
}

/// The rows of a lane's tunnels.
pub(crate) struct Watch {
    rows: Vec<Row>,
    /// How many tunnels have one: mostly none, and then nothing is done for an authentic packet.
    begun: usize,
}

/// Of one tunnel; none while there are no packets.
#[derive(Clone, Copy, Default)]
struct Row {
    packets: u64,
    since: Option<Instant>,
    told: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(tunnels: usize) -> Self {
        Self {
            rows: vec![Row::default(); tunnels],
            begun: 0,
        }
    }

    /// A packet of the tunnel failed; what is to be told. Looks at the clock for the first of a row, and when the row
    /// has grown by [`ROW_TOLD`].
    pub(crate) fn failed(&mut self, tunnel: u16) -> Option<Desync> {
        let row = &mut self.rows[usize::from(tunnel)];
        if row.packets == 0 {
            row.since = Some(Instant::now());
            self.begun += 1;
        }
        row.packets += 1;
        if !row.packets.is_multiple_of(ROW_TOLD) {
            return None;
        }
        let due = row
            .told
            .is_none_or(|told| told.elapsed() >= TOLD_AGAIN_AFTER);
        due.then(|| {
            row.told = Some(Instant::now());
            Desync::Goes(row.packets)
        })
    }

    /// Whether any tunnel has a row.
    #[inline]
    pub(crate) const fn any(&self) -> bool {
        self.begun > 0
    }

    /// A packet of the tunnel was authentic; what is to be told.
    pub(crate) fn authentic(&mut self, tunnel: u16) -> Option<Desync> {
        let row = &mut self.rows[usize::from(tunnel)];
        let since = row.since?;
        let Row { packets, told, .. } = std::mem::take(row);
        self.begun -= 1;
        told.map(|_| Desync::Over {
            packets,
            outage: since.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_row_is_told_once_and_so_is_its_end() {
        let mut watch = Watch::new(2);
        for _ in 0..ROW_TOLD - 1 {
            assert_eq!(watch.failed(1), None);
        }
        assert!(watch.any());
        // Not long enough to matter.
        assert_eq!(watch.authentic(1), None);
        assert!(!watch.any());
        for number in 1..4 * ROW_TOLD {
            let told = (number == ROW_TOLD).then_some(Desync::Goes(ROW_TOLD));
            assert_eq!(watch.failed(1), told);
            assert_eq!(watch.authentic(0), None, "another tunnel's");
        }
        let over = watch.authentic(1);
        assert!(
            matches!(over, Some(Desync::Over { packets, .. }) if packets == 4 * ROW_TOLD - 1),
            "{over:?}"
        );
        assert_eq!(watch.authentic(1), None);
    }
}
