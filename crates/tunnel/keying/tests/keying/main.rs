//! Keys from their files to their epochs.

mod attack;
mod key_ring;
mod ppk;
mod rollover;
mod static_keys;
