//! Opens each key file once, regardless of the number of tunnels that use it.

use super::error::ServiceError;
use crate::config::{Config, KeySource};
use crate::shared_keys::SharedKeys;
use guard::Writers;
use keying::{KeyError, KeyFile, Keys};
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The key files of a configuration, locked and read; no epoch is drawn yet.
pub(super) struct KeyFiles {
    files: BTreeMap<PathBuf, KeyFile>,
    /// Path of each peer's key file.
    paths: Vec<Option<PathBuf>>,
}

impl KeyFiles {
    pub(super) fn open(config: &Config, writers: &Writers) -> Result<Self, ServiceError> {
        let mut files = BTreeMap::new();
        let mut paths = Vec::new();
        for peer in &config.peers {
            let Some(KeySource::Static(given)) = &peer.keys else {
                paths.push(None);
                continue;
            };
            // One epoch counter for all names of a file: two counters would draw the same epoch
            // twice, and so repeat nonces.
            let path = real_path(given);
            match files.entry(path.clone()) {
                // Under the given name: anyone who could replace a link on the way to the file
                // could choose another file.
                Entry::Vacant(new) => {
                    new.insert(KeyFile::open_for(given, writers)?);
                }
                Entry::Occupied(_) => {
                    writers.check(given).map_err(KeyError::from)?;
                }
            }
            paths.push(Some(path));
        }
        Ok(Self { files, paths })
    }

    /// Paths of the files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.keys().cloned().collect()
    }

    /// Draws an epoch of each file, and returns the keys of each peer that has one. `confined`: the
    /// process has no capabilities.
    pub(super) fn draw_epochs(
        self,
        confined: bool,
    ) -> Result<Vec<Option<SharedKeys>>, ServiceError> {
        let refused = |error| match error {
            KeyError::EpochNotWritten { path, source }
                // With capabilities a refusal has another reason than the folder's owner.
                if confined && source.kind() == ErrorKind::PermissionDenied =>
            {
                let user = geteuid().as_raw();
                ServiceError::KeyFolder { path, user }
            }
            error => error.into(),
        };
        let mut drawn: BTreeMap<PathBuf, SharedKeys> = BTreeMap::new();
        for (path, file) in self.files {
            let keys = file.draw_epoch().map_err(refused)?;
            drawn.insert(path, Arc::new(Mutex::new(Keys::from(keys))));
        }
        let of_peer = |path: &Option<PathBuf>| drawn.get(path.as_ref()?).cloned();
        Ok(self.paths.iter().map(of_peer).collect())
    }
}

/// Returns a unique path of the file. A broken path is reported when it is opened.
fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
