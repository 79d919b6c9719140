//! Words that several texts share, and values as cell ids have them.

use std::fmt::Display;
use std::time::Duration;
use yaml::{Node, Reported};

/// The program and its arguments in front of a command, under that key. `example` is one, `without`
/// what it means to leave it out, and `place` what the file is.
pub(crate) fn command_prefix(
    node: Node<'_>,
    key: &str,
    (example, without, place): (&str, &str, &str),
) -> Result<Vec<String>, Reported> {
    let words: Vec<String> = node.text()?.split_whitespace().map(str::to_owned).collect();
    let Some(program) = words.first() else {
        let help = format!("for example `{example}`; leave it out for {without}");
        return Err(node.mistake(format!("`{key}` is empty"), help));
    };
    if program.ends_with("sshpass") {
        let help = format!("let ssh use a key or an agent: `{key}: {example}`");
        return Err(node.mistake(format!("a password has no place in {place}"), help));
    }
    Ok(words)
}

/// `on` or `off`.
pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A time without the blank, and without characters that separate the parts of an id.
pub(crate) fn compact_time(time: Duration) -> String {
    compact(&units::time::print(time)).replace('µ', "u")
}

/// A rate or size, likewise.
pub(crate) fn compact(value: &impl Display) -> String {
    value
        .to_string()
        .replace(' ', "")
        .replace("bit/s", "bps")
        .replace("frames/s", "fps")
}
