//! Reads the program of a DUT: its path or its versions, the command that builds it, and its
//! environment.

use crate::keys::seconds;
use plan::{Build, Software, is_variable, nanos};
use std::collections::BTreeMap;
use std::path::Path;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

/// Longest name of a version, so that names of DUTs stay readable.
const VERSION_CHARS_MAX: usize = 40;
/// Longest build command and longest value of a variable.
const WORDS_CHARS_MAX: usize = 4000;
/// Most files and folders that a build is made from.
const SOURCES_MAX: usize = 100;

/// The keys of every DUT that starts a program.
#[rustfmt::skip]
pub(super) const SOFTWARE: Key = Key::group("(programs)", &[
    Key::new("program", Value::Any(&[Value::Text, Value::Entries(&Value::Text)]),
        Depends("the installed one"),
        "Path of the program to measure, relative to the campaign, or a name that is searched for. \
         `{ old: ./a, new: ./b }` measures versions side by side, each a DUT").words("path or map"),
    Key::new("build", Value::Any(&[Value::Text, Value::Map(BUILD)]), Depends("none"),
        "Command that leaves the program at its path, run once per version before anything is \
         measured, or a map").words("command or map").range("with `program`"),
    Key::new("environment", Value::Entries(&Value::Text), Depends("none"),
        "Environment variables of the program: `{ GOGC: \"off\" }`").words("map")
        .range("not `PATH` and `LC_ALL`"),
]);

/// Keys of `build`.
#[rustfmt::skip]
const BUILD: &[Key] = &[
    Key::new("command", Value::Text, Required,
        "The command, for `sh -c` in the campaign's folder. `CIPHERBENCH_PROGRAM` has the path at \
         which it leaves the program, `CIPHERBENCH_VERSION` the version's name"),
    LIMIT,
    Key::new("sources", Value::OneOrMany(&Value::Text), Depends("none"),
        "Files and folders that decide what is built: as long as none changes, the program of an \
         earlier build is used").words("path or list").range("100"),
];

#[rustfmt::skip]
const LIMIT: Key = Key::new("limit", Value::Time(seconds(1), seconds(86_400)), Default("10 min"),
    "Longest time of one build").range("1 s to 24 h");

/// A version: what is added to the DUT's name if there are several, and its program.
pub(super) type Version = (String, Software);

/// The versions of a DUT's program; one without a name if the campaign names none.
pub(super) fn read(map: &Map<'_>) -> Result<Vec<Version>, Reported> {
    let folder = folder_of(map.node());
    let programs = map.with_default("program", Vec::new(), |node| read_programs(node, &folder));
    let build = map.with_default("build", None, |node| read_build(node, &folder).map(Some));
    let environment = map.with_default("environment", BTreeMap::new(), read_environment);
    let (programs, build, environment) = (programs?, build?, environment?);
    check_build(map, &programs, build.is_some())?;
    let common = Software {
        build,
        environment,
        ..Software::default()
    };
    if programs.is_empty() {
        return Ok(vec![(String::new(), common)]);
    }
    let is_alone = programs.len() == 1;
    let versions = programs.into_iter().map(|(version, program)| {
        let suffix = match &version {
            Some(name) if !is_alone => format!(" {name}"),
            _ => String::new(),
        };
        let software = Software {
            version,
            program: Some(program.value),
            ..common.clone()
        };
        (suffix, software)
    });
    Ok(versions.collect())
}

/// A program, with its name if it is a version.
type Named = (Option<String>, Spanned<String>);

fn read_programs(node: Node<'_>, folder: &str) -> Result<Vec<Named>, Reported> {
    if !node.is_map() {
        return match node.text() {
            Ok(_) => Ok(vec![(None, read_path(node, folder)?)]),
            Err(reported) => Err(reported),
        };
    }
    let programs = node.entries(|name, value| {
        let path = read_path(value, folder);
        check_version(&name, value)?;
        Ok((Some(name.value.to_owned()), path?))
    })?;
    if programs.is_empty() {
        let help = "write `{ old: ./a, new: ./b }`, a path, or remove the key";
        return Err(node.mistake("no version is given", help));
    }
    Ok(programs)
}

/// A version's name becomes part of the DUT's, and of ids.
pub(super) fn check_version(name: &Spanned<&str>, value: Node<'_>) -> Result<(), Reported> {
    let fits = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    let length = name.value.chars().count();
    if (1..=VERSION_CHARS_MAX).contains(&length) && name.value.chars().all(fits) {
        return Ok(());
    }
    let what = format!("a version cannot be named `{}`", name.value);
    let help = format!("use up to {VERSION_CHARS_MAX} letters, digits and - _ . +");
    Err(value.mistake_at(&name.place, what, help))
}

/// A path, relative to the campaign's folder; a word without `/` is a name.
pub(super) fn read_path(node: Node<'_>, folder: &str) -> Result<Spanned<String>, Reported> {
    let text = node.text()?;
    if text.is_empty() || text.contains(char::is_control) || text.ends_with('/') {
        let help = "write `./NAME` for a file next to the campaign, a whole path, or the name of an \
                    installed program";
        return Err(node.mistake(format!("`{}` is no program", text.escape_debug()), help));
    }
    Ok(node.spanned(in_folder(text, folder)))
}

fn in_folder(path: &str, folder: &str) -> String {
    if path.contains('/') {
        // An absolute path replaces the folder.
        Path::new(folder).join(path).to_string_lossy().into_owned()
    } else {
        path.to_owned()
    }
}

/// The folder of the campaign's file.
pub(super) fn folder_of(node: Node<'_>) -> String {
    let file = node.place().file;
    let folder = Path::new(file.as_ref()).parent();
    folder.map_or_else(String::new, |folder| folder.to_string_lossy().into_owned())
}

fn read_build(node: Node<'_>, folder: &str) -> Result<Build, Reported> {
    let build = |command: Node<'_>, limit_ns, sources| {
        Ok(Build {
            command: read_command(command)?,
            folder: folder.to_owned(),
            limit_ns,
            sources,
        })
    };
    if !node.is_map() {
        let limit = yaml::defaults(&[LIMIT], |map| map.get("limit"));
        return build(node, nanos(limit), Vec::new());
    }
    node.keys(BUILD, |map| {
        let command = map.required("command");
        let (limit, sources) = (
            map.get("limit"),
            map.with_default("sources", Vec::new(), |node| read_sources(node, folder)),
        );
        build(command?, nanos(limit?), sources?)
    })
}

pub(super) fn read_command(node: Node<'_>) -> Result<String, Reported> {
    // A block of YAML ends in a line feed, which is no part of the command.
    let command = node.text()?.trim_end();
    let chars = command.chars().count();
    if (1..=WORDS_CHARS_MAX).contains(&chars) {
        return Ok(command.to_owned());
    }
    let help = format!("write 1 to {WORDS_CHARS_MAX}, or put them into a script");
    Err(node.mistake(format!("a command of {chars} characters"), help))
}

fn read_sources(node: Node<'_>, folder: &str) -> Result<Vec<String>, Reported> {
    let sources = node.one_or_many(|item| {
        let text = item.text()?;
        if text.is_empty() || text.contains(char::is_control) {
            let what = format!("`{}` is no file or folder", text.escape_debug());
            return Err(item.mistake(what, "write a path, relative to the campaign's folder"));
        }
        Ok(Path::new(folder).join(text).to_string_lossy().into_owned())
    })?;
    if sources.len() > SOURCES_MAX {
        let what = format!("the list has more than {SOURCES_MAX} paths");
        return Err(node.mistake(what, "name the folder that has them"));
    }
    Ok(sources)
}

fn read_environment(node: Node<'_>) -> Result<BTreeMap<String, String>, Reported> {
    let variables = node.entries(|name, value| {
        if !is_variable(name.value) {
            let (what, help) = match name.value {
                "PATH" | "LC_ALL" => (
                    format!("`{}` cannot be set", name.value),
                    "every program of a run gets the same search path and language",
                ),
                other => (
                    format!("`{other}` is no name of an environment variable"),
                    "use letters, digits and `_`, and no digit first",
                ),
            };
            return Err(value.mistake_at(&name.place, what, help));
        }
        let text = value.text()?;
        if text.contains(char::is_control) || text.chars().count() > WORDS_CHARS_MAX {
            let what = format!("the value of `{}` cannot be passed on", name.value);
            let help = format!("use up to {WORDS_CHARS_MAX} characters in one line");
            return Err(value.mistake(what, help));
        }
        Ok((name.value.to_owned(), text.to_owned()))
    })?;
    Ok(variables.into_iter().collect())
}

/// A build needs a path at which it leaves each program.
fn check_build(map: &Map<'_>, programs: &[Named], is_built: bool) -> Result<(), Reported> {
    if !is_built {
        return Ok(());
    }
    let node = map.optional("build").unwrap_or(map.node());
    if programs.is_empty() {
        let help = "write the path at which the command leaves the program as `program`";
        return Err(node.mistake("`build` makes a program, and there is no `program`", help));
    }
    let named = programs.iter().find(|(_, path)| !path.value.contains('/'));
    match named {
        None => Ok(()),
        Some((_, name)) => {
            let what = format!("`{}` is a name, and `build` leaves a file", name.value);
            let help = format!("write a path: `./{}`", name.value);
            Err(node.mistake_at(&name.place, what, help))
        }
    }
}
