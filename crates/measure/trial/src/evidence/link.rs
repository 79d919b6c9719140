//! Checks of what the links and the DUT carried.

use super::bounds::{Bounds, Place, bounds, received_ip_bytes};
use super::gateway::Gateway;
use super::{Load, ToolObserved, check};
use journal::record::{Check, InterfaceCounters};

/// The path's interfaces have the offloads that the cell asks for.
pub(super) fn offloads_as_asked(observed: &ToolObserved<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let cipher = names.cipher.iter().flatten();
    let ends: Vec<&String> = [&names.a, &names.b].into_iter().chain(cipher).collect();
    observed.path.offloads_as_asked(&ends)
}

/// What A's interface sent and B's received fits what the tools say they sent and received.
pub(super) fn station_interfaces_agree(observed: &ToolObserved<'_>) -> Option<Check> {
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
pub(super) fn cipher_link_amount(observed: &ToolObserved<'_>) -> Option<Check> {
    let [name, _] = observed.interfaces.cipher.as_ref()?;
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
    observed: &ToolObserved<'_>,
    name: &str,
    place: Place,
    verb: &str,
    bytes: fn(&InterfaceCounters) -> u64,
) -> Carried {
    let Some(found) = observed.path.counters.get(name).map(bytes) else {
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
    }
}

/// The DUT's own counters say that it sealed and opened what the tools carried, and every packet in
/// is a packet out or a drop. Only ours counts what it takes in and puts out in clear, and names
/// every drop: of other devices' counters nothing is claimed here.
pub(super) fn dut_counters(observed: &ToolObserved<'_>) -> Option<Check> {
    observed.path.cell.dut.adapter.encryptor()?;
    let carried = received_ip_bytes(observed);
    let mut passed = true;
    let mut said = Vec::new();
    for (gateway, way, payload_counter) in [
        ("gw1", "took in", "clear_rx_bytes"),
        ("gw2", "put out", "clear_tx_bytes"),
    ] {
        let Some(gateway) = Gateway::of(observed.path.dut_counters, gateway) else {
            return check(
                "dut-counters",
                false,
                format!("{gateway} shows no counters"),
            );
        };
        let bytes = gateway.count(payload_counter);
        let (balanced, balance) = gateway.balance();
        passed &= bytes >= carried && balanced;
        said.push(format!(
            "{} {way} {bytes} B in clear, of {carried} B or more expected, {balance}",
            gateway.name
        ));
    }
    check("dut-counters", passed, said.join("; "))
}
