//! Files that a server follows while it runs.

use guard::read_bytes;
use std::io;
use std::path::PathBuf;

/// The largest file, in bytes: far more than users, a certificate or a key need.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The content of each file, or why it cannot be read.
type Contents = Vec<Result<Vec<u8>, io::ErrorKind>>;

/// Files and their contents.
#[derive(Debug)]
pub(super) struct Inputs {
    paths: Vec<PathBuf>,
    /// The contents that were applied, or tried.
    taken: Contents,
    seen: Contents,
}

impl Inputs {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let now = read(&paths);
        Self {
            paths,
            taken: now.clone(),
            seen: now,
        }
    }

    /// Whether the files have new contents. True once for each content, and only if two calls saw
    /// the same one, since a file may be half written.
    pub(super) fn have_changed(&mut self) -> bool {
        let now = read(&self.paths);
        let is_still = now == self.seen;
        self.seen = now;
        if !is_still || self.seen == self.taken {
            return false;
        }
        self.taken.clone_from(&self.seen);
        true
    }
}

fn read(paths: &[PathBuf]) -> Contents {
    let contents = paths.iter().map(|path| read_bytes(path, FILE_BYTES_MAX));
    contents
        .map(|content| content.map_err(|error| error.kind()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::fs;
    use std::path::Path;

    #[test]
    fn nothing_without_an_end_is_waited_for_or_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("users");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let endless = Path::new("/dev/zero").to_owned();
        let kinds = read(&[fifo, endless]).into_iter().map(Result::unwrap_err);
        assert!(kinds.eq([io::ErrorKind::InvalidInput; 2]));
    }

    #[test]
    fn each_content_is_a_change_once_and_only_when_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        fs::write(&file, "one").unwrap();
        let mut inputs = Inputs::new(vec![file.clone()]);
        assert!(!inputs.have_changed());
        fs::write(&file, "hal").unwrap();
        assert!(!inputs.have_changed());
        fs::write(&file, "half and half").unwrap();
        assert!(!inputs.have_changed());
        assert!(inputs.have_changed());
        assert!(!inputs.have_changed());
        fs::remove_file(&file).unwrap();
        assert!(!inputs.have_changed());
        assert!(inputs.have_changed());
        assert!(!inputs.have_changed());
        // Back as it was before.
        fs::write(&file, "half and half").unwrap();
        assert!(!inputs.have_changed());
        assert!(inputs.have_changed());
    }
}
