//! Comparisons of made-up runs.

mod gates;
mod limits;
mod made;
mod matched;
mod null;
mod paths;
mod printed;
