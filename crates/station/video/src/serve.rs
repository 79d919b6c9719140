//! The server: ffmpeg streaming over RTP, or Python's file server.

use crate::clip::{self, ffmpeg};
use crate::error::VideoError;
use crate::log;
use crate::relay;
use crate::rtp::{Packet, late};
use crate::spec::Serve;
use plan::VideoTransport;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A longer line is neither a request for streams nor a report on them.
const LINE_BYTES_MAX: u64 = 1 << 16;
/// [`RTP_MARKER`](crate::RTP_MARKER) without its last byte.
const SSRC: u32 = u32::from_be_bytes(*b"0123");

/// The receiver's request: streams to these of its ports.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) ports: Vec<u16>,
}

/// The server's report, once all streams have ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SenderReport {
    pub(crate) streams: Vec<SentStream>,
    /// Why it could not send the streams.
    pub(crate) failed: Option<String>,
}

/// The server's counts of one stream.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SentStream {
    /// The first packet's sequence number.
    pub(crate) first: u16,
    /// Packets that ffmpeg sent, including packets that the relay lost.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Packets lost on this station.
    pub(crate) lost: u64,
    /// Packets that were already late on this station.
    pub(crate) late: u64,
}

/// Serves as specified.
pub(crate) fn serve(spec: &Serve) -> Result<(), VideoError> {
    match spec.test.transport {
        VideoTransport::Rtp => stream(spec),
        VideoTransport::Http => files(spec),
    }
}

/// Becomes the file server; returns only on error.
fn files(spec: &Serve) -> Result<(), VideoError> {
    let mut server = Command::new("python3");
    server
        .args(["-m", "http.server", "--protocol", "HTTP/1.1", "--directory"])
        .arg(&spec.folder)
        .arg(spec.port.to_string())
        // It logs each request to its standard error.
        .stderr(Stdio::null());
    Err(VideoError::system("start python3")(server.exec()))
}

/// Streams to the first receiver that connects, and reports to it.
fn stream(spec: &Serve) -> Result<(), VideoError> {
    let talk = |error| VideoError::system("talk to the receiver")(error);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, spec.port)).map_err(talk)?;
    let (mut receiver, from) = listener.accept().map_err(talk)?;
    let mut line = String::new();
    let mut lines = BufReader::new(receiver.try_clone().map_err(talk)?);
    let mut lines = (&mut lines).take(LINE_BYTES_MAX);
    lines.read_line(&mut line).map_err(talk)?;
    let ask: Ask = serde_json::from_str(&line)?;
    // All streams begin together, as they load the path together.
    let streams = std::thread::scope(|scope| {
        let streams =
            ask.ports.iter().enumerate().map(|(number, &port)| {
                scope.spawn(move || one_stream(spec, number, from.ip(), port))
            });
        let streams: Vec<_> = streams.collect();
        let ended = streams.into_iter().map(|stream| {
            let ended = stream.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect::<Result<Vec<_>, VideoError>>()
    });
    let report = match &streams {
        Ok(streams) => SenderReport {
            streams: streams.clone(),
            failed: None,
        },
        Err(error) => SenderReport {
            failed: Some(error.to_string()),
            ..SenderReport::default()
        },
    };
    let report = serde_json::to_string(&report)?;
    let sent = writeln!(receiver, "{report}").map_err(talk);
    streams.and(sent)
}

/// Has ffmpeg send one stream to this program, which forwards and counts it.
fn one_stream(
    spec: &Serve,
    number: usize,
    receiver: IpAddr,
    port: u16,
) -> Result<SentStream, VideoError> {
    let from = relay::socket(Ipv4Addr::LOCALHOST, 0)?;
    let own = from.local_addr();
    let own = own.map_err(VideoError::system("read a socket's port"))?;
    let log = spec.folder.join(format!("sender-{number}.log"));
    let written = File::create(&log).map_err(VideoError::file("create", &log))?;
    let mut command = ffmpeg("error");
    command
        // At the rate of the clip's clock.
        .args(["-re", "-i"])
        .arg(spec.folder.join(clip::name(&spec.test)))
        .args(["-c", "copy", "-f", "rtp_mpegts", "-rtp_muxer_options"])
        .arg(format!("rtpflags=skip_rtcp:ssrc={SSRC}"))
        .arg(format!("rtp://{own}?pkt_size={}", spec.datagram_bytes))
        .stdout(Stdio::null())
        .stderr(written);
    let started = command.spawn();
    let mut child = started.map_err(VideoError::system("start ffmpeg"))?;
    let mut ended = None;
    let passed = relay::datagrams(
        &from,
        SocketAddr::new(receiver, port),
        Instant::now(),
        || {
            ended = child.try_wait().transpose();
            ended.is_some()
        },
    );
    let status = match ended {
        Some(ended) => ended,
        None => {
            let _ = child.kill();
            child.wait()
        }
    };
    let passed = passed.map_err(VideoError::system("send a stream"))?;
    let status = status.map_err(VideoError::system("wait for ffmpeg"))?;
    if !status.success() {
        let words = log::read(&log);
        return Err(VideoError::Clip {
            what: "send the clip",
            words: words.trim().to_owned(),
        });
    }
    Ok(sent(&passed))
}

/// Counts the packets that ffmpeg sent. It sends in order, so a gap is a loss at this socket.
fn sent(passed: &[Packet]) -> SentStream {
    let Some(first) = passed.first() else {
        return SentStream::default();
    };
    let gaps = passed.windows(2).map(|pair| {
        // Wrapping, as sequence numbers have 16 bits.
        let step = pair[1].sequence.wrapping_sub(pair[0].sequence);
        u64::from(step.saturating_sub(1))
    });
    let lost: u64 = gaps.sum();
    SentStream {
        first: first.sequence,
        packets: passed.len() as u64 + lost,
        bytes: passed.iter().map(|packet| packet.bytes).sum(),
        lost,
        late: late(passed),
    }
}

/// Reads the server's report.
pub(crate) fn read_report(from: impl Read) -> Result<SenderReport, VideoError> {
    let mut line = String::new();
    let read = BufReader::new(from.take(LINE_BYTES_MAX)).read_line(&mut line);
    read.map_err(VideoError::system("wait for the end of the streams"))?;
    if line.is_empty() {
        return Err(VideoError::NoReport);
    }
    let report: SenderReport = serde_json::from_str(&line)?;
    match report.failed {
        Some(why) => Err(VideoError::Sender(why)),
        None => Ok(report),
    }
}
