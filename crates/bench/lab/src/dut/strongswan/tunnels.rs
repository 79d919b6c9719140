//! Tunnels: set up, renewed and taken down, with the addresses and rules that they need on a
//! gateway.
//!
//! Several tunnels have one pair of SAs each, between single test addresses. For the route into an
//! SA, the daemon needs an address of its gateway in the network behind that gateway: so a gateway
//! has each test address of its side on its loopback device, and a rule that still forwards packets
//! for them.

use super::causes::{self, Cause};
use super::config::Half;
use super::gateway::{Gateway, TOOL_LIMIT};
use super::proof::{self, Standing};
use crate::dut::Site;
use crate::on_node::{ip, run_tool};
use crate::sync::Deadline;
use crate::topology::{Side, cipher_ends};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};
use testbed::protocol::Program;
use testbed::{LabError, Node, Result};

/// How long setting up one tunnel, or renewing it, may take: several of IKE's retransmissions.
const LIMIT: Duration = Duration::from_secs(15);

/// Additional time for each further one.
const LIMIT_EACH: Duration = Duration::from_millis(100);

/// Additional time for renewing each one: its command waits for those before it.
const REKEY_EACH: Duration = Duration::from_millis(500);

/// Minimum polling interval of the SAs.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The pause between two queries of the SAs, as a multiple of a query's duration: listing many SAs
/// keeps the daemon busy.
const LOOK_SHARE: u32 = 3;

/// Makes the kernel look up packets for the networks `$1` (IPv4) and `$2` (IPv6, or empty) in the
/// main table first.
const PASS_ON: &str = "
pass_on() {
    $1 rule add pref 1 lookup local
    $1 rule add pref 0 to \"$2\" lookup main
    $1 rule del pref 0 lookup local
}
pass_on 'ip -4' \"$1\"
[ -z \"$2\" ] || pass_on 'ip -6' \"$2\"
";

/// Undoes [`PASS_ON`], as far as it was done.
const PASS_ON_NO_MORE: &str = "
undo() {
    [ -n \"$($1 rule show pref 1)\" ] || return 0
    $1 rule show pref 0 | grep -q 'lookup local' || $1 rule add pref 0 lookup local
    $1 rule del pref 0 to \"$2\" lookup main || true
    $1 rule del pref 1 lookup local
}
undo 'ip -4' \"$1\"
[ -z \"$2\" ] || undo 'ip -6' \"$2\"
";

/// Renews the tunnels that its input names, several in parallel, at the daemon at `$1`: each
/// command waits until the IKE SA is free, so in sequence the daemon would idle between them.
const REKEY: &str = "xargs -P 8 -I '{}' swanctl --rekey --child '{}' --uri \"$1\" > /dev/null";

/// Adds the addresses that a gateway's daemon needs.
pub(super) fn prepare(half: &Half<'_>, site: &Site<'_>, node: &dyn Node) -> Result<()> {
    if half.plan.tunnels > 1 {
        pass_on(PASS_ON, site, node)?;
    }
    let addresses = half.addresses().into_iter();
    // Loopback addresses are not announced.
    let give = |it| format!("address replace {it} dev lo\n");
    ip(node, addresses.map(give).collect())
}

/// Removes the addresses, whether or not they were added.
pub(super) fn undo(half: &Half<'_>, site: &Site<'_>, node: &dyn Node) -> Result<()> {
    let addresses = half.addresses().into_iter();
    // Replacing first ensures that the address exists.
    let take = |it| format!("address replace {it} dev lo\naddress del {it} dev lo\n");
    let taken = ip(node, addresses.map(take).collect());
    // Even if an address stays: a rule that is left would make the next DUT forward differently.
    let undone = match half.plan.tunnels {
        1 => Ok(()),
        _ => pass_on(PASS_ON_NO_MORE, site, node),
    };
    taken.and(undone)
}

fn pass_on(script: &str, site: &Site<'_>, node: &dyn Node) -> Result<()> {
    let (own, _) = cipher_ends(node.id());
    let networks = site.map.networks_behind(Side::of(own), site.links);
    let of = |is_ipv6: bool| {
        // The first is the station's network.
        let mut test = networks.iter().skip(1);
        test.find(|network| network.contains(':') == is_ipv6)
            .map_or("", String::as_str)
    };
    let argv = ["sh", "-euc", script, "sh", of(false), of(true)];
    run_tool(node, Program::new(argv))
}

/// Waits until all tunnels are up on these gateways, since `start`; returns facts of the one that
/// sets them up.
pub(super) fn await_up(
    gateways: &[Gateway<'_>],
    start: Instant,
) -> Result<BTreeMap<String, String>> {
    for gateway in gateways {
        let is_up = |now: &Standing| now.is_up(&gateway.half);
        let now = await_standing(gateway, is_up)?;
        if !is_up(&now) {
            let up = gateway.half.sas() - now.lost(&gateway.half).len();
            return Err(explain(gateways, gateway, up));
        }
    }
    let took = start.elapsed().as_millis().to_string();
    let mut facts = BTreeMap::new();
    for gateway in gateways.iter().filter(|it| it.half.initiates) {
        let name = gateway.node.id().name();
        facts.insert(format!("{name}/set_up_ms"), took.clone());
        let tunnels = gateway.half.plan.tunnels.to_string();
        facts.insert(format!("{name}/tunnels"), tunnels);
    }
    Ok(facts)
}

/// Returns why only `up` tunnels of a gateway came up: by the log of a station's daemon, or by the
/// daemon's answer to a request for a missing one.
fn explain(gateways: &[Gateway<'_>], gateway: &Gateway<'_>, up: usize) -> LabError {
    let (expected, limit) = (gateway.half.sas(), limit(&gateway.half).as_secs());
    let result = format!("has set up {up} pairs of SAs of {expected} within {limit} s");
    if let Some(station) = gateways.iter().find(|it| it.half.is_station) {
        return station.explain(&result, &station.log());
    }
    let Some(initiator) = gateways.iter().find(|it| it.half.initiates) else {
        return gateway.error(result);
    };
    let children = initiator.half.children();
    let child = children.get(up.min(children.len().saturating_sub(1)));
    let child = child.map_or("", String::as_str);
    let timeout = LIMIT.as_secs().to_string();
    match initiator.swanctl(&["--initiate", "--child", child, "--timeout", &timeout]) {
        Ok(_) => gateway.error(result),
        Err(LabError::Dut { reason, .. }) => match causes::known(&reason) {
            Some(Cause { what, help }) => {
                gateway.error(format!("{what}: it {result}\nhelp: {help}\n{reason}"))
            }
            None => gateway.error(reason),
        },
        Err(error) => error,
    }
}

/// Renews the keys of all tunnels and waits until nothing is sealed with the old ones.
pub(super) fn rekey(gateways: &[Gateway<'_>; 2]) -> Result<()> {
    let mut before = Vec::new();
    for gateway in gateways {
        // Renewed SAs have other SPIs, by which they are recognised.
        before.push(proof::standing(gateway)?.spis);
    }
    let [_, initiator] = gateways;
    let plan = initiator.half.plan;
    let children = initiator.half.children();
    let asking = limit(&initiator.half) + REKEY_EACH * plan.tunnels.into();
    let uri = initiator.uri();
    let program = Program::new(["sh", "-euc", REKEY, "sh", &uri]).with_input(children.join("\n"));
    initiator.run_program(asking, program)?;
    for (gateway, before) in gateways.iter().zip(before) {
        let is_new = |now: &Standing| now.has_all(before.len()) && now.spis.is_disjoint(&before);
        let now = await_standing(gateway, is_new)?;
        if !is_new(&now) {
            let (name, limit) = (gateway.node.name(), limit(&gateway.half).as_secs());
            let left = now.spis.intersection(&before).count();
            let reason = format!("has {left} SAs with old keys on {name} after {limit} s");
            return Err(gateway.error(reason));
        }
    }
    Ok(())
}

/// Takes all tunnels down for good: the initiator drops its configuration.
pub(super) fn take_down(gateways: &[Gateway<'_>; 2]) -> Result<()> {
    let [_, initiator] = gateways;
    initiator.swanctl(&["--terminate", "--ike", super::config::CONNECTION])?;
    initiator.swanctl(&["--load-conns", "--file", "/dev/null"])?;
    for gateway in gateways {
        let is_down = |now: &Standing| *now == Standing::default();
        let now = await_standing(gateway, is_down)?;
        if !is_down(&now) {
            let (name, limit) = (gateway.node.name(), limit(&gateway.half).as_secs());
            let reason = format!("has tunnels on {name} still, after {limit} s");
            return Err(gateway.error(reason));
        }
    }
    Ok(())
}

/// Polls a gateway's SAs until `is_it` holds or time is up; returns their last state.
fn await_standing(gateway: &Gateway<'_>, is_it: impl Fn(&Standing) -> bool) -> Result<Standing> {
    let deadline = Deadline::after(limit(&gateway.half));
    loop {
        // A query of many SAs takes long, and the pause is in proportion to it.
        let look = Instant::now();
        let now = proof::standing(gateway)?;
        if is_it(&now) || deadline.is_over() {
            return Ok(now);
        }
        thread::sleep(LOOK_INTERVAL.max(look.elapsed() * LOOK_SHARE));
    }
}

fn limit(half: &Half<'_>) -> Duration {
    let first = half.ready.unwrap_or(LIMIT.max(TOOL_LIMIT));
    first + LIMIT_EACH * half.plan.tunnels.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::FakeLab;
    use plan::{DataPath, Direction, IkeAuth, StrongSwan};
    use wire::Suite;

    #[test]
    fn rules_are_removed_although_an_address_cannot_be() {
        let lab = FakeLab::new();
        let site = lab.site(Direction::Both);
        let plan = StrongSwan {
            data_path: DataPath::Kernel,
            suite: Suite::Aes256Gcm,
            auth: IkeAuth::Psk,
            ppk: false,
            ml_kem: false,
            tunnels: 2,
        };
        let gw1 = &lab.gateways[0];
        gw1.refuse("address del");
        let half = Half::of(&plan, &site, gw1);
        let error = undo(&half, &site, gw1).unwrap_err().to_string();
        assert!(error.contains("address del"), "{error}");
        let ran = gw1.ran();
        assert!(ran.iter().any(|it| it.contains("rule del")), "{ran:?}");
    }
}
