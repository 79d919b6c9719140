//! Groups of values that share a key.

/// Groups values by key, in the order of the keys' first occurrence.
pub fn grouped<K: PartialEq, V>(values: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in values {
        // A linear search needs neither an order nor a hash of the keys, and groups are few.
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, own)) => own.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
