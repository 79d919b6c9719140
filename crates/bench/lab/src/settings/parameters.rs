//! Kernel parameters of the network (sysctl(8)) from the journal's header, watched with the path.
//!
//! inotify(7) reports when a program writes a parameter, and then all are read again. Parameters
//! that exist once per machine are hidden or read-only in a network namespace, so their files are
//! opened before the station enters its namespace.

use crate::host::SYSCTLS;
use crate::procfs::sysctl_path;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;

/// More than any value has.
const VALUE_BYTES: usize = 256;
/// The mode bit without which nobody can write a file.
const OWNER_WRITES: u32 = 0o200;

type Files = BTreeMap<&'static str, Arc<File>>;
type Values = BTreeMap<&'static str, String>;

/// Open parameter files of this process's network namespace, without parameters that the kernel
/// lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParameterFiles(Files);

impl ParameterFiles {
    /// Opens the files.
    pub(crate) fn open() -> Self {
        let names = SYSCTLS.iter().filter(|name| name.starts_with("net."));
        // Kept open: a path would lead to the namespace of the thread that opens it.
        let files = names.filter_map(|name| {
            let file = File::open(sysctl_path(name)).ok()?;
            Some((*name, Arc::new(file)))
        });
        Self(files.collect())
    }

    /// Replaces the parameters that this namespace lacks or cannot write by those of the `machine`.
    fn with_those_of(mut self, machine: &Self) -> Self {
        let is_own = |file: &Arc<File>| {
            let found = file.metadata();
            found.is_ok_and(|found| found.permissions().mode() & OWNER_WRITES != 0)
        };
        for (name, file) in &machine.0 {
            if !self.0.get(name).is_some_and(is_own) {
                self.0.insert(name, Arc::clone(file));
            }
        }
        self
    }

    fn values(&self) -> Values {
        let value = |file: &File| {
            let mut buffer = [0; VALUE_BYTES];
            let bytes = file.read_at(&mut buffer, 0).ok()?;
            let text = String::from_utf8_lossy(&buffer[..bytes]);
            // Several numbers are separated by tabs.
            Some(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
        };
        let known = self.0.iter();
        let known = known.filter_map(|(name, file)| Some((*name, value(file)?)));
        known.collect()
    }
}

/// An active watch.
pub(super) struct Parameters {
    inotify: Inotify,
    files: ParameterFiles,
    known: Values,
}

impl Parameters {
    /// Watches this namespace's parameters, and the `machine`'s for those that the namespace lacks.
    ///
    /// # Errors
    /// If the kernel allows this user no more inotify instances.
    pub(super) fn watch(machine: &ParameterFiles) -> io::Result<Self> {
        let refused = |errno: nix::Error| {
            let why = errno.desc();
            io::Error::other(format!(
                "inotify cannot watch kernel parameters: {why}; raise fs.inotify.max_user_instances and \
                 fs.inotify.max_user_watches"
            ))
        };
        let flags = InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK;
        let inotify = Inotify::init(flags).map_err(refused)?;
        let files = ParameterFiles::open().with_those_of(machine);
        for file in files.0.values() {
            // inotify takes a path. This one leads to the open file even if this namespace hides
            // it.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let watched = inotify.add_watch(path.as_str(), AddWatchFlags::IN_MODIFY);
            watched.map_err(refused)?;
        }
        let known = files.values();
        Ok(Self {
            inotify,
            files,
            known,
        })
    }

    /// Reads all parameters and describes those that differ from the previous reading.
    pub(super) fn changes(&mut self) -> Vec<String> {
        // The events' contents do not matter: writing the same value again is no change.
        while self.inotify.read_events().is_ok() {}
        let now = self.files.values();
        let changed = now.iter().filter_map(|(name, is)| {
            let was = self.known.get(name).filter(|was| *was != is)?;
            Some(format!("{name} {is}, was {was}"))
        });
        let changed = changed.collect();
        self.known = now;
        changed
    }
}

impl AsFd for Parameters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn buffer_limits_are_among_those_watched_and_a_value_written_again_is_no_change() {
        let mut watched = Parameters::watch(&ParameterFiles::open()).unwrap();
        for name in [
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
            "net.core.rmem_max",
        ] {
            assert!(watched.known.contains_key(name), "{:?}", watched.known);
        }
        // Not permitted to every user; the result is the same either way.
        let path = "/proc/sys/net/ipv4/tcp_rmem";
        let value = fs::read_to_string(path).unwrap();
        let _ = fs::write(path, value);
        let changes = watched.changes();
        assert!(
            !changes.iter().any(|it| it.contains("tcp_rmem")),
            "{changes:?}"
        );
        let was = watched
            .known
            .insert("net.ipv4.tcp_rmem", "1 2 3".to_owned());
        let expected = format!("net.ipv4.tcp_rmem {}, was 1 2 3", was.unwrap());
        assert!(watched.changes().contains(&expected));
        assert_eq!(watched.changes(), Vec::<String>::new());
    }

    #[test]
    fn of_the_machine_those_are_watched_that_a_namespace_lacks() {
        let machine = ParameterFiles::open();
        let all: Vec<_> = machine.0.keys().copied().collect();
        let none = ParameterFiles::default().with_those_of(&machine);
        assert!(none.0.keys().copied().eq(all));
        let own = ParameterFiles::open().with_those_of(&machine);
        let tcp = &own.0["net.ipv4.tcp_rmem"];
        assert!(!Arc::ptr_eq(tcp, &machine.0["net.ipv4.tcp_rmem"]));
    }
}
