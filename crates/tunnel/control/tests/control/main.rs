//! Two control planes over loopback, with real certificates, TLS and key rings; and peers that are
//! none of ours.

mod agreement;
mod hostile;
mod identities;
mod many;
mod quantum;
mod refusals;
mod support;
