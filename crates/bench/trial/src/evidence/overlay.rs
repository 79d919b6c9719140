//! The check that the tools' traffic went through the overlay network of the cell.

use super::failure::{nothing_seen, size, then_repeat};
use super::{Load, ToolObserved, check};
use journal::record::{Check, Explanation};
use testbed::OVERLAY_INTERFACE;
use units::human;

/// Checks that the overlay's interfaces at both stations carried at least the payload, and the
/// stations' interfaces at least what the overlay's did: the payload went through the overlay, and
/// the overlay through the device.
pub(super) fn overlay_carried(observed: &ToolObserved<'_>) -> Option<Check> {
    let overlay = observed.path.overlay();
    let Load::Transfer { totals, .. } = &observed.load else {
        return None;
    };
    if !overlay.is_some() {
        return None;
    }
    let title = overlay.title();
    let inside = observed.ends().map(|end| inside(end));
    let counters = observed.path.counters;
    let [Some(sent), Some(received)] = inside.each_ref().map(|name| counters.get(name)) else {
        let what = format!("the {title} interfaces have no counters");
        let failure = Explanation::new(
            what.clone(),
            "an interface was removed during the trial",
            then_repeat("stop what reconfigures the stations"),
        );
        return check(NAME, failure, what);
    };
    let outside = observed.ends().map(|end| counters.get(end));
    let [outer_sent, outer_received] = outside.map(|found| found.copied().unwrap_or_default());
    // With TCP, some sent bytes may still have been in the sockets at the end.
    let payload = totals.received_bytes;
    let mut failure = None;
    for (what, carried, least) in [
        ("was sent by", sent.tx_bytes, payload),
        ("was received by", received.rx_bytes, payload),
    ] {
        if carried < least {
            failure.get_or_insert_with(|| {
                let by = size(least - carried, least, human::data);
                Explanation::new(
                    format!("{by} less {what} the {title} interface than the tools carried"),
                    "part of the payload took a way past the overlay",
                    then_repeat("look at the stations' routes"),
                )
            });
        }
    }
    for (verb, carried, least) in [
        ("sent", outer_sent.tx_bytes, sent.tx_bytes),
        ("received", outer_received.rx_bytes, received.rx_bytes),
    ] {
        if carried < least {
            failure.get_or_insert_with(|| {
                let by = size(least - carried, least, human::data);
                Explanation::new(
                    format!("the stations {verb} {by} less towards the device than in {title}"),
                    "packets of the overlay took a way past the device",
                    then_repeat("look at the stations' routes"),
                )
            });
        }
    }
    let [from, to] = inside;
    let detail = format!(
        "{from} sent {} B and {to} received {} B in {title}, for {payload} B of payload; {} B left and {} B \
         arrived at the stations' interfaces",
        sent.tx_bytes, received.rx_bytes, outer_sent.tx_bytes, outer_received.rx_bytes
    );
    let empty = || nothing_seen(received.rx_bytes, "byte was received in the overlay");
    check(NAME, failure.or_else(empty), detail)
}

const NAME: &str = "overlay-carried";

/// The overlay's interface at the station of this one.
pub(super) fn inside(station: &str) -> String {
    let node = station.split_once('/').map_or(station, |(node, _)| node);
    format!("{node}/{OVERLAY_INTERFACE}")
}
