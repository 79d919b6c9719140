//! Elements of several pages.

use journal::time::utc;
use maud::{Markup, html};

/// A sentence in the place of a page.
#[must_use]
pub fn sentence(text: &str) -> Markup {
    html! { section { pre { (text) } } }
}

/// A section with a table.
#[must_use]
pub fn list(id: &str, title: &str, heads: &[&str], rows: &[Markup]) -> Markup {
    let rows: Vec<&Markup> = rows.iter().collect();
    html! { section id=(id) { h2 { (title) } (table(heads, &rows)) } }
}

/// A table that shows its rows as paragraphs on a narrow screen.
#[must_use]
pub fn table(heads: &[&str], rows: &[&Markup]) -> Markup {
    html! {
        div."table list" {
            table {
                thead { tr { @for head in heads { th { (head) } } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}

/// Characters of a text that are shown without unfolding it.
pub const SHORT: usize = 84;

/// A text that is folded to its beginning if it is long or has several lines.
#[must_use]
pub fn shortened(id: &str, text: &str) -> Markup {
    // HTML shows a line break as a space, so a text of several lines is unfolded to be read.
    if text.chars().count() <= SHORT && !text.contains('\n') {
        return html! { (text) };
    }
    html! {
        details id=(id) {
            summary { (start(text)) "…" }
            p.whole-text { (text) }
        }
    }
}

/// The beginning of a text's first line.
#[must_use]
pub fn start(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    // By characters: a number of bytes could end within one.
    line.chars().take(SHORT).collect()
}

/// `2026-11-20 11:30:00`, in UTC.
#[must_use]
pub fn date(unix_s: u64) -> String {
    // The time comes from another program, so it may be of any size.
    let text = utc(unix_s.saturating_mul(1_000_000_000));
    text.trim_end_matches('Z').replace('T', " ")
}

/// A text as a part of a path.
#[must_use]
pub fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        // The unreserved characters (RFC 3986, section 2.3) need no encoding.
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// With a capital at its beginning, as a heading.
#[must_use]
pub fn heading(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase());
    // The upper case of one character may be several.
    first.into_iter().flatten().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_text_is_one_part_of_a_path() {
        assert_eq!(encoded("tcp-1500 a/b?ü"), "tcp-1500%20a%2Fb%3F%C3%BC");
    }
}
