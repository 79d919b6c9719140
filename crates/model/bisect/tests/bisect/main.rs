//! Bisections of simulated versions of known truth.

mod contract;
mod found;
mod power;
mod resume;

use bisect::simulate::{Noise, Versions};
use bisect::{Bisection, Change, Config, Outcome};

/// Figures that hardly scatter.
const QUIET: Noise = Noise::scatter(0.001);
/// The noise of a busy machine.
const NOISY: Noise = Noise::scatter(0.03);

/// A bisection for drops of 2 %.
fn drops(candidates: usize, seed: u64) -> Bisection {
    let config = Config {
        seed,
        ..Config::new(candidates, Change::Drop, 20_000)
    };
    Bisection::new(config).expect("a configuration")
}

/// Runs a bisection for drops of 2 % to its end.
fn run(versions: &mut Versions, seed: u64) -> (Bisection, Outcome) {
    let mut bisection = drops(versions.figures.len(), seed);
    let outcome = versions.run(&mut bisection).expect("both ends build");
    (bisection, outcome)
}
