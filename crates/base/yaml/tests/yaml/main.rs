//! Reading YAML, and the mistakes that it reports.

mod golden;
mod reading;
