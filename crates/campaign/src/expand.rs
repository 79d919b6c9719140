//! Trials and DUTs to cells: axes multiply, and each cell gets an id that says where it stands.
//!
//! An id names the kind of trial, then those axes that always matter and those whose values differ
//! among the campaign's trials of that kind, then the DUT: `tcp/mtu=1500/cores=1/cipherbench`. So
//! adding a value to an axis that already has two changes no id of the cells that were there
//! before.

use crate::dut::slug;
use crate::plan::{Cell, Dut, Measurement};
use crate::trial::{Kind, Load, Trial};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use units::time::print;
use units::{BitRate, Layer};
use yaml::{Node, Place, Reported, Spanned};

/// More cells than this take weeks.
pub(crate) const CELLS_MAX: usize = 10_000;

/// A cell whose time is not estimated yet, with the places that can still be wrong in some lab or
/// host.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) cell: Cell,
    pub(crate) mtu: Place,
    pub(crate) cores: Place,
}

/// All cells, in the order of the campaign, the DUT varying fastest. Mistakes go to `node`, the
/// `trials`.
pub(crate) fn cells(
    node: Node<'_>,
    trials: &[Trial],
    duts: &[Spanned<Dut>],
) -> Result<Vec<Draft>, Reported> {
    let mut count = 0_usize;
    for trial in trials {
        count = count.saturating_add(trial.cells().saturating_mul(duts.len()));
        if count > CELLS_MAX {
            let what = format!("with this trial the campaign has {count} cells");
            let help = format!("at most {CELLS_MAX} are possible: shorten a list");
            return Err(node.mistake_at(&trial.place, what, help));
        }
    }
    let points: Vec<_> = trials.iter().flat_map(Trial::points).collect();
    let varying = varying_axes(&points);
    let mut owners: HashMap<String, &Place> = HashMap::new();
    let mut drafts = Vec::with_capacity(count);
    let mut result = Ok(());
    let mut repeated = HashSet::new();
    for point in &points {
        let group = point.group(&varying);
        if let Some(first) = owners.insert(group.clone(), &point.trial.place)
            && repeated.insert(point.trial.place.path.clone())
        {
            let what = format!(
                "this trial measures `{group}`, which `{}` measures already",
                first.path
            );
            let help = "remove it there or here; to measure more often raise `repeats`";
            result = Err(node.mistake_at(&point.trial.place, what, help));
        }
        drafts.extend(duts.iter().map(|dut| point.draft(&group, &dut.value)));
    }
    result.map(|()| drafts)
}

/// One combination of a trial's axes.
struct Point<'a> {
    trial: &'a Trial,
    mtu: &'a Spanned<u16>,
    cores: Option<&'a Spanned<u16>>,
    offloads: bool,
    tune: bool,
    measurement: Measurement,
    axes: Vec<AxisValue>,
}

/// The value of one axis, as ids print it.
struct AxisValue {
    name: &'static str,
    value: String,
    /// Part of every id.
    always: bool,
}

/// Axes by kind and name that have more than one value in the campaign.
fn varying_axes(points: &[Point<'_>]) -> HashSet<(&'static str, &'static str)> {
    let mut first: HashMap<(&str, &str), &str> = HashMap::new();
    let mut varying = HashSet::new();
    for point in points {
        for axis in &point.axes {
            let key = (point.measurement.name(), axis.name);
            if *first.entry(key).or_insert(&axis.value) != axis.value {
                varying.insert(key);
            }
        }
    }
    varying
}

impl Point<'_> {
    fn group(&self, varying: &HashSet<(&'static str, &'static str)>) -> String {
        let kind = self.measurement.name();
        let mut group = kind.to_owned();
        for axis in &self.axes {
            if axis.always || varying.contains(&(kind, axis.name)) {
                group.push_str(&format!("/{}={}", axis.name, axis.value));
            }
        }
        group
    }

    fn draft(&self, group: &str, dut: &Dut) -> Draft {
        let cell = Cell {
            id: format!("{group}/{}", slug(&dut.name)),
            group: group.to_owned(),
            dut: dut.clone(),
            mtu: self.mtu.value,
            cores_per_station: self.cores.map_or(1, |cores| cores.value),
            offloads: self.offloads,
            measurement: self.measurement.clone(),
            tune: self.tune,
            estimate_ns: 0,
            calibration: false,
        };
        let cores = self.cores.map_or(&self.mtu.place, |cores| &cores.place);
        Draft {
            cell,
            mtu: self.mtu.place.clone(),
            cores: cores.clone(),
        }
    }
}

impl Trial {
    /// How many points it has; saturates.
    fn cells(&self) -> usize {
        let own: &[usize] = match &self.kind {
            Kind::Tcp { load, window } => &[load.points(), window.len()],
            Kind::Udp {
                load,
                datagram,
                rate,
            } => &[load.points(), datagram.len(), rate.len()],
            Kind::Ping { payload, .. } => &[payload.len()],
        };
        let common = self.mtu.len().saturating_mul(self.offloads.len());
        own.iter()
            .fold(common, |product, length| product.saturating_mul(*length))
    }

    /// Its points; the first axis of an id varies slowest.
    fn points<'a>(&'a self) -> Vec<Point<'a>> {
        match &self.kind {
            Kind::Tcp { load, window } => self.tcp(load, window),
            Kind::Udp {
                load,
                datagram,
                rate,
            } => self.udp(load, datagram, rate),
            Kind::Ping {
                count,
                interval,
                payload,
            } => self.ping(*count, *interval, payload),
        }
    }

    fn tcp<'a>(&'a self, load: &'a Load, window: &[Spanned<Option<u64>>]) -> Vec<Point<'a>> {
        let lengths = [
            self.mtu.len(),
            load.cores.len(),
            load.streams.len(),
            window.len(),
            self.offloads.len(),
            load.duration.len(),
        ];
        let point = |[mtu, cores, streams, w, offloads, duration]: [usize; 6]| {
            let (mtu, cores) = (&self.mtu[mtu], &load.cores[cores]);
            let (streams, window) = (load.streams[streams].value, window[w].value);
            let offloads = self.offloads[offloads].value;
            let duration = load.duration[duration].value;
            let mut axes = vec![
                always("mtu", mtu.value),
                always("cores", cores.value),
                sometimes(
                    "streams",
                    or_word(streams, "auto", |streams| streams.to_string()),
                ),
                sometimes("window", or_word(window, "auto", compact_size)),
            ];
            axes.extend(load.ending(offloads, duration));
            let measurement = Measurement::Tcp {
                streams: streams.unwrap_or(cores.value),
                window_bytes: window,
                duration_ns: nanos(duration),
                warmup_ns: nanos(load.warmup),
            };
            self.point(mtu, Some(cores), offloads, load.tune, measurement, axes)
        };
        product(lengths).map(point).collect()
    }

    fn udp<'a>(
        &'a self,
        load: &'a Load,
        datagram: &[Spanned<Option<u32>>],
        rate: &[Spanned<Option<u64>>],
    ) -> Vec<Point<'a>> {
        let lengths = [
            self.mtu.len(),
            load.cores.len(),
            datagram.len(),
            load.streams.len(),
            rate.len(),
            self.offloads.len(),
            load.duration.len(),
        ];
        let point = |[mtu, cores, d, streams, r, offloads, duration]: [usize; 7]| {
            let (mtu, cores) = (&self.mtu[mtu], &load.cores[cores]);
            let (datagram, streams, rate) = (
                datagram[d].value,
                load.streams[streams].value,
                rate[r].value,
            );
            let offloads = self.offloads[offloads].value;
            let duration = load.duration[duration].value;
            let mut axes = vec![
                always("mtu", mtu.value),
                always("cores", cores.value),
                always(
                    "datagram",
                    or_word(datagram, "auto", |bytes| bytes.to_string()),
                ),
                sometimes(
                    "streams",
                    or_word(streams, "auto", |streams| streams.to_string()),
                ),
                sometimes("rate", or_word(rate, "max", compact_rate)),
            ];
            axes.extend(load.ending(offloads, duration));
            let measurement = Measurement::Udp {
                datagram_bytes: datagram,
                rate_bps: rate,
                streams: streams.unwrap_or(cores.value),
                duration_ns: nanos(duration),
                warmup_ns: nanos(load.warmup),
            };
            self.point(mtu, Some(cores), offloads, load.tune, measurement, axes)
        };
        product(lengths).map(point).collect()
    }

    fn ping<'a>(
        &'a self,
        count: u32,
        interval: Duration,
        payload: &[Spanned<u16>],
    ) -> Vec<Point<'a>> {
        let point = |[mtu, p, offloads]: [usize; 3]| {
            let (mtu, payload) = (&self.mtu[mtu], payload[p].value);
            let offloads = self.offloads[offloads].value;
            let axes = vec![
                always("mtu", mtu.value),
                sometimes("payload", payload),
                sometimes("count", count),
                sometimes("interval", compact_time(interval)),
                sometimes("offloads", on_off(offloads)),
            ];
            let measurement = Measurement::Ping {
                count,
                interval_ns: nanos(interval),
                payload_bytes: payload,
            };
            self.point(mtu, None, offloads, false, measurement, axes)
        };
        product([self.mtu.len(), payload.len(), self.offloads.len()])
            .map(point)
            .collect()
    }

    fn point<'a>(
        &'a self,
        mtu: &'a Spanned<u16>,
        cores: Option<&'a Spanned<u16>>,
        offloads: bool,
        tune: bool,
        measurement: Measurement,
        axes: Vec<AxisValue>,
    ) -> Point<'a> {
        Point {
            trial: self,
            mtu,
            cores,
            offloads,
            tune,
            measurement,
            axes,
        }
    }
}

impl Load {
    fn points(&self) -> usize {
        let lengths = [self.cores.len(), self.streams.len(), self.duration.len()];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// The axes that end the ids of TCP and UDP alike.
    fn ending(&self, offloads: bool, duration: Duration) -> [AxisValue; 4] {
        [
            sometimes("offloads", on_off(offloads)),
            sometimes("duration", compact_time(duration)),
            sometimes("warmup", compact_time(self.warmup)),
            sometimes("tune", on_off(self.tune)),
        ]
    }
}

/// All combinations of indexes below `lengths`, the last varying fastest.
pub(crate) fn product<const N: usize>(lengths: [usize; N]) -> impl Iterator<Item = [usize; N]> {
    let total = lengths.into_iter().fold(1, usize::saturating_mul);
    (0..total).map(move |mut number| {
        let mut indexes = [0; N];
        for (index, length) in indexes.iter_mut().zip(lengths).rev() {
            *index = number % length;
            number /= length;
        }
        indexes
    })
}

fn always(name: &'static str, value: impl ToString) -> AxisValue {
    AxisValue {
        name,
        value: value.to_string(),
        always: true,
    }
}

fn sometimes(name: &'static str, value: impl ToString) -> AxisValue {
    AxisValue {
        name,
        value: value.to_string(),
        always: false,
    }
}

fn or_word<T>(value: Option<T>, word: &str, print: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| word.to_owned(), print)
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Without the blank, and without what would look like another part of the id.
fn compact_time(time: Duration) -> String {
    print(time).replace(' ', "").replace('µ', "u")
}

fn compact_size(bytes: u64) -> String {
    units::Bytes::new(bytes).to_string().replace(' ', "")
}

fn compact_rate(bps: u64) -> String {
    BitRate::new(bps, Layer::Payload)
        .to_string()
        .replace(' ', "")
        .replace("bit/s", "bps")
}

/// Times of a campaign are below a day, so they fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_axis_varies_fastest() {
        let all: Vec<_> = product([2, 1, 3]).collect();
        assert_eq!(
            all,
            [
                [0, 0, 0],
                [0, 0, 1],
                [0, 0, 2],
                [1, 0, 0],
                [1, 0, 1],
                [1, 0, 2]
            ]
        );
    }

    #[test]
    fn values_in_ids_have_neither_blank_nor_slash() {
        assert_eq!(compact_rate(1_500_000_000), "1.5Gbps");
        assert_eq!(compact_time(Duration::from_millis(1500)), "1.5s");
        assert_eq!(compact_size(4 << 20), "4MiB");
    }
}
