//! Checks of the traffic on the links and through the DUT.

use super::bounds::{Bounds, Place, bounds, received_ip_bytes};
use super::failure::{nothing_seen, size, then_repeat};
use super::gateway::{Gateway, counted_wrong, not_counted};
use super::overlay;
use super::{Load, ToolObserved, check};
use crate::direction::gateways;
use journal::record::{Check, Explanation, InterfaceCounters};
use units::human;

/// The path's interfaces have the offloads that the cell asks for.
pub(super) fn offloads_as_asked(observed: &ToolObserved<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let cipher = names.cipher.iter().flatten();
    let inside = [&names.a, &names.b].map(|end| overlay::inside(end));
    let inside = inside.iter().filter(|_| observed.path.overlay().is_some());
    let ends: Vec<&String> = [&names.a, &names.b]
        .into_iter()
        .chain(cipher)
        .chain(inside)
        .collect();
    observed.path.offloads_as_asked(&ends)
}

/// Checks that the bytes sent by the sender's interface and received by the receiver's fit the
/// tools' counts.
pub(super) fn station_interfaces_agree(observed: &ToolObserved<'_>) -> Option<Check> {
    let [source, sink] = observed.ends();
    let source = carried(observed, source, Place::Source, "sent", |found| {
        found.tx_bytes
    });
    let sink = carried(observed, sink, Place::Sink, "received", |found| {
        found.rx_bytes
    });
    let detail = format!("{}; {}; {}", payload(observed), source.detail, sink.detail);
    let (received, what) = match &observed.load {
        Load::Transfer { totals, .. } => (totals.received_bytes, "byte was received"),
        Load::Echo { latency, .. } => (latency.received, "reply came"),
        Load::Http(http) => (http.received_bytes, "byte was received"),
        Load::Video(video) => (video.received_bytes(), "byte was received"),
    };
    // The first failure in the direction of the payload explains a second one behind it.
    let failure = source.failure.or(sink.failure);
    let failure = failure.or_else(|| nothing_seen(received, what));
    check("station-interfaces-agree", failure, detail)
}

/// Checks that the bytes sent by the sealing gateway to the cipher link fit the tools' counts,
/// encapsulation included.
pub(super) fn cipher_link_amount(observed: &ToolObserved<'_>) -> Option<Check> {
    let name = observed.sealing_end()?;
    let link = carried(observed, name, Place::Cipher, "sent", |found| {
        found.tx_bytes
    });
    check(
        "cipher-link-amount",
        link.failure,
        format!("{}; {}", payload(observed), link.detail),
    )
}

/// The traffic of an interface, compared with its bounds.
struct Carried {
    failure: Option<Explanation>,
    detail: String,
}

fn carried(
    observed: &ToolObserved<'_>,
    name: &str,
    place: Place,
    verb: &str,
    bytes: fn(&InterfaceCounters) -> u64,
) -> Carried {
    let Some(found) = observed.path.counters.get(name).map(bytes) else {
        return Carried {
            failure: Some(Explanation::new(
                format!("{name} has no counters"),
                "the interface was removed or renamed during the trial",
                then_repeat("stop what reconfigures the lab's links"),
            )),
            detail: format!("{name} has no counters"),
        };
    };
    let bounds = bounds(observed, place);
    let Bounds { least, most } = bounds;
    let detail = format!("{name} {verb} {found} B, of {least} to {most} expected");
    let failure =
        (!bounds.hold(found)).then(|| misfit(observed, place, (name, verb), found, bounds));
    let failure = failure.or_else(|| nothing_seen(found, &format!("byte was {verb} by {name}")));
    Carried { failure, detail }
}

/// Explains an amount outside of its bounds.
fn misfit(
    observed: &ToolObserved<'_>,
    place: Place,
    (name, verb): (&str, &str),
    found: u64,
    bounds: Bounds,
) -> Explanation {
    let node = name.split_once('/').map_or(name, |(node, _)| node);
    let (who, between) = match place {
        Place::Cipher => (node.to_owned(), " between the gateways"),
        Place::Source | Place::Sink => (format!("station {node}"), ""),
    };
    if found > bounds.most {
        let by = size(found - bounds.most, bounds.most, human::data);
        let is_udp = observed.commands.parameters.datagram_bytes.is_some();
        // Only TCP sends by itself more than the tool reports.
        let cause = if is_udp || matches!(observed.load, Load::Echo { .. }) {
            "something else sends or duplicates packets there"
        } else {
            "something else sends or duplicates packets there, or TCP sent more segments again, or smaller \
                 ones, than the tool reports"
        };
        return Explanation::new(
            format!("{who} {verb} {by} more{between} than the payload explains"),
            cause,
            then_repeat("stop other programs that use the lab's links or the machine's cores"),
        );
    }
    let by = size(
        bounds.least.saturating_sub(found),
        bounds.least,
        human::data,
    );
    let cause = match place {
        Place::Cipher => "part of the payload took another way than the tunnel, or was compressed",
        Place::Source | Place::Sink => {
            "part of the payload took another way, or the tool reports more than it carried"
        }
    };
    Explanation::new(
        format!("{who} {verb} {by} less{between} than the payload needs"),
        cause,
        then_repeat(
            "look at routes and links of the lab for a way past this interface, and remove it",
        ),
    )
}

fn payload(observed: &ToolObserved<'_>) -> String {
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
        Load::Http(http) => format!("the client received {} B in all", http.received_bytes),
        Load::Video(video) => {
            let (sent, received) = (video.sent_bytes(), video.received_bytes());
            format!(
                "the server sent {sent} B of video and the players' station received {received} B"
            )
        }
    }
}

/// Checks that the DUT's counters show the tools' traffic as sealed and opened, and every packet in
/// as a packet out or a drop. Only our encryptor counts clear traffic in and out, and names every
/// drop: other devices' counters are not checked here.
pub(super) fn dut_counters(observed: &ToolObserved<'_>) -> Option<Check> {
    observed.path.cell.dut.adapter.encryptor()?;
    let carried = received_ip_bytes(observed);
    let mut differences = Vec::new();
    let mut said = Vec::new();
    // Each gateway counts both ways. Of a way, the one seals and the other one opens.
    let [sealing, opening] = gateways(observed.way);
    for (gateway, way, payload_counter) in [
        (sealing, "took in", "clear_rx_bytes"),
        (opening, "put out", "clear_tx_bytes"),
    ] {
        let Some(gateway) = Gateway::of(observed.path.dut_counters, gateway) else {
            return check(
                "dut-counters",
                not_counted(gateway),
                format!("{gateway} shows no counters"),
            );
        };
        let bytes = gateway.count(payload_counter);
        // No upper bound: retransmissions, acknowledgements and the other way cross the gateways
        // too.
        if bytes < carried {
            let by = size(carried - bytes, carried, human::data);
            differences.push(format!(
                "{} {way} {by} less in clear than the tools carried",
                gateway.name
            ));
        }
        differences.extend(gateway.imbalance());
        said.push(format!(
            "{} {way} {bytes} B in clear, of {carried} B or more expected, {}",
            gateway.name,
            gateway.balance()
        ));
    }
    let failure = counted_wrong(&differences);
    let empty = || nothing_seen(carried, "byte was carried that it could have counted");
    check("dut-counters", failure.or_else(empty), said.join("; "))
}
