//! Figures of versions.

use stats::Quantity;
use std::collections::BTreeMap;

/// The figures of each version.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) quantity: Option<Quantity>,
    /// Sums of logarithms, and their number.
    sums: BTreeMap<usize, (f64, u32)>,
}

impl Figures {
    pub(crate) fn add(&mut self, version: usize, quantity: Quantity, figure: f64) {
        self.quantity = Some(quantity);
        let (sum, count) = self.sums.entry(version).or_default();
        // As pairs are compared by logarithms: an arithmetic mean would give outliers more weight
        // here than in the result.
        *sum += figure.ln();
        *count += 1;
    }

    /// The geometric mean of a version's figures, for people.
    pub(crate) fn print(&self, version: usize) -> Option<String> {
        let (sum, count) = self.sums.get(&version)?;
        Some(self.quantity?.print((sum / f64::from(*count)).exp()))
    }
}
