//! Rates by layer, sizes and durations: parse and print.

#![forbid(unsafe_code)]
