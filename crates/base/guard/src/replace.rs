//! Files that others may read while they are written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Replaces a file, or creates it: readers see the old content or all of the new one, also after a
/// crash.
///
/// # Errors
/// Those of `write` and of the operating system; then the old file is untouched.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    // The process id keeps two programs that replace one file from sharing a part.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = File::create(&part)
        .and_then(|file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush()?;
            // Before the rename, or a crash could leave an empty file under the final name.
            file.get_ref().sync_data()
        })
        .and_then(|()| fs::rename(&part, path));
    written.inspect_err(|_| {
        // Best effort: report only the first error.
        let _ = fs::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.md");
        replace(&path, |file| file.write_all(b"old")).unwrap();
        replace(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let error = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
