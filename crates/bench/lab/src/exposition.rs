//! The text format of Prometheus (version 0.0.4): one sample a line.

use std::borrow::Cow;

/// One sample. Its timestamp, if it has one, is left out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample<'t> {
    pub(crate) name: &'t str,
    /// Labels with their values, as written.
    pub(crate) labels: Vec<(&'t str, Cow<'t, str>)>,
    pub(crate) value: &'t str,
}

impl Sample<'_> {
    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        labels.find_map(|(label, value)| (*label == name).then_some(&**value))
    }
}

/// The samples of a page; lines that are no sample are left out.
pub(crate) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    // Comments begin with `#`, which no name has: the name is empty then, and the line left out.
    let end = line.find(|c| !of_name(c))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside.trim_start();
        // A missing brace ends the loop by one of the `?` below.
        while !rest.starts_with('}') {
            let (label, quoted) = rest.split_once('=')?;
            let (value, after) = unquoted(quoted.trim_start().strip_prefix('"')?)?;
            labels.push((label.trim(), value));
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?;
    (!name.is_empty()).then_some(Sample {
        name,
        labels,
        value,
    })
}

/// The text up to the quotation mark, with `\\`, `\"` and `\n` replaced, and what follows.
fn unquoted(quoted: &str) -> Option<(Cow<'_, str>, &str)> {
    // Text without an escape, the usual case, stays borrowed.
    let mut replaced: Option<String> = None;
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let value = replaced.map_or(Cow::Borrowed(&quoted[..at]), Cow::Owned);
                return Some((value, &quoted[at + 1..]));
            }
            '\\' => {
                let text = replaced.get_or_insert_with(|| quoted[..at].to_owned());
                text.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                });
            }
            other => {
                if let Some(text) = &mut replaced {
                    text.push(other);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_have_names_labels_and_values() {
        let text = "# HELP node_load1 1m load average.\n\
                    # TYPE node_load1 gauge\n\
                    node_load1 0.21\n\
                    \n\
                    http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\
                    msdos_file_access{path=\"C:\\\\DIR\\\\F\\\"I, L\\\"E.TXT\", note = \"a\\nb\" ,} 1.458e+09\n\
                    something_weird{problem=\"division by zero\"} +Inf -3982045\n\
                    empty{} 7\n";
        let found: Vec<_> = samples(text).collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!((found[0].name, found[0].value), ("node_load1", "0.21"));
        assert_eq!(found[1].label("code"), Some("200"));
        assert_eq!((found[1].value, found[1].label("cod")), ("1027", None));
        assert_eq!(found[2].label("path"), Some("C:\\DIR\\F\"I, L\"E.TXT"));
        assert_eq!(found[2].label("note"), Some("a\nb"));
        assert_eq!(found[3].value, "+Inf");
        assert_eq!((found[4].value, found[4].labels.len()), ("7", 0));
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        for line in [
            "",
            "#",
            "name",
            "<html><body>404</body></html>",
            "name{label=\"never ends",
            "name{label} 1",
            "name{a=\"1\" 5",
        ] {
            assert_eq!(samples(line).next(), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_printed_samples_are_found(
            any in ".*",
            name in "[a-z_:][a-z0-9_:]{0,9}",
            label in "[a-z_][a-z0-9_]{0,9}",
            value in "[^\r]{0,9}",
            number: u64,
        ) {
            let _ = samples(&any).count();
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            prop_assume!(escaped.lines().count() <= 1);
            let text = format!("{name}{{{label}=\"{escaped}\"}} {number}\n");
            let found: Vec<_> = samples(&text).collect();
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].name, &name);
            prop_assert_eq!(found[0].label(&label), Some(&*value));
            prop_assert_eq!(found[0].value, number.to_string());
        }
    }
}
