//! Axes: keys that take one value or a list of values, which multiply into cells.
//!
//! Checks between axes only report: a file with anything reported gives no campaign.

use plan::{Dscp, Overlay, is_congestion};
use std::cell::Cell;
use std::time::Duration;
use units::Bytes;
use yaml::{FromNode, Map, Node, Place, Reported, Spanned, Value};

/// The axes of a map, while they are read: values that cannot be read are left out, so that one
/// mistake does not hide the next.
#[derive(Debug)]
pub(crate) struct Axes<'m, 'd> {
    map: &'m Map<'d>,
    outcome: Cell<Result<(), Reported>>,
}

/// A longer list is generated, and its campaign has too many cells.
const VALUES_MAX: usize = 200;

impl<'m, 'd> Axes<'m, 'd> {
    pub(crate) const fn of(map: &'m Map<'d>) -> Self {
        Self {
            map,
            outcome: Cell::new(Ok(())),
        }
    }

    /// The values of an axis, of the declared type.
    pub(crate) fn get<T: FromNode + Clone + PartialEq>(
        &self,
        key: &'static str,
    ) -> Vec<Spanned<T>> {
        self.checked(key, |_, value: T| Ok(value))
    }

    /// The same, with a check of each.
    pub(crate) fn checked<T: FromNode, U: Clone + PartialEq>(
        &self,
        key: &'static str,
        mut check: impl for<'n> FnMut(Node<'n>, T) -> Result<U, Reported>,
    ) -> Vec<Spanned<U>> {
        let Value::Axis(item) = self.map.value(key) else {
            unreachable!("`{key}` is declared as an axis")
        };
        self.read(key, |node| check(node, T::from_node(node, item)?))
    }

    /// The values of an axis, by this reader, or its default with the place of the map.
    pub(crate) fn read<T: Clone + PartialEq>(
        &self,
        key: &'static str,
        read: impl for<'n> FnMut(Node<'n>) -> Result<T, Reported>,
    ) -> Vec<Spanned<T>> {
        let found = self.map.read(key, |node| Ok(read_values(node, read)));
        let (mut values, outcome) = found.unwrap_or_else(|missing| (Vec::new(), Err(missing)));
        // Checks between axes recognise a default by the place of the map.
        if self.map.optional(key).is_none() {
            for value in &mut values {
                value.place = self.map.node().place();
            }
        }
        self.and(outcome);
        values
    }

    /// The same, with a default that depends on other keys.
    pub(crate) fn or<T: Clone + PartialEq>(
        &self,
        key: &'static str,
        usual: T,
        read: impl for<'n> FnMut(Node<'n>) -> Result<T, Reported>,
    ) -> Vec<Spanned<T>> {
        match self.map.optional(key) {
            Some(_) => self.read(key, read),
            None => vec![self.map.node().spanned(usual)],
        }
    }

    /// A single value, of the declared type; any if it cannot be read, and then
    /// [`done`](Self::done) fails.
    pub(crate) fn one<T: FromNode + Default>(&self, key: &'static str) -> T {
        self.map.get(key).unwrap_or_else(|reported| {
            self.and(Err::<(), _>(reported));
            T::default()
        })
    }

    /// Fails if something else fails that the axes depend on.
    pub(crate) fn and<T>(&self, other: Result<T, Reported>) {
        self.outcome.set(self.outcome.get().and(other.map(drop)));
    }

    /// # Errors
    /// When a value could not be read: otherwise each axis has at least one.
    pub(crate) fn done(&self) -> Result<(), Reported> {
        self.outcome.get()
    }
}

/// Reads one value or a list of them; a value given twice would make the same cells twice.
fn read_values<T: Clone + PartialEq>(
    node: Node<'_>,
    mut read: impl for<'n> FnMut(Node<'n>) -> Result<T, Reported>,
) -> (Vec<Spanned<T>>, Result<(), Reported>) {
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
    (values, outcome.map(drop))
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

/// A time in steps of iperf3.
pub(crate) fn in_steps(node: Node<'_>, time: Duration) -> Result<Duration, Reported> {
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
    durations: &[Spanned<Duration>],
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
    streams: &[Spanned<Option<u16>>],
    cores: &[Spanned<u16>],
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
    tune: bool,
    key: &str,
    values: &[Spanned<Option<T>>],
) {
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

/// The MTU inside an overlay is as large as any host's must be, like the one outside.
pub(crate) fn check_overlay(node: Node<'_>, overlays: &[Spanned<Overlay>], mtus: &[Spanned<u16>]) {
    // Axes multiply: each overlay meets the smallest MTU in some cell.
    let Some(smallest) = mtus.iter().map(|mtu| u64::from(mtu.value)).min() else {
        return;
    };
    for overlay in overlays {
        let added = u64::from(overlay.value.added_bytes());
        let inside = smallest.saturating_sub(added);
        if added == 0 || inside >= MTU_MIN {
            continue;
        }
        let (title, name) = (overlay.value.title(), overlay.value.name());
        let what = format!(
            "an MTU of {smallest} B leaves {inside} B inside {title}, and every IPv4 host must take \
             {MTU_MIN} B"
        );
        let help = format!(
            "write an `mtu` of {} B or more, or leave `{name}` out",
            MTU_MIN + added
        );
        node.mistake_at(&overlay.place, what, help);
    }
}

/// The interfaces of an overlay do not copy the class to its own packets, which the device sees.
pub(crate) fn check_classes(
    node: Node<'_>,
    classes: &[Spanned<Option<Dscp>>],
    overlays: &[Spanned<Overlay>],
) {
    // Axes multiply: each class meets each overlay in some cell.
    let overlay = overlays.iter().find(|overlay| overlay.value.is_some());
    let class = classes.iter().find(|class| class.value.is_some());
    if let (Some(overlay), Some(class)) = (overlay, class) {
        let title = overlay.value.title();
        let what = format!("the outer packets of {title} do not have the class of service");
        let help = "write `overlay: none`, or make another trial of the classes without it";
        node.mistake_at(&class.place, what, help);
    }
}

/// Payloads must fit every MTU of the trial, behind `headers` bytes.
pub(crate) fn check_payload(
    node: Node<'_>,
    noun: &str,
    headers: usize,
    payloads: impl Iterator<Item = (u64, Place)>,
    mtus: &[Spanned<u16>],
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
