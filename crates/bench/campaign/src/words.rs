//! Words that several files share.

use yaml::{Node, Reported};

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
    if program.ends_with("sshpass") {
        let help = format!("let ssh use a key or an agent: `{key}: {example}`");
        return Err(node.mistake(format!("a password has no place in {place}"), help));
    }
    Ok(words)
}
