//! State of a gateway's SAs: the check against the request, and counters.

use super::answers::{self, Answer};
use super::config::{CONNECTION, ml_kem_of};
use super::gateway::Gateway;
use super::suites;
use crate::Result;
use std::collections::BTreeSet;

/// Counters summed over its SAs: strongSwan's name, and the reported one. Bytes are those of the
/// inner packets, as its data path counts them.
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
    let sas = gateway.ask(&["--list-sas"])?;
    let of_ike = |key: &str| {
        let value = sas.get(&format!("{CONNECTION}/{key}"));
        value.map(String::as_str).unwrap_or_default()
    };
    let fail =
        |what: String| Err(gateway.error(format!("differs from the request on {name}: {what}")));
    if of_ike("state") != "ESTABLISHED" {
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
    let section = format!("{CONNECTION}/child-sas");
    let children: Vec<_> = answers::sections(&sas, &section)
        .into_iter()
        .map(|child| format!("{section}/{child}"))
        .filter(|child| !is_over(&sas, child))
        .collect();
    if children.len() != expected {
        return fail(format!("it has {} SAs of {expected}", children.len()));
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
    /// Pairs of SAs that are being set up, replaced or taken down.
    pub(super) in_between: usize,
    /// IKE SAs.
    pub(super) ikes: usize,
}

/// Returns the progress of a gateway's SAs.
pub(super) fn standing(gateway: &Gateway<'_>) -> Result<Standing> {
    let sas = gateway.ask(&["--list-sas"])?;
    let mut standing = Standing {
        ikes: usize::from(sas.contains_key(&format!("{CONNECTION}/state"))),
        ..Standing::default()
    };
    let section = format!("{CONNECTION}/child-sas");
    for child in answers::sections(&sas, &section) {
        let child = format!("{section}/{child}");
        let value = |key: &str| sas.get(&format!("{child}/{key}"));
        match value("state").map(String::as_str) {
            Some("INSTALLED") => standing.spis.extend(value("spi-in").cloned()),
            Some("DELETED") => {}
            _ => standing.in_between += 1,
        }
    }
    Ok(standing)
}

/// Returns a gateway's counters.
pub(super) fn counters(gateway: &Gateway<'_>) -> Result<Vec<(&'static str, u64)>> {
    let sas = gateway.ask(&["--list-sas"])?;
    let summed = COUNTERS.map(|(key, counter)| (counter, sum(&sas, key)));
    Ok(summed.to_vec())
}

/// Sums a counter over all SAs.
fn sum(sas: &Answer, key: &str) -> u64 {
    let is_it = |path: &str| path.contains("/child-sas/") && path.rsplit('/').next() == Some(key);
    sas.iter()
        .filter(|(path, _)| is_it(path))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}
