//! Identities and keys of the peers.

use crate::error::PeersError;
use crate::sources::after;
use crate::spec::{Authentication, Hidden, NUMBER, Pem, Spec};
use crate::trust::Trusted;
use ike::crypto::Secret;
use ike::message::{AddressRange, Identity};
use ike::session::{
    self, Certificates, ChildSuite, IkeSuite, Lifetimes, PpkPolicy, Retransmission, Settings,
    Transport,
};
use pki::{Authority, Texts, days_from_now};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Child SAs of a peer: the current one and its replacements.
const CHILDREN_MAX: usize = 4;

/// Settings of each peer.
pub(crate) struct Credentials {
    /// Settings of all peers that are up.
    shared: Arc<Settings>,
    identity: String,
    selector: IpAddr,
    peers: Kind,
}

enum Kind {
    SharedKey(Hidden),
    /// One per peer, until it is forgotten.
    Certificates(Vec<Option<Certificates>>),
}

impl Credentials {
    /// Reads the spec; issues the peers' certificates. `nat_port` is the peers' port that IKE
    /// shares with ESP.
    pub(crate) fn new(spec: &Spec, nat_port: u16) -> Result<Self, PeersError> {
        let text = &spec.proposal;
        let suite: IkeSuite = text.parse().map_err(|source| PeersError::Proposal {
            text: text.clone(),
            source,
        })?;
        let behaviour = &spec.behaviour;
        let selectors = &spec.selectors;
        let (first, last) = (selectors.remote_first, selectors.remote_last);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            let what = format!("no addresses from {first} to {last} exist behind the gateway");
            return Err(PeersError::Value(what));
        }
        if selectors.local.is_ipv4() != first.is_ipv4()
            || after(selectors.local, spec.peers - 1).is_none()
        {
            let what = format!(
                "{} addresses from {} cannot be behind the peers, with {first} behind the gateway",
                spec.peers, selectors.local
            );
            return Err(PeersError::Value(what));
        }
        let local = AddressRange::any(selectors.local..=selectors.local);
        let ppk = spec.ppk.iter().map(|it| session::Ppk {
            identity: it.identity.clone().into_bytes(),
            key: secret(&it.key.0),
        });
        let gateway = spec.gateway_identity.as_deref();
        let shared = Settings {
            identity: Identity::of_text(&spec.identity),
            peer_identity: gateway.map(Identity::of_text),
            authentication: session::Authentication::SharedKey(Secret::default()),
            ike: vec![suite],
            child: child_suites(suite),
            local: vec![local],
            remote: vec![AddressRange::any(first..=last)],
            children_max: CHILDREN_MAX,
            childless: behaviour.childless,
            initial_contact: true,
            ppks: ppk.collect(),
            ppk_policy: match &spec.ppk {
                Some(ppk) if ppk.required => PpkPolicy::Required,
                _ => PpkPolicy::Optional,
            },
            datagram: behaviour.datagram_bytes.map(|it| it as usize),
            lifetimes: Lifetimes::default(),
            retransmission: Retransmission {
                first: Duration::from_nanos(behaviour.repeat_first_ns),
                longest: Duration::from_nanos(behaviour.repeat_longest_ns),
                repetitions: behaviour.repetitions,
            },
            idle: Duration::from_nanos(behaviour.idle_ns),
            transport: Transport {
                port: spec.port,
                nat_port,
                peer_nat_port: spec.nat_port,
                always_in_udp: behaviour.always_in_udp,
                child_spis: None,
            },
        };
        let peers = match &spec.authentication {
            Authentication::SharedKey(key) => Kind::SharedKey(key.clone()),
            Authentication::Certificates { authority, trusted } => {
                Kind::Certificates(issue(spec, authority, trusted)?)
            }
        };
        Ok(Self {
            shared: Arc::new(shared),
            identity: spec.identity.clone(),
            selector: selectors.local,
            peers,
        })
    }

    /// Settings for a peer's set-up.
    pub(crate) fn of(&self, peer: u32) -> Arc<Settings> {
        let authentication = match &self.peers {
            Kind::SharedKey(key) => {
                session::Authentication::SharedKey(secret(&numbered(&key.0, peer)))
            }
            Kind::Certificates(all) => match &all[peer as usize] {
                Some(certificates) => session::Authentication::Certificates(certificates.clone()),
                None => unreachable!("a peer is set up once where its certificate is forgotten"),
            },
        };
        let local = after(self.selector, peer).unwrap_or(self.selector);
        Arc::new(Settings {
            identity: Identity::of_text(&numbered(&self.identity, peer)),
            authentication,
            local: vec![AddressRange::any(local..=local)],
            ..self.shared.as_ref().clone()
        })
    }

    /// Settings for peers that are up.
    pub(crate) const fn shared(&self) -> &Arc<Settings> {
        &self.shared
    }

    /// Frees a peer's certificate: it is not set up again.
    pub(crate) fn forget(&mut self, peer: u32) {
        if let Kind::Certificates(all) = &mut self.peers {
            all[peer as usize] = None;
        }
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

fn numbered(text: &str, peer: u32) -> String {
    text.replace(NUMBER, &peer.to_string())
}

/// The cipher of the IKE SA and its key exchanges, with sequence numbers of either length.
fn child_suites(suite: IkeSuite) -> Vec<ChildSuite> {
    let suites = [true, false].map(|esn| ChildSuite {
        cipher: suite.cipher,
        esn,
        exchange: Some(suite.exchange),
        additional: suite.additional,
    });
    suites.to_vec()
}

fn issue(
    spec: &Spec,
    authority: &Pem,
    trusted: &str,
) -> Result<Vec<Option<Certificates>>, PeersError> {
    let failed = |what: String| PeersError::Certificate(what);
    let authority = Authority::from_texts(&Texts {
        certificate: authority.certificate.clone(),
        key: Zeroizing::new(authority.key.0.clone()),
    });
    let authority = authority.map_err(|error| failed(format!("the authority's: {error}")))?;
    let trusted = Trusted::from_pem(trusted)?;
    let valid = days_from_now(1);
    let mut issued = Vec::with_capacity(spec.peers as usize);
    for peer in 0..spec.peers {
        let name = numbered(&spec.identity, peer);
        let texts = authority.issue(&name, valid.clone());
        let texts = texts.map_err(|error| failed(error.to_string()))?;
        issued.push(Some(trusted.with(&texts)?));
    }
    Ok(issued)
}
