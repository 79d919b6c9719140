//! Certificates: an authority that issues them, their files, their names and their validity.
//!
//! ```text
//! Authority ─► Texts ─► NAME.pem, NAME.key       certificate ─► name_of, validity_of
//! Authorities + chain of a peer ─► Certified: its key, and whose it is
//! ```
//!
//! Deliberately left out: TLS, which verifies certificates itself and is the task of `control`, and
//! IKE, which compares the certified names with the configured peer.

#![forbid(unsafe_code)]

mod authority;
mod chain;
mod files;
mod names;
mod reading;

pub use authority::{
    AUTHORITY_CERTIFICATE, Authority, CERTIFICATE_DAYS, CertificateError, DAYS_MAX, Files, Texts,
    create_authority, create_certificate, days_from_now,
};
pub use chain::{
    Authorities, Certified, CertifiedName, certificates_of_pem, certified, key_of_pem, of_chain,
};
pub use files::{ReadError, create_both, read_public, read_secret};
pub use names::{BadName, check_name};
pub use reading::{name_of, validity_of, words};
