//! Sorts and groups values.

pub(crate) use stats::grouped;

/// Returns each value once, in ascending order.
pub(crate) fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}

/// Returns each value once, in the order of first occurrence.
pub(crate) fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Returns the largest of values that are at least 0; 0 without any.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}
