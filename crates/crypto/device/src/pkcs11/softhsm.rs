//! Tokens of SoftHSM2, each in a temporary directory.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use tempfile::TempDir;

use super::unusable;
use crate::DeviceError;
use catalog::device::DeviceKind;

/// Paths of the module in distributions.
const MODULES: [&str; 5] = [
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/lib/aarch64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
];
const TOOL: &str = "softhsm2-util";
/// Messages of the tool that are kept.
const OUTPUT_BYTES_MAX: usize = 1 << 16;
const LABEL: &str = "cipherbench";
/// Prefix of directory names; the PID of the process that made it follows.
const PREFIX: &str = "cipherbench-softhsm-";
/// A file in the directory that is locked while the directory is in use: the PID alone means
/// nothing if another container shares the directory for temporary files.
const IN_USE: &str = "in-use";

/// A token of SoftHSM2 for one trial. Its files are removed on drop.
///
/// The library finds it by an environment variable only ([`Self::environment`]), so that processes
/// that use it must be started with that. Any number of processes may use one token. Creating a
/// token removes the leftovers of killed processes.
#[derive(Debug)]
pub struct SoftHsm {
    folder: TempDir,
    module: &'static Path,
    _in_use: File,
}

impl SoftHsm {
    /// Creates a token.
    ///
    /// # Errors
    /// [`DeviceError::Unusable`]: SoftHSM2 is not installed or fails to create one.
    pub fn make() -> Result<Self, DeviceError> {
        let install = "run: apt-get install softhsm2";
        let module = MODULES.iter().map(Path::new).find(|module| module.exists());
        let module = module
            .ok_or_else(|| unusable(format!("SoftHSM2's module is not installed; {install}")))?;
        let cannot = |error| {
            unusable(format!(
                "cannot create the directory of a SoftHSM2 token: {error}"
            ))
        };
        // A killed process cannot remove its token, so the next one does.
        sweep(&std::env::temp_dir());
        // For this user only, regardless of the umask.
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(cannot)?;
        let in_use = File::create(folder.path().join(IN_USE)).map_err(cannot)?;
        // The kernel releases the lock when the process ends, however it ends.
        in_use.lock().map_err(cannot)?;
        let made = Self {
            folder,
            module,
            _in_use: in_use,
        };
        let pin = made.write().map_err(cannot)?;
        let mut tool = Command::new(TOOL);
        tool.args([
            "--init-token",
            "--free",
            "--label",
            LABEL,
            "--pin",
            &pin,
            "--so-pin",
            &pin,
        ])
        .arg("--module")
        .arg(module)
        .env("SOFTHSM2_CONF", made.configuration());
        let output = guard::output(&mut tool, OUTPUT_BYTES_MAX)
            .map_err(|error| unusable(format!("cannot start {TOOL}: {error}; {install}")))?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr);
            return Err(unusable(format!(
                "{TOOL} failed to create a token: {}",
                output.trim()
            )));
        }
        Ok(made)
    }

    /// Returns the token as a device, for a process with [`Self::environment`].
    #[must_use]
    pub fn spec(&self) -> DeviceKind {
        DeviceKind::Pkcs11 {
            module: self.module.to_owned(),
            slot: None,
            token: Some(LABEL.to_owned()),
            pin_file: self.pin_file(),
        }
    }

    /// Returns the environment variable for processes that use it: name and value.
    #[must_use]
    pub fn environment(&self) -> (&'static str, PathBuf) {
        ("SOFTHSM2_CONF", self.configuration())
    }

    /// Returns the directory of the token's files.
    #[must_use]
    pub fn tokens(&self) -> PathBuf {
        self.folder.path().join("tokens")
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("softhsm2.conf")
    }

    fn pin_file(&self) -> PathBuf {
        self.folder.path().join("pin")
    }

    /// Writes configuration and PIN. Returns the PIN, which only protects publicly known keys
    /// during a trial.
    fn write(&self) -> std::io::Result<String> {
        let tokens = self.tokens();
        fs::create_dir(&tokens)?;
        let text = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\nslots.removable = false\n",
            tokens.display()
        );
        fs::write(self.configuration(), text)?;
        let mut word = [0; 8];
        aws_lc_rs::rand::fill(&mut word).map_err(std::io::Error::other)?;
        let pin = format!("{:016x}", u64::from_le_bytes(word));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.pin_file())?;
        file.write_all(pin.as_bytes())?;
        Ok(pin)
    }
}

/// Removes the directories of processes that no longer exist, of this process's user only: in a
/// shared directory, other users may have made entries with these names.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let maker = name.to_str().and_then(|name| {
            let (maker, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
            maker.parse::<u32>().ok()
        });
        let lives = |maker| Path::new("/proc").join(format!("{maker}")).exists();
        let is_left = maker.is_some_and(|maker| !lives(maker)) && is_own_folder(&path);
        if is_left && !is_in_use(&path) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Whether it is a directory, not a link to one, of this process's user.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

fn is_in_use(folder: &Path) -> bool {
    // A FIFO or a link in its place is neither waited for nor followed.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(flags)
        .open(folder.join(IN_USE));
    // If the file is missing, the process was killed right after it had made the directory.
    file.is_ok_and(|file| file.try_lock().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_swept() {
        let all = tempfile::tempdir().unwrap();
        // No process has this PID: it exceeds the kernel's maximum.
        let make = |name: &str| {
            let folder = all.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("pin"), "1234").unwrap();
            folder
        };
        let left = make(&format!("{PREFIX}4294967295-a"));
        let held = make(&format!("{PREFIX}4294967294-b"));
        let lock = File::create(held.join(IN_USE)).unwrap();
        lock.lock().unwrap();
        let own = make(&format!("{PREFIX}{}-c", std::process::id()));
        let others = [make("cipherbench-softhsm-d"), make("4294967295-e")];
        sweep(all.path());
        assert!(!left.exists());
        assert!(held.exists() && own.exists());
        assert!(others.iter().all(|other| other.exists()));
        drop(lock);
        sweep(all.path());
        assert!(!held.exists());
    }

    #[test]
    fn what_others_laid_there_neither_stops_a_sweep_nor_is_removed() {
        let all = tempfile::tempdir().unwrap();
        let name = |number: u32| all.path().join(format!("{PREFIX}4294967295-{number}"));
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), name(1)).unwrap();
        fs::create_dir(name(2)).unwrap();
        nix::unistd::mkfifo(&name(2).join(IN_USE), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(name(3)).unwrap();
        let is_others = std::os::unix::fs::chown(name(3), Some(4321), None).is_ok();
        if !is_others {
            eprintln!("SKIPPED: a directory of another user: only root can make one");
        }
        sweep(all.path());
        assert!(elsewhere.path().exists() && fs::symlink_metadata(name(1)).is_ok());
        assert!(!name(2).exists(), "its own, whatever is in it");
        assert_eq!(name(3).exists(), is_others);
    }
}
