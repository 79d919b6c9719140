//! Opening key files: each once, however many tunnels take their keys from it.

use super::error::ServiceError;
use crate::config::Config;
use crate::lane::SharedKeys;
use keying::KeyFile;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The key files of a configuration, locked and read; no epoch is drawn yet.
pub(super) struct KeyFiles {
    files: BTreeMap<PathBuf, KeyFile>,
    /// Of each peer.
    paths: Vec<Option<PathBuf>>,
}

impl KeyFiles {
    pub(super) fn open(config: &Config) -> Result<Self, ServiceError> {
        let paths: Vec<_> = config
            .peers
            .iter()
            .map(|peer| peer.keys.as_deref().map(real_path))
            .collect();
        let mut files = BTreeMap::new();
        for path in paths.iter().flatten() {
            if !files.contains_key(path) {
                files.insert(path.clone(), KeyFile::open(path)?);
            }
        }
        Ok(Self { files, paths })
    }

    /// Where they are.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.keys().cloned().collect()
    }

    /// Draws an epoch of each file, and gives each peer its keys.
    pub(super) fn draw_epochs(self) -> Result<Vec<Option<SharedKeys>>, ServiceError> {
        let mut drawn: BTreeMap<PathBuf, SharedKeys> = BTreeMap::new();
        for (path, file) in self.files {
            drawn.insert(path, Arc::new(Mutex::new(file.draw_epoch()?)));
        }
        let of_peer = |path: &Option<PathBuf>| drawn.get(path.as_ref()?).cloned();
        Ok(self.paths.iter().map(of_peer).collect())
    }
}

/// One name for each file. One that cannot be followed is told when it is opened.
fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
