//! The clip that ffmpeg makes, and its frames as a decoder must show them.
//!
//! The clip is ffmpeg's moving test picture, H.264 at a set rate in an MPEG transport stream, with
//! a key frame each second and no B-frames. Decoding H.264 is exact to the bit, so an undamaged
//! frame has the same hash in every decoder.

use crate::error::VideoError;
use crate::frames::{Frames, hash};
use crate::spec::{Prepare, Prepared};
use guard::read_bytes;
use plan::VideoTest;
use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The hashes of half a million frames: hours of video.
const LIST_BYTES_MAX: usize = 10 << 20;
/// Bytes of ffmpeg's messages that are kept.
const WORDS_BYTES_MAX: usize = 1 << 16;

/// Name of the clip in its folder, and so its path over HTTP.
pub(crate) fn name(test: &VideoTest) -> String {
    let (picture, rate) = (test.picture.name(), test.rate_bps);
    format!("{picture}-{rate}-{}.ts", test.frames_in_all())
}

/// Prepares ffmpeg without prompts and banner.
pub(crate) fn ffmpeg(log_level: &str) -> Command {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-nostdin", "-y", "-loglevel", log_level])
        .stdin(Stdio::null());
    command
}

/// Makes the clip and the list of its frames, unless they exist.
pub(crate) fn prepare(spec: &Prepare) -> Result<Prepared, VideoError> {
    let Prepare { test, folder } = spec;
    fs::create_dir_all(folder).map_err(VideoError::file("create", folder))?;
    let clip = folder.join(name(test));
    if !clip.exists() {
        // It gets its name only once it is complete.
        let unfinished = clip.with_extension("unfinished");
        make(test, &unfinished)?;
        // Atomic: a killed station leaves no clip that a later trial would take for whole.
        fs::rename(&unfinished, &clip).map_err(VideoError::file("rename", &unfinished))?;
    }
    let list = list_of(&clip);
    if !list.exists() {
        let hashes = serde_json::to_vec(&decoded(test, &clip)?)?;
        fs::write(&list, hashes).map_err(VideoError::file("write", &list))?;
    }
    let found = fs::metadata(&clip).map_err(VideoError::file("read", &clip))?;
    // Compared between the stations: another version of ffmpeg may encode another clip.
    let mut all = DefaultHasher::new();
    reference(test, folder)?.hash(&mut all);
    Ok(Prepared {
        clip_bytes: found.len(),
        frames_hash: all.finish(),
    })
}

/// Returns the hashes of the clip's frames, in order.
pub(crate) fn reference(test: &VideoTest, folder: &Path) -> Result<Vec<u64>, VideoError> {
    let list = list_of(&folder.join(name(test)));
    let bytes = read_bytes(&list, LIST_BYTES_MAX).map_err(VideoError::file("read", &list))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Decodes the clip and passes each frame to `each`, until that returns false.
pub(crate) fn decode(clip: &Path, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), VideoError> {
    let mut command = ffmpeg("error");
    command.arg("-i").arg(clip).args(RAW_FRAMES);
    let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(VideoError::system("start ffmpeg"))?;
    let read = child.stdout.take().map(Frames::new).map(|mut frames| {
        while let Some(frame) = frames.next()? {
            if !each(frame) {
                break;
            }
        }
        Ok(())
    });
    // `each` may have stopped before the end.
    let _ = child.kill();
    let _ = child.wait();
    read.unwrap_or(Ok(()))
        .map_err(VideoError::file("decode", clip))
}

/// ffmpeg's options to write the frames of a video to its standard output as they come.
pub(crate) const RAW_FRAMES: [&str; 9] = [
    "-map",
    "0:v:0",
    "-fps_mode",
    "passthrough",
    "-pix_fmt",
    "yuv420p",
    "-f",
    "yuv4mpegpipe",
    "pipe:1",
];

fn list_of(clip: &Path) -> PathBuf {
    clip.with_extension("frames")
}

fn make(test: &VideoTest, path: &Path) -> Result<(), VideoError> {
    let (width, height) = test.picture.pixels();
    let per_s = VideoTest::FRAMES_PER_S;
    let (frames, rate) = (test.frames_in_all(), test.rate_bps);
    let source = format!("testsrc2=size={width}x{height}:rate={per_s}");
    // One thread, so that every machine makes the same clip.
    let options = format!(
        "-frames:v {frames} -pix_fmt yuv420p -c:v libx264 -preset veryfast -threads 1 -g {per_s} -keyint_min {per_s} \
         -sc_threshold 0 -bf 0 -b:v {rate} -maxrate {rate} -bufsize {rate} -f mpegts"
    );
    let mut command = ffmpeg("error");
    command
        .args(["-f", "lavfi", "-i", &source])
        // None of the options has a blank in it.
        .args(options.split_whitespace())
        .arg(path);
    let ended = guard::output(&mut command, WORDS_BYTES_MAX);
    let ended = ended.map_err(VideoError::system("start ffmpeg"))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(VideoError::Clip {
        what: "make the clip",
        words: String::from_utf8_lossy(&ended.stderr).trim().to_owned(),
    })
}

/// Returns the hashes of all frames; each is unique, so it identifies its frame.
fn decoded(test: &VideoTest, clip: &Path) -> Result<Vec<u64>, VideoError> {
    let mut hashes = Vec::new();
    decode(clip, |frame| {
        hashes.push(hash(frame));
        true
    })?;
    // Two equal frames could not be distinguished when a player shows one of them.
    let distinct: HashSet<_> = hashes.iter().collect();
    let planned = test.frames_in_all();
    if hashes.len() as u64 == planned && distinct.len() == hashes.len() {
        return Ok(hashes);
    }
    Err(VideoError::Clip {
        what: "decode the clip that it made",
        words: format!(
            "of {planned} frames it shows {}, {} of them distinct",
            hashes.len(),
            distinct.len()
        ),
    })
}
