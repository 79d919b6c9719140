//! Counts with a verb that agrees with them.

use units::human::counted;

/// A number of things with the verb: `1 trial was`, `3 trials were`.
#[must_use]
pub fn were(count: u64, noun: &str) -> String {
    format!("{} {}", counted(count, noun), was(count))
}

/// The verb of a number of things: `was` of one, `were` of others.
#[must_use]
pub const fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_agrees_with_the_count() {
        let text = [0, 1, 2].map(|count| were(count, "trial"));
        assert_eq!(text, ["0 trials were", "1 trial was", "2 trials were"]);
    }
}
