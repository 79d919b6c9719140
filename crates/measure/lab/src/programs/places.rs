//! The search for programs: what a variable names, `PATH`, the administrator's folders, those of
//! distributions, and the folder of `make peers`.

use super::known;
use nix::unistd::User;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An ordinary user's `PATH` lacks them, and `ethtool` is there.
const OF_ADMINISTRATOR: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where `scripts/peers.sh` installs, below a user's home, unless `PEERS` names a folder.
const PEERS: &str = ".cache/cipherbench-peers";

/// Returns the path of a program as a lab would start it: a name is searched, a path must be that
/// of an executable file. `None` if it is not here.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    find_in(program, &variable)
}

/// As [`find`], as text.
pub(crate) fn path(program: &str) -> Option<String> {
    find(program)?.into_os_string().into_string().ok()
}

/// The search path of all programs that a lab starts.
pub(crate) fn search_path() -> OsString {
    let separable = |folder: &PathBuf| env::join_paths([folder]).is_ok();
    let folders = folders(&variable).into_iter().filter(separable);
    env::join_paths(folders).unwrap_or_default()
}

/// An environment variable that is not empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// What the program's own variable names.
fn named(program: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
    variable(known(program)?.variable?)
}

fn find_in(program: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = named(program, variable);
    let word = named.as_deref().unwrap_or(OsStr::new(program));
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(|path| is_executable(path));
    }
    let mut places: Vec<PathBuf> = folders(variable)
        .iter()
        .map(|folder| folder.join(word))
        .collect();
    // A program that a variable names is no other one.
    if let (None, Some(known)) = (&named, known(program)) {
        let own = known.folders.iter().map(Path::new);
        places.extend(own.map(|folder| folder.join(word)));
        let peers = peers(variable).into_iter();
        places.extend(known.alias.iter().flat_map(|alias| {
            let peers = peers.clone();
            peers.map(move |folder| folder.join(alias))
        }));
    }
    places.into_iter().find(|path| is_executable(path))
}

/// The folders that are searched for every program, in this order.
fn folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = variable("PATH").iter().flat_map(env::split_paths).collect();
    folders.extend(OF_ADMINISTRATOR.map(PathBuf::from));
    folders.extend(peers(variable));
    folders
}

/// The folders of `make peers`: the user's, and under `sudo` also that of the user who called it.
fn peers(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(folder) = variable("PEERS") {
        return vec![PathBuf::from(folder).join("bin")];
    }
    let caller = variable("SUDO_USER").and_then(|name| name.into_string().ok());
    let caller = caller.and_then(|name| User::from_name(&name).ok().flatten());
    let homes = variable("HOME").map(PathBuf::from).into_iter();
    homes
        .chain(caller.map(|user| user.dir))
        .map(|home| home.join(PEERS).join("bin"))
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
        find_in(program, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_os_str().to_owned())
        })
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
        // It may also be a name, and is no other program where it is wrong.
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
        // In another folder the name may be another program's.
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
        assert_eq!(folders, expected.map(PathBuf::from));
    }
}
