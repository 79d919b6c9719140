//! Kernel parameters of the machine that are too small for measuring, and receive rings of a lab's
//! network cards that are too short: raised on request, and restored exactly.
//!
//! Only parameters of the whole machine, which namespaces cannot set separately. The old values are
//! on disk before the first one is changed. They are valid for one boot, like the new values;
//! parameters that another program has set since are left alone.
//!
//! Offloads are not tuned here: traffic uses no interface of the machine, and a run configures the
//! offloads of its links.

mod ring;

use crate::programs::find;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use testbed::machine::boot_id;

/// Far more than a record of all parameters.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// File of the old values.
pub const RECORD: &str = "/var/lib/cipherbench/tuning.json";

/// A parameter and its minimum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name with dots, or `receive ring of` an interface.
    pub name: Cow<'static, str>,
    /// Raised to this; never lowered.
    pub at_least: u64,
    /// Why it matters.
    pub reason: &'static str,
}

/// The parameters that matter for measuring.
pub const WANTED: &[Wanted] = &[
    Wanted {
        name: Cow::Borrowed("net.core.netdev_max_backlog"),
        at_least: 10_000,
        reason: "frames between the namespaces queue here; what exceeds it is lost, and counted per trial",
    },
    Wanted {
        name: Cow::Borrowed("net.core.rmem_max"),
        at_least: 64 << 20,
        reason: "limits the receive buffers of encryptors and of iperf3 -w; short ones lose bursts",
    },
    Wanted {
        name: Cow::Borrowed("net.core.wmem_max"),
        at_least: 64 << 20,
        reason: "limits the send buffers of encryptors and of iperf3 -w",
    },
];

/// A failure that prevents tuning or restoring. A refused parameter is not one.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The old values cannot be read or written: nothing was changed.
    #[error("cannot keep the old values in {path}: {error}\nhelp: {help}", path = path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
        /// What to do.
        help: &'static str,
    },
}

/// One parameter and its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// [`Wanted::name`].
    pub name: String,
    /// Value found; `None` when this kernel, or the interface's driver, does not have it.
    pub before: Option<String>,
    /// Value now.
    pub after: Option<String>,
    /// Why it matters.
    pub reason: String,
    /// Why a needed change was not made.
    pub refused: Option<String>,
}

/// The parameters under a folder (`/proc/sys`), and the file with their old values.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// `/proc/sys`, or a replacement in tests.
    pub root: PathBuf,
    /// The file with the old values; its folder is made when needed.
    pub record: PathBuf,
    /// The parameters to raise.
    pub wanted: Vec<Wanted>,
    /// `ethtool`, or a replacement in tests.
    pub ethtool: PathBuf,
    /// Identifies the boot that the values belong to.
    pub boot_id: String,
}

/// Content of the record file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    boot_id: String,
    parameters: BTreeMap<String, Raised>,
}

/// One parameter that was raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Raised {
    /// The original value.
    before: String,
    /// The last value set.
    set: String,
}

impl Tuning {
    /// This machine, with the old values in `record` (usually [`RECORD`]), and the receive rings of
    /// these interfaces.
    #[must_use]
    pub fn of_this_machine(record: impl Into<PathBuf>, interfaces: &[String]) -> Self {
        // One that is not here fails as it would by its name.
        let ethtool = find("ethtool").unwrap_or_else(|| "/nonexistent/ethtool".into());
        let rings = interfaces.iter().map(|name| ring::wanted(&ethtool, name));
        Self {
            root: "/proc/sys".into(),
            record: record.into(),
            wanted: WANTED.iter().cloned().chain(rings).collect(),
            ethtool,
            boot_id: boot_id(),
        }
    }

    /// Reads the parameters without changing any.
    #[must_use]
    pub fn look(&self) -> Vec<Change> {
        self.wanted
            .iter()
            .map(|wanted| self.found(wanted))
            .collect()
    }

    /// Raises values that are too small. A second call keeps the values recorded by the first,
    /// except of parameters that another program has set in between.
    ///
    /// # Errors
    /// [`TuneError`]: nothing was changed. A parameter that cannot be set is reported in its
    /// [`Change`].
    pub fn apply(&self) -> Result<Vec<Change>, TuneError> {
        let mut record = self.read_record()?;
        // As it was before this call, to restore the entry of a parameter that the kernel refuses
        // below.
        let first = record.clone();
        let mut changes = self.look();
        let to_raise = |wanted: &Wanted, change: &Change| {
            change
                .before
                .as_deref()
                .filter(|value| is_below(value, wanted.at_least))
                .map(str::to_owned)
        };
        for (wanted, change) in self.wanted.iter().zip(&changes) {
            if let Some(now) = to_raise(wanted, change) {
                let known = first.parameters.get(&change.name);
                let before = match known {
                    // A call before this one raised it to a smaller value: the original value
                    // stays.
                    Some(known) if known.set == now => known.before.clone(),
                    _ => now,
                };
                let set = wanted.at_least.to_string();
                let raised = Raised { before, set };
                record.parameters.insert(change.name.clone(), raised);
            }
        }
        if record != first {
            self.write_record(&record)?;
        }
        for (wanted, change) in self.wanted.iter().zip(&mut changes) {
            if to_raise(wanted, change).is_some() {
                self.set(change, &wanted.at_least.to_string());
                if change.refused.is_some() {
                    record.parameters.remove(&change.name);
                    // If an earlier call raised it, that entry is still valid.
                    let known = first.parameters.get_key_value(&change.name);
                    record
                        .parameters
                        .extend(known.map(|(name, raised)| (name.clone(), raised.clone())));
                }
            }
        }
        self.write_record(&record)?;
        Ok(changes)
    }

    /// Restores every value that [`apply`](Self::apply) changed and no other program has changed
    /// since. Removes the record once all are restored.
    ///
    /// # Errors
    /// [`TuneError`] when the record cannot be read or written.
    pub fn revert(&self) -> Result<Vec<Change>, TuneError> {
        let mut record = self.read_record()?;
        let mut changes = Vec::new();
        for (name, Raised { before, set }) in record.parameters.clone() {
            let mut change = Change {
                before: self.read(&name),
                after: None,
                reason: "restores the value from before tuning".to_owned(),
                refused: None,
                name,
            };
            // A value that another program has set since must not be overwritten.
            let is_ours = change.before.as_ref() == Some(&set);
            if is_ours {
                self.set(&mut change, &before);
            } else {
                change.after.clone_from(&change.before);
                if change.before.as_ref() != Some(&before) {
                    change.refused = Some(format!(
                        "it is no longer the {set} that was set; it was {before} before that"
                    ));
                }
            }
            // A failed restore can be retried; a value of another program is left to it.
            if change.refused.is_none() || !is_ours {
                record.parameters.remove(&change.name);
            }
            changes.push(change);
        }
        self.write_record(&record)?;
        Ok(changes)
    }

    fn found(&self, wanted: &Wanted) -> Change {
        let value = self.read(&wanted.name);
        Change {
            name: wanted.name.clone().into_owned(),
            before: value.clone(),
            after: value,
            reason: wanted.reason.to_owned(),
            refused: None,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.replace('.', "/"))
    }

    fn read(&self, name: &str) -> Option<String> {
        if let Some(interface) = ring::interface(name) {
            return ring::read(&self.ethtool, interface);
        }
        fs::read_to_string(self.path(name))
            .ok()
            .map(|value| value.trim().to_owned())
    }

    fn set(&self, change: &mut Change, value: &str) {
        let written = match ring::interface(&change.name) {
            Some(interface) => ring::set(&self.ethtool, interface, value),
            None => File::options()
                .write(true)
                .truncate(true)
                .open(self.path(&change.name))
                .and_then(|mut file| file.write_all(value.as_bytes())),
        };
        change.refused = written.err().map(|error| error.to_string());
        change.after = self.read(&change.name);
        // The kernel may store another value than the one written.
        if change.refused.is_none() && change.after.as_deref() != Some(value) {
            change.refused = Some(format!("the kernel did not take {value}"));
        }
    }

    fn read_record(&self) -> Result<Record, TuneError> {
        let text = match guard::read_text(&self.record, RECORD_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.no_record()),
            Err(error) => return Err(self.failed(error)),
        };
        let record: Record = serde_json::from_str(&text).map_err(|error| TuneError::Record {
            path: self.record.clone(),
            error: error.into(),
            help: "it is damaged, or of another version: set the parameters by hand and remove it",
        })?;
        // A reboot has already restored the values of an earlier boot.
        Ok(if record.boot_id == self.boot_id {
            record
        } else {
            self.no_record()
        })
    }

    fn no_record(&self) -> Record {
        Record {
            boot_id: self.boot_id.clone(),
            parameters: BTreeMap::new(),
        }
    }

    /// Replaces the file atomically and durably; removes it for an empty record.
    fn write_record(&self, record: &Record) -> Result<(), TuneError> {
        if record.parameters.is_empty() {
            return match fs::remove_file(&self.record) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
                _ => Ok(()),
            };
        }
        let folder = self.record.parent().unwrap_or(Path::new("."));
        let write = || -> io::Result<()> {
            // Root reverts parameters according to the record.
            DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)?;
            // In the same folder, since a file replaces another atomically only within one file
            // system.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.as_file().sync_all()?;
            file.persist(&self.record)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> TuneError {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied => "run as root",
            _ => "see whether its folder can be written to and the disk has space left",
        };
        TuneError::Record {
            path: self.record.clone(),
            error,
            help,
        }
    }
}

/// Whether a value is a number below `least`.
fn is_below(value: &str, least: u64) -> bool {
    value.parse::<u64>().is_ok_and(|value| value < least)
}

impl Change {
    /// Whether the parameter's current value is too small.
    #[must_use]
    pub fn is_below(&self, wanted: &Wanted) -> bool {
        self.after
            .as_deref()
            .is_some_and(|value| is_below(value, wanted.at_least))
    }
}

#[cfg(test)]
mod tests;
