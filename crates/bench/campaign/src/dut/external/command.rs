//! Commands of boxes, and names of their output.

use plan::{COMMAND_CHARS_MAX, Placeholder, command_fits, fill_in};
use strum::VariantArray;
use yaml::{Node, Reported, Spanned};

const NAME_CHARS_MAX: usize = 40;

/// Reads a command with known placeholders.
pub(super) fn read_command(node: Node<'_>) -> Result<String, Reported> {
    // A block of YAML ends in a line feed, which is no part of the command.
    let command = node.text()?.trim_end();
    if !command_fits(command) {
        let chars = command.chars().count();
        let what = format!("a command of {chars} characters");
        let help = format!("write 1 to {COMMAND_CHARS_MAX}, or put them into a script");
        return Err(node.mistake(what, help));
    }
    // Filled with nothing, only to find unknown placeholders before a run begins.
    match fill_in(command, |_| String::new()) {
        Ok(_) => Ok(command.to_owned()),
        Err(word) => {
            let known = Placeholder::VARIANTS.iter();
            let known: Vec<_> = known.map(|known| format!("{{{}}}", known.name())).collect();
            let what = format!("`{{{word}}}` stands for nothing here");
            let help = format!("commands may have {}", known.join(", "));
            Err(node.mistake(what, help))
        }
    }
}

/// Checks the name of `what`, as journals and tables have it.
pub(super) fn read_name(key: &Spanned<&str>, value: Node<'_>, what: &str) -> Result<(), Reported> {
    let name = key.value;
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(fits) {
        let what = format!("{what} cannot be named `{name}`");
        let help = format!("use up to {NAME_CHARS_MAX} letters, digits and _ - .");
        return Err(value.mistake_at(&key.place, what, help));
    }
    Ok(())
}
