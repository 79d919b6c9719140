//! Detection of network cards that time-stamp frames (ethtool(8), `-T`).
//!
//! The stamps come from the card's clock (PTP hardware clock). Comparisons of clocks use them if
//! the card is set to stamp all frames; this module finds the cards that can.

use crate::{Node, Result};

/// Returns the number of the clock that the card of a node's interface stamps sent and received
/// frames with; `None` if it stamps none.
///
/// # Errors
/// If the node fails.
pub fn card_clock(node: &dyn Node, interface: &str) -> Result<Option<u32>> {
    Ok(parse(&node.output(["ethtool", "-T", interface])?))
}

/// Parses the output of `ethtool -T`.
#[must_use]
pub fn parse(printed: &str) -> Option<u32> {
    let lines = || printed.lines().map(str::trim);
    let stamps = [
        "hardware-transmit",
        "hardware-receive",
        "hardware-raw-clock",
    ];
    // A card that stamps one way only, or not by its clock, would mix two clocks in one comparison.
    let stamps_all = stamps.iter().all(|name| lines().any(|line| line == *name));
    let clock = lines().find_map(|line| {
        let (name, number) = line.split_once(": ")?;
        // ethtool 6.10 and newer print the second name.
        let is_clock = ["PTP Hardware Clock", "Hardware timestamp provider index"].contains(&name);
        is_clock.then(|| number.parse().ok())?
    });
    // The line is there without a clock too, with `none`, which is no number.
    clock.filter(|_| stamps_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_with_a_clock_of_its_own_is_recognised() {
        let with = "Time stamping parameters for eth2:\nCapabilities:\n\thardware-transmit\n\tsoftware-transmit\n\t\
                    hardware-receive\n\thardware-raw-clock\nPTP Hardware Clock: 3\n\
                    Hardware Transmit Timestamp Modes:\n\toff\n\ton\n";
        assert_eq!(parse(with), Some(3));
        let newer = with.replace("PTP Hardware Clock", "Hardware timestamp provider index");
        assert_eq!(parse(&newer), Some(3));
        let one_way = with.replace("\thardware-receive\n", "");
        assert_eq!(parse(&one_way), None);
        let without =
            "Capabilities:\n\tsoftware-transmit\n\tsoftware-receive\nPTP Hardware Clock: none\n";
        assert_eq!(parse(without), None);
        assert_eq!(parse(""), None);
    }
}
