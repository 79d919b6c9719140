//! The timeline of a soak: frames sent and received and the device's resources, point by point.
//!
//! Points are on one grid of CLOCK_MONOTONIC, as are their finer bins ([`super::outage`]). A frame
//! belongs to the point of its intended time, which is exact for its latency and rounded to the bin
//! for its count.

use super::outage::Bins;
use super::rig::{RigLoad, Soaked};
use super::spec::FrameStream;
use crate::measurer::unix_ns;
use journal::record::{DevicePoint, SoakPoint};
use std::collections::BTreeMap;
use traffic_spec::{Clock, Monotonic, Received, Report, Role, intended_by_bin};

/// Width of the finest bins.
const BIN_NS: u64 = 1_000_000;
/// Maximum number of bins in a segment.
const BINS_MAX: u64 = 60_000;

/// A reading of a device's totals since its start. `None` if it does not report one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceReading {
    /// On CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Rekeys.
    pub rekeys: Option<u64>,
    /// Desynchronisations of its keys.
    pub desyncs: Option<u64>,
}

/// Adds the counting of bins and periods to a load, for points of this width.
#[must_use]
pub fn with_bins(load: &RigLoad, point_ns: u64) -> RigLoad {
    let most = |width_ns: u64| u32::try_from(load.duration_ns / width_ns + 3).unwrap_or(u32::MAX);
    let (bin_ns, point_ns) = (bin_ns(load.duration_ns, point_ns), point_ns.max(1));
    let of = |width_ns| traffic_spec::Bins {
        width_ns,
        most: most(width_ns),
    };
    RigLoad {
        bins: Some(of(bin_ns)),
        periods: Some(of(point_ns)),
        ..*load
    }
}

/// Returns the width of bins: a millisecond, or more to limit their number. A point is a whole
/// number of bins.
fn bin_ns(duration_ns: u64, point_ns: u64) -> u64 {
    let point_ns = point_ns.max(1);
    let points = (duration_ns / point_ns).max(1);
    // The number of bins in a point. The largest one that divides its width keeps each bin within
    // one point.
    let most = (BINS_MAX / points).min(point_ns / BIN_NS).max(1);
    let divides = |parts: &u64| point_ns.is_multiple_of(*parts);
    point_ns / (1..=most).rev().find(divides).unwrap_or(1)
}

/// Evaluates a segment over all loaded ways.
#[must_use]
pub fn soaked<'w>(
    ways: impl IntoIterator<Item = (&'w FrameStream<'w>, (&'w Report, &'w Report))>,
    load: &RigLoad,
    point_ns: u64,
    readings: &[DeviceReading],
) -> Soaked {
    let width_ns = load.bins.map_or(1, |bins| bins.width_ns);
    let mut bins: Option<Bins> = None;
    let mut latencies = Latencies::default();
    for (way, (sender, receiver)) in ways {
        let Some(own) = bins_of(way, load, width_ns, (sender, receiver)) else {
            continue;
        };
        latencies.add(receiver.received.as_ref());
        match &mut bins {
            Some(bins) => bins.add(&own),
            None => bins = Some(own),
        }
    }
    let bins = bins.unwrap_or_default();
    // The time of day at the start is worked out from now, since frames are timed by
    // CLOCK_MONOTONIC.
    let since = Monotonic::new().now_ns().saturating_sub(bins.start_ns);
    Soaked {
        started_unix_ns: unix_ns().saturating_sub(since),
        points: points(&bins, &latencies, point_ns.max(1), readings),
    }
}

/// Returns the frames sent and received on one way, by intended time.
pub(crate) fn bins_of(
    way: &FrameStream<'_>,
    load: &RigLoad,
    width_ns: u64,
    (sender, receiver): (&Report, &Report),
) -> Option<Bins> {
    let Role::Send(send) = way.sender(load, 0, None).role else {
        return None;
    };
    let sent = sender.sent.unwrap_or_default();
    // The sender reports no bins: its schedule is known from its spec and its start.
    let counts = intended_by_bin(&send, sender.threads, sent.start_ns, width_ns);
    let mut bins = Bins::intended(width_ns, &sent, counts);
    bins.receive(receiver.received.as_ref().unwrap_or(&Received::default()));
    Some(bins)
}

/// Frames by latency, for each point by its number.
#[derive(Debug, Clone, Default)]
struct Latencies(BTreeMap<u64, BTreeMap<u64, u64>>);

impl Latencies {
    fn add(&mut self, received: Option<&Received>) {
        let Some(received) = received else { return };
        for (number, buckets) in (received.first_period..).zip(&received.periods) {
            let point = self.0.entry(number).or_default();
            for (upto_ns, frames) in buckets {
                *point.entry(*upto_ns).or_default() += frames;
            }
        }
    }

    /// Returns a percentile by nearest rank; `None` if less than one frame would be above it,
    /// except for the median.
    fn percentile(&self, number: u64, percent: u64) -> Option<u64> {
        let buckets = self.0.get(&number)?;
        let frames: u64 = buckets.values().sum();
        // With fewer than a hundred frames the 99th percentile would be the maximum, with another
        // name.
        if frames == 0 || percent > 50 && frames * (100 - percent) < 100 {
            return None;
        }
        let rank = (frames * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = buckets.iter().find(|(_, frames)| {
            seen += **frames;
            seen >= rank
        });
        found.map(|(upto_ns, _)| *upto_ns)
    }
}

fn points(
    bins: &Bins,
    latencies: &Latencies,
    point_ns: u64,
    readings: &[DeviceReading],
) -> Vec<SoakPoint> {
    let mut points: Vec<(u64, SoakPoint)> = Vec::new();
    // Beginning of the time without received frames.
    let mut silent_since: Option<u64> = None;
    for (bin, number) in bins.bins.iter().zip(bins.first..) {
        let begin_ns = number * bins.width_ns;
        let own = begin_ns / point_ns;
        if points.last().is_none_or(|(number, _)| *number != own) {
            let at_ns = (own * point_ns).saturating_sub(bins.start_ns);
            let point = SoakPoint {
                at_ns,
                p50_ns: latencies.percentile(own, 50),
                p99_ns: latencies.percentile(own, 99),
                device: device(readings, own, point_ns),
                ..SoakPoint::default()
            };
            points.push((own, point));
        }
        let Some((_, point)) = points.last_mut() else {
            continue;
        };
        point.intended += bin.intended;
        point.received += bin.received;
        point.max_ns = point.max_ns.max(bin.latency_ns_max);
        if bin.received > 0 {
            silent_since = None;
        } else if bin.intended > 0 {
            // A silence that began in an earlier point counts whole in each point that it reaches
            // into.
            let since = *silent_since.get_or_insert(begin_ns);
            point.silent_ns = point.silent_ns.max(begin_ns + bins.width_ns - since);
        }
    }
    points.into_iter().map(|(_, point)| point).collect()
}

/// Returns the device's resources in a point: between the readings nearest to its ends.
fn device(readings: &[DeviceReading], number: u64, point_ns: u64) -> Option<DevicePoint> {
    // The number of the point that ends nearest to a reading.
    let end = |reading: &DeviceReading| (reading.at_ns + point_ns / 2) / point_ns;
    let before = readings.iter().rfind(|reading| end(reading) <= number);
    // The first and the last point may have no reading at their outer end: the load begins and ends
    // within them.
    let before = before.or(readings.first())?;
    let after = readings.iter().find(|reading| end(reading) > number);
    let after = after.or(readings.last())?;
    let wall_ns = after.at_ns.checked_sub(before.at_ns)?;
    // A count that fell is of a device that was restarted, so its difference is unknown.
    let since = |of: fn(&DeviceReading) -> Option<u64>| of(after)?.checked_sub(of(before)?);
    (wall_ns > 0).then(|| DevicePoint {
        wall_ns,
        cpu_ns: since(|reading| reading.cpu_ns),
        resident_bytes: after.resident_bytes,
        rekeys: since(|reading| reading.rekeys),
        desyncs: since(|reading| reading.desyncs),
    })
}

/// Returns the number of key changes by the device's counters, named `gateway/counter`: the highest
/// of any gateway.
pub(crate) fn rekeys(counters: &BTreeMap<String, u64>) -> Option<u64> {
    // Newer versions count rekeys by their reason, under this name.
    let sums = by_gateway(counters, "epochs_established");
    let sums = if sums.is_empty() {
        by_gateway(counters, "rekeys")
    } else {
        sums
    };
    // Both gateways count each rekey, so the sum would have it twice.
    sums.into_values().max()
}

/// Returns how often a device found its keys out of step, over all gateways.
pub(crate) fn desyncs(counters: &BTreeMap<String, u64>) -> Option<u64> {
    let sums = by_gateway(counters, "desyncs");
    (!sums.is_empty()).then(|| sums.into_values().sum())
}

/// Sums up a counter over its labels, for each gateway that has it.
fn by_gateway<'c>(counters: &'c BTreeMap<String, u64>, name: &str) -> BTreeMap<&'c str, u64> {
    let mut sums = BTreeMap::new();
    for (counter, value) in counters {
        let Some((gateway, counter)) = counter.split_once('/') else {
            continue;
        };
        let bare = counter.split('.').next().unwrap_or(counter);
        if bare == name {
            *sums.entry(gateway).or_default() += value;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::TimeBin;

    const MS: u64 = 1_000_000;
    const POINT: u64 = 10 * MS;

    fn bin(intended: u64, received: u64, latency_ns_max: u64) -> TimeBin {
        TimeBin {
            intended,
            received,
            latency_ns_max,
        }
    }

    /// Bins of 1 ms from 5 ms before a point on.
    fn bins(of: &[TimeBin]) -> Bins {
        Bins {
            width_ns: MS,
            first: 95,
            bins: of.to_vec(),
            start_ns: 95 * MS + 7,
            late_ns: 0,
        }
    }

    #[test]
    fn points_are_on_the_grid_and_have_all_frames() {
        let of: Vec<TimeBin> = (0..23).map(|n| bin(10, 10 - n % 2, n)).collect();
        let points = points(&bins(&of), &Latencies::default(), POINT, &[]);
        let counts =
            |point: &SoakPoint| (point.at_ns, point.intended, point.received, point.max_ns);
        let counts: Vec<_> = points.iter().map(counts).collect();
        assert_eq!(
            counts,
            [
                (0, 50, 48, 4),
                (5 * MS - 7, 100, 95, 14),
                (15 * MS - 7, 80, 76, 22)
            ]
        );
    }

    #[test]
    fn a_silence_goes_on_over_bins_in_which_nothing_was_to_be_sent_and_over_points() {
        let mut of = vec![bin(1, 1, 0); 25];
        for silent in &mut of[3..9] {
            silent.received = 0;
        }
        (of[6].intended, of[20].intended, of[20].received) = (0, 0, 0);
        let points = points(&bins(&of), &Latencies::default(), POINT, &[]);
        let silent: Vec<u64> = points.iter().map(|point| point.silent_ns).collect();
        assert_eq!(silent, [2 * MS, 6 * MS, 0]);
    }

    #[test]
    fn percentiles_are_those_of_all_ways_together() {
        let received = |frames: &[(u64, u64)]| Received {
            first_period: 9,
            periods: vec![Vec::new(), frames.to_vec()],
            ..Received::default()
        };
        let mut latencies = Latencies::default();
        latencies.add(Some(&received(&[(10, 60), (20, 38)])));
        assert_eq!(latencies.percentile(10, 99), None);
        latencies.add(Some(&received(&[(10, 60), (30, 42)])));
        assert_eq!(latencies.percentile(10, 50), Some(10));
        assert_eq!(latencies.percentile(10, 99), Some(30));
        assert_eq!(latencies.percentile(9, 50), None);
        assert_eq!(latencies.percentile(11, 50), None);
    }

    #[test]
    fn resources_are_between_the_readings_nearest_to_a_points_ends() {
        let reading = |at_ms: u64, cpu: u64, rekeys: Option<u64>| DeviceReading {
            at_ns: at_ms * MS,
            cpu_ns: Some(cpu),
            resident_bytes: Some(cpu + 1),
            rekeys,
            desyncs: None,
        };
        let readings = [
            reading(92, 100, Some(1)),
            reading(101, 150, Some(1)),
            reading(112, 190, Some(3)),
            // It was restarted.
            reading(120, 5, None),
        ];
        let resources = |number| {
            let found = device(&readings, number, POINT)?;
            Some((
                found.wall_ns / MS,
                found.cpu_ns,
                found.resident_bytes,
                found.rekeys,
            ))
        };
        assert_eq!(resources(9), Some((9, Some(50), Some(151), Some(0))));
        assert_eq!(resources(10), Some((11, Some(40), Some(191), Some(2))));
        assert_eq!(resources(11), Some((8, None, Some(6), None)));
        assert_eq!(resources(12), None);
        assert_eq!(device(&[], 9, POINT), None);
        assert_eq!(device(&readings[..1], 9, POINT), None);
    }

    #[test]
    fn rekeys_are_counted_once_and_desyncs_wherever_they_are_found() {
        let counters = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
            of.iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect()
        };
        let new = counters(&[
            ("gw1/epochs_established.time", 4),
            ("gw1/epochs_established.start", 1),
            ("gw2/epochs_established.time", 4),
            ("gw1/rekeys", 9),
            ("gw1/desyncs", 1),
            ("gw2/desyncs", 2),
            ("gw2/desyncs_of_another_name", 7),
        ]);
        assert_eq!((rekeys(&new), desyncs(&new)), (Some(5), Some(3)));
        let old = counters(&[("gw1/rekeys", 9), ("gw2/rekeys", 8)]);
        assert_eq!((rekeys(&old), desyncs(&old)), (Some(9), None));
        assert_eq!(rekeys(&counters(&[("gw1/other", 1)])), None);
    }

    #[test]
    fn points_are_whole_numbers_of_bins_and_bins_are_few() {
        let second = 1000 * MS;
        for (duration_ns, point_ns) in [
            (second, 100 * MS),
            (120 * second, second),
            (600 * second, 30 * second),
            (3600 * second, 300 * second),
            (3600 * second, 1801 * MS),
            (601 * second, 601 * MS + 7),
        ] {
            let width_ns = bin_ns(duration_ns, point_ns);
            assert!(
                point_ns.is_multiple_of(width_ns),
                "{duration_ns} {point_ns}"
            );
            let bins = duration_ns / width_ns;
            assert!(bins <= BINS_MAX + point_ns / width_ns, "{bins}");
        }
        assert_eq!(bin_ns(30 * second, second), MS);
        assert_eq!(bin_ns(600 * second, 30 * second), 10 * MS);
    }
}
