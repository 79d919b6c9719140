//! Points of trials by real programs.

use crate::axis::nanos;
use crate::axis::product;
use crate::expand::{AxisValue, Point, always, sometimes};
use crate::plan::{self, Measurement};
use crate::trial::{Load, Tool, ToolTrial, Trial};
use crate::words::{compact, compact_time, on_off};
use std::time::Duration;
use units::{BitRate, Bytes, Layer};
use yaml::Spanned;

impl ToolTrial {
    /// How many points it has; saturates.
    pub(super) fn count(&self) -> usize {
        let own: &[usize] = match &self.tool {
            Tool::Tcp { load, window } => &[load.points(), window.len()],
            Tool::Udp {
                load,
                datagram,
                rate,
            } => &[load.points(), datagram.len(), rate.len()],
            Tool::Ping { payload, .. } => &[payload.len()],
        };
        let common = self.mtu.len().saturating_mul(self.offloads.len());
        own.iter()
            .fold(common, |product, length| product.saturating_mul(*length))
    }

    /// Its points; the first axis of an id varies slowest.
    pub(super) fn points<'a>(&'a self, trial: &'a Trial) -> Vec<Point<'a>> {
        match &self.tool {
            Tool::Tcp { load, window } => self.tcp(trial, load, window),
            Tool::Udp {
                load,
                datagram,
                rate,
            } => self.udp(trial, load, datagram, rate),
            Tool::Ping {
                count,
                interval,
                payload,
            } => self.ping(trial, *count, *interval, payload),
        }
    }

    fn tcp<'a>(
        &'a self,
        trial: &'a Trial,
        load: &'a Load,
        window: &[Spanned<Option<u64>>],
    ) -> Vec<Point<'a>> {
        let lengths = [
            self.mtu.len(),
            load.cores.len(),
            load.streams.len(),
            window.len(),
            self.offloads.len(),
            load.duration.len(),
            load.tool.len(),
        ];
        let make = |[mtu, cores, streams, w, offloads, duration, tool]: [usize; 7]| {
            let (mtu, cores) = (&self.mtu[mtu], &load.cores[cores]);
            let (streams, window) = (load.streams[streams].value, window[w].value);
            let offloads = self.offloads[offloads].value;
            let duration = load.duration[duration].value;
            let tool = load.tool[tool].value;
            let mut axes = vec![
                always("mtu", mtu.value),
                always("cores", cores.value),
                sometimes(
                    "streams",
                    or_word(streams, "auto", |streams| streams.to_string()),
                ),
                sometimes("window", or_word(window, "auto", compact_size)),
            ];
            axes.extend(load.ending(offloads, duration, tool));
            let measurement = Measurement::Tcp {
                tool,
                streams: streams.unwrap_or(cores.value),
                window_bytes: window,
                duration_ns: nanos(duration),
                warmup_ns: nanos(load.warmup),
            };
            Point {
                cores: cores.value,
                cores_place: &cores.place,
                tune: load.tune,
                ..point(trial, mtu, offloads, measurement, axes)
            }
        };
        product(lengths).map(make).collect()
    }

    fn udp<'a>(
        &'a self,
        trial: &'a Trial,
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
            load.tool.len(),
        ];
        let make = |[mtu, cores, d, streams, r, offloads, duration, tool]: [usize; 8]| {
            let (mtu, cores) = (&self.mtu[mtu], &load.cores[cores]);
            let (datagram, streams, rate) = (
                datagram[d].value,
                load.streams[streams].value,
                rate[r].value,
            );
            let offloads = self.offloads[offloads].value;
            let duration = load.duration[duration].value;
            let tool = load.tool[tool].value;
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
            axes.extend(load.ending(offloads, duration, tool));
            let measurement = Measurement::Udp {
                tool,
                datagram_bytes: datagram,
                rate_bps: rate,
                streams: streams.unwrap_or(cores.value),
                duration_ns: nanos(duration),
                warmup_ns: nanos(load.warmup),
            };
            Point {
                cores: cores.value,
                cores_place: &cores.place,
                tune: load.tune,
                ..point(trial, mtu, offloads, measurement, axes)
            }
        };
        product(lengths).map(make).collect()
    }

    fn ping<'a>(
        &'a self,
        trial: &'a Trial,
        count: u32,
        interval: Duration,
        payload: &[Spanned<u16>],
    ) -> Vec<Point<'a>> {
        let make = |[mtu, p, offloads]: [usize; 3]| {
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
            point(trial, mtu, offloads, measurement, axes)
        };
        product([self.mtu.len(), payload.len(), self.offloads.len()])
            .map(make)
            .collect()
    }
}

/// A point of one core that is not tuned.
fn point<'a>(
    trial: &'a Trial,
    mtu: &'a Spanned<u16>,
    offloads: bool,
    measurement: Measurement,
    axes: Vec<AxisValue>,
) -> Point<'a> {
    Point {
        trial,
        mtu: mtu.value,
        mtu_place: &mtu.place,
        cores: 1,
        cores_place: &mtu.place,
        offloads,
        tune: false,
        frames: None,
        measurement,
        axes,
    }
}

impl Load {
    fn points(&self) -> usize {
        let lengths = [
            self.cores.len(),
            self.streams.len(),
            self.duration.len(),
            self.tool.len(),
        ];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// The axes that end the ids of TCP and UDP alike.
    fn ending(&self, offloads: bool, duration: Duration, tool: plan::Tool) -> [AxisValue; 5] {
        [
            sometimes("offloads", on_off(offloads)),
            sometimes("duration", compact_time(duration)),
            sometimes("warmup", compact_time(self.warmup)),
            sometimes("tune", on_off(self.tune)),
            sometimes("tool", tool.name()),
        ]
    }
}

fn or_word<T>(value: Option<T>, word: &str, print: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| word.to_owned(), print)
}

fn compact_size(bytes: u64) -> String {
    compact(&Bytes::new(bytes))
}

fn compact_rate(bps: u64) -> String {
    compact(&BitRate::new(bps, Layer::Payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_ids_have_neither_blank_nor_slash() {
        assert_eq!(compact_rate(1_500_000_000), "1.5Gbps");
        assert_eq!(compact_time(Duration::from_millis(1500)), "1.5s");
        assert_eq!(compact_size(4 << 20), "4MiB");
    }
}
