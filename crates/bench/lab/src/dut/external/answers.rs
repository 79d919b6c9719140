//! Vendor-neutral parsing of what boxes print.

use crate::scan::{one_line, whole};

/// Longest fact in a journal, in characters.
const FACT_CHARS_MAX: usize = 200;

/// Returns the text in one line, shortened.
pub(super) fn fact(said: &str) -> String {
    one_line(said, FACT_CHARS_MAX)
}

/// Whether the text contains a whole word, ignoring case: `aes-128-gcm` does not contain `aes-128`.
pub(super) fn has_word(said: &str, word: &str) -> bool {
    // Devices differ in how they write the names of ciphers.
    let (said, word) = (said.to_lowercase(), word.to_lowercase());
    let of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    said.match_indices(&word).any(|(at, found)| {
        let before = said[..at].chars().next_back();
        let after = said[at + found.len()..].chars().next();
        !before.is_some_and(of_word) && !after.is_some_and(of_word)
    })
}

/// Returns the lines that are a name and a number.
pub(super) fn numbered_lines(said: &str) -> Vec<(String, u64)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, whole(words.next()?)?);
        let name = name.trim_end_matches([':', '=']);
        (words.next().is_none() && !name.is_empty()).then(|| (name.to_owned(), value))
    };
    said.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_one_line_and_not_long() {
        assert_eq!(fact(" Junos:\n 23.4R2 \n"), "Junos: 23.4R2");
        let long = fact(&"ä".repeat(500));
        assert_eq!(long.chars().count(), FACT_CHARS_MAX + 1);
    }

    #[test]
    fn a_word_is_found_whole() {
        let said = "  Algorithm: ESP:aes-gcm-256/None";
        assert!(has_word(said, "AES-GCM-256"));
        assert!(!has_word(said, "aes-gcm") && !has_word(said, "gcm-256"));
        assert!(has_word("enc-algorithm=aes-gcm", "aes-gcm"));
    }

    #[test]
    fn lines_of_a_name_and_a_number_are_counters() {
        let said = "esp_in 12\nesp_out: 1,234,567\ndrops = 4\ntotal 1 of 2\nname x\n\n";
        let expected = [("esp_in".to_owned(), 12), ("esp_out".to_owned(), 1_234_567)];
        assert_eq!(numbered_lines(said), expected);
    }
}
