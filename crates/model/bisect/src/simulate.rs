//! Simulated versions of known truth, to try bisections on.

use crate::random::SplitMix64;
use crate::{Ask, BisectError, Bisection, LogRatio, Order, Outcome, Step};

/// Versions whose figures are known, on a machine with noise. A seed repeats the same figures.
#[derive(Debug, Clone)]
pub struct Versions {
    /// The true figure of each candidate.
    pub figures: Vec<f64>,
    /// Versions that do not build.
    pub broken: Vec<usize>,
    /// The machine.
    pub noise: Noise,
    random: SplitMix64,
    time: f64,
}

/// The noise of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of each figure's logarithm, that of a pair is larger by the square root
    /// of 2.
    pub scatter: f64,
    /// Share of figures that another program slows down.
    pub outliers: f64,
    /// By how much.
    pub slowed: f64,
    /// Change of the machine's speed from one figure to the next, as a logarithm.
    pub drift: f64,
}

impl Noise {
    /// Scatter alone.
    #[must_use]
    pub const fn scatter(scatter: f64) -> Self {
        Self {
            scatter,
            outliers: 0.0,
            slowed: 0.0,
            drift: 0.0,
        }
    }
}

impl Versions {
    /// `count` versions of one figure, the good end first; each change is a candidate and the
    /// factor by which it and all later ones differ.
    #[must_use]
    pub fn new(count: usize, changes: &[(usize, f64)], noise: Noise, seed: u64) -> Self {
        let figure = |at: usize| -> f64 {
            let before = changes.iter().filter(|(candidate, _)| *candidate <= at);
            before.map(|(_, factor)| factor).product()
        };
        Self {
            figures: (0..count).map(figure).collect(),
            broken: Vec::new(),
            noise,
            random: SplitMix64(seed),
            time: 0.0,
        }
    }

    /// Measures one version.
    fn figure(&mut self, candidate: usize) -> f64 {
        self.time += 1.0;
        let mut log = self.noise.scatter * self.random.normal() + self.noise.drift * self.time;
        if self.random.uniform() < self.noise.outliers {
            log += (1.0 - self.noise.slowed).ln();
        }
        self.figures[candidate] * log.exp()
    }

    /// Measures pairs.
    ///
    /// # Errors
    ///
    /// A figure has no logarithm.
    pub fn measure(&mut self, ask: &Ask) -> Result<Vec<LogRatio>, BisectError> {
        let mut pair = |order: &Order| {
            let (candidate, reference) = match order {
                Order::CandidateFirst => {
                    // In the order of the pair: the noise drifts with each figure.
                    let candidate = self.figure(ask.candidate);
                    (candidate, self.figure(ask.reference))
                }
                Order::ReferenceFirst => {
                    let reference = self.figure(ask.reference);
                    (self.figure(ask.candidate), reference)
                }
            };
            LogRatio::of(candidate, reference)
        };
        ask.pairs.iter().map(&mut pair).collect()
    }

    /// Answers what a bisection asks for; nothing if it has ended.
    ///
    /// # Errors
    ///
    /// An end does not build.
    pub fn step(&mut self, bisection: &mut Bisection) -> Result<(), BisectError> {
        let Step::Measure(ask) = bisection.step().clone() else {
            return Ok(());
        };
        let mut asked = [ask.candidate, ask.reference].into_iter();
        if let Some(broken) = asked.find(|at| self.broken.contains(at)) {
            bisection.skip(broken)
        } else {
            bisection.record(&self.measure(&ask)?)
        }
    }

    /// Runs a bisection to its end.
    ///
    /// # Errors
    ///
    /// An end does not build.
    pub fn run(&mut self, bisection: &mut Bisection) -> Result<Outcome, BisectError> {
        loop {
            if let Step::Done(outcome) = bisection.step() {
                return Ok((**outcome).clone());
            }
            self.step(bisection)?;
        }
    }
}
