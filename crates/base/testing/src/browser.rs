//! A browser without a window.

use super::lacks;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of a browser that reads `--headless --dump-dom`.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// An installed browser, which prints a page as its document is once it is laid out.
pub struct Browser(PathBuf);

impl Browser {
    /// The first in the PATH; `None`, as [`lacks`] reports, where there is none.
    ///
    /// # Panics
    /// As [`skip`](super::skip).
    #[must_use]
    #[track_caller]
    pub fn find(test: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let mut places = NAMES
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        let found = places.find(|place| place.is_file());
        if found.is_none() {
            lacks(test, NAMES.join(", "), "apt install chromium");
        }
        found.map(Self)
    }

    /// Prints a page, whose address is to be added. `folder` is for its files.
    #[must_use]
    pub fn dump(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.0);
        let profile = folder.join("profile");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--window-size=2000,1200", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()));
        command
    }
}
