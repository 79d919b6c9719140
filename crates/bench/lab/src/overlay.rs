//! An overlay network between the stations, as clusters have it: a VXLAN or Geneve interface on
//! each, whose packets go through the DUT.
//!
//! UDP has no checksum, as container networks configure it over IPv4. Neighbours are permanent and
//! nothing is learnt, so nothing but the tools' packets crosses the overlay.

use crate::offloads;
use crate::on_node::{ask, ip, run_tool};
use crate::topology::{Map, Side, mac};
use plan::Overlay;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Links, Node, OVERLAY_INTERFACE, Result};

/// Identifies the network in its packets; any number does.
const NETWORK_ID: u32 = 51;
/// MAC addresses inside, A's first. Fixed, so that neighbours are known before the first frame.
const MACS: [[u8; 6]; 2] = [[0x02, 0xcb, 0, 0, 2, 0xa0], [0x02, 0xcb, 0, 0, 2, 0xb0]];
/// Time for the first packet to cross.
const REACH_LIMIT: Duration = Duration::from_secs(3);

/// Sets up the interface of a side's station.
pub(crate) fn start(
    node: &dyn Node,
    (map, side): (&Map, Side),
    overlay: Overlay,
    links: Links,
) -> Result<()> {
    // A former trial may have failed to remove it.
    stop(node)?;
    let title = overlay.title();
    let name = overlay.name();
    let help = format!(
        "load the module on the host of this station (`modprobe {name}`), or leave `{name}` out of `overlay`"
    );
    // The words differ between versions of the kernel and of iproute2.
    let missing = ["Unknown device type", "not supported"];
    let made = ip(node, batch((map, side), overlay, links));
    let explained = missing.iter().fold(made, |made, words| {
        made.map_err(|error| {
            let what = format!("its kernel has no {title} interfaces\nhelp: {help}");
            if error.to_string().contains(words) {
                node.error(what)
            } else {
                error
            }
        })
    });
    let set = || {
        let program = Program::new(offloads::set(OVERLAY_INTERFACE, links.offloads));
        run_tool(node, program)
    };
    let outcome = explained.and_then(|()| set());
    if outcome.is_err() {
        // The first error says more.
        let _ = stop(node);
    }
    outcome
}

/// The commands of `ip` that set up a side's interface.
fn batch((map, side): (&Map, Side), overlay: Overlay, links: Links) -> String {
    let [own, other] = match side {
        Side::A => [0, 1],
        Side::B => [1, 0],
    };
    let [from, to] = match side {
        Side::A => [Side::A, Side::B],
        Side::B => [Side::B, Side::A],
    };
    let mtu = links.mtu.saturating_sub(overlay.added_bytes());
    let port = overlay.port().unwrap_or_default();
    let remote = map.station(to);
    let kind = match overlay {
        Overlay::Geneve => format!("geneve id {NETWORK_ID} remote {remote} dstport {port}"),
        Overlay::None | Overlay::Vxlan => format!(
            "vxlan id {NETWORK_ID} local {} remote {remote} dstport {port} nolearning",
            map.station(from)
        ),
    };
    let name = OVERLAY_INTERFACE;
    format!(
        "link add {name} address {} mtu {mtu} type {kind} noudpcsum\n\
         address add {}/30 dev {name}\n\
         link set {name} up\n\
         neigh replace {} lladdr {} dev {name} nud permanent\n",
        mac(MACS[own]),
        Overlay::ADDRESSES[own],
        Overlay::ADDRESSES[other],
        mac(MACS[other]),
    )
}

/// Removes the interface of a station, if it is there.
pub(crate) fn stop(node: &dyn Node) -> Result<()> {
    let name = OVERLAY_INTERFACE;
    let is_there = || Ok(ask(node, ["ip", "link", "show", "dev", name])?.code == Some(0));
    if is_there()? {
        return ip(node, format!("link delete {name}\n"));
    }
    Ok(())
}

/// Waits until B answers A through the overlay; `None` if it does, else the reason.
pub(crate) fn unreached(a: &dyn Node) -> Result<Option<String>> {
    let limit = REACH_LIMIT.as_secs();
    let target = Overlay::ADDRESSES[1];
    // With `-w`, ping counts answers and not requests.
    let ping = format!("ping -n -q -c 1 -i 0.2 -w {limit} {target}");
    let ended = ask(a, ping.split(' '))?;
    let reason = || format!("no echo came back within {limit} s{}", ended.last_words());
    Ok((ended.code != Some(0)).then(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::LabPlan;

    #[test]
    fn each_station_gets_an_interface_towards_the_other_one() {
        let map = Map::new(&LabPlan::named("t"), true);
        let links = Links {
            mtu: 1400,
            cipher_mtu: 1500,
            offloads: true,
            rate_bps: None,
        };
        assert_eq!(
            batch((&map, Side::A), Overlay::Vxlan, links),
            "link add ov0 address 02:cb:00:00:02:a0 mtu 1350 type vxlan id 51 local 10.1.0.2 remote 10.2.0.2 \
             dstport 4789 nolearning noudpcsum\n\
             address add 169.254.1.1/30 dev ov0\n\
             link set ov0 up\n\
             neigh replace 169.254.1.2 lladdr 02:cb:00:00:02:b0 dev ov0 nud permanent\n"
        );
        let of_b = batch((&map, Side::B), Overlay::Geneve, links);
        assert!(of_b.contains("type geneve id 51 remote 10.1.0.2 dstport 6081 noudpcsum\n"));
        assert!(of_b.contains("address add 169.254.1.2/30 dev ov0\n"));
    }
}
