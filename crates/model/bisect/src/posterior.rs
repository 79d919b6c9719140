//! How likely each candidate is to be the first changed one.

/// Probabilities of the candidates 1 to the last; candidate 0 is the good end.
#[derive(Debug, Clone)]
pub(crate) struct Posterior {
    /// By candidate; 0 for the good end. Sums to 1.
    of: Vec<f64>,
    /// `of`, summed up to and including the candidate: the probability that it is changed.
    changed: Vec<f64>,
}

impl Posterior {
    /// From logarithms of likelihood ratios. `measured`: a candidate, and *changed* against *not*;
    /// `ranges`: a range of candidates, and *the first changed one is among them* against *not*.
    pub(crate) fn of(
        last: usize,
        measured: impl Iterator<Item = (usize, f64)>,
        ranges: impl Iterator<Item = (std::ops::RangeInclusive<usize>, f64)>,
    ) -> Self {
        // Before any pair, each candidate is as likely as the others to be the first changed one.
        let mut logs = vec![0.0; last + 1];
        for (candidate, likelihood) in measured {
            // A candidate is changed if the first changed one is at most this one.
            for log in &mut logs[1..=candidate] {
                *log += likelihood;
            }
        }
        for (range, likelihood) in ranges {
            for log in &mut logs[range] {
                *log += likelihood;
            }
        }
        // The highest becomes exp(0): thousands of pairs would exceed the range of `exp` otherwise.
        let highest = logs[1..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut of: Vec<f64> = logs.iter().map(|log| (log - highest).exp()).collect();
        // The good end is unchanged by definition.
        of[0] = 0.0;
        let sum: f64 = of.iter().sum();
        let mut changed = Vec::with_capacity(of.len());
        let mut below = 0.0;
        for probability in &mut of {
            *probability /= sum;
            below += *probability;
            changed.push(below);
        }
        Self { of, changed }
    }

    /// The probability that a candidate has the change: that the first changed one is at most it.
    pub(crate) fn changed(&self, candidate: usize) -> f64 {
        self.changed[candidate]
    }

    /// The probability that the first changed one is above `unchanged`, and at most `changed`.
    pub(crate) fn between(&self, unchanged: usize, changed: usize) -> f64 {
        self.of[unchanged + 1..=changed].iter().sum()
    }
}
