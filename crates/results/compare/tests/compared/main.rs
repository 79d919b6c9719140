//! Comparisons of made-up runs.

mod gates;
mod made;
mod matched;
mod null;
mod paths;
mod printed;
