//! A headless browser.

use super::lacks;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of a browser that supports `--headless --dump-dom`.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Script that measures its page, first folded and then unfolded, and reports to the enclosing
/// page.
const MEASURE: &str = include_str!("browser/measure.js");

/// An installed browser, which prints the DOM of a page after its layout.
pub struct Browser(PathBuf);

impl Browser {
    /// Returns the first browser in `PATH`; `None`, reported by [`lacks`], if none is installed.
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

    /// Returns a command that prints a page; the caller adds its address. `folder` is for the
    /// browser's files.
    #[must_use]
    pub fn dump(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.0);
        let profile = folder.join("profile");
        command
            .args([
                "--headless",
                // Else it does not start as root, as in a container.
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--window-size=2000,1200", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()));
        command
    }

    /// Lays a page out at each of these widths and returns the measurements as a JSON list: objects
    /// with `width`, `height` of the folded page, `sideways` (how far the page is wider than its
    /// window), and `faults` and `drawings` (text that is cut off or overlaps other text, on the
    /// page and in its charts). The page must contain its style, and no policy or other scripts.
    ///
    /// # Panics
    /// If the browser reports no measurement.
    #[must_use]
    pub fn measure(&self, page: &str, widths: &[u32]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, end) = page.rsplit_once("</body>").expect("a page");
        let page = format!("{page}<script>{MEASURE}</script></body>{end}");
        let write = |name: &str, text: &str| {
            let place = folder.path().join(name);
            std::fs::write(&place, text).expect("a file is written");
            place
        };
        write("page.html", &page);
        // Frames, as one start of the browser then measures all widths.
        let frame = |width: &u32| {
            format!("<iframe src=page.html width={width} height=1000 style=border:0></iframe>")
        };
        let frames: String = widths.iter().map(frame).collect();
        let around = format!(
            "<!doctype html><meta charset=utf-8><body style=width:2000px>{frames}<pre id=found></pre><script>\
             const found = []; onmessage = event => {{ found.push(event.data); \
             document.getElementById('found').textContent = JSON.stringify(found); }};</script>"
        );
        let around = write("around.html", &around);
        let output = self
            .dump(folder.path())
            // In milliseconds of the page: the DOM is printed once its scripts had this time.
            .arg("--virtual-time-budget=20000")
            .arg(format!("file://{}", around.display()))
            .output()
            .expect("the browser is started");
        let dom = String::from_utf8(output.stdout).expect("a browser prints UTF-8");
        let found = dom.split_once("<pre id=\"found\">").map(|(_, rest)| rest);
        let found = found.and_then(|rest| rest.split("</pre>").next());
        // The place is empty until the first page has reported.
        let found = found.filter(|found| found.starts_with('['));
        let found = found.unwrap_or_else(|| {
            panic!(
                "nothing was measured: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        // The DOM is printed with escapes.
        found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&nbsp;", "\u{a0}")
            // Last: before the others it would make `<` of `&amp;lt;`.
            .replace("&amp;", "&")
    }
}
