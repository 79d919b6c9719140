//! The simulator of KMEs as its SAEs see it: asked by curl, whose HTTP and TLS are not ours, and by
//! clients of ETSI GS QKD 014 that others wrote; judged by schemas that were written from the
//! standard.

mod calls;
mod faults;
mod independent;
mod lab;
mod refusals;
mod schema;
mod service;
