//! Completion of the command line in a shell: the script of the shell calls the program, which
//! lists the candidates of the current word.

use super::Cli;
use campaign::{CAMPAIGNS, LABS, Shipped};
use clap::CommandFactory;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, EnvCompleter, Fish, Shells, Zsh};
use session::runs;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

/// Environment variable in which a script names its shell.
const VARIABLE: &str = "CIPHERBENCH_COMPLETE";
const PROGRAM: &str = "cipherbench";

/// Runs that are looked at for names of devices: a shell waits for the answer.
const RUNS_MAX: usize = 20;

/// Answers the script of a shell and exits, if it has called the program.
pub(crate) fn complete() {
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .complete();
}

/// Returns the script of a shell.
pub(crate) fn script(shell: &dyn EnvCompleter) -> io::Result<String> {
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell.is("zsh") {
        // zsh runs the file as the completion itself, the first time.
        script.extend(
            b"\nif [[ ${funcstack[1]} = _cipherbench ]]; then\n    \
              _clap_dynamic_completer_cipherbench\nfi\n",
        );
    }
    Ok(String::from_utf8(script).expect("the script is text"))
}

/// bash, with a script that passes words with `=` and `:` as a whole, and quotes candidates.
pub(crate) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        _variable: &str,
        _name: &str,
        _program: &str,
        _completer: &str,
        script: &mut dyn Write,
    ) -> io::Result<()> {
        script.write_all(include_bytes!("complete/cipherbench.bash"))
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        answer: &mut dyn Write,
    ) -> io::Result<()> {
        clap_complete::env::Bash.write_complete(command, words, folder, answer)
    }
}

/// Shipped campaigns, and files.
pub(super) fn campaigns() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| files(word, &[CAMPAIGNS]))
}

/// Shipped labs, and files.
pub(super) fn labs() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| files(word, &[LABS]))
}

/// Shipped campaigns and labs, and files.
pub(super) fn campaigns_and_labs() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| files(word, &[CAMPAIGNS, LABS]))
}

/// Shipped campaigns and labs, no files.
pub(super) fn examples() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let word = word.to_string_lossy();
        if word.contains('/') {
            // With the folder, as a lab is named that has the name of a campaign.
            let all = CAMPAIGNS.iter().chain(LABS);
            let all = all.map(|file| (file.file.trim_end_matches(".yaml"), file));
            all.filter(|(path, _)| path.starts_with(&*word))
                .map(|(path, file)| candidate(path, &file.description()))
                .collect()
        } else {
            shipped(&word, &[CAMPAIGNS, LABS])
        }
    })
}

/// Runs in the default folder, the newest first, and other folders.
pub(super) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let root = Path::new(journal::DEFAULT_ROOT);
        let paths = runs::paths(root);
        let typed = word.to_string_lossy();
        let paths = paths.iter().filter_map(|path| path.to_str());
        let known: Vec<_> = paths.filter(|path| path.starts_with(&*typed)).collect();
        let mut found: Vec<_> = known.iter().map(CompletionCandidate::new).collect();
        let other = PathCompleter::dir().complete(word).into_iter();
        found.extend(other.filter(|folder| {
            let path = Path::new(folder.get_value());
            // A folder with its runs in the list is no further candidate.
            path != Path::new(".") && !known.iter().any(|run| Path::new(run).starts_with(path))
        }));
        printable(found)
    })
}

/// `OLD=NEW`: names of devices in the newest runs.
pub(super) fn matches() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let word = word.to_string_lossy();
        let (old, new) = match word.split_once('=') {
            Some((old, new)) => (Some(old), new),
            None => (None, &*word),
        };
        let names = devices();
        let names = names.iter().filter(|name| name.starts_with(new));
        let pairs = names.map(|name| match old {
            Some(old) => format!("{old}={name}"),
            None => format!("{name}="),
        });
        printable(pairs.map(CompletionCandidate::new).collect())
    })
}

/// A filter for a device, of all that a gate may begin with.
pub(super) fn gates() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let names = devices();
        let filters = names.iter().map(|name| format!("dut={name}"));
        let filters = filters.filter(|filter| filter.starts_with(&*word.to_string_lossy()));
        printable(filters.map(CompletionCandidate::new).collect())
    })
}

/// Names of devices in the newest runs.
fn devices() -> Vec<String> {
    let mut names = Vec::new();
    for run in runs::paths(Path::new(journal::DEFAULT_ROOT))
        .iter()
        .take(RUNS_MAX)
    {
        for name in runs::devices(run) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// YAML files, and shipped ones by their names.
fn files(word: &OsStr, lists: &[&[Shipped]]) -> Vec<CompletionCandidate> {
    let is_yaml = |path: &Path| {
        let extension = path.extension();
        path.is_file() && extension.is_some_and(|it| it == "yaml" || it == "yml")
    };
    let mut found = shipped(&word.to_string_lossy(), lists);
    found.extend(PathCompleter::file().filter(is_yaml).complete(word));
    printable(found)
}

fn shipped(word: &str, lists: &[&[Shipped]]) -> Vec<CompletionCandidate> {
    let all = lists.iter().copied().flatten();
    let found = all.filter(|file| file.name.starts_with(word));
    found
        .map(|file| candidate(file.name, &file.description()))
        .collect()
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_owned().into()))
}

/// Names with control characters could give a terminal orders, or end a candidate early.
fn printable(mut candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    candidates.retain(|it| !it.get_value().to_string_lossy().contains(char::is_control));
    candidates
}

/// The shells that have a script.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Shell {
    /// bash 4.4 or later
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    pub(crate) const fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }
}
