//! Certificates: an authority that issues them, their files, their names and their validity.
//!
//! ```text
//! Authority ─► Texts ─► NAME.pem, NAME.key       certificate ─► name_of, validity_of
//! ```
//!
//! Deliberately left out: TLS, and the decision whether to trust a certificate. Both are the task
//! of `control`.

#![forbid(unsafe_code)]

mod authority;
mod files;
mod names;
mod reading;

pub use authority::{
    AUTHORITY_CERTIFICATE, Authority, CERTIFICATE_DAYS, CertificateError, DAYS_MAX, Files, Texts,
    create_authority, create_certificate, days_from_now,
};
pub use files::{ReadError, create_both, read_public, read_secret};
pub use names::{BadName, check_name};
pub use reading::{name_of, validity_of, words};
