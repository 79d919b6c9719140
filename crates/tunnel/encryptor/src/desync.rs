//! Detection of ends that no longer have the same keys, from packets that cannot be opened.
//!
//! For each tunnel, a lane counts the packets in a row that fail: not authentic, or of an unknown
//! epoch. One authentic packet ends the row. A long row is reported once no authentic packet has
//! arrived for [`SILENCE`], and again only after [`REPORT_AGAIN_AFTER`], across rows; the end of a
//! reported row is reported with the packets and the time lost.
//!
//! An attacker who forges packets can therefore cause reports only for a tunnel that has carried no
//! authentic packet to this lane for [`SILENCE`]. `renewal::allowance` bounds their cost.

use std::time::{Duration, Instant};

/// Length of a row that is reported. A network damages or delays single packets.
pub(crate) const REPORTED_ROW: u64 = 32;
/// Time without an authentic packet after which a row is reported. With other keys no packet is
/// authentic; forged packets arrive between authentic ones.
pub(crate) const SILENCE: Duration = Duration::from_millis(50);
/// Time after which an ongoing row is reported again, since the repair has not helped, and the
/// shortest between reports of different rows.
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

/// The row of one tunnel; no row if `packets` is 0.
#[derive(Clone, Copy, Default)]
struct Row {
    packets: u64,
    since: Option<Instant>,
    is_reported: bool,
    /// The last report on the tunnel, of this row or an earlier one.
    last_report: Option<Instant>,
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
        self.failed_by(tunnel, Instant::now)
    }

    fn failed_by(&mut self, tunnel: u16, now: impl Fn() -> Instant) -> Option<Desync> {
        let row = &mut self.rows[usize::from(tunnel)];
        if row.packets == 0 {
            row.since = Some(now());
            self.begun += 1;
        }
        row.packets += 1;
        // A flood of forged packets must not read the clock for each of them.
        if !row.packets.is_multiple_of(REPORTED_ROW) {
            return None;
        }
        let now = now();
        let passed = |since: Option<Instant>, time| {
            since.is_none_or(|since| now.saturating_duration_since(since) >= time)
        };
        // A long row alone proves nothing: forged packets arrive in bursts between authentic ones.
        let due = passed(row.since, SILENCE) && passed(row.last_report, REPORT_AGAIN_AFTER);
        due.then(|| {
            row.is_reported = true;
            row.last_report = Some(now);
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
        // `None` without a row, so that the usual packet reads no clock.
        let outage = row.since?.elapsed();
        let over = row.is_reported.then_some(Desync::Over {
            packets: row.packets,
            outage,
        });
        *row = Row {
            last_report: row.last_report,
            ..Row::default()
        };
        self.begun -= 1;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails `packets` packets of tunnel 1 at one time; returns the reports.
    fn fail(watch: &mut Watch, packets: u64, now: Instant) -> Vec<Desync> {
        (0..packets)
            .filter_map(|_| watch.failed_by(1, || now))
            .collect()
    }

    #[test]
    fn a_long_row_and_its_end_are_reported_once() {
        let mut watch = Watch::new(2);
        let start = Instant::now();
        assert_eq!(fail(&mut watch, REPORTED_ROW - 1, start), []);
        assert!(watch.any());
        // Not long enough to matter.
        assert_eq!(watch.authentic(1), None);
        assert!(!watch.any());
        // Long enough, but it has only just begun.
        assert_eq!(fail(&mut watch, REPORTED_ROW, start), []);
        let later = start + SILENCE;
        assert_eq!(
            fail(&mut watch, 3 * REPORTED_ROW, later),
            [Desync::Ongoing(2 * REPORTED_ROW)]
        );
        assert_eq!(watch.authentic(0), None, "another tunnel's");
        let over = watch.authentic(1);
        assert!(
            matches!(over, Some(Desync::Over { packets, .. }) if packets == 4 * REPORTED_ROW),
            "{over:?}"
        );
        assert_eq!(watch.authentic(1), None);
    }

    #[test]
    fn an_authentic_packet_does_not_renew_the_right_to_report() {
        let mut watch = Watch::new(2);
        let start = Instant::now();
        let mut reports = 0;
        // For a minute, 64 forged packets around each authentic one, which come at this interval.
        for interval in [1, 10, 49, 50, 60, 1000, 5000].map(Duration::from_millis) {
            let mut now = start;
            let mut seen = 0;
            while now < start + Duration::from_secs(60) {
                fail(&mut watch, REPORTED_ROW, now);
                now += interval;
                seen += fail(&mut watch, REPORTED_ROW, now).len();
                watch.authentic(1);
            }
            if interval < SILENCE {
                assert_eq!(seen, 0, "{interval:?}")
            } else {
                assert!((1..=30).contains(&seen), "{interval:?}: {seen}")
            }
            reports += seen;
            watch = Watch::new(2);
        }
        assert!(reports > 0);
    }
}
