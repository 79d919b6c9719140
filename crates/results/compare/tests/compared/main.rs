//! Comparisons of made-up runs.

mod gates;
mod history;
mod limits;
mod made;
mod matched;
mod null;
mod paths;
mod printed;
mod set_ups;
