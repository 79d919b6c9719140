//! Reading YAML, and the mistakes that it reports.

mod declared;
mod golden;
mod reading;
