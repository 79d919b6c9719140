//! The log of nats-server: it is kept in a file, and searched for events that matter at run time.
//!
//! It comes through a pipe, since it may report that the disk of this file is full.

use crate::error::{FleetError, disk};
use guard::Lines;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Longer lines are cut: clients can influence them.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Size of the file in bytes after which it is rotated.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How long to wait for the last lines of a server that has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An event that a line reports.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A changed configuration is in force.
    Reloaded,
    /// A changed configuration is not in force, for this reason.
    NotReloaded(String),
    /// The store is as large as it may be.
    Limit,
    /// The disk is full.
    Full,
}

impl News {
    fn of(line: &str) -> Option<Self> {
        if line.contains("Reloaded server configuration") {
            return Some(Self::Reloaded);
        }
        if let Some((_, reason)) = line.split_once("Failed to reload server configuration: ") {
            return Some(Self::NotReloaded(reason.to_owned()));
        }
        if line.contains("no space left on device") {
            return Some(Self::Full);
        }
        line.contains("resource limits exceeded for server")
            .then_some(Self::Limit)
    }
}

/// The file of a log. Every client that connects adds to it, so it is rotated by size; one earlier
/// file is kept.
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file,
        })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.bytes >= FILE_BYTES_MAX {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
            // The open file was renamed with its name.
            *self = Self::open(&self.path)?;
        }
        self.bytes += line.len() as u64 + 1;
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

/// The lines of one server.
#[derive(Debug)]
pub(super) struct Log(Receiver<String>);

impl Log {
    /// Appends a server's output to a file, until the output ends.
    pub(super) fn follow(
        said: impl Read + Send + 'static,
        path: &Path,
    ) -> Result<Self, FleetError> {
        let mut file = LogFile::open(path).map_err(disk("write", path))?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in Lines::new(BufReader::new(said), LINE_BYTES_MAX) {
                let Ok(line) = line else { break };
                // A line is reported even if the disk has no room for it. The receiver may be gone.
                let _ = file.write(&line.text);
                let _ = sender.send(line.text.trim().to_owned());
            }
        });
        Ok(Self(lines))
    }

    /// Returns the last line of a server that has ended.
    pub(super) fn last_line(&self) -> String {
        let mut last = None;
        while let Ok(line) = self.0.recv_timeout(LAST_WORDS) {
            if !line.is_empty() {
                last = Some(line);
            }
        }
        last.unwrap_or_else(|| "it said nothing".to_owned())
    }

    /// Returns the events since the last call.
    pub(super) fn news(&self) -> Vec<News> {
        self.0
            .try_iter()
            .filter_map(|line| News::of(&line))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn each_line_is_in_the_file_and_news_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        fs::write(&path, "of an earlier start\n").unwrap();
        let (mut server, said) = UnixStream::pair().unwrap();
        let log = Log::follow(said, &path).unwrap();
        let text = "[1] [INF] Server is ready\n[1] [NTC] Reloaded server configuration (sha256:1)\n\
                    [1] [ERR] Failed to reload server configuration: tls: wrong\n\
                    [1] [ERR] JetStream file resource limits exceeded for server\n\
                    [1] [ERR] Filestore [a] Critical write error: write /x: no space left on device\n";
        server.write_all(text.as_bytes()).unwrap();
        let mut news = Vec::new();
        while news.len() < 4 {
            news.extend(log.news());
        }
        let reason = "tls: wrong".to_owned();
        let all = [
            News::Reloaded,
            News::NotReloaded(reason),
            News::Limit,
            News::Full,
        ];
        assert_eq!(news, all);
        server.write_all(b"the end\n\n").unwrap();
        drop(server);
        assert_eq!(log.last_line(), "the end");
        assert_eq!(log.news(), []);
        let kept = fs::read_to_string(&path).unwrap();
        assert_eq!(kept, format!("of an earlier start\n{text}the end\n\n"));
    }

    #[test]
    fn a_log_takes_a_bounded_part_of_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let mut log = LogFile::open(&path).unwrap();
        let line = "x".repeat(1 << 20);
        for _ in 0..50 {
            log.write(&line).unwrap();
        }
        let sizes: Vec<u64> = ["server.log", "server.log.1"]
            .map(|name| fs::metadata(folder.path().join(name)).unwrap().len())
            .into();
        let most = FILE_BYTES_MAX + (1 << 20) + 1;
        assert!(
            sizes.iter().all(|size| *size > 0 && *size <= most),
            "{sizes:?}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_has_no_room_on_the_disk_is_news_all_the_same() {
        let (mut server, said) = UnixStream::pair().unwrap();
        let log = Log::follow(said, Path::new("/dev/full")).unwrap();
        server
            .write_all(b"write /x: no space left on device\n")
            .unwrap();
        drop(server);
        let last = log.last_line();
        assert_eq!(News::of(&last), Some(News::Full), "{last}");
    }
}
