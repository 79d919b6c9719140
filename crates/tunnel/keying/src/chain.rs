//! Derives the secret of one epoch from the handshake's secret, pre-shared keys and QKD keys, and
//! from the epoch's secret the keys of its SAs.
//!
//! 1. The chain begins with the handshake's exported secret, or without it if the policy excludes
//!    it.
//! 2. Each key is mixed in as RFC 8784 §3 mixes a PPK: it keys a PRF over the previous link. PPKs
//!    come first, ordered by ID, then QKD keys in the agreed order. A missing key is encoded as
//!    absent, never as zeros.
//! 3. SA keys, and the confirmations that both sides exchange first, are HKDF-Expand of the last
//!    link, bound to everything that both sides agreed on.
//!
//! `docs/security.md` specifies the derivation byte by byte. [`rollover`](crate::rollover) selects
//! the keys to mix in; this module only ensures that no key that the policy requires is missing.

mod confirmation;

pub use confirmation::Confirmation;

use crate::derive::{OutputLength, framed};
use crate::{EPOCH_MAX, SaKeys, Side, spi_of};
use aws_lc_rs::hkdf::{HKDF_SHA384, Prk};
use ctutils::CtEq;
use hmac::digest::FixedOutput;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha384;
use std::fmt;
use std::sync::Arc;
use strum::IntoStaticStr;
use wire::Suite;
use zeroize::Zeroizing;

/// Length in bytes of the exported secret, of each link's output, and of a confirmation (SHA-384).
pub const CHAIN_BYTES: usize = 48;
/// Maximum length of the ID of a PPK or QKD key in bytes.
pub const ID_BYTES_MAX: usize = 255;
/// Version of the derivation, the first field that all keys are bound to.
const VERSION: u16 = 1;

/// PRF keys for the chain's beginning.
const HANDSHAKE: &[u8] = b"cipherbench handshake v1";
const NO_HANDSHAKE: &[u8] = b"cipherbench no handshake v1";
/// PRF key for the session fingerprint, which is unique per connection and not secret.
const SESSION: &[u8] = b"cipherbench session v1";
/// Labels of the derivations from the chain's end.
const SA: &[u8] = b"cipherbench sa v1";
const CONFIRM: &[u8] = b"cipherbench confirm v1";
const KEEP: &[u8] = b"cipherbench keep v1";
/// PRF key for fault injection.
const SPOILED: &[u8] = b"cipherbench spoiled v1";

/// A secret of the chain's length.
pub type Secret = Zeroizing<[u8; CHAIN_BYTES]>;

/// The required key sources. A missing source is never replaced by a weaker one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum Policy {
    /// The hybrid handshake. QKD is not used.
    Pqc,
    /// QKD alone: the handshake authenticates the peers and carries the key IDs, but its secret is
    /// not mixed in.
    Qkd,
    /// Both the handshake and QKD.
    Both,
    /// The handshake, and QKD while it delivers keys.
    Either,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Pqc, Self::Qkd, Self::Both, Self::Either];

    /// The policy's name in configurations and messages: `pqc`, `qkd`, `both`, `either`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The policy with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether the handshake's secret is mixed in.
    #[must_use]
    pub const fn mixes_handshake(self) -> bool {
        !matches!(self, Self::Qkd)
    }

    /// Whether keys are requested from a KME.
    #[must_use]
    pub const fn asks_qkd(self) -> bool {
        !matches!(self, Self::Pqc)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of key of a link of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Post-quantum pre-shared key (RFC 8784).
    Ppk,
    /// A key of a QKD network.
    Qkd,
}

impl Kind {
    /// Its name in derivations and [`EpochSecret::sources`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ppk => "ppk",
            Self::Qkd => "qkd",
        }
    }
}

/// One key to mix in.
#[derive(Clone)]
pub struct Link {
    /// Kind of key.
    pub kind: Kind,
    /// A PPK's ID or a QKD key's UUID. See [`is_id`].
    pub id: String,
    /// At most 65535 bytes. `None`: one side lacks the key, and both may do without it.
    pub key: Option<Arc<Zeroizing<Vec<u8>>>>,
}

impl Link {
    /// The placeholder for QKD if [`Policy::Either`] proceeds without it.
    #[must_use]
    pub fn no_qkd() -> Self {
        Self {
            kind: Kind::Qkd,
            id: "none".to_owned(),
            key: None,
        }
    }

    /// `field(kind) field(id)`, followed by 1 and `field(key)`, or by 0 for an absent key.
    fn prf_key(&self) -> Zeroizing<Vec<u8>> {
        let name = framed(&[self.kind.name().as_bytes(), self.id.as_bytes()]);
        let key = self.key.as_ref();
        let key = key.map(|key| Zeroizing::new(framed(&[key.as_slice()])));
        let key_bytes = key.as_ref().map_or(0, |key| key.len());
        // Never reallocates, so that no copy remains in freed memory.
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
            // Presence is no secret: both sides say which keys they have.
            .field("present", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

/// Whether the text is a valid ID of a PPK or QKD key: 1 to [`ID_BYTES_MAX`] bytes without control
/// characters.
#[must_use]
pub fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The context that the keys of an epoch are bound to, in addition to the SA's SPI and direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Name in the certificate of side a, the connector.
    pub connector: String,
    /// Name in the certificate of side b, the listener.
    pub listener: String,
    /// Number of the tunnel, the same on both sides.
    pub tunnel: u16,
    /// Number of lanes of each side.
    pub lanes: u16,
    /// ESP suite.
    pub suite: Suite,
    /// Policy in force.
    pub policy: Policy,
    /// Epoch number, the same for both directions.
    pub epoch: u32,
}

/// The secret of one epoch of one tunnel. The SAs of all its lanes derive from it. Wiped when
/// dropped.
pub struct EpochSecret {
    context: Context,
    /// Names of the mixed keys, for messages.
    sources: Vec<String>,
    /// Context, session and sources, as they enter every derivation.
    bound: Vec<u8>,
    /// The chain's end.
    last: Secret,
}

impl EpochSecret {
    /// Derives the secret of an epoch.
    ///
    /// `exporter` is the secret of this connection and no other. It is needed even if the policy
    /// does not mix it in, since its fingerprint then separates two epochs with the same QKD key.
    /// `links` are all PPKs of either side, in any order, and the QKD keys in the order of the
    /// message that named them. Without QKD keys, [`Policy::Either`] uses [`Link::no_qkd`], given
    /// or not.
    ///
    /// # Panics
    /// If the policy requires QKD keys that are not in `links`, or `links` has QKD keys that it
    /// does not permit; if the epoch is not in 1 to [`EPOCH_MAX`]. The caller must already have
    /// rejected a peer or KME that would cause this.
    #[must_use]
    pub fn derive(context: Context, exporter: &Secret, links: &[Link]) -> Self {
        assert!(
            (1..=EPOCH_MAX).contains(&context.epoch),
            "an epoch fits in an SPI, and is not 0"
        );
        // Each side may hold its PPKs in another order.
        let links = in_order(context.policy, links);
        let mut last = if context.policy.mixes_handshake() {
            prf(HANDSHAKE, &**exporter)
        } else {
            // A different start: a chain without the handshake equals none that has it.
            prf(NO_HANDSHAKE, &[])
        };
        for link in &links {
            // The new key is the PRF's key: the result is secret if either the key or the chain so
            // far is.
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

    /// The context that its keys are bound to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The keys mixed in, other than the handshake, in this order: `ppk:alpha`, `qkd:550e8400-…`.
    /// An absent key has the prefix `-`; `-qkd:none` means that [`Policy::Either`] proceeds without
    /// QKD.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.sources.clone()
    }

    /// The keys of the SA for packets from `sender` in a slot (a lane of the tunnel).
    ///
    /// # Panics
    /// If `slot` is not below [`LANES_MAX`](crate::LANES_MAX).
    #[must_use]
    pub fn sa_keys(&self, sender: Side, slot: u16) -> SaKeys {
        // The SPI binds the keys to epoch, tunnel and lane. Both directions share it, so the
        // direction is added.
        let (suite, spi) = (self.context.suite, spi_of(self.epoch(), slot));
        let mut keymat = Zeroizing::new(vec![0; suite.keymat_bytes()]);
        self.expand(&[SA, sender.direction(), &spi.to_be_bytes()], &mut keymat);
        SaKeys {
            spi,
            suite,
            are_numbers_extended: true,
            keymat,
        }
    }

    /// One side's proof to the other that it has the same keys for the same purpose. It reveals
    /// nothing about them.
    #[must_use]
    pub fn confirmation(&self, of: Side) -> Confirmation {
        let mut bytes = [0; CHAIN_BYTES];
        self.expand(&[CONFIRM, of.name().as_bytes()], &mut bytes);
        Confirmation(bytes)
    }

    /// Whether `shown` is the confirmation of side `of`. Compares in constant time.
    #[must_use]
    pub fn confirms(&self, of: Side, shown: &Confirmation) -> bool {
        self.confirmation(of).0.ct_eq(&shown.0).to_bool()
    }

    /// One side's proof to the other, for the connection with this exporter, that it still has the
    /// keys. It reveals nothing about them, and is useless on another connection.
    #[must_use]
    pub fn possession(&self, of: Side, exporter: &Secret) -> Confirmation {
        // Bound to the connection: a proof that was recorded on another one is worthless here.
        let session = prf(SESSION, &**exporter);
        let mut bytes = [0; CHAIN_BYTES];
        self.expand(&[KEEP, of.name().as_bytes(), &*session], &mut bytes);
        Confirmation(bytes)
    }

    /// Whether `shown` is the [`possession`](Self::possession) of side `of` on that connection.
    /// Compares in constant time.
    #[must_use]
    pub fn is_possessed(&self, of: Side, exporter: &Secret, shown: &Confirmation) -> bool {
        self.possession(of, exporter).0.ct_eq(&shown.0).to_bool()
    }

    /// A secret with the same context and keys that no peer has.
    pub(crate) fn spoiled(&self) -> Self {
        Self {
            context: self.context.clone(),
            sources: self.sources.clone(),
            bound: self.bound.clone(),
            last: prf(SPOILED, &*self.last),
        }
    }

    /// HKDF-Expand (RFC 5869 §2.3) of the chain's end. `purpose` begins with a label, which
    /// determines the number of fields that follow.
    fn expand(&self, purpose: &[&[u8]], output: &mut [u8]) {
        let length = OutputLength(output.len());
        // HKDF-Extract is left out (RFC 5869 §3.3): the chain's end is already a uniformly random
        // PRF output.
        Prk::new_less_safe(HKDF_SHA384, &*self.last)
            .expand(&[&framed(purpose), &self.bound], length)
            .and_then(|expanded| expanded.fill(output))
            .expect(
                "HKDF-SHA-384 gives up to 12240 bytes, and the buffer has the requested length",
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

/// Orders the links: PPKs by the bytes of their IDs, then QKD keys as given. Panics if a key that
/// the policy requires is missing.
fn in_order(policy: Policy, links: &[Link]) -> Vec<Link> {
    let of = |kind| links.iter().filter(move |link| link.kind == kind).cloned();
    let mut ordered: Vec<Link> = of(Kind::Ppk).collect();
    // By bytes, not by language: both sides must agree on every machine.
    ordered.sort_by(|one, other| one.id.as_bytes().cmp(other.id.as_bytes()));
    let mut qkd: Vec<Link> = of(Kind::Qkd).collect();
    if qkd.is_empty() && policy == Policy::Either {
        // Named as absent, so that keys with and without QKD differ even with the same handshake.
        qkd.push(Link::no_qkd());
    }
    let absent = qkd.iter().filter(|link| link.key.is_none()).count();
    let fits = match policy {
        Policy::Pqc => qkd.is_empty(),
        Policy::Qkd | Policy::Both => !qkd.is_empty() && absent == 0,
        Policy::Either => absent == 0 || (qkd.len() == 1 && qkd[0].id == "none"),
    };
    assert!(
        fits,
        "the QKD keys are those that policy {policy} permits and requires"
    );
    ordered.append(&mut qkd);
    ordered
}

/// The bound context: a fixed number of fields, followed by three for each link.
fn bound(context: &Context, session: &Secret, links: &[Link]) -> Vec<u8> {
    let mut bytes = framed(&[
        // First, so that later versions can have other fields.
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
    // For messages only: the derivation has its encoding in `prf_key`.
    let absent = if link.key.is_some() { "" } else { "-" };
    format!("{absent}{}:{}", link.kind.name(), link.id)
}

/// HMAC-SHA-384 (RFC 2104), computed into memory that is wiped.
fn prf(key: &[u8], message: &[u8]) -> Secret {
    let mut mac = Hmac::<Sha384>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    let mut output = Zeroizing::new([0; CHAIN_BYTES]);
    mac.finalize_into((&mut *output).into());
    output
}

#[cfg(test)]
mod tests;
