//! Hours under one load, in words.

use campaign::plan::{BaseLoad, Soak};
use units::Ratio;
use units::human::duration_ns;

/// The load that the campaign gives, in frames/s.
pub(super) fn given_load(test: &Soak) -> Option<u64> {
    match &test.load {
        BaseLoad::Given { frames_per_s } => Some(*frames_per_s),
        // What the search may try at most is not the load.
        BaseLoad::Share { .. } => None,
    }
}

/// What all cells of a set have in common.
pub(super) fn words(test: &Soak) -> Vec<String> {
    let time = |ns: u64| duration_ns(ns as f64);
    let mut words = Vec::new();
    if let BaseLoad::Share { percent, .. } = &test.load {
        words.push(format!("load: {percent} % of the throughput"));
    }
    words.push(time(test.duration_ns));
    words.push(format!("points of {}", time(test.point_ns)));
    words.push(format!(
        "loss goal {}",
        Ratio::from_ppm(test.loss_ppm.into())
    ));
    words
}
