//! Words of failed checks: the size of a difference, and the remedy.

use journal::record::Explanation;
use units::human;

/// `11.6 MB (35 %)`: a difference, and its share of the expected.
pub(crate) fn size(difference: u64, expected: u64, words: fn(f64) -> String) -> String {
    let words = words(difference as f64);
    match expected {
        0 => words,
        _ => format!("{words} ({})", percent(difference, expected)),
    }
}

/// As [`size`], of things that have no unit: `120 packets (0.4 %)`.
pub(crate) fn count(difference: u64, expected: u64, noun: &str) -> String {
    let words = human::counted(difference, noun);
    match expected {
        0 => words,
        _ => format!("{words} ({})", percent(difference, expected)),
    }
}

/// `35 %`, `0.4 %`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match percent {
        _ if part > 0 && percent < 0.1 => "< 0.1 %".to_owned(),
        _ if percent < 9.95 => format!("{} %", human::number((percent * 10.0).round() / 10.0)),
        _ => format!("{percent:.0} %"),
    }
}

/// Advice after which the trial is repeated as it was planned.
pub(crate) fn then_repeat(advice: &str) -> String {
    format!("{advice}, then `cipherbench resume RUN --invalid`")
}

/// As [`then_repeat`], with a remedy if the check fails again.
pub(crate) fn then_repeat_or(advice: &str, otherwise: &str) -> String {
    format!("{}; if it recurs, {otherwise}", then_repeat(advice))
}

/// The failure of a check that saw nothing of its subject, and so proves nothing. `what` is a
/// sentence behind "no": `frame was sent`.
pub(crate) fn nothing_seen(seen: u64, what: &str) -> Option<Explanation> {
    (seen == 0).then(|| {
        Explanation::new(
            format!("no {what}, so nothing is proven"),
            "the device went away or carries nothing, or nothing was sent to it",
            then_repeat("look whether the device runs and what it does with these packets"),
        )
    })
}

/// The first of several differences, and the number of the others.
pub(crate) fn first_of(differences: &[String]) -> String {
    match differences {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first}, and {} more", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_its_size_and_share() {
        assert_eq!(size(11_600_000, 33_200_000, human::data), "11.6 MB (35 %)");
        assert_eq!(size(64, 0, human::data), "64 B");
        assert_eq!(count(1, 3000, "packet"), "1 packet (< 0.1 %)");
        assert_eq!(count(12, 1000, "packet"), "12 packets (1.2 %)");
        assert_eq!(percent(9_960, 100_000), "10 %");
        assert_eq!(percent(0, 0), "0 %");
    }

    #[test]
    fn of_several_differences_the_first_is_named() {
        let differences = ["a".to_owned(), "b".to_owned()];
        assert_eq!(first_of(&differences[..1]), "a");
        assert_eq!(first_of(&differences), "a, and 1 more");
    }
}
