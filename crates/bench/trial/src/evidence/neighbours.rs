//! Frames of ARP, IPv6 neighbour and group discovery: their allowed number on the links, and the
//! check of their number in a trial by tools.

use super::failure::{count, then_repeat_or};
use super::{ToolObserved, check};
use journal::record::{Check, Explanation};

/// Frames of ARP and ND, and a gateway's control frames, that others may send on a link in a trial.
pub(crate) const CONTROL_FRAMES: u64 = 64;
/// Additional frames that neighbours may send on a link in each second: keepalives, announcements.
/// A Linux host looks a neighbour up once a second at most.
const NEIGHBOURS_PER_S: u64 = 20;

/// Frames that neighbours may send on a link in that time.
pub(crate) const fn most_in(elapsed_ns: u64) -> u64 {
    let seconds = elapsed_ns.div_ceil(1_000_000_000);
    CONTROL_FRAMES.saturating_add(seconds.saturating_mul(NEIGHBOURS_PER_S))
}

/// Checks that no node of the path received more frames of ARP and ND than look-ups explain: they
/// are no IP packets, and few bytes compared with the tools'.
pub(super) fn links_not_flooded(observed: &ToolObserved<'_>) -> Option<Check> {
    let path = &observed.path;
    let counted = &path.settings?.neighbour_frames;
    let (node, frames) = counted.iter().max_by_key(|(_, frames)| **frames)?;
    let most = most_in(path.elapsed_ns);
    let words: Vec<String> = counted
        .iter()
        .map(|(node, frames)| format!("{frames} at {node}"))
        .collect();
    let detail = format!(
        "frames of ARP, neighbour and group discovery arrived: {}; {most} or fewer are allowed at each",
        words.join(", ")
    );
    let failure = (*frames > most).then(|| {
        Explanation::new(
            format!(
                "{node} received {} of ARP, neighbour or group discovery, of {most} or fewer allowed",
                count(*frames, 0, "frame")
            ),
            "another program sends them on the lab's links, something on the path doubles broadcasts, or a host \
             looks addresses up without an end",
            then_repeat_or(
                "stop other programs that use the lab's links",
                "look which host sends them (`capture`)",
            ),
        )
    });
    check("links-not-flooded", failure, detail)
}
