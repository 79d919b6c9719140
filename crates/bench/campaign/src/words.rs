//! Words that several files share.

use std::path::PathBuf;
use yaml::{Node, Reported};

/// Refuses control characters: in a configuration file one could begin a new line, so no journal
/// with one is resumed.
pub(crate) fn printable(node: Node<'_>, text: &str) -> Result<(), Reported> {
    if text.chars().any(char::is_control) {
        return Err(node.mistake(
            "a control character is in it",
            "write one line, without tabs",
        ));
    }
    Ok(())
}

/// Reads a path to a file.
pub(crate) fn path(node: Node<'_>, path: PathBuf) -> Result<PathBuf, Reported> {
    printable(node, &path.to_string_lossy()).map(|()| path)
}

/// Reads the program and its arguments in front of a command, from that key. For messages,
/// `example` is a value, `without` the meaning of leaving it out, and `place` the kind of file.
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
    printable(node, &words.concat())?;
    if program.ends_with("sshpass") {
        let help = format!("let ssh use a key or an agent: `{key}: {example}`");
        return Err(node.mistake(format!("a password has no place in {place}"), help));
    }
    Ok(words)
}
