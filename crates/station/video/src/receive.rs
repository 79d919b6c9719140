//! The receiver: players behind relays, and the frames that they showed.

use crate::clip;
use crate::error::VideoError;
use crate::player::{self, Playing};
use crate::relay;
use crate::rtp::{self, Packet};
use crate::serve::{Ask, SentStream, read_report};
use crate::shown::{Playback, watch};
use crate::spec::Receive;
use journal::record::{VideoResult, VideoStream};
use plan::VideoTransport;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// First port of the players on the loopback interface; each further one takes the next even port.
const PLAYER_PORT: u16 = 6004;
/// A player that shows nothing new for this long after a stream ends is done: VLC holds back a
/// second.
const QUIET_NS: u64 = 1_500_000_000;
/// Time after the end of the clip until a player is killed.
const LATE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);
/// Characters kept from the end of a player's output.
const WORDS_CHARS: usize = 300;

/// One player and the thread that reads its frames.
struct Screen {
    playing: Playing,
    seen: JoinHandle<io::Result<Playback>>,
    last_ns: Arc<AtomicU64>,
}

struct Receiver<'a> {
    spec: &'a Receive,
    /// Numbers of the clip's frames by their hashes.
    reference: Arc<HashMap<u64, usize>>,
    started: Instant,
}

/// Plays all streams, and returns what was received and shown.
pub(crate) fn receive(spec: &Receive) -> Result<VideoResult, VideoError> {
    let reference = clip::reference(&spec.test, &spec.folder)?;
    let receiver = Receiver {
        spec,
        reference: Arc::new(reference.into_iter().zip(0..).collect()),
        started: Instant::now(),
    };
    let streams = match spec.test.transport {
        VideoTransport::Rtp => receiver.rtp(),
        VideoTransport::Http => receiver.http(),
    }?;
    Ok(VideoResult {
        duration_ns: spec.test.duration_ns,
        streams,
    })
}

impl Receiver<'_> {
    fn rtp(&self) -> Result<Vec<VideoStream>, VideoError> {
        let over = Arc::new(AtomicBool::new(false));
        let mut screens = Vec::new();
        let mut relays = Vec::new();
        let mut ports = Vec::new();
        for number in 0..self.spec.test.streams {
            // Even ports: RTCP would use the odd one behind (RFC 3550 §11).
            let (port, player) = (self.spec.first_port + 2 * number, PLAYER_PORT + 2 * number);
            // Before the request: the player must listen when the first packet comes.
            screens.push(self.screen(player)?);
            let from = relay::socket(Ipv4Addr::UNSPECIFIED, port)?;
            let (started, over) = (self.started, Arc::clone(&over));
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, player));
            relays.push(thread::spawn(move || {
                relay::datagrams(&from, to, started, || over.load(Ordering::Relaxed))
            }));
            ports.push(port);
        }
        let sent = self.ask(Ask { ports })?;
        // The relays still run: late packets count, and players may hold frames back.
        self.await_quiet(&mut screens);
        over.store(true, Ordering::Relaxed);
        let mut streams = Vec::new();
        for ((screen, relay), sent) in screens.into_iter().zip(relays).zip(sent) {
            let passed = joined(relay).map_err(VideoError::system("receive a stream"))?;
            let counts = rtp::counts(sent.first, sent.packets, &passed);
            streams.push(VideoStream {
                sent_bytes: sent.bytes,
                received_bytes: passed.iter().map(|packet: &Packet| packet.bytes).sum(),
                sender_lost: sent.lost,
                sender_late: sent.late,
                rtp: Some(counts),
                ..self.shown(screen)?
            });
        }
        Ok(streams)
    }

    fn http(&self) -> Result<Vec<VideoStream>, VideoError> {
        let over = Arc::new(AtomicBool::new(false));
        let mut all = Vec::new();
        for number in 0..self.spec.test.streams {
            let player = PLAYER_PORT + 2 * number;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, player));
            let listener =
                listener.map_err(VideoError::system(format!("use TCP port {player}")))?;
            let bytes = Arc::new(AtomicU64::new(0));
            let (count, over) = (Arc::clone(&bytes), Arc::clone(&over));
            let server = SocketAddr::V4(self.spec.server);
            let relay = thread::spawn(move || relay::connections(&listener, server, &over, &count));
            all.push((self.screen(player)?, relay, bytes));
        }
        // A trial lasts as long as the clip, even if a player gives up immediately.
        let clip_end = self.started + Duration::from_nanos(self.spec.test.run_ns());
        let mut is_over = false;
        while !is_over {
            thread::sleep(STEP);
            let now = Instant::now();
            let mut screens = all.iter_mut();
            let have_ended = screens.all(|(screen, ..)| screen.playing.has_ended());
            is_over = now >= clip_end && (have_ended || now >= clip_end + LATE);
        }
        over.store(true, Ordering::Relaxed);
        let mut streams = Vec::new();
        for (screen, relay, bytes) in all {
            let shown = self.shown(screen)?;
            joined(relay).map_err(VideoError::system("pass connections on"))?;
            let received_bytes = bytes.load(Ordering::Relaxed);
            streams.push(VideoStream {
                // TCP delivers all that it sends, and no relay is on the server's side.
                sent_bytes: received_bytes,
                received_bytes,
                ..shown
            });
        }
        Ok(streams)
    }

    /// Starts a player and the thread that reads its frames.
    fn screen(&self, port: u16) -> Result<Screen, VideoError> {
        let test = &self.spec.test;
        let (playing, frames) = player::start(test, &self.spec.folder, &clip::name(test), port)?;
        let last_ns = Arc::new(AtomicU64::new(0));
        let (reference, last) = (Arc::clone(&self.reference), Arc::clone(&last_ns));
        let started = self.started;
        Ok(Screen {
            playing,
            seen: thread::spawn(move || watch(frames, &reference, started, &last)),
            last_ns,
        })
    }

    /// Asks the server to send, and waits until it has finished.
    fn ask(&self, ask: Ask) -> Result<Vec<SentStream>, VideoError> {
        let talk = |error| VideoError::system("talk to the server of the streams")(error);
        let mut server = TcpStream::connect(self.spec.server).map_err(talk)?;
        // The report comes when the streams have ended, so a silence as long as the clip is usual.
        let limit = Duration::from_nanos(self.spec.test.run_ns()) + LATE;
        server.set_read_timeout(Some(limit)).map_err(talk)?;
        let line = serde_json::to_string(&ask)? + "\n";
        server.write_all(line.as_bytes()).map_err(talk)?;
        let report = read_report(server)?;
        if report.streams.len() == ask.ports.len() {
            Ok(report.streams)
        } else {
            Err(VideoError::NoReport)
        }
    }

    /// Waits until no player shows anything new.
    fn await_quiet(&self, screens: &mut [Screen]) {
        let ended = self.started.elapsed();
        while self.started.elapsed() < ended + LATE {
            let now_ns = self.started.elapsed().as_nanos() as u64;
            let is_quiet = |screen: &mut Screen| {
                let last_ns = screen.last_ns.load(Ordering::Relaxed);
                let since_ns = now_ns.saturating_sub(last_ns.max(ended.as_nanos() as u64));
                since_ns > QUIET_NS || screen.playing.has_ended()
            };
            if screens.iter_mut().all(is_quiet) {
                return;
            }
            thread::sleep(STEP);
        }
    }

    /// Ends a player, and matches its frames with the clip.
    fn shown(&self, screen: Screen) -> Result<VideoStream, VideoError> {
        let words = screen.playing.end();
        let seen = joined(screen.seen).map_err(VideoError::system("read a player's frames"))?;
        let frames = seen.counts(&self.spec.test, &self.spec.folder)?;
        // Of a player that showed frames, nothing has to be explained.
        let skip = match frames.shown {
            0 => words.trim().chars().count().saturating_sub(WORDS_CHARS),
            _ => usize::MAX,
        };
        Ok(VideoStream {
            frames,
            player_words: words.trim().chars().skip(skip).collect(),
            ..VideoStream::default()
        })
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
