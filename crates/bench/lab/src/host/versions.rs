//! The installed programs, with the versions that they report.

use crate::programs::{KNOWN, Use, find, find_version, said_of_itself, unfit};
use crate::sync::join;
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::thread;

/// An installed program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The version that it reports; `None` if it reports none.
    pub version: Option<String>,
    /// Its path.
    pub path: PathBuf,
    /// Why it does not serve: another maker's program of that name, or too old a version.
    pub unfit: Option<String>,
    /// Why it does not serve for simultaneous transfers in both directions, if only for these.
    pub limit: Option<String>,
}

/// Returns the installed programs that campaigns may need, by name. Asks all concurrently.
pub(super) fn installed() -> BTreeMap<String, Installed> {
    thread::scope(|scope| {
        let found = KNOWN
            .iter()
            .filter_map(|known| Some((known, located(known.name)?)));
        // All run before the first is awaited.
        let pending: Vec<_> = found
            .map(|(known, path)| {
                let asked = path.clone();
                let said = scope.spawn(move || said_of_itself(&asked, known.version));
                (known.name.to_owned(), path, said)
            })
            .collect();
        let installed = pending.into_iter().map(|(name, path, said)| {
            let said = join(said);
            let installed = Installed::of(&name, path, said.as_deref());
            (name, installed)
        });
        installed.collect()
    })
}

/// Returns the path of a program. A fleet searches its server below the user's home too.
fn located(name: &str) -> Option<PathBuf> {
    if name != "nats-server" {
        return find(name);
    }
    let home = env::var_os("HOME").map(PathBuf::from);
    let at_home = |folder: &str| {
        let file = home.as_ref()?.join(folder).join(name);
        file.is_file().then_some(file)
    };
    // The folder of the wheel first: distributions have versions that are too old.
    let of_set_up = at_home(".cache/cipherbench-tools/bin");
    of_set_up
        .or_else(|| find(name))
        .or_else(|| at_home(".local/bin"))
}

impl Installed {
    /// Derives a program's entry from its version output.
    fn of(name: &str, path: PathBuf, said: Option<&str>) -> Self {
        // A program that says nothing of itself is not refused: a trial reports its error.
        let judge = |usage| said.and_then(|said| unfit(name, said, usage));
        let version = said.and_then(find_version);
        Self {
            version: version.map(str::to_owned),
            path,
            unfit: judge(Use::Plain),
            limit: judge(Use::BothWays),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_maker_is_installed_and_unfit() {
        let of = |name, said| Installed::of(name, PathBuf::from("/usr/bin/x"), Some(said));
        let ping = of("ping", "ping (GNU inetutils) 2.4\n");
        assert_eq!(ping.version.as_deref(), Some("2.4"));
        assert!(ping.unfit.unwrap().contains("GNU inetutils"));
        let old = of("iperf3", "iperf 3.9 (cJSON 1.7.13)\n");
        assert_eq!(old.unfit, None);
        assert!(old.limit.unwrap().contains("3.11 or newer"));
        assert_eq!(Installed::of("ping", PathBuf::new(), None).version, None);
    }
}
