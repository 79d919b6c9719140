//! Markup around figures in cells: emphasis, code, links, HTML, emoji, marks of footnotes.

use yaml::Place;

/// A cell's text and its place.
pub(super) type Text = (String, Place);

/// A cell's text without markup, and the marks of footnotes in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Clean {
    pub(super) text: String,
    pub(super) marks: Vec<String>,
}

/// HTML elements that only change how a text looks.
const ELEMENTS: [&str; 14] = [
    "b", "strong", "i", "em", "u", "code", "kbd", "span", "small", "mark", "font", "center", "br",
    "sub",
];
const ENTITIES: [(&str, &str); 14] = [
    ("&nbsp;", " "),
    ("&thinsp;", " "),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&le;", "≤"),
    ("&ge;", "≥"),
    ("&plusmn;", "±"),
    ("&ndash;", "–"),
    ("&mdash;", "—"),
    ("&asymp;", "≈"),
    ("&micro;", "µ"),
    ("&times;", "×"),
    ("&middot;", "·"),
    ("&amp;", "&"),
];
const MARKS: [char; 6] = ['*', '†', '‡', '§', '¶', '※'];
const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Whether a character marks a footnote.
pub(super) fn is_footnote_mark(c: char) -> bool {
    MARKS.contains(&c) || SUPERSCRIPTS.contains(&c)
}

/// Whether a character at the end of a name marks a footnote; stars and digits may be part of it.
pub(super) const fn is_dagger(c: char) -> bool {
    matches!(c, '†' | '‡' | '§' | '¶' | '※')
}

/// Whether a text denotes a missing figure.
pub(super) fn is_missing(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let words = [
        "n/a",
        "n.a.",
        "n.a",
        "na",
        "n/t",
        "nan",
        "null",
        "none",
        "tbd",
        "unknown",
        "not tested",
        "not measured",
        "not reached",
        "not run",
        "failed",
        "invalid",
        "skipped",
        "untested",
        "?",
        "…",
        "...",
    ];
    text.chars().all(|c| matches!(c, '-' | '–' | '—' | '−')) || words.contains(&text.as_str())
}

/// A name without markup: of a row or column.
pub(super) fn name(text: &str) -> Clean {
    clean(text, false)
}

/// The text of a cell without markup and footnotes.
pub(super) fn cell(text: &str) -> Clean {
    clean(text, true)
}

fn clean(text: &str, is_cell: bool) -> Clean {
    let (text, mut marks) = elements(&entities(text));
    let text = symbols(&emphasis(&links(&text)));
    let mut text = brackets(&text, is_cell, &mut marks);
    // Names keep their stars and superscripts.
    if is_cell {
        text = notes(&text, &mut marks);
    }
    let text = spaces(&text);
    Clean { text, marks }
}

fn entities(text: &str) -> String {
    let mut text = text.to_owned();
    // `&amp;` is the last of the list: earlier, `&amp;lt;` would become `<` in two steps.
    for (entity, sign) in ENTITIES {
        if text.contains(entity) {
            text = text.replace(entity, sign);
        }
    }
    text
}

/// Leaves out the tags of [`ELEMENTS`]. The text in `<sup>` is a mark.
fn elements(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut marks) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        kept.push_str(&rest[..at]);
        let tag = &rest[at..];
        // An end of 0 marks a bare `<`, as in the limit `<25`.
        let end = tag.find('>').map_or(0, |end| end + 1);
        let inside = tag.get(1..end.max(2) - 1).unwrap_or_default();
        let word = inside.trim_start_matches('/').trim_end_matches('/');
        let word = word.split_whitespace().next().unwrap_or_default();
        let word = word.to_lowercase();
        if word == "sup" && !inside.starts_with('/') {
            let after = &tag[end..];
            let close = after.find('<').unwrap_or(after.len());
            let mark = after[..close].trim();
            // `10<sup>9</sup>` is a power of ten and every other `<sup>` a mark of a footnote.
            if kept.trim_end().ends_with("10") {
                kept.push_str(&format!("^{mark}"))
            } else {
                marks.push(mark.to_owned())
            }
            rest = &after[close..];
        } else if end > 0 && (word == "sup" || ELEMENTS.contains(&word.as_str())) {
            // The words around a line break must not join.
            if word == "br" {
                kept.push(' ');
            }
            rest = &tag[end..];
        } else {
            // Neither a known element nor a mark: the sign is text, and the search goes on behind
            // it.
            kept.push('<');
            rest = &tag[1..];
        }
    }
    kept.push_str(rest);
    (kept, marks)
}

/// `[9.4](url)` as `9.4`; an image as nothing.
fn links(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(open) = rest[..middle].rfind('[') else {
            kept.push_str(&rest[..middle + 2]);
            rest = &rest[middle + 2..];
            continue;
        };
        let Some(close) = rest[middle..].find(')') else {
            break;
        };
        let before = &rest[..open];
        match before.strip_suffix('!') {
            Some(before) => kept.push_str(before),
            None => {
                kept.push_str(before);
                kept.push_str(&rest[open + 1..middle]);
            }
        }
        rest = &rest[middle + close + 1..];
    }
    kept.push_str(rest);
    kept
}

/// Without back-ticks and pairs of emphasis, and without the backslash before a sign.
fn emphasis(text: &str) -> String {
    let mut text = text.replace('`', "");
    for sign in ["**", "__"] {
        // Only pairs are emphasis. A single `**` is a mark of a footnote, as in `940**`.
        while text.matches(sign).count() >= 2 {
            text = text.replacen(sign, "", 2);
        }
    }
    let trimmed = text.trim();
    for sign in ['*', '_'] {
        // A single star or underscore is emphasis only around the whole text: `a_b` is a name, and
        // `940*` has a mark.
        let inside = trimmed
            .strip_prefix(sign)
            .and_then(|it| it.strip_suffix(sign));
        if let Some(inside) = inside.filter(|inside| !inside.trim().is_empty()) {
            text = inside.to_owned();
            break;
        }
    }
    for sign in ["*", "~", "_", "<", ">", "[", "]", "#"] {
        text = text.replace(&format!("\\{sign}"), sign);
    }
    text
}

/// Without emoji and their short names (`:warning:`).
fn symbols(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        kept.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_letter =
            |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '+' | '-' | '0'..='9');
        let length = after.find(|c| !is_letter(c)).unwrap_or(after.len());
        // A letter is required: `12:30:45` is a time of day.
        let is_short_name = after[length..].starts_with(':')
            && after[..length].contains(|c: char| c.is_ascii_lowercase());
        if is_short_name {
            rest = &after[length + 1..]
        } else {
            kept.push(':');
            rest = after;
        }
    }
    kept.push_str(rest);
    kept.retain(|c| !is_symbol(c));
    kept
}

/// Arrows, dingbats, emoji and their joiners. Signs of mathematics are none.
const fn is_symbol(c: char) -> bool {
    matches!(
        c,
        '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2900}'..='\u{297f}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
            | '\u{fe0f}'
            | '\u{200d}'
    )
}

/// Takes out `[1]` and `[^note]`; in cells also `[a]`.
fn brackets(text: &str, letters: bool, marks: &mut Vec<String>) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let after = &rest[at + 1..];
        let inside = after.split(']').next().unwrap_or_default();
        // `split` also returns the whole rest if no `]` follows.
        let is_closed = inside.len() < after.len();
        let is_number =
            !inside.is_empty() && inside.len() <= 3 && inside.bytes().all(|b| b.is_ascii_digit());
        let is_letter =
            letters && inside.len() == 1 && inside.bytes().all(|b| b.is_ascii_alphabetic());
        let is_mark = is_closed && (is_number || is_letter || inside.starts_with('^'));
        kept.push_str(&rest[..at]);
        if is_mark {
            marks.push(format!("[{inside}]"));
            rest = &after[inside.len() + 1..];
        } else {
            kept.push('[');
            rest = after;
        }
    }
    kept.push_str(rest);
    kept
}

/// Takes out stars, daggers and superscripts that are no exponent of ten.
fn notes(text: &str, marks: &mut Vec<String>) -> String {
    let mut kept = String::new();
    let mut mark = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        // The first superscript digit after `×10` is an exponent, and further ones continue it.
        let is_power = kept.ends_with("10") && kept.contains(['×', '·', '*']);
        let in_power = kept.ends_with(SUPERSCRIPTS);
        // `1.2 * 10^9` has a factor, and `940*` a mark.
        let is_factor = c == '*' && {
            let next = characters.clone().skip_while(|next| *next == ' ');
            next.take(2).eq(['1', '0'])
        };
        let is_superscript = SUPERSCRIPTS.contains(&c) && !is_power && !in_power;
        if (MARKS.contains(&c) && !is_factor) || is_superscript {
            mark.push(c);
            continue;
        }
        if !mark.is_empty() {
            marks.push(std::mem::take(&mut mark));
        }
        kept.push(c);
    }
    if !mark.is_empty() {
        marks.push(mark);
    }
    kept
}

/// With one blank for any white space.
fn spaces(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_left_out_of_cells() {
        for (text, expected) in [
            ("**941.43 Mbps**", "941.43 Mbps"),
            ("`939.40 Mbps`", "939.40 Mbps"),
            (":heavy_check_mark: 895 Mbps", "895 Mbps"),
            ("✅ 895 Mbps", "895 Mbps"),
            ("[9.4](https://example.org/a_b) Gbps", "9.4 Gbps"),
            ("<b>9.4</b>&nbsp;Gbps", "9.4 Gbps"),
            ("_9.4_", "9.4"),
            ("\\~4.2", "~4.2"),
            ("≥ 900", "≥ 900"),
            ("<25", "<25"),
            ("1.2×10<sup>9</sup>", "1.2×10^9"),
            ("1.2×10⁹", "1.2×10⁹"),
            ("12:30", "12:30"),
        ] {
            assert_eq!(
                cell(text),
                Clean {
                    text: expected.to_owned(),
                    marks: Vec::new()
                }
            );
        }
    }

    #[test]
    fn marks_of_footnotes_are_kept_apart() {
        for (text, expected, mark) in [
            ("9.35 Gbps [1]", "9.35 Gbps", "[1]"),
            ("9.35[^a]", "9.35", "[^a]"),
            ("940*", "940", "*"),
            ("940** Mbps", "940 Mbps", "**"),
            ("940†", "940", "†"),
            ("940¹", "940", "¹"),
            ("940<sup>2</sup>", "940", "2"),
        ] {
            let marks = vec![mark.to_owned()];
            assert_eq!(
                cell(text),
                Clean {
                    text: expected.to_owned(),
                    marks
                }
            );
        }
    }

    #[test]
    fn words_for_no_figure_are_known() {
        for text in [
            "",
            "-",
            "—",
            "N/A",
            "n/a",
            "NaN",
            "not tested",
            "not reached",
            "*failed*",
        ]
        .map(|text| cell(text).text)
        {
            assert!(is_missing(&text), "{text}");
        }
        assert!(!is_missing("fast") && !is_missing("0"));
    }
}
