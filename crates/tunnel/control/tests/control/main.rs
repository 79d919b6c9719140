//! Two control planes over loopback, with real certificates, TLS and key rings; and foreign peers.

mod agreement;
mod attack;
mod flood;
mod hostile;
mod identities;
mod many;
mod quantum;
mod refusals;
mod renewal;
mod support;
