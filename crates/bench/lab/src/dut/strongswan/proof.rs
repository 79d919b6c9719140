//! State of a gateway's SAs: the check against the request, and counters.

use super::answers::{self, Answer};
use super::config::{CONNECTION, Half, ml_kem_of};
use super::gateway::Gateway;
use super::suites;
use crate::sync::Deadline;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;
use testbed::Result;

/// How long a peer may take to renew keys; after that its SAs are checked as they are.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// Polling interval of the SAs meanwhile.
const SETTLE_STEP: Duration = Duration::from_millis(20);

/// Counters summed over its SAs: strongSwan's name, and the reported one. Bytes count the inner
/// packets, as its data path does.
const COUNTERS: [(&str, &str); 4] = [
    ("bytes-in", "sa_in_bytes"),
    ("packets-in", "sa_in_packets"),
    ("bytes-out", "sa_out_bytes"),
    ("packets-out", "sa_out_packets"),
];

/// Checks that a gateway has all its SAs, with the requested properties; returns facts.
pub(super) fn look(gateway: &Gateway<'_>) -> Result<Vec<(&'static str, String)>> {
    let (plan, expected) = (gateway.half.plan, gateway.half.sas());
    let name = gateway.node.name();
    let sas = settled(gateway)?;
    let of_ike = |key: &str| {
        let value = sas.get(&format!("{CONNECTION}/{key}"));
        value.map(String::as_str).unwrap_or_default()
    };
    let fail =
        |what: String| Err(gateway.error(format!("differs from the request on {name}: {what}")));
    // The IKE SA: established, with the secrets and the key exchange of the request.
    if !is_established(&sas) {
        return fail(format!("IKE is not established, but `{}`", of_ike("state")));
    }
    let with_ppk = of_ike("ppk") == "yes";
    if with_ppk != plan.ppk {
        let is = if with_ppk { "are" } else { "are not" };
        return fail(format!("keys {is} made with a PPK"));
    }
    let ml_kem = gateway.half.ml_kem();
    let exchanged = sas
        .iter()
        .filter(|(path, _)| !path.contains("/child-sas/"))
        .find_map(|(_, value)| ml_kem_of(value));
    if exchanged != ml_kem {
        let [is, should] = [exchanged, ml_kem].map(|it| it.unwrap_or("no ML-KEM"));
        return fail(format!("there was {is} in the key exchange, not {should}"));
    }
    // The pairs of SAs: all of them, each with the suite, carrier and mode of the request.
    let section = format!("{CONNECTION}/child-sas");
    let children: Vec<_> = answers::sections(&sas, &section)
        .into_iter()
        .map(|child| format!("{section}/{child}"))
        .filter(|child| !is_over(&sas, child))
        .collect();
    // By names and not by numbers: rekeyed children have several entries of one name.
    let standing = Standing::of(&sas);
    if !standing.is_up(&gateway.half) {
        return fail(match standing.lost(&gateway.half).first() {
            Some(first) => format!("it has no SA for {first}"),
            None => format!("it has {} SAs of {expected}", children.len()),
        });
    }
    for child in children {
        let value = |key: &str| {
            let value = sas.get(&format!("{child}/{key}"));
            value.map(String::as_str).unwrap_or_default()
        };
        let suite = suites::negotiated(&sas, &child);
        if suite != Some(plan.suite) {
            let is = ["encr-alg", "encr-keysize", "integ-alg"]
                .map(value)
                .join(" ");
            return fail(format!("an SA has {is} and not {}", plan.suite));
        }
        let state = ["state", "protocol", "mode", "encap"].map(value);
        // The field is empty for bare ESP.
        let in_udp = if plan.carrier().udp { "yes" } else { "" };
        if state != ["INSTALLED", "ESP", "TUNNEL", in_udp] {
            let [state, protocol, mode, is_in_udp] = state;
            return fail(format!(
                "an SA is {state} {protocol} {mode}, with encapsulation in UDP `{is_in_udp}` and not `{in_udp}`"
            ));
        }
    }
    let bits = match of_ike("encr-keysize") {
        "" => String::new(),
        bits => format!("_{bits}"),
    };
    let mut ike = format!(
        "{}{bits}/{}/{}",
        of_ike("encr-alg"),
        of_ike("prf-alg"),
        of_ike("dh-group")
    );
    for added in [ml_kem, with_ppk.then_some("PPK")].into_iter().flatten() {
        ike += &format!("/{added}");
    }
    Ok(vec![("suite", plan.suite.name().to_owned()), ("ike", ike)])
}

/// Returns the SAs once none is being renewed: the station does not know when an external gateway
/// renews them.
fn settled(gateway: &Gateway<'_>) -> Result<Answer> {
    let deadline = Deadline::after(SETTLE_LIMIT);
    loop {
        let sas = gateway.ask(&["--list-sas"])?;
        let is_settled = is_established(&sas) && Standing::of(&sas).is_up(&gateway.half);
        if is_settled || deadline.is_over() {
            return Ok(sas);
        }
        thread::sleep(SETTLE_STEP);
    }
}

/// Whether a daemon has an IKE SA with its peer.
pub(super) fn is_established(sas: &Answer) -> bool {
    let state = sas.get(&format!("{CONNECTION}/state"));
    state.is_some_and(|state| state == "ESTABLISHED")
}

/// Whether a replaced SA is kept only for late packets.
fn is_over(sas: &Answer, child: &str) -> bool {
    sas.get(&format!("{child}/state"))
        .is_some_and(|state| state == "DELETED")
}

/// Progress of a gateway's SAs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// SPIs of inbound SAs that are in use.
    pub(super) spis: BTreeSet<String>,
    /// The configured children with these SAs.
    pub(super) children: BTreeSet<String>,
    /// Pairs of SAs that are being set up, replaced or taken down.
    pub(super) in_between: usize,
    /// IKE SAs.
    pub(super) ikes: usize,
}

impl Standing {
    fn of(sas: &Answer) -> Self {
        let mut standing = Self {
            ikes: usize::from(sas.contains_key(&format!("{CONNECTION}/state"))),
            ..Self::default()
        };
        let section = format!("{CONNECTION}/child-sas");
        for child in answers::sections(sas, &section) {
            let child = format!("{section}/{child}");
            let value = |key: &str| sas.get(&format!("{child}/{key}"));
            match value("state").map(String::as_str) {
                Some("INSTALLED") => {
                    standing.spis.extend(value("spi-in").cloned());
                    standing.children.extend(value("name").cloned());
                }
                Some("DELETED") => {}
                _ => standing.in_between += 1,
            }
        }
        standing
    }

    /// Whether all of its pairs of SAs are in use, and none is being replaced.
    pub(super) fn has_all(&self, pairs: usize) -> bool {
        self.spis.len() == pairs && self.in_between == 0
    }

    /// Whether all of a half's tunnels are up, and none is being replaced. An external gateway may
    /// set up several pairs of SAs for a tunnel of its peer, a station.
    pub(super) fn is_up(&self, half: &Half<'_>) -> bool {
        if half.is_station {
            self.in_between == 0 && self.lost(half).is_empty()
        } else {
            self.has_all(half.sas())
        }
    }

    /// Networks of the children of a half that have no SA.
    pub(super) fn lost(&self, half: &Half<'_>) -> Vec<String> {
        let named = half.children().into_iter().zip(half.networks());
        named
            .filter(|(name, _)| !self.children.contains(name))
            .map(|(_, networks)| networks)
            .collect()
    }
}

/// Returns the progress of a gateway's SAs.
pub(super) fn standing(gateway: &Gateway<'_>) -> Result<Standing> {
    Ok(Standing::of(&gateway.ask(&["--list-sas"])?))
}

/// Returns a gateway's counters.
pub(super) fn counters(gateway: &Gateway<'_>) -> Result<Vec<(&'static str, u64)>> {
    let sas = gateway.ask(&["--list-sas"])?;
    let summed = COUNTERS.map(|(key, counter)| (counter, sum(&sas, key)));
    Ok(summed.to_vec())
}

/// Sums a counter over all SAs.
fn sum(sas: &Answer, key: &str) -> u64 {
    // Of replaced SAs too, as long as they are listed: their packets count as well.
    let is_it = |path: &str| path.contains("/child-sas/") && path.rsplit('/').next() == Some(key);
    sas.iter()
        .filter(|(path, _)| is_it(path))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}
