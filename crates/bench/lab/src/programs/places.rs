//! The search for programs: a variable's value, `PATH`, the administrator's and the distributions'
//! folders, and the folder of `make peers`.
//!
//! Root runs only programs that no other user could have written, unless a variable of Cipherbench
//! names the program or the folder of `make peers`.

use super::known;
use guard::Writers;
use nix::unistd::{User, geteuid};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// `PATH` of an ordinary user lacks these, and `ethtool` is in one of them.
const OF_ADMINISTRATOR: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The folder that `scripts/peers.sh` installs into, below a user's home, unless `PEERS` names
/// another.
const PEERS: &str = ".cache/cipherbench-peers";

/// Returns the path of a program as a lab would start it: a name is searched for, a path must lead
/// to an executable file. `None` if the program is missing, or this process refuses to run it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    search(program).found
}

/// Like [`find`], as text.
pub(crate) fn path(program: &str) -> Option<String> {
    find(program)?.into_os_string().into_string().ok()
}

/// Explains why an existing program is not run; `None` if it is run, or does not exist.
pub(crate) fn refusal(program: &str) -> Option<Refusal> {
    let Search { found, refused } = search(program);
    refused.filter(|_| found.is_none())
}

fn search(program: &str) -> Search {
    search_in(program, &variable, &Rule::of_process())
}

/// The search path of all programs that a lab starts; for root only folders that no other user
/// could have written.
#[must_use]
pub fn search_path() -> OsString {
    let rule = Rule::of_process();
    // One folder with a `:` in its name would make `join_paths` fail for all.
    let separable = |folder: &PathBuf| env::join_paths([folder]).is_ok();
    let folders = folders(&variable).into_iter();
    let allowed = folders.filter(|place| place.is_chosen || rule.check(&place.folder).is_ok());
    let folders = allowed.map(|place| place.folder).filter(separable);
    env::join_paths(folders).unwrap_or_default()
}

/// The result of a search.
#[derive(Debug, Default)]
struct Search {
    found: Option<PathBuf>,
    /// The first program found that this process does not run.
    refused: Option<Refusal>,
}

/// Why a program is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "{path} is not run as root: {}", self.reason)
    }
}

/// The rule for the programs that this process runs.
#[derive(Debug)]
enum Rule {
    /// Any program in the search path, for an ordinary user.
    Any,
    /// For root: only programs that no other user could have written.
    WrittenBy(Writers),
}

impl Rule {
    fn of_process() -> Self {
        if geteuid().is_root() {
            Self::WrittenBy(Writers::root())
        } else {
            Self::Any
        }
    }

    /// Checks a program or a folder of programs; the error is the reason for a refusal.
    fn check(&self, path: &Path) -> Result<(), String> {
        match self {
            Self::Any => Ok(()),
            // A relative path depends on the current folder.
            Self::WrittenBy(_) if path.is_relative() => {
                Err("the search path names its folder without a leading `/`".to_owned())
            }
            Self::WrittenBy(writers) => writers
                .check(path)
                .map(drop)
                .map_err(|insecure| insecure.to_string()),
        }
    }
}

/// An environment variable that is not empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The value of the program's variable.
fn named(program: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
    variable(known(program)?.variable?)
}

fn search_in(program: &str, variable: &dyn Fn(&str) -> Option<OsString>, rule: &Rule) -> Search {
    let named = named(program, variable);
    // A variable may hold a name as well as a path, as `CC` does.
    let word = named.as_deref().unwrap_or(OsStr::new(program));
    if word.as_encoded_bytes().contains(&b'/') {
        // Chosen by the variable or the campaign, so its owner does not matter.
        return Search {
            found: Some(PathBuf::from(word)).filter(|path| is_executable(path)),
            refused: None,
        };
    }
    let mut places: Vec<Place> = folders(variable)
        .iter()
        .map(|place| place.join(word))
        .collect();
    // A program that a variable names has no alternatives.
    if let (None, Some(known)) = (&named, known(program)) {
        let own = known.folders.iter().copied().map(Place::found);
        places.extend(own.map(|place| place.join(word)));
        let peers = peers(variable);
        let aliases = known.alias.iter();
        places.extend(aliases.flat_map(|alias| peers.iter().map(move |place| place.join(alias))));
    }
    let mut search = Search::default();
    // The first place with the program decides, unless root must not run it from there.
    for Place { folder, is_chosen } in places {
        let path = folder;
        if !is_executable(&path) {
            continue;
        }
        match rule.check(&path) {
            Err(reason) if !is_chosen => {
                search.refused.get_or_insert(Refusal { path, reason });
            }
            _ => {
                search.found = Some(path);
                return search;
            }
        }
    }
    search
}

/// A folder that is searched, or a file in one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    /// Whether the user chose it by a variable of Cipherbench, which any owner may then have.
    is_chosen: bool,
}

impl Place {
    fn found(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            is_chosen: false,
        }
    }

    fn join(&self, name: impl AsRef<Path>) -> Self {
        Self {
            folder: self.folder.join(name),
            ..*self
        }
    }
}

/// The folders that are searched for every program, in this order.
fn folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let path = variable("PATH");
    let mut folders: Vec<Place> = path
        .iter()
        .flat_map(env::split_paths)
        .map(Place::found)
        .collect();
    folders.extend(OF_ADMINISTRATOR.map(Place::found));
    // Last, so that the programs of the distribution come first.
    folders.extend(peers(variable));
    folders
}

/// The folders of `make peers`: the user's, and under `sudo` also the calling user's. Root does not
/// run the programs in the latter; `refusal` says so.
fn peers(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Place> {
    if let Some(folder) = variable("PEERS") {
        let folder = PathBuf::from(folder).join("bin");
        let is_chosen = true;
        return vec![Place { folder, is_chosen }];
    }
    let caller = variable("SUDO_USER").and_then(|name| name.into_string().ok());
    let caller = caller.and_then(|name| User::from_name(&name).ok().flatten());
    let homes = variable("HOME").map(PathBuf::from).into_iter();
    homes
        .chain(caller.map(|user| user.dir))
        .map(|home| Place::found(home.join(PEERS).join("bin")))
        .collect()
}

fn is_executable(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder with empty files that are executable.
    fn folder(programs: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for program in programs {
            let path = folder.path().join(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn search(program: &str, variables: &[(&str, &Path)]) -> Option<PathBuf> {
        search_by(&Rule::Any, program, variables).found
    }

    fn search_by(rule: &Rule, program: &str, variables: &[(&str, &Path)]) -> Search {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_os_str().to_owned())
        };
        search_in(program, &variable, rule)
    }

    #[test]
    fn a_variable_comes_before_the_path_and_the_path_before_the_peers() {
        let path = folder(&["gotatun"]);
        let peers = folder(&["bin/gotatun", "bin/boringtun-cli"]);
        let own = folder(&["mine"]);
        let (path, peers, mine) = (path.path(), peers.path(), own.path().join("mine"));
        let both = [("PATH", path), ("PEERS", peers)];
        assert_eq!(search("gotatun", &both), Some(path.join("gotatun")));
        let bin = peers.join("bin/boringtun-cli");
        assert_eq!(search("boringtun-cli", &both), Some(bin));
        let named = [("GOTATUN", mine.as_path()), ("PATH", path)];
        assert_eq!(search("gotatun", &named), Some(mine.clone()));
        // The variable may hold a name; a wrong path there falls back to no other program.
        let by_name = [("GOTATUN", Path::new("mine")), ("PATH", own.path())];
        assert_eq!(search("gotatun", &by_name), Some(mine));
        let wrong = [("GOTATUN", Path::new("/nonexistent/x")), ("PATH", path)];
        assert_eq!(search("gotatun", &wrong), None);
        assert_eq!(search("gotatun", &[("PATH", peers)]), None);
    }

    #[test]
    fn what_go_installed_under_its_own_name_is_found_below_the_home() {
        let home = folder(&[".cache/cipherbench-peers/bin/wireguard"]);
        let bin = home.path().join(".cache/cipherbench-peers/bin");
        let at_home = [("HOME", home.path())];
        assert_eq!(
            search("wireguard-go", &at_home),
            Some(bin.join("wireguard"))
        );
        // In another folder, another program may have this name.
        assert_eq!(search("wireguard-go", &[("PATH", bin.as_path())]), None);
    }

    #[test]
    fn files_that_cannot_be_run_are_no_programs() {
        let path = folder(&["gotatun/x", "boringtun-cli"]);
        let file = path.path().join("boringtun-cli");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        for program in ["gotatun", "boringtun-cli"] {
            assert_eq!(search(program, &[("PATH", path.path())]), None);
        }
        assert_eq!(search(file.to_str().unwrap(), &[]), None);
        let whole = path.path().join("gotatun/x");
        assert_eq!(search(whole.to_str().unwrap(), &[]), Some(whole));
    }

    #[test]
    fn the_folders_of_administrators_are_searched_too() {
        let folders = folders(&|name| (name == "PATH").then(|| "/bin:/opt/bin".into()));
        let expected = ["/bin", "/opt/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
        assert_eq!(folders, expected.map(Place::found));
    }

    /// Root's rule, with this user in place of root: only this user could have written the tests'
    /// files.
    fn of_root() -> Rule {
        Rule::WrittenBy(Writers::of_process())
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn root_runs_no_program_that_others_could_have_written() {
        let (open, own) = (folder(&["gotatun"]), folder(&["gotatun"]));
        let file = open.path().join("gotatun");
        for (path, mode) in [(open.path(), 0o777), (file.as_path(), 0o777)] {
            set_mode(path, mode);
            let search = search_by(&of_root(), "gotatun", &[("PATH", open.path())]);
            assert_eq!(search.found, None);
            let refused = search.refused.unwrap();
            assert_eq!(refused.path, file);
            let reason = refused.to_string();
            assert!(reason.contains("is not run as root") && reason.contains("chmod go-w"));
            set_mode(path, 0o755);
        }
        // A later folder's program is run, though an earlier one is refused.
        set_mode(&file, 0o757);
        let both = env::join_paths([open.path(), own.path()]).unwrap();
        let search = search_by(&of_root(), "gotatun", &[("PATH", Path::new(&both))]);
        assert_eq!(search.found, Some(own.path().join("gotatun")));
    }

    #[test]
    fn a_folder_without_a_leading_slash_is_none_of_roots() {
        let search = search_by(
            &of_root(),
            "sh",
            &[("PATH", Path::new("../../../../../bin"))],
        );
        let deep = search_by(&Rule::Any, "sh", &[("PATH", Path::new("."))]);
        assert_eq!((search.found, deep.found), (None, None));
        let of_crate = search_by(&of_root(), "Cargo.toml", &[("PATH", Path::new("."))]);
        assert!(of_crate.refused.is_none(), "it cannot be executed");
    }

    #[test]
    fn a_program_that_a_variable_names_is_run_whoever_owns_it() {
        let open = folder(&["bin/gotatun"]);
        set_mode(&open.path().join("bin"), 0o777);
        let program = open.path().join("bin/gotatun");
        for chosen in [("PEERS", open.path()), ("GOTATUN", program.as_path())] {
            let search = search_by(&of_root(), "gotatun", &[chosen]);
            assert_eq!(
                search.found.as_deref(),
                Some(program.as_path()),
                "{chosen:?}"
            );
        }
    }
}
