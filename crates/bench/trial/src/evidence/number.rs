//! The check of the number of frames between boxes with a proprietary format: only number and
//! length show that each of the stations' frames crossed.

use super::bounds::Bounds;
use super::crossing::fragments_most;
use super::failure::{count, nothing_seen, then_repeat_or};
use super::{ObservedPath, ToolObserved, check};
use journal::record::{Check, Explanation};
use plan::LinkForm;

/// Keepalives and similar frames that boxes may send in a second, both directions together.
const KEEPALIVES_PER_S: u64 = 20;
/// Other frames that may cross in a trial: ARP, a key exchange.
const CONTROL_FRAMES: u64 = 64;
/// Frames that others may have sent to a station past the link, in a trial.
const STRAY_FRAMES: u64 = 4;
/// Two counts that are read one after the other may differ by one in this many.
const COUNTED_ONE_IN: u64 = 1000;

/// Name of the check.
pub(crate) const NAME: &str = "cipher-link-frames";

/// Whether the number of frames is checked.
pub(crate) fn applies(path: &ObservedPath<'_>) -> bool {
    path.cell.dut.adapter.form() == Some(LinkForm::Opaque)
}

/// Number of frames that may have crossed the link in `elapsed_ns` for the frames that the stations
/// `sent` and `received`: one for each, more only if one does not fit, fewer only if several may
/// share one.
pub(crate) fn expected(
    path: &ObservedPath<'_>,
    (sent, received): (u64, u64),
    elapsed_ns: u64,
) -> Bounds {
    // Virtual links count a super-packet as one frame.
    let may_join = path.cell.dut.adapter.profile().aggregates || path.links.offloads;
    // Received packets must have crossed. Sent ones need not: the first box may have lost some.
    let least = received.saturating_sub(received / COUNTED_ONE_IN + STRAY_FRAMES);
    let keepalives = elapsed_ns
        .div_ceil(1_000_000_000)
        .saturating_mul(KEEPALIVES_PER_S);
    Bounds {
        least: if may_join { 0 } else { least },
        most: sent
            .saturating_mul(fragments_most(path))
            .saturating_add(sent / COUNTED_ONE_IN)
            .saturating_add(CONTROL_FRAMES)
            .saturating_add(keepalives),
    }
}

/// Explains a number of frames outside of its bounds; `place` is the location.
pub(crate) fn differs(place: &str, crossed: u64, Bounds { least, most }: Bounds) -> Explanation {
    if crossed > most {
        return Explanation::new(
            format!(
                "{place} {} more crossed than the stations' frames explain",
                count(crossed - most, most, "frame")
            ),
            "the boxes send frames of their own, cut or duplicate the stations' frames, or something else sends there",
            then_repeat_or(
                "switch dummy traffic off in the boxes, and state by `expands` how much longer frames get",
                "look what else sends on the link",
            ),
        );
    }
    Explanation::new(
        format!(
            "{place} {} fewer crossed than the stations received",
            count(least.saturating_sub(crossed), least, "frame")
        ),
        "the boxes put several frames into one, or part of the traffic took another way",
        "write `aggregate: on` for boxes that put several frames into one, or look for a way past the tap, in a new run",
    )
}

/// Checks that in each direction one frame crossed the link for each IP packet that the kernels of
/// the stations sent and received.
pub(super) fn cipher_link_frames(observed: &ToolObserved<'_>) -> Option<Check> {
    let path = &observed.path;
    let interfaces = observed.interfaces.cipher.as_ref()?;
    if !applies(path) {
        return None;
    }
    let mut words = Vec::new();
    let mut failure = None;
    let mut most = 0;
    for (name, [from, to]) in interfaces.iter().zip([["a", "b"], ["b", "a"]]) {
        let [sent, received] = path.ip_packets(from, to);
        let (sent, received) = (sent?, received?);
        let crossed = path.counters.get(name)?.tx_packets;
        let bounds = expected(path, (sent, received), path.elapsed_ns);
        most = crossed.max(most);
        words.push(format!(
            "{name} sent {crossed} frames, of {} to {} expected for {sent} IP packets sent by {from} and {received} \
             received by {to}",
            bounds.least, bounds.most
        ));
        if !bounds.hold(crossed) {
            let place = format!("from station {from} to station {to}");
            failure.get_or_insert_with(|| differs(&place, crossed, bounds));
        }
    }
    let failure = failure.or_else(|| nothing_seen(most, "frame crossed between the gateways"));
    check(NAME, failure, words.join("; "))
}
