//! Players: ffmpeg and VLC, which write the frames they show to a pipe.
//!
//! VLC refuses to run as root, so it runs as `nobody`, which owns the pipe and a home folder. It
//! has no more rights than this program, and the same network.

use crate::clip::{RAW_FRAMES, ffmpeg};
use crate::error::VideoError;
use crate::log;
use nix::unistd::{Gid, Uid, User, chown, fchown};
use plan::{Player, VideoTest, VideoTransport};
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that ffmpeg analyses a stream before it shows it, in microseconds. Its default for
/// transport streams, five seconds, would delay a live stream by that time.
const ANALYZE_US: &str = "1000000";
/// Id of `nobody` if the system has no user of that name.
const NOBODY: u32 = 65_534;
/// Time for a player to open its port.
const BOUND_LIMIT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(10);

/// A running player; killed on drop.
pub(crate) struct Playing {
    pub(crate) child: Child,
    log: PathBuf,
}

/// Starts the player of one stream, which is read from this port of the loopback interface. `path`
/// is the clip's path over HTTP. Returns the pipe with its frames.
pub(crate) fn start(
    test: &VideoTest,
    folder: &Path,
    path: &str,
    port: u16,
) -> Result<(Playing, PipeReader), VideoError> {
    // A pipe, not a file: the time of each frame is when the player writes it.
    let (frames, write) = io::pipe().map_err(VideoError::system("make a pipe"))?;
    let log = folder.join(format!("player-{port}.log"));
    let words = File::create(&log).map_err(VideoError::file("create", &log))?;
    let mut command = match test.player {
        Player::Ffmpeg => of_ffmpeg(test.transport, folder, path, port)?,
        Player::Vlc => {
            let prepared = prepare_vlc(folder, &write);
            let (user, home) =
                prepared.map_err(VideoError::system("prepare VLC's pipe and home"))?;
            let mut command = of_vlc(test.transport, path, port);
            command.uid(user.0.as_raw()).gid(user.1.as_raw());
            command.env("HOME", home);
            command
        }
    };
    let program = test.player.program();
    let started = command.stdout(write).stderr(words).spawn();
    let child = started.map_err(|error| match error.raw_os_error().map(nix::Error::from_raw) {
        Some(nix::Error::EINVAL | nix::Error::EPERM) => VideoError::system(format!(
            "start {program} as `nobody`, and VLC refuses to run as root: run as root instead of in a user namespace, \
             or measure `player: ffmpeg`"
        ))(error),
        _ => VideoError::system(format!("start {program}"))(error),
    })?;
    let mut playing = Playing { child, log };
    // Over RTP nothing is sent again, so packets before the player listens would be lost to it.
    if test.transport == VideoTransport::Rtp {
        playing.await_bound(port)?;
    }
    Ok((playing, frames))
}

fn of_ffmpeg(
    transport: VideoTransport,
    folder: &Path,
    path: &str,
    port: u16,
) -> Result<Command, VideoError> {
    let mut command = ffmpeg("warning");
    command.args(["-analyzeduration", ANALYZE_US]);
    match transport {
        VideoTransport::Rtp => {
            // Given the URL, ffmpeg would first read one packet and close the port meanwhile.
            let description = folder.join(format!("{port}.sdp"));
            let text = format!(
                "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 33\n"
            );
            let written = fs::write(&description, text);
            written.map_err(VideoError::file("write", &description))?;
            command.args(["-protocol_whitelist", "file,rtp,udp", "-i"]);
            command.arg(description);
        }
        VideoTransport::Http => {
            // At the rate of the clip's clock, as a viewer would watch it.
            command.args(["-re", "-i", &url(path, port)]);
        }
    }
    command.args(RAW_FRAMES);
    Ok(command)
}

fn of_vlc(transport: VideoTransport, path: &str, port: u16) -> Command {
    let mut command = Command::new("cvlc");
    command.args(["--no-audio", "--no-spu", "--no-osd", "--no-dbus"]);
    command.args(["--no-video-title-show", "--play-and-exit"]);
    // The output module that writes each frame at its presentation time.
    command.args(["--vout=yuv", "--yuv-file=/dev/stdout"]);
    command.arg(match transport {
        VideoTransport::Rtp => format!("rtp://127.0.0.1:{port}"),
        VideoTransport::Http => url(path, port),
    });
    command.stdin(Stdio::null());
    command
}

fn url(path: &str, port: u16) -> String {
    format!("http://127.0.0.1:{port}/{path}")
}

/// Gives the pipe to VLC's user, and creates a home folder for it.
fn prepare_vlc(folder: &Path, pipe: &io::PipeWriter) -> io::Result<((Uid, Gid), PathBuf)> {
    let nobody = User::from_name("nobody").ok().flatten();
    let of_number = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    let (uid, gid) = nobody.map_or(of_number, |user| (user.uid, user.gid));
    let home = folder.join("home");
    fs::create_dir_all(&home)?;
    // `nobody` has no home, and VLC writes its settings there.
    chown(&home, Some(uid), Some(gid))?;
    fchown(pipe, Some(uid), Some(gid))?;
    Ok(((uid, gid), home))
}

impl Playing {
    /// Waits until the player has bound its port.
    fn await_bound(&mut self, port: u16) -> Result<(), VideoError> {
        let begun = Instant::now();
        while begun.elapsed() < BOUND_LIMIT {
            let sockets = fs::read_to_string("/proc/net/udp");
            let sockets = sockets.map_err(VideoError::system("read /proc/net/udp"))?;
            // Of a player that has ended, the result reports no frames.
            if is_bound(&sockets, port) || self.has_ended() {
                break;
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the player and returns its output.
    pub(crate) fn end(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        log::read(&self.log)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the kernel's socket list contains a socket bound to the port.
fn is_bound(sockets: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    let locals = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    locals.into_iter().any(|local| local.ends_with(&end))
}
