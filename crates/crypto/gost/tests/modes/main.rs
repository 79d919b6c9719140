//! Modes, with every kernel of this machine: official vectors, RustCrypto, the distribution's
//! OpenSSL engine, and refusals.

mod agreement;
mod composed;
mod openssl;
mod refusals;
mod support;
mod vectors;
