//! Axes: keys that take one value or a list of values, which multiply into cells.
//!
//! Checks between axes only report: a file with anything reported gives no campaign.

use plan::is_congestion;
use std::time::Duration;
use units::{Bytes, Layer};
use yaml::{Map, Node, Place, Reported, Spanned};

/// The values of an axis that could be read, so that one mistake does not hide the next.
#[derive(Debug)]
pub(crate) struct AxisValues<T> {
    values: Vec<Spanned<T>>,
    outcome: Result<(), Reported>,
}

impl<T> AxisValues<T> {
    /// The values that could be read, all different.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Spanned<T>> {
        self.values.iter()
    }

    /// The values that could be read.
    pub(crate) fn values(&self) -> &[Spanned<T>] {
        &self.values
    }

    /// # Errors
    /// When a value could not be read.
    pub(crate) const fn outcome(&self) -> Result<(), Reported> {
        self.outcome
    }

    /// Whether all of its values could be read.
    pub(crate) const fn is_whole(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The values, or the error of something else that they depend on.
    #[must_use]
    pub(crate) fn and<U>(self, other: Result<U, Reported>) -> Self {
        let outcome = self.outcome.and(other.map(drop));
        Self { outcome, ..self }
    }

    /// All values, at least one.
    ///
    /// # Errors
    /// When one of them could not be read.
    pub(crate) fn all(self) -> Result<Vec<Spanned<T>>, Reported> {
        self.outcome.map(|()| self.values)
    }
}

/// A longer list is generated, and its campaign has too many cells.
const VALUES_MAX: usize = 200;

/// Reads an axis, or takes the default, with the place of the map.
pub(crate) fn axis<'d, T: Clone + PartialEq>(
    map: &Map<'d>,
    key: &'static str,
    default: T,
    read: impl FnMut(Node<'d>) -> Result<T, Reported>,
) -> AxisValues<T> {
    match map.optional(key) {
        Some(node) => read_values(node, read),
        None => AxisValues {
            values: vec![map.node().spanned(default)],
            outcome: Ok(()),
        },
    }
}

/// Reads an axis that must be there.
pub(crate) fn required_axis<'d, T: Clone + PartialEq>(
    map: &Map<'d>,
    key: &'static str,
    read: impl FnMut(Node<'d>) -> Result<T, Reported>,
) -> AxisValues<T> {
    match map.required(key) {
        Ok(node) => read_values(node, read),
        Err(reported) => AxisValues {
            values: Vec::new(),
            outcome: Err(reported),
        },
    }
}

/// Reads one value or a list of them; a value given twice would make the same cells twice.
fn read_values<'d, T: Clone + PartialEq>(
    node: Node<'d>,
    mut read: impl FnMut(Node<'d>) -> Result<T, Reported>,
) -> AxisValues<T> {
    let mut values: Vec<Spanned<T>> = Vec::new();
    let mut too_many = None;
    let outcome = node.one_or_many(|item| {
        if values.len() == VALUES_MAX {
            let what = format!("the list has more than {VALUES_MAX} values");
            // One mistake, at the first value too many, for a list of any length.
            return Err(*too_many.get_or_insert_with(|| item.mistake(what, "shorten it")));
        }
        let value = read(item)?;
        if values.iter().any(|earlier| earlier.value == value) {
            let help = "it would make the same cells twice: remove one";
            return Err(item.mistake("this value is given twice", help));
        }
        values.push(item.spanned(value));
        Ok(())
    });
    AxisValues {
        values,
        outcome: outcome.map(drop),
    }
}

/// Most cores of a station.
pub(crate) const CORES_MAX: u16 = 128;

/// Smallest MTU of a campaign: every IPv4 host must accept packets of this size (RFC 791 §3.1).
pub(crate) const MTU_MIN: u64 = 576;
/// Largest MTU of a campaign: the common limit of switches and adapters with jumbo frames.
pub(crate) const MTU_MAX: u64 = 9216;
/// A link with a smaller MTU cannot carry IPv4 (RFC 791 §3.2).
const IPV4_MTU_MIN: u64 = 68;

/// An IP MTU of stations, or of the cipher link.
pub(crate) fn mtu(node: Node<'_>, max: u64) -> Result<u16, Reported> {
    // Any size is read, so that the messages below can name the reason of each limit.
    let size = node.size(Bytes::new(0)..=Bytes::new(u64::MAX))?;
    let bytes = size.get();
    if (MTU_MIN..=max).contains(&bytes) {
        // In range, so it fits.
        return Ok(bytes as u16);
    }
    let what = match bytes {
        0..IPV4_MTU_MIN => format!("MTU {bytes} B is below the IPv4 minimum of {IPV4_MTU_MIN} B"),
        IPV4_MTU_MIN..MTU_MIN => {
            format!("MTU {bytes} B is below {MTU_MIN} B, which every IPv4 host must take (RFC 791)")
        }
        _ => format!("MTU {bytes} B is above {max} B, the longest jumbo frame in common use"),
    };
    Err(node.mistake(what, format!("write a size from {MTU_MIN} B to {max} B")))
}

/// Smallest step of times, and of iperf3's reports (`-i`).
const STEP: Duration = Duration::from_millis(100);
/// iperf3 runs no longer (`-t`).
pub(crate) const RUN_MAX: Duration = Duration::from_secs(86_400);

/// A congestion control by the name that the kernel gives it. Which a station allows is read when a
/// trial starts.
pub(crate) fn congestion(node: Node<'_>) -> Result<String, Reported> {
    let name = node.text()?;
    if is_congestion(name) {
        return Ok(name.to_owned());
    }
    let what = format!("`{name}` is not the name of a congestion control");
    let help =
        "write one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, for example `cubic`";
    Err(node.mistake(what, help))
}

/// Measured time.
pub(crate) fn duration(node: Node<'_>) -> Result<Duration, Reported> {
    let duration = node.duration(Duration::from_secs(1)..=RUN_MAX)?;
    in_steps(node, duration)
}

/// Time at the start that is not counted.
pub(crate) fn warmup(node: Node<'_>) -> Result<Duration, Reported> {
    let warmup = node.duration(Duration::ZERO..=Duration::from_secs(60))?;
    in_steps(node, warmup)
}

fn in_steps(node: Node<'_>, time: Duration) -> Result<Duration, Reported> {
    if time.as_nanos().is_multiple_of(STEP.as_nanos()) {
        return Ok(time);
    }
    let what = format!("{} is not a multiple of 100 ms", units::time::print(time));
    Err(node.mistake(
        what,
        "iperf3 reports in steps of 100 ms, where the warm-up is cut off",
    ))
}

/// iperf3 runs whole seconds only: it silently drops the fraction of `-t`.
pub(crate) fn check_run(
    node: Node<'_>,
    durations: &AxisValues<Duration>,
    warmup: &Spanned<Duration>,
) {
    let print = units::time::print;
    for duration in durations.iter() {
        // A default has the place of the map.
        let is_default = duration.place == node.place();
        let place = if is_default {
            &warmup.place
        } else {
            &duration.place
        };
        let run = duration.value + warmup.value;
        // The warm-up is part of the run of iperf3 (`-O`), so only the sum must be whole seconds.
        let whole = Duration::from_secs(run.as_secs() + u64::from(run.subsec_nanos() > 0));
        let sum = format!("warm-up and duration are {} together", print(run));
        if run != whole {
            let help = format!(
                "with a warm-up of {} write `duration: {}`",
                print(warmup.value),
                print(whole - warmup.value)
            );
            node.mistake_at(
                place,
                format!("{sum}, and iperf3 runs whole seconds only"),
                help,
            );
        } else if run > RUN_MAX {
            node.mistake_at(
                place,
                sum,
                format!("iperf3 runs no longer than {}", print(RUN_MAX)),
            );
        }
    }
}

/// Streams and cores that a campaign may ask for: iperf3 has no more streams (`-P`).
pub(crate) const STREAMS_MAX: u16 = 128;

/// Each core runs one process, which needs at least one stream.
pub(crate) fn check_streams(
    node: Node<'_>,
    streams: &AxisValues<Option<u16>>,
    cores: &AxisValues<u16>,
) {
    // Axes multiply: the fewest streams meet the most cores in some cell.
    let most = cores.iter().map(|cores| cores.value).max().unwrap_or(1);
    for spanned in streams.iter() {
        if let Some(streams) = spanned.value.filter(|streams| *streams < most) {
            let plural = if streams == 1 {
                "stream is"
            } else {
                "streams are"
            };
            let what = format!("{streams} {plural} too few for {most} cores");
            let help = format!(
                "each core runs one tool process and streams are spread over them: write {most} or \
                 more, or `auto` for one per core"
            );
            node.mistake_at(&spanned.place, what, help);
        }
    }
}

/// Refuses given values that `tune` searches: they would not be used.
pub(crate) fn check_searched<T>(
    node: Node<'_>,
    tune: &Result<Spanned<bool>, Reported>,
    key: &str,
    values: &AxisValues<Option<T>>,
) {
    let tune = tune.as_ref().is_ok_and(|tune| tune.value);
    if let Some(given) = values
        .iter()
        .find(|spanned| tune && spanned.value.is_some())
    {
        let what = format!("`{key}` is given, and `tune` searches it");
        node.mistake_at(
            &given.place,
            what,
            format!("remove `{key}`, or leave `tune` off"),
        );
    }
}

/// A UDP payload, up to the limit of an IPv4 packet; iperf3 needs 16 bytes for its counters.
pub(crate) fn datagram(node: Node<'_>) -> Result<u32, Reported> {
    // In range, so it fits.
    node.size(Bytes::new(16)..=Bytes::new(65_507))
        .map(|size| size.get() as u32)
}

/// Payloads must fit every MTU of the trial, behind `headers` bytes.
pub(crate) fn check_payload(
    node: Node<'_>,
    noun: &str,
    headers: usize,
    payloads: impl Iterator<Item = (u64, Place)>,
    mtus: &AxisValues<u16>,
) {
    // Axes multiply: each payload meets the smallest MTU in some cell. Without a readable MTU its
    // mistake is enough.
    let Some(smallest) = mtus.iter().map(|mtu| u64::from(mtu.value)).min() else {
        return;
    };
    let room = smallest.saturating_sub(headers as u64);
    for (payload, place) in payloads.filter(|(payload, _)| *payload > room) {
        let what = format!("a {noun} of {payload} B does not fit an MTU of {smallest} B");
        let help = format!("with {headers} B of headers the largest is {room} B");
        node.mistake_at(&place, what, help);
    }
}

/// A socket buffer; iperf3 takes no larger one (`-w`), and Linux makes none smaller.
pub(crate) fn window(node: Node<'_>) -> Result<u64, Reported> {
    node.size(Bytes::new(4 << 10)..=Bytes::new(512 << 20))
        .map(Bytes::get)
}

/// An offered payload rate.
pub(crate) fn rate(node: Node<'_>) -> Result<u64, Reported> {
    node.bit_rate(Layer::Payload, 1_000..=1_000_000_000_000)
        .map(|rate| rate.bps())
}
