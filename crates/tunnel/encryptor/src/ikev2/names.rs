//! Identities in messages.

use ike::message::{Identity, IdentityType};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An identity as the configuration has it.
pub(super) fn shown(identity: &Identity) -> String {
    let data = identity.data.as_slice();
    let v4 = <[u8; 4]>::try_from(data).ok();
    let v6 = <[u8; 16]>::try_from(data).ok();
    match identity.kind {
        IdentityType::IPV4_ADDR => v4.map(|it| Ipv4Addr::from(it).to_string()),
        IdentityType::IPV6_ADDR => v6.map(|it| Ipv6Addr::from(it).to_string()),
        IdentityType::DER_ASN1_DN => Some("its subject".to_owned()),
        _ => None,
    }
    .unwrap_or_else(|| String::from_utf8_lossy(data).into_owned())
}
