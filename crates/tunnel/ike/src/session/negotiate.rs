//! Proposals: offers, and the choice of one (RFC 7296 section 2.7).

use super::{ChildSuite, IkeSuite};
use crate::crypto::{Cipher, Integrity, KeMethodKind};
use crate::message::{
    AddressRange, Encryption, IntegrityId, Proposal, Protocol, Selector, SequenceNumbers,
    Transform, TransformType,
};

/// An algorithm 0 of these types means none.
const MAY_BE_NONE: [TransformType; 2] = [TransformType::INTEGRITY, TransformType::KEY_EXCHANGE];

fn protection(cipher: Cipher) -> Vec<Transform> {
    let kind = TransformType::ENCRYPTION;
    match cipher {
        Cipher::AesGcm16 { key_bits } => {
            vec![Transform::with_key_bits(
                kind,
                Encryption::AES_GCM_16.0,
                key_bits,
            )]
        }
        Cipher::ChaCha20Poly1305 => {
            vec![Transform::new(kind, Encryption::CHACHA20_POLY1305.0)]
        }
        Cipher::AesCbc {
            key_bits,
            integrity,
        } => {
            let id = match integrity {
                Integrity::HmacSha1 => IntegrityId::HMAC_SHA1_96,
                Integrity::HmacSha256 => IntegrityId::HMAC_SHA2_256_128,
                Integrity::HmacSha384 => IntegrityId::HMAC_SHA2_384_192,
                Integrity::HmacSha512 => IntegrityId::HMAC_SHA2_512_256,
            };
            vec![
                Transform::with_key_bits(kind, Encryption::AES_CBC.0, key_bits),
                Transform::new(TransformType::INTEGRITY, id.0),
            ]
        }
    }
}

impl IkeSuite {
    fn transforms(self) -> Vec<Transform> {
        let mut all = protection(self.cipher);
        all.push(Transform::new(TransformType::PRF, self.prf.id().0));
        let exchange = self.exchange.id().0;
        all.push(Transform::new(TransformType::KEY_EXCHANGE, exchange));
        all.extend(additional(&self.additional));
        all
    }
}

/// Types 6 to 12 are those of the additional key exchanges (RFC 9370 section 2.2.1).
fn additional(methods: &[Option<KeMethodKind>]) -> impl Iterator<Item = Transform> {
    let kinds = (TransformType::ADDITIONAL_KE_1.0..).map(TransformType);
    kinds
        .zip(methods.iter().flatten())
        .map(|(kind, method)| Transform::new(kind, method.id().0))
}

impl ChildSuite {
    fn transforms(self) -> Vec<Transform> {
        let mut all = protection(self.cipher);
        let esn = if self.esn {
            SequenceNumbers::BITS_64
        } else {
            SequenceNumbers::BITS_32
        };
        all.push(Transform::new(TransformType::SEQUENCE_NUMBERS, esn.0));
        let exchange = self.exchange.map(|it| it.id().0);
        all.extend(exchange.map(|id| Transform::new(TransformType::KEY_EXCHANGE, id)));
        all.extend(additional(&self.additional));
        all
    }
}

/// Offers of IKE SAs; `spi` is empty in IKE_SA_INIT.
pub(super) fn offer_ike(suites: &[IkeSuite], spi: &[u8]) -> Vec<Proposal> {
    let transforms = suites.iter().map(|suite| suite.transforms());
    numbered(transforms, Protocol::IKE, spi)
}

pub(super) fn offer_child(suites: &[ChildSuite], spi: u32) -> Vec<Proposal> {
    let transforms = suites.iter().map(|suite| suite.transforms());
    numbered(transforms, Protocol::ESP, &spi.to_be_bytes())
}

fn numbered(
    transforms: impl Iterator<Item = Vec<Transform>>,
    protocol: Protocol,
    spi: &[u8],
) -> Vec<Proposal> {
    let proposal = |(number, transforms)| Proposal {
        number,
        protocol,
        spi: spi.to_vec(),
        transforms,
    };
    (1..).zip(transforms).map(proposal).collect()
}

/// The first suite of ours that a proposal of the peer permits, with the answer.
pub(super) fn choose_ike(ours: &[IkeSuite], offers: &[Proposal]) -> Option<(IkeSuite, Proposal)> {
    choose(ours, offers, Protocol::IKE, |suite| suite.transforms())
}

/// The same for a child SA.
pub(super) fn choose_child(
    ours: &[ChildSuite],
    offers: &[Proposal],
) -> Option<(ChildSuite, Proposal)> {
    choose(ours, offers, Protocol::ESP, |suite| suite.transforms())
}

fn choose<S: Copy>(
    ours: &[S],
    offers: &[Proposal],
    protocol: Protocol,
    transforms: impl Fn(S) -> Vec<Transform>,
) -> Option<(S, Proposal)> {
    ours.iter().find_map(|suite| {
        let wanted = transforms(*suite);
        let mut offers = offers.iter().filter(|it| it.protocol == protocol);
        offers.find_map(|offer| Some((*suite, accept(offer, &wanted)?)))
    })
}

/// The answer to an offer: one transform of each type in it. `None`: not with these transforms.
fn accept(offer: &Proposal, wanted: &[Transform]) -> Option<Proposal> {
    let mut kinds: Vec<TransformType> = offer.transforms.iter().map(|it| it.kind).collect();
    kinds.dedup();
    kinds.sort_unstable();
    kinds.dedup();
    if !wanted.iter().all(|it| kinds.contains(&it.kind)) {
        return None;
    }
    let mut transforms = Vec::new();
    for kind in kinds {
        match wanted.iter().find(|it| it.kind == kind) {
            Some(transform) => {
                offer.transforms.contains(transform).then_some(())?;
                transforms.push(transform.clone());
            }
            // Not wanted: only if the peer offers to do without.
            None => {
                let none = Transform::new(kind, 0);
                let is_optional = MAY_BE_NONE.contains(&kind) || kind.0 > 5;
                (is_optional && offer.transforms.contains(&none)).then_some(())?;
                transforms.push(none);
            }
        }
    }
    Some(Proposal {
        transforms,
        ..offer.clone()
    })
}

/// The suite that the peer chose of ours, and its proposal; `None` if it was not offered.
pub(super) fn chosen_ike(ours: &[IkeSuite], answer: &[Proposal]) -> Option<IkeSuite> {
    let (proposal, suite) = chosen(ours, answer)?;
    let (_, same) = choose_ike(&[suite], answer)?;
    (same.transforms.len() == proposal.transforms.len()).then_some(suite)
}

/// The same for a child SA, with the peer's SPI.
pub(super) fn chosen_child(ours: &[ChildSuite], answer: &[Proposal]) -> Option<(ChildSuite, u32)> {
    let (proposal, suite) = chosen(ours, answer)?;
    let (_, same) = choose_child(&[suite], answer)?;
    let spi = u32::from_be_bytes(proposal.spi.as_slice().try_into().ok()?);
    (same.transforms.len() == proposal.transforms.len()).then_some((suite, spi))
}

fn chosen<'a, S: Copy>(ours: &[S], answer: &'a [Proposal]) -> Option<(&'a Proposal, S)> {
    let [proposal] = answer else { return None };
    let at = usize::from(proposal.number).checked_sub(1)?;
    Some((proposal, *ours.get(at)?))
}

/// The offered selectors narrowed to the configured ones (RFC 7296 section 2.9).
pub(super) fn narrow(offered: &[Selector], ours: &[AddressRange]) -> Vec<AddressRange> {
    let mut narrowed = Vec::new();
    for selector in offered {
        let Selector::Range(range) = selector else {
            continue;
        };
        for own in ours {
            if let Some(both) = range.intersect(own)
                && !narrowed.contains(&both)
            {
                narrowed.push(both);
            }
        }
    }
    // The list's length has one byte.
    narrowed.truncate(u8::MAX.into());
    narrowed
}

pub(super) fn selectors(ranges: &[AddressRange]) -> Vec<Selector> {
    ranges.iter().map(|range| Selector::Range(*range)).collect()
}

/// The peer's answer, if each selector is within the offered ones.
pub(super) fn within(answer: &[Selector], offered: &[AddressRange]) -> Option<Vec<AddressRange>> {
    let range = |selector: &Selector| match selector {
        Selector::Range(range) if offered.iter().any(|it| it.intersect(range) == Some(*range)) => {
            Some(*range)
        }
        _ => None,
    };
    answer.iter().map(range).collect()
}
