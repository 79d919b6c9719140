//! What was meant by a mistyped name of a file or a run.

use crate::runs;
use campaign::Shipped;
use std::fs;
use std::path::{Path, PathBuf};
use yaml::names;

/// A folder with more files is not searched to its end.
const FILES_MAX: usize = 2000;

/// The campaign or lab that was most likely meant by a path that leads to no file: a file next to
/// it, in `folder`, or a shipped one.
pub(crate) fn file(path: &Path, folder: &str, shipped: &[&[Shipped]]) -> Option<String> {
    let wanted = path.file_stem()?.to_str()?;
    let next_to_it = path.parent().unwrap_or(Path::new(""));
    let mut candidates = yaml_files(next_to_it);
    // A path with a folder is meant to be a file there.
    if next_to_it.as_os_str().is_empty() {
        candidates.extend(yaml_files(Path::new(folder)));
        let shipped = shipped.iter().copied().flatten();
        candidates.extend(shipped.map(|file| PathBuf::from(file.name)));
    }
    let stems = candidates
        .iter()
        .filter_map(|path| path.file_stem()?.to_str());
    let nearest = names::nearest(wanted, stems)?;
    // The first of that name: files of the user precede shipped ones.
    let found = candidates
        .iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == nearest));
    found.map(|path| path.display().to_string())
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let here = folder.as_os_str().is_empty();
    let entries = fs::read_dir(if here { Path::new(".") } else { folder });
    let entries = entries.into_iter().flatten().flatten().take(FILES_MAX);
    let names = entries.map(|entry| entry.file_name());
    let mut files: Vec<PathBuf> = names
        .map(|name| folder.join(name))
        .filter(|path| {
            let extension = path.extension();
            extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
        })
        .collect();
    // The order of a folder is that of the file system.
    files.sort();
    files
}

/// Returns the run that was most likely meant by a path that leads to none: by a part of its name
/// the newest, otherwise the one of the nearest name.
#[must_use]
pub fn nearest_run(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let next_to_it = path.parent().unwrap_or(Path::new(""));
    let mut folders = vec![next_to_it];
    if next_to_it.as_os_str().is_empty() {
        folders.push(Path::new(journal::DEFAULT_ROOT));
    }
    let mut candidates: Vec<PathBuf> = folders.into_iter().flat_map(runs::folders).collect();
    // Names begin with the time of the run.
    candidates.sort_by(|a, b| b.file_name().cmp(&a.file_name()));
    let name = |path: &PathBuf| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let named: Vec<String> = candidates.iter().filter_map(name).collect();
    let part = named.iter().position(|name| name.contains(wanted));
    let nearest = || {
        let nearest = names::nearest(wanted, named.iter().map(String::as_str))?;
        named.iter().position(|name| name == nearest)
    };
    candidates.get(part.or_else(nearest)?).cloned()
}
