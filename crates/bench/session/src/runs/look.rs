//! A run, from as little of its folder as its line in a list needs.

use super::{Run, State, is_file};
use journal::record::{FORMAT_VERSION, FORMAT_VERSION_OLDEST};
use journal::time::utc;
use report::MARKDOWN_NAME;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// A longer line is not read. The largest, the header of thousands of cells, has some megabytes.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// The record of a run's end is much shorter.
const END_BYTES_MAX: u64 = 4096;
/// The first paragraphs of a report are much shorter.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// What the list needs of a header; other keys are ignored.
#[derive(Deserialize)]
struct Header {
    format: u64,
    started_unix_ns: u64,
    plan: Plan,
}

#[derive(Deserialize)]
struct Plan {
    name: String,
    #[serde(default)]
    title: String,
    repeats: usize,
    cells: Vec<IgnoredAny>,
}

/// What the list needs of any other record.
#[derive(Deserialize)]
struct Record {
    record: String,
    #[serde(default)]
    cell: String,
    #[serde(default)]
    repeat: u64,
}

/// Looks at a folder; `None` if it is no run.
pub(super) fn look(dir: &Path) -> Option<Run> {
    let path = dir.join(journal::FILE_NAME);
    if !is_file(&path) {
        return None;
    }
    let name = dir.file_name()?.to_string_lossy().into_owned();
    let mut run = Run {
        name,
        path: dir.to_owned(),
        started_utc: None,
        started_unix_ns: None,
        campaign: None,
        title: None,
        state: State::Finished,
        bytes: bytes(dir),
        headline: None,
        changed: SystemTime::UNIX_EPOCH,
    };
    if let Err(problem) = read(&path, &mut run) {
        run.state = State::Damaged { problem };
        return Some(run);
    }
    let head = begins(&dir.join(MARKDOWN_NAME)).unwrap_or_default();
    let opening = report::opening(&head);
    run.headline = match run.state {
        State::Finished => opening.map(|it| it.answer.unwrap_or(it.soundness)),
        // The report of a killed run is from before its first trial.
        _ => opening.and_then(|it| it.answer),
    };
    Some(run)
}

/// Returns the names of a run's devices, in the order of its plan; none if the journal's header
/// cannot be read.
#[must_use]
pub fn devices(dir: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    struct Header {
        plan: Plan,
    }
    #[derive(Deserialize)]
    struct Plan {
        cells: Vec<Cell>,
    }
    #[derive(Deserialize)]
    struct Cell {
        dut: Device,
    }
    #[derive(Deserialize)]
    struct Device {
        name: String,
    }
    let path = dir.join(journal::FILE_NAME);
    let read = || {
        let header = line(&mut BufReader::new(File::open(&path).ok()?)).ok()??;
        serde_json::from_slice::<Header>(&header).ok()
    };
    let header = is_file(&path).then(read).flatten();
    let mut names = Vec::new();
    for cell in header.into_iter().flat_map(|header| header.plan.cells) {
        if !names.contains(&cell.dut.name) {
            names.push(cell.dut.name);
        }
    }
    names
}

/// Reads the journal. The error is a sentence.
fn read(path: &Path, run: &mut Run) -> Result<(), String> {
    let failed = |error: io::Error| format!("the journal cannot be read: {error}");
    let file = File::open(path).map_err(failed)?;
    let changed = file.metadata().and_then(|metadata| metadata.modified());
    run.changed = changed.map_err(failed)?;
    // A writer holds its lock until it ends. This one is shared and held for a moment, as only
    // taking it shows whether it is free.
    let is_running = match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => false,
        Ok(()) => {
            file.unlock().map_err(failed)?;
            false
        }
    };
    let mut lines = BufReader::new(file);
    let header = line(&mut lines).map_err(failed)?;
    let header = header.ok_or("the run broke off before it began; nothing was measured")?;
    let header: Header = serde_json::from_slice(&header)
        .map_err(|_| "the first line of the journal is no header of a run".to_owned())?;
    let known = u64::from(FORMAT_VERSION_OLDEST)..=u64::from(FORMAT_VERSION);
    if !known.contains(&header.format) {
        let format = header.format;
        return Err(format!(
            "this program does not read journal format {format}"
        ));
    }
    run.started_utc = Some(utc(header.started_unix_ns));
    run.started_unix_ns = Some(header.started_unix_ns);
    run.campaign = Some(header.plan.name);
    run.title = (!header.plan.title.is_empty()).then_some(header.plan.title);
    if !is_running && has_ended(lines.get_ref()).map_err(failed)? {
        return Ok(());
    }
    // The end was read from the same file, so that its position has changed.
    lines.rewind().map_err(failed)?;
    let trials = trials(&mut lines)?;
    let planned = header.plan.cells.len().saturating_mul(header.plan.repeats);
    // A run may have added repeats.
    let planned = planned.max(trials);
    run.state = if is_running {
        State::Running { trials, planned }
    } else {
        State::Interrupted { trials, planned }
    };
    Ok(())
}

/// The next complete line, without its newline.
fn line(lines: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    // A line without its newline is not yet written, or never was.
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

/// Whether the last record is the end of the run.
fn has_ended(mut file: &File) -> io::Result<bool> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES_MAX)))?;
    let mut end = Vec::new();
    file.take(END_BYTES_MAX).read_to_end(&mut end)?;
    // Without its newline the line is incomplete.
    if end.pop() != Some(b'\n') {
        return Ok(false);
    }
    let last = end.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    // The beginning of a longer line is not JSON, nor is that line an end.
    let last = serde_json::from_slice::<Record>(last);
    Ok(last.is_ok_and(|last| last.record == "end"))
}

/// The number of trials that have a record. The error is a sentence.
fn trials(lines: &mut impl BufRead) -> Result<usize, String> {
    let mut made = BTreeSet::new();
    for number in 1u64.. {
        let line = line(lines).map_err(|error| format!("the journal cannot be read: {error}"))?;
        let Some(line) = line else { break };
        let record: Record = serde_json::from_slice(&line)
            .map_err(|_| format!("line {number} of the journal is no record"))?;
        // A trial may have several records, as `resume` repeats it.
        if record.record == "trial" {
            made.insert((record.cell, record.repeat));
        }
    }
    Ok(made.len())
}

/// The beginning of a text; `None` if there is no such file.
fn begins(path: &Path) -> Option<String> {
    if !is_file(path) {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(HEAD_BYTES_MAX).read_to_end(&mut text).ok()?;
    // It may be cut within a character.
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The size of all files in a folder and the folders below it. Links count for themselves.
fn bytes(dir: &Path) -> u64 {
    let mut folders = vec![dir.to_owned()];
    let mut sum = 0u64;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of the entry itself, not of what a link leads to.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => sum = sum.saturating_add(metadata.len()),
                // It was removed meanwhile.
                Err(_) => {}
            }
        }
    }
    sum
}
