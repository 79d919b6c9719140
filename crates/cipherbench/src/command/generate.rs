//! `cipherbench generate`: manual pages and completions, from the declarations of the command line.

use crate::cli::{self, Cli, Generate};
use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::output;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// Documents that every page refers to.
const SEE_ALSO: &str = "The documents in /usr/share/doc/cipherbench, or docs/ of the sources.";

pub(crate) fn generate(arguments: &Generate) -> Result<Exit, Failure> {
    match arguments {
        Generate::Man { output } => man(output),
        Generate::Completions { shell } => {
            let script = cli::script(shell.completer()).expect("memory can be written to");
            output::done(&script)
        }
    }
}

fn man(folder: &Path) -> Result<Exit, Failure> {
    let date = date()?;
    let failed = |path: &Path, error: io::Error| {
        let help = "check the path, its owner and the disk";
        let text = format!("cannot write {}: {error}\nhelp: {help}", path.display());
        Failure::new(Exit::Usage, text)
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut program = Cli::command();
    program.build();
    let mut count = 0usize;
    let mut left = vec![program];
    while let Some(command) = left.pop() {
        let subcommands = command.get_subcommands().filter(|it| !it.is_hide_set());
        left.extend(subcommands.cloned());
        let (name, page) = page(command, &date);
        let path = folder.join(name);
        fs::write(&path, page).map_err(|error| failed(&path, error))?;
        count += 1;
    }
    output::done(&format!("wrote {count} pages to {}\n", folder.display()))
}

/// The name of a command's page, and its text.
fn page(command: Command, date: &str) -> (String, String) {
    let is_program = command.get_name() == "cipherbench";
    // With a section of a better name than `EXTRA`.
    let man = Man::new(command.after_help(None))
        .date(date)
        .source(concat!("cipherbench ", env!("CARGO_PKG_VERSION")))
        .manual("Cipherbench");
    let name = man.get_filename();
    let mut page = Vec::new();
    let written = man
        .render(&mut page)
        .and_then(|()| ending(is_program).to_writer(&mut page));
    written.expect("memory can be written to");
    let page = String::from_utf8(page).expect("pages are text");
    // Before possible values; mandoc warns of a break on each side of an empty line.
    (name, page.replace(".br\n\n.br\n", ".sp\n"))
}

/// The sections after those of the declarations.
fn ending(is_program: bool) -> Roff {
    let mut ending = Roff::new();
    if is_program {
        ending.control("SH", ["EXIT STATUS"]);
        for line in EXIT_CODES.lines().skip(1) {
            let (code, meaning) = line.trim().split_once("  ").unwrap_or_default();
            ending.control("TP", []);
            ending.text([bold(code)]);
            ending.text([roman(meaning)]);
        }
        ending.control("SH", ["SEE ALSO"]);
        ending.text([roman(SEE_ALSO)]);
    } else {
        ending.control("SH", ["SEE ALSO"]);
        ending.text([bold("cipherbench"), roman("(1). "), roman(SEE_ALSO)]);
    }
    ending
}

/// The date of the pages, `2026-12-01`.
fn date() -> Result<String, Failure> {
    // reproducible-builds.org/specs/source-date-epoch
    let seconds = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            let text = format!(
                "SOURCE_DATE_EPOCH is `{text}`\nhelp: it is a time in whole seconds since 1970, as `date +%s` prints it"
            );
            Failure::new(Exit::Usage, text)
        })?,
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs()),
    };
    let mut date = journal::time::utc(u64::saturating_mul(seconds, 1_000_000_000));
    date.truncate("2026-12-01".len());
    Ok(date)
}
