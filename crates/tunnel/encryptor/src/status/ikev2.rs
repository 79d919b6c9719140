//! The state of IKE: counters for the metrics, and log lines on standard error.

use crate::lines::Lines;
use crate::shared_keys::lock;
use ike::crypto::KeMethodKind;
use ike::session::{IkeSuite, Refusal};
use keying::message::for_people;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

/// The state of IKE of all tunnels; empty if no tunnel has IKE.
#[derive(Debug, Default)]
pub(crate) struct IkeStatus {
    tunnels: OnceLock<Vec<Tunnel>>,
    counts: Mutex<Counts>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Counts {
    established: u64,
    child_rekeys: u64,
    ike_rekeys: u64,
    ignored: BTreeMap<&'static str, u64>,
    ended: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Tunnel {
    id: u16,
    peer: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    up: Option<Agreed>,
    /// The last line that was written; empty: on keys.
    problem: String,
    has_told_keys: bool,
}

/// What both sides have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Key exchanges, as `x25519+mlkem768`.
    exchange: String,
    /// A key exchange or a PPK protects against quantum computers.
    is_post_quantum: bool,
    has_ppk: bool,
}

impl Agreed {
    pub(crate) fn new(suite: &IkeSuite, has_ppk: bool) -> Self {
        let exchanges: Vec<_> = [Some(suite.exchange)]
            .into_iter()
            .chain(suite.additional)
            .flatten()
            .collect();
        let is_kem = |kind: &KeMethodKind| {
            use KeMethodKind::{MlKem512, MlKem768, MlKem1024};
            matches!(kind, MlKem512 | MlKem768 | MlKem1024)
        };
        let names: Vec<_> = exchanges.iter().map(|kind| exchange_name(*kind)).collect();
        Self {
            exchange: names.join("+"),
            is_post_quantum: has_ppk || exchanges.iter().any(is_kem),
            has_ppk,
        }
    }

    const fn post_quantum(&self) -> &'static str {
        if self.is_post_quantum { "yes" } else { "no" }
    }
}

/// The name of a key exchange in proposals.
pub(crate) const fn exchange_name(kind: KeMethodKind) -> &'static str {
    match kind {
        KeMethodKind::X25519 => "x25519",
        KeMethodKind::P256 => "ecp256",
        KeMethodKind::P384 => "ecp384",
        KeMethodKind::P521 => "ecp521",
        KeMethodKind::MlKem512 => "mlkem512",
        KeMethodKind::MlKem768 => "mlkem768",
        KeMethodKind::MlKem1024 => "mlkem1024",
    }
}

/// A snapshot of a tunnel, for the metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IkeSnapshot {
    pub(crate) id: u16,
    pub(crate) peer: String,
    /// Whether there is a child SA to send with.
    pub(crate) is_up: bool,
    /// Key exchanges; empty while it is not up.
    pub(crate) exchange: String,
    pub(crate) post_quantum: &'static str,
    pub(crate) ppk: &'static str,
}

impl IkeStatus {
    /// Sets number and peer of each tunnel with IKE, once.
    pub(crate) fn set_tunnels(&self, tunnels: impl Iterator<Item = (u16, String)>) {
        let tunnels = tunnels.map(|(id, peer)| Tunnel {
            id,
            peer,
            state: Mutex::default(),
        });
        let _ = self.tunnels.set(tunnels.collect());
    }

    fn tunnels(&self) -> &[Tunnel] {
        self.tunnels.get().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tunnels().is_empty()
    }

    pub(crate) fn snapshots(&self) -> impl Iterator<Item = IkeSnapshot> + '_ {
        self.tunnels().iter().map(|tunnel| {
            let state = lock(&tunnel.state);
            let agreed = state.up.as_ref();
            IkeSnapshot {
                id: tunnel.id,
                peer: tunnel.peer.clone(),
                is_up: agreed.is_some(),
                exchange: agreed.map(|it| it.exchange.clone()).unwrap_or_default(),
                post_quantum: agreed.map_or("no", Agreed::post_quantum),
                ppk: agreed.map_or("no", |it| if it.has_ppk { "yes" } else { "no" }),
            }
        })
    }

    /// IKE SAs that both ends have authenticated.
    pub(crate) fn established(&self) -> u64 {
        lock(&self.counts).established
    }

    /// New keys of child SAs and of IKE SAs.
    pub(crate) fn rekeys(&self) -> [(&'static str, u64); 2] {
        let counts = lock(&self.counts);
        [("child", counts.child_rekeys), ("ike", counts.ike_rekeys)]
    }

    /// Datagrams that were ignored, by reason.
    pub(crate) fn ignored(&self) -> Vec<(&'static str, u64)> {
        let counts = lock(&self.counts);
        counts
            .ignored
            .iter()
            .map(|(name, it)| (*name, *it))
            .collect()
    }

    /// IKE SAs that ended, and attempts that failed, by reason.
    pub(crate) fn ended(&self) -> Vec<(String, u64)> {
        let counts = lock(&self.counts);
        counts
            .ended
            .iter()
            .map(|(name, it)| (name.clone(), *it))
            .collect()
    }

    pub(crate) fn count_established(&self) {
        lock(&self.counts).established += 1;
    }

    pub(crate) fn count_child_rekey(&self) {
        lock(&self.counts).child_rekeys += 1;
    }

    pub(crate) fn count_ike_rekey(&self) {
        lock(&self.counts).ike_rekeys += 1;
    }

    pub(crate) fn count_ignored(&self, refusal: &Refusal) {
        self.count_ignored_as(refusal.name());
    }

    pub(crate) fn count_ignored_as(&self, name: &'static str) {
        *lock(&self.counts).ignored.entry(name).or_default() += 1;
    }

    /// Counts an IKE SA that ended, or a refusal that ends none, by its reason.
    pub(crate) fn count_ended(&self, name: String) {
        *lock(&self.counts).ended.entry(name).or_default() += 1;
    }

    /// The tunnel has a child SA to send with.
    pub(crate) fn up(&self, number: usize, agreed: Agreed) {
        let tunnel = &self.tunnels()[number];
        let mut state = lock(&tunnel.state);
        let is_news = !state.has_told_keys || !state.problem.is_empty();
        if is_news {
            let Agreed { exchange, .. } = &agreed;
            let (quantum, ppk) = (
                agreed.post_quantum(),
                if agreed.has_ppk { ", with a PPK" } else { "" },
            );
            self.log(
                tunnel,
                format_args!("has keys by IKEv2 with {exchange}{ppk} (post-quantum: {quantum})"),
            );
        }
        state.problem.clear();
        state.has_told_keys = true;
        state.up = Some(agreed);
    }

    /// The tunnel has no child SA to send with.
    pub(crate) fn down(&self, number: usize) {
        lock(&self.tunnels()[number].state).up = None;
    }

    /// Logs a problem, unless it is the last one that was logged for the tunnel.
    pub(crate) fn problem(&self, number: usize, problem: &str) {
        let tunnel = &self.tunnels()[number];
        let problem = for_people(problem);
        let mut state = lock(&tunnel.state);
        if state.problem != *problem {
            self.log(tunnel, format_args!("{problem}"));
            state.problem = problem.to_string();
        }
    }

    fn log(&self, tunnel: &Tunnel, what: std::fmt::Arguments<'_>) {
        let Tunnel { id, peer, .. } = tunnel;
        lock(&self.lines).log(format_args!("tunnel {id} with {peer}: {what}"));
    }
}
