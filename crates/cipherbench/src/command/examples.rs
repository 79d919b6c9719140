//! `cipherbench examples [NAME]`: the shipped campaigns and labs.

use crate::cli::Examples;
use crate::exit::{Exit, Failure};
use crate::output;
use campaign::Shipped;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

pub(crate) fn examples(arguments: &Examples) -> Result<Exit, Failure> {
    let Examples { name, write, force } = arguments;
    let Some(name) = name else {
        return output::done(&session::examples(output::width()));
    };
    let example = session::example(name)?;
    // The name alone is the campaign's.
    if let Some(lab) = session::namesake(example) {
        let lab = lab.file.trim_end_matches(".yaml");
        output::stderr(&format!("note: the lab of that name is `{lab}`\n"));
    }
    match write {
        None => output::done(example.text),
        Some(path) => {
            let default = || PathBuf::from(format!("{}.yaml", example.name));
            let path = path.clone().unwrap_or_else(default);
            write_to(&path, example, *force)?;
            let option = if example.file.starts_with("labs/") {
                "--lab "
            } else {
                ""
            };
            output::done(&format!(
                "wrote {path}; to see what it measures: cipherbench plan {option}{path}\n",
                path = path.display()
            ))
        }
    }
}

fn write_to(path: &Path, example: &Shipped, force: bool) -> Result<(), Failure> {
    if force {
        return output::file(path, example.text);
    }
    // By trial, not by a look first: another program may create it in the same moment.
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let written = created.and_then(|mut file| file.write_all(example.text.as_bytes()));
    written.map_err(|error| {
        let path = path.display();
        let text = if error.kind() == ErrorKind::AlreadyExists {
            format!(
                "{path} exists already\nhelp: name another file, `--write FILE`, or write over it with `--force`"
            )
        } else {
            format!("cannot write {path}: {error}\nhelp: check the path, its owner and the disk")
        };
        Failure::new(Exit::Usage, text)
    })
}
