//! Checks of what the links and the DUT carried.

use super::bounds::{Bounds, Place, bounds, received_ip_bytes};
use super::{Load, Observed, check};
use journal::record::{Check, InterfaceCounters};
use std::collections::BTreeSet;

/// Sampled ESP frames that are enough, however much traffic there was.
const FRAMES_ENOUGH: u64 = 10;
/// Control frames that are no objection however few frames were sampled: an ARP exchange begun by each end.
const CONTROL_FRAMES: u64 = 4;
/// Features that must be off when offloads are off (`ethtool -k` names them so).
const FEATURES: [&str; 4] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "tx-udp-segmentation",
    "generic-receive-offload",
];
/// Of those, the ones that must be on when offloads are on. GRO is left out: a virtual interface makes
/// super-packets without it, and turning it on there turns on NAPI, which is another test.
const FEATURES_ON: [&str; 3] = [FEATURES[0], FEATURES[1], FEATURES[2]];
/// A DUT's counters are read until they stand still; what arrives just then may be counted on one side only.
const IN_FLIGHT_PACKETS: u64 = 64;

/// The path's interfaces have the offloads that the cell asks for.
pub(super) fn offloads_as_asked(observed: &Observed<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let asked = observed.links.offloads;
    let (features, wanted) = if asked {
        (&FEATURES_ON[..], "on")
    } else {
        (&FEATURES[..], "off")
    };
    let ends: BTreeSet<&String> = [&names.a, &names.gw1, &names.gw2, &names.b]
        .into_iter()
        .chain(observed.link_ends)
        .collect();
    let mut wrong = Vec::new();
    for &interface in &ends {
        for feature in features {
            let state = observed
                .offloads
                .get(interface)
                .and_then(|found| found.get(*feature));
            if state.is_none_or(|state| state != wanted) {
                let state = state.map_or("not readable", String::as_str);
                wrong.push(format!("{feature} of {interface} is {state}"));
            }
        }
    }
    let detail = match wrong.is_empty() {
        true => format!(
            "{} are {wanted} at all {} ends of the links",
            features.join(", "),
            ends.len()
        ),
        false => format!("offloads are to be {wanted}, but {}", wrong.join(", ")),
    };
    check("offloads-as-asked", wrong.is_empty(), detail)
}

/// What A's interface sent and B's received fits what the tools say they sent and received.
pub(super) fn station_interfaces_agree(observed: &Observed<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let source = carried(observed, &names.a, Place::Source, "sent", |found| {
        found.tx_bytes
    });
    let sink = carried(observed, &names.b, Place::Sink, "received", |found| {
        found.rx_bytes
    });
    let detail = format!("{}; {}; {}", payload(observed), source.detail, sink.detail);
    check("station-interfaces-agree", source.fits && sink.fits, detail)
}

/// What gw1 sent to the cipher link fits what the tools carried, encapsulation included.
pub(super) fn cipher_link_amount(observed: &Observed<'_>) -> Option<Check> {
    let name = &observed.interfaces.gw1;
    let link = carried(observed, name, Place::Cipher, "sent", |found| {
        found.tx_bytes
    });
    check(
        "cipher-link-amount",
        link.fits,
        format!("{}; {}", payload(observed), link.detail),
    )
}

struct Carried {
    fits: bool,
    detail: String,
}

fn carried(
    observed: &Observed<'_>,
    name: &str,
    place: Place,
    verb: &str,
    bytes: fn(&InterfaceCounters) -> u64,
) -> Carried {
    let Some(found) = observed.counters.get(name).map(bytes) else {
        return Carried {
            fits: false,
            detail: format!("{name} has no counters"),
        };
    };
    let bounds = bounds(observed, place);
    let Bounds { least, most } = bounds;
    let detail = format!("{name} {verb} {found} B, of {least} to {most} expected");
    Carried {
        fits: bounds.hold(found),
        detail,
    }
}

fn payload(observed: &Observed<'_>) -> String {
    match &observed.load {
        Load::Transfer { totals, .. } => {
            let (sent, received) = (totals.sent_bytes, totals.received_bytes);
            format!("the tool sent {sent} B and received {received} B of payload in all")
        }
        Load::Echo {
            latency,
            payload_bytes,
        } => {
            let (sent, received) = (latency.sent, latency.received);
            format!("ping sent {sent} requests of {payload_bytes} B and got {received} replies")
        }
    }
}

/// Without an encryptor the watch must see the stations' data: the proof that it would see them with one.
pub(super) fn clear_text_visible(observed: &Observed<'_>) -> Option<Check> {
    if observed.cell.dut.adapter.encrypts() || observed.commands.marker.is_empty() {
        return None;
    }
    let link = observed.cipher_link;
    let detail = format!(
        "of {} frames between the gateways {} showed the stations' marker and {} were ESP",
        link.frames, link.marker_frames, link.esp_frames
    );
    check(
        "clear-text-visible",
        link.marker_frames > 0 && link.esp_frames == 0,
        detail,
    )
}

/// All that was sampled between the gateways, control traffic apart, is the DUT's ESP.
pub(super) fn cipher_link_encrypted(observed: &Observed<'_>) -> Option<Check> {
    if !observed.cell.dut.adapter.encrypts() {
        return None;
    }
    let link = observed.cipher_link;
    let wanted = frames_wanted(observed);
    let control = link
        .frames
        .saturating_sub(link.esp_frames.saturating_add(link.other_frames));
    let control_most = (link.frames / 10).max(CONTROL_FRAMES);
    let detail = format!(
        "of {} frames between the gateways {} were ESP ({} SPIs), {control} ARP or ND and {} neither; at \
         least {wanted} ESP frames had to be seen, and at most {control_most} of ARP or ND",
        link.frames,
        link.esp_frames,
        link.spis.len(),
        link.other_frames
    );
    let passed = link.other_frames == 0 && link.esp_frames >= wanted && control <= control_most;
    check("cipher-link-encrypted", passed, detail)
}

/// A quarter of the frames that the samples met on average, or enough.
fn frames_wanted(observed: &Observed<'_>) -> u64 {
    let counters = observed
        .counters
        .get(&observed.interfaces.gw1)
        .copied()
        .unwrap_or_default();
    let packets = u128::from(counters.rx_packets.saturating_add(counters.tx_packets));
    let met = packets * u128::from(observed.sampling_ns) / u128::from(observed.elapsed_ns.max(1));
    u64::try_from(met / 4)
        .unwrap_or(u64::MAX)
        .clamp(1, FRAMES_ENOUGH)
}

/// No frame sampled between the gateways shows the stations' marker.
pub(super) fn no_clear_text(observed: &Observed<'_>) -> Option<Check> {
    if !observed.cell.dut.adapter.encrypts() || observed.commands.marker.is_empty() {
        return None;
    }
    let link = observed.cipher_link;
    let detail = format!(
        "{} of {} frames between the gateways showed the stations' marker {:?} in clear",
        link.marker_frames,
        link.frames,
        String::from_utf8_lossy(&observed.commands.marker)
    );
    check("no-clear-text", link.marker_frames == 0, detail)
}

/// Without an encryptor all traffic is foreign: the watch must have counted some, or it counts nothing with one.
pub(super) fn foreign_frames_visible(observed: &Observed<'_>) -> Option<Check> {
    if observed.cell.dut.adapter.encrypts() {
        return None;
    }
    let frames = observed.watch.foreign_frames;
    let detail =
        format!("the watch counted {frames} frames between the gateways that were not ESP");
    check("foreign-frames-visible", frames > 0, detail)
}

/// Of all frames between the gateways, none but the DUT's ESP and control traffic.
pub(super) fn no_foreign_frames(observed: &Observed<'_>) -> Option<Check> {
    if !observed.cell.dut.adapter.encrypts() {
        return None;
    }
    let watch = observed.watch;
    let detail = match watch.foreign_frames {
        0 => "every frame between the gateways was ESP, ARP or ND".to_owned(),
        frames => format!(
            "{frames} frames between the gateways were neither ESP nor ARP or ND, {} of the first ones showed \
             the stations' marker; for example {}",
            watch.marker_frames,
            watch.examples.join("; ")
        ),
    };
    check("no-foreign-frames", watch.foreign_frames == 0, detail)
}

/// The DUT's own counters say that it sealed and opened what the tools carried, and every packet in is a
/// packet out or a drop.
pub(super) fn dut_counters(observed: &Observed<'_>) -> Option<Check> {
    if !observed.cell.dut.adapter.encrypts() {
        return None;
    }
    let carried = received_ip_bytes(observed);
    let mut passed = true;
    let mut said = Vec::new();
    for (gateway, way, payload_counter) in [
        ("gw1", "took in", "clear_rx_bytes"),
        ("gw2", "put out", "clear_tx_bytes"),
    ] {
        let Some(gateway) = Gateway::of(observed, gateway) else {
            return check(
                "dut-counters",
                false,
                format!("{gateway} shows no counters"),
            );
        };
        let bytes = gateway.count(payload_counter);
        let (into, out) = (gateway.packets("rx"), gateway.packets("tx"));
        let dropped: u64 = gateway.drops().map(|(_, count)| count).sum();
        passed &= bytes >= carried && into.abs_diff(out + dropped) <= IN_FLIGHT_PACKETS;
        said.push(format!(
            "{} {way} {bytes} B in clear, of {carried} B or more expected, {into} packets in, {out} out, \
             {dropped} dropped{}",
            gateway.name,
            gateway.reasons()
        ));
    }
    check("dut-counters", passed, said.join("; "))
}

/// One gateway's counters by name; `dropped_packets` has one for each reason, behind a dot.
struct Gateway<'a> {
    name: &'a str,
    counters: Vec<(&'a str, u64)>,
}

impl<'a> Gateway<'a> {
    fn of(observed: &'a Observed<'_>, name: &'a str) -> Option<Self> {
        let own = observed.dut_counters.iter().filter_map(|(key, &value)| {
            let counter = key.strip_prefix(name)?.strip_prefix('/')?;
            Some((counter, value))
        });
        let counters: Vec<_> = own.collect();
        (!counters.is_empty()).then_some(Self { name, counters })
    }

    fn count(&self, name: &str) -> u64 {
        self.counters
            .iter()
            .find(|(counter, _)| *counter == name)
            .map_or(0, |&(_, value)| value)
    }

    fn packets(&self, way: &str) -> u64 {
        self.count(&format!("clear_{way}_packets")) + self.count(&format!("cipher_{way}_packets"))
    }

    /// Drop reasons with their counts.
    fn drops(&self) -> impl Iterator<Item = (&'a str, u64)> {
        self.counters.iter().filter_map(|&(counter, value)| {
            Some((counter.strip_prefix("dropped_packets.")?, value))
        })
    }

    fn reasons(&self) -> String {
        let reasons = self.drops().filter(|(_, count)| *count > 0);
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        if reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", reasons.join(", "))
        }
    }
}
