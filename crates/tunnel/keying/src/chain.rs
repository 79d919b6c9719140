//! From the handshake's secret, pre-shared keys and QKD keys to the secret of one epoch, and from that to SAs.
//!
//! 1. The chain begins with the handshake's exported secret, or without it where the policy leaves it out.
//! 2. Each key is mixed in as RFC 8784 §3 mixes a PPK: it is the key of a PRF over what came before. PPKs come first, by
//!    id, then QKD keys in the order in which they were agreed on. A key that is not there is told as absent, never as
//!    zeros.
//! 3. Keys of an SA, and the confirmations that both sides show each other first, are HKDF-Expand of the chain's end,
//!    bound to all that both sides agreed on.
//!
//! `docs/security.md` has the derivation byte by byte. What is mixed in when is decided elsewhere
//! ([`rollover`](crate::rollover)); here is only made sure that nothing that the policy requires is missing.

use crate::derive::{OutputLength, framed};
use crate::message::Confirmation;
use crate::{EPOCH_MAX, SaKeys, Side, spi_of};
use aws_lc_rs::hkdf::{HKDF_SHA384, Prk};
use ctutils::CtEq;
use hmac::digest::FixedOutput;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha384;
use std::fmt;
use std::sync::Arc;
use wire::Suite;
use zeroize::Zeroizing;

/// Bytes of the exporter's secret, of each link of the chain, and of a confirmation (SHA-384).
pub const CHAIN_BYTES: usize = 48;
/// The longest id of a PPK or of a QKD key, in bytes.
pub const ID_BYTES_MAX: usize = 255;
/// Version of the derivation: the first thing that all keys are bound to.
const VERSION: u16 = 1;

/// The chain's beginning.
const HANDSHAKE: &[u8] = b"cipherbench handshake v1";
const NO_HANDSHAKE: &[u8] = b"cipherbench no handshake v1";
/// What no two connections have in common, and is no secret.
const SESSION: &[u8] = b"cipherbench session v1";
/// What is made of the chain's end.
const SA: &[u8] = b"cipherbench sa v1";
const CONFIRM: &[u8] = b"cipherbench confirm v1";
/// Of fault injection.
const SPOILED: &[u8] = b"cipherbench spoiled v1";

/// A secret of the chain's length.
pub type Secret = Zeroizing<[u8; CHAIN_BYTES]>;

/// What keys must come from; what is not there is not replaced by something weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The hybrid handshake. QKD is not asked for.
    Pqc,
    /// QKD alone: the handshake authenticates and carries key ids, its secret is not mixed in.
    Qkd,
    /// The handshake and QKD, both.
    Both,
    /// The handshake, and QKD as long as it delivers.
    Either,
}

impl Policy {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Pqc, Self::Qkd, Self::Both, Self::Either];

    /// As configurations and messages have it: `pqc`, `qkd`, `both`, `either`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pqc => "pqc",
            Self::Qkd => "qkd",
            Self::Both => "both",
            Self::Either => "either",
        }
    }

    /// The policy of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether the handshake's secret is mixed in.
    #[must_use]
    pub const fn mixes_handshake(self) -> bool {
        !matches!(self, Self::Qkd)
    }

    /// Whether a KME is asked for keys.
    #[must_use]
    pub const fn asks_qkd(self) -> bool {
        !matches!(self, Self::Pqc)
    }

    /// Whether there are no keys without QKD.
    #[must_use]
    pub const fn requires_qkd(self) -> bool {
        matches!(self, Self::Qkd | Self::Both)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What sort of key a link of the chain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Post-quantum pre-shared key (RFC 8784).
    Ppk,
    /// A key of a QKD network.
    Qkd,
}

impl Kind {
    /// As derivations and [`EpochSecret::sources`] have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ppk => "ppk",
            Self::Qkd => "qkd",
        }
    }
}

/// One key to be mixed in.
#[derive(Clone)]
pub struct Link {
    /// Sort.
    pub kind: Kind,
    /// Its name: a PPK's id, a QKD key's UUID. See [`is_id`].
    pub id: String,
    /// At most 65535 bytes. `None`: one side has it not, and both may do without.
    pub key: Option<Arc<Zeroizing<Vec<u8>>>>,
}

impl Link {
    /// What stands for QKD where [`Policy::Either`] goes on without it.
    #[must_use]
    pub fn no_qkd() -> Self {
        Self {
            kind: Kind::Qkd,
            id: "none".to_owned(),
            key: None,
        }
    }

    /// `field(kind) field(id)`, then 1 and `field(key)`, or 0 for a key that is absent.
    fn prf_key(&self) -> Zeroizing<Vec<u8>> {
        let name = framed(&[self.kind.name().as_bytes(), self.id.as_bytes()]);
        let key = self.key.as_ref();
        let key = key.map(|key| Zeroizing::new(framed(&[key.as_slice()])));
        let key_bytes = key.as_ref().map_or(0, |key| key.len());
        // Never grows, so that no piece of it is left behind in memory.
        let mut bytes = Zeroizing::new(Vec::with_capacity(name.len() + 1 + key_bytes));
        bytes.extend_from_slice(&name);
        bytes.push(u8::from(key.is_some()));
        if let Some(key) = key {
            bytes.extend_from_slice(&key);
        }
        bytes
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("kind", &self.kind)
            .field("id", &self.id)
            .field("present", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

/// Whether it can be the id of a PPK or of a QKD key: 1 to [`ID_BYTES_MAX`] bytes, no control characters.
#[must_use]
pub fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Everything that the keys of an epoch are bound to, beside the suite and the SA's own SPI and direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Name in the certificate of side a: the one that connects.
    pub connector: String,
    /// Name in the certificate of side b: the one that listens.
    pub listener: String,
    /// Number of the tunnel, the same on both sides.
    pub tunnel: u16,
    /// Lanes of each side.
    pub lanes: u16,
    /// ESP suite.
    pub suite: Suite,
    /// Policy in force.
    pub policy: Policy,
    /// Of both directions.
    pub epoch: u32,
}

/// The secret of one epoch of one tunnel: SAs of all its lanes come from it. Wiped when dropped.
pub struct EpochSecret {
    context: Context,
    /// What the chain is made of, for people.
    sources: Vec<String>,
    /// Context, session and sources, as they enter every derivation.
    bound: Vec<u8>,
    /// The chain's end.
    last: Secret,
}

impl EpochSecret {
    /// Mixes the secret of an epoch.
    ///
    /// `exporter` is the secret of this one connection, of no other; also where the policy does not mix it in, for
    /// then its fingerprint is what keeps two epochs with the same QKD key apart. `links` are all PPKs of either side, in
    /// any order, and the QKD keys in the order of the message that named them. Where [`Policy::Either`] has none,
    /// [`Link::no_qkd`] takes their place, given or not.
    ///
    /// # Panics
    /// When the policy requires QKD keys that are not in `links`, or has no place for those that are; when the epoch is
    /// not 1 to [`EPOCH_MAX`]. Whoever calls has refused a peer or a KME with which that would happen.
    #[must_use]
    pub fn derive(context: Context, exporter: &Secret, links: &[Link]) -> Self {
        assert!(
            (1..=EPOCH_MAX).contains(&context.epoch),
            "an epoch has room in an SPI, and is not 0"
        );
        let links = in_order(context.policy, links);
        let mut last = if context.policy.mixes_handshake() {
            prf(HANDSHAKE, &**exporter)
        } else {
            prf(NO_HANDSHAKE, &[])
        };
        for link in &links {
            last = prf(&link.prf_key(), &*last);
        }
        Self {
            bound: bound(&context, &prf(SESSION, &**exporter), &links),
            sources: links.iter().map(source).collect(),
            context,
            last,
        }
    }

    /// Number of the epoch.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.context.epoch
    }

    /// What its keys are bound to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What was mixed in beside the handshake, in this order: `ppk:alpha`, `qkd:550e8400-…`. What is absent has `-` in
    /// front; `-qkd:none` is QKD that [`Policy::Either`] goes on without.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.sources.clone()
    }

    /// The keys of the SA in which `sender` sends, in a slot: a lane of the tunnel.
    ///
    /// # Panics
    /// When `slot` is not below [`LANES_MAX`](crate::LANES_MAX).
    #[must_use]
    pub fn sa_keys(&self, sender: Side, slot: u16) -> SaKeys {
        let (suite, spi) = (self.context.suite, spi_of(self.epoch(), slot));
        let mut keymat = Zeroizing::new(vec![0; suite.keymat_bytes()]);
        self.expand(&[SA, sender.direction(), &spi.to_be_bytes()], &mut keymat);
        SaKeys { spi, suite, keymat }
    }

    /// What one side shows the other to prove that it has the same keys for the same purpose. It tells nothing of them.
    #[must_use]
    pub fn confirmation(&self, of: Side) -> Confirmation {
        let mut bytes = [0; CHAIN_BYTES];
        self.expand(&[CONFIRM, of.name().as_bytes()], &mut bytes);
        Confirmation(bytes)
    }

    /// Whether `shown` is the confirmation of that side. In constant time.
    #[must_use]
    pub fn confirms(&self, of: Side, shown: &Confirmation) -> bool {
        self.confirmation(of).0.ct_eq(&shown.0).to_bool()
    }

    /// One with the same context whose keys nobody else has.
    pub(crate) fn spoiled(&self) -> Self {
        Self {
            context: self.context.clone(),
            sources: self.sources.clone(),
            bound: self.bound.clone(),
            last: prf(SPOILED, &*self.last),
        }
    }

    /// HKDF-Expand (RFC 5869 §2.3) of the chain's end; `purpose` begins with a label, which tells how many fields follow.
    fn expand(&self, purpose: &[&[u8]], output: &mut [u8]) {
        let length = OutputLength(output.len());
        Prk::new_less_safe(HKDF_SHA384, &*self.last)
            .expand(&[&framed(purpose), &self.bound], length)
            .and_then(|expanded| expanded.fill(output))
            .expect(
                "HKDF-SHA-384 gives up to 12240 bytes, and the buffer has the length asked for",
            );
    }
}

impl fmt::Debug for EpochSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochSecret")
            .field("context", &self.context)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

/// PPKs by their ids' bytes, then QKD keys as they come; nothing that the policy requires is missing.
fn in_order(policy: Policy, links: &[Link]) -> Vec<Link> {
    let of = |kind| links.iter().filter(move |link| link.kind == kind).cloned();
    let mut ordered: Vec<Link> = of(Kind::Ppk).collect();
    ordered.sort_by(|one, other| one.id.as_bytes().cmp(other.id.as_bytes()));
    let mut qkd: Vec<Link> = of(Kind::Qkd).collect();
    if qkd.is_empty() && policy == Policy::Either {
        qkd.push(Link::no_qkd());
    }
    let absent = qkd.iter().filter(|link| link.key.is_none()).count();
    let fits = match policy {
        Policy::Pqc => qkd.is_empty(),
        Policy::Qkd | Policy::Both => !qkd.is_empty() && absent == 0,
        Policy::Either => absent == 0 || (qkd.len() == 1 && qkd[0].id == "none"),
    };
    assert!(fits, "the QKD keys are those that policy {policy} asks for");
    ordered.append(&mut qkd);
    ordered
}

/// What is bound beside the purpose: a fixed number of fields, then three for each link.
fn bound(context: &Context, session: &Secret, links: &[Link]) -> Vec<u8> {
    let mut bytes = framed(&[
        &VERSION.to_be_bytes(),
        context.suite.name().as_bytes(),
        &context.lanes.to_be_bytes(),
        &context.tunnel.to_be_bytes(),
        context.connector.as_bytes(),
        context.listener.as_bytes(),
        context.policy.name().as_bytes(),
        &[u8::from(context.policy.mixes_handshake())],
        &context.epoch.to_be_bytes(),
        &**session,
    ]);
    for link in links {
        bytes.extend(framed(&[
            link.kind.name().as_bytes(),
            link.id.as_bytes(),
            &[u8::from(link.key.is_some())],
        ]));
    }
    bytes
}

fn source(link: &Link) -> String {
    let absent = if link.key.is_some() { "" } else { "-" };
    format!("{absent}{}:{}", link.kind.name(), link.id)
}

/// HMAC-SHA-384 (RFC 2104), straight into memory that is wiped.
fn prf(key: &[u8], message: &[u8]) -> Secret {
    let mut mac = Hmac::<Sha384>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    let mut output = Zeroizing::new([0; CHAIN_BYTES]);
    mac.finalize_into((&mut *output).into());
    output
}

#[cfg(test)]
mod tests;
