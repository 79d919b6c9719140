//! Tests of the KME simulator through its interface, with curl and independent clients of ETSI GS
//! QKD 014 as callers. Schemas written from the standard validate its answers.

mod calls;
mod declared;
mod faults;
mod independent;
mod lab;
mod refusals;
mod schema;
mod service;
