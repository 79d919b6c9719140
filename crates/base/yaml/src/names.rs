//! "Did you mean": the nearest of a list of names.

/// The known name that was most likely meant, if one is near enough.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let simple = simplified(name);
    known
        .into_iter()
        .map(|candidate| (distance(&simple, &simplified(candidate)), candidate))
        // Short names are near to many: of three letters one may differ.
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The help for an unknown name: the nearest of the known ones, and all of them.
#[must_use]
pub fn help(name: &str, noun: &str, known: &[&str]) -> String {
    question(nearest(name, known.iter().copied())) + &list(noun, known)
}

/// The known names: `known keys are mtu, cores`.
pub(crate) fn list(noun: &str, known: &[&str]) -> String {
    match known {
        [] => format!("no {noun} is known here"),
        [only] => format!("the only known {noun} is {only}"),
        _ => format!("known {noun}s are {}", known.join(", ")),
    }
}

/// The beginning of a help: ``did you mean `x`? ``, or nothing without a near name.
#[must_use]
pub fn question(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}

/// Case and the kind of dash are the most common errors.
fn simplified(name: &str) -> Vec<char> {
    // No known name is this long, and the comparison takes quadratic time.
    const COMPARED_CHARS: usize = 64;
    let simple = |c: char| {
        if matches!(c, '_' | ' ') {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    };
    name.chars().take(COMPARED_CHARS).map(simple).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours from `a` to `b` (optimal string
/// alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    // Three rows of the matrix are enough: a swap looks back two.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            // A swap is one mistake, though two letters differ.
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_but_not_other_words() {
        let known = ["mtu", "cores", "streams", "station_a", "aes-256-gcm"];
        let nearest = |name| nearest(name, known);
        assert_eq!(nearest("mtus"), Some("mtu"));
        assert_eq!(nearest("MTU"), Some("mtu"));
        assert_eq!(nearest("mut"), Some("mtu"));
        assert_eq!(nearest("steams"), Some("streams"));
        assert_eq!(nearest("station-a"), Some("station_a"));
        assert_eq!(nearest("AES256-GCM"), Some("aes-256-gcm"));
        assert_eq!(nearest("rate"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest(&"x".repeat(100_000)), None);
    }

    #[test]
    fn the_help_lists_the_known_names() {
        assert_eq!(
            help("mut", "key", &["mtu", "cores"]),
            "did you mean `mtu`? known keys are mtu, cores"
        );
        assert_eq!(help("rate", "key", &["mtu"]), "the only known key is mtu");
        assert_eq!(help("rate", "key", &[]), "no key is known here");
    }
}
