//! The configuration file of `cipherbench encrypt`; `docs/encryptor.md` has the reference.
//!
//! The file is read into one [`Config`]; each module below reads a part of it.

mod context;
mod declared;
mod ikev2;
mod keys;
mod mode;
mod overlap;
mod peers;
mod ppk;
mod read;
mod selectors;
mod types;
mod values;

pub use declared::FILE as KEYS;
pub(crate) use declared::MTU_MIN;
pub(crate) use types::Remotes;
pub use types::{
    Config, Dscp, Encapsulation, Fault, Handshake, IdentityFiles, Ike, IkeRole, InterfaceAddress,
    KeySource, Lifetime, Mode, MssClamp, Offloads, Peer, Ppk, Privileges, Pseudowire, Qkd, Tunnel,
};
