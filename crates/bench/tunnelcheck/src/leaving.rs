//! Sends marked packets through the tunnel, and copies what leaves this host meanwhile.

use crate::datagrams::{Datagrams, HEADER_BYTES, Kind};
use crate::findings::Seal;
use crate::interfaces::{beneath, interfaces, is_sealed_by_the_card, towards};
use crate::seal::{Burst, Left, MARK_BYTES, Watched, look};
use port::{Tap, TapSettings};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Packets of a burst.
const PACKETS: u32 = 40;
/// Payloads of both bursts: a tunnel adds the same to both. They pass every path.
const PAYLOADS: [u16; 2] = [301, 509];
/// Time between packets, so that each travels alone; longer if a busy encryptor joined them.
const PACES: [Duration; 3] = [
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(25),
];
/// Time for the last packets to leave.
const REST: Duration = Duration::from_millis(100);
const SNAP_BYTES: u32 = 2048;
/// Frames that are kept of an interface and a burst: a busy link must not fill memory.
const FRAMES_MAX: usize = 4000;

/// How known packets to the other end leave this host. Never an error: a reason is an answer.
pub(crate) fn leaving(datagrams: &Datagrams, peer: IpAddr, interrupt: &Interrupt) -> Seal {
    seal(datagrams, peer, interrupt).unwrap_or_else(|reason| Seal::Unknown { reason })
}

fn seal(datagrams: &Datagrams, peer: IpAddr, interrupt: &Interrupt) -> Result<Seal, String> {
    let top = towards(peer)?;
    let all = interfaces()?;
    if all
        .iter()
        .any(|known| known.name == top && known.is_loopback())
    {
        return Err("the other end is this host: nothing leaves it".to_owned());
    }
    if is_sealed_by_the_card() {
        return Err(
            "a network card encrypts (IPsec offload), beyond what its host sees".to_owned(),
        );
    }
    let names = beneath(&all, &top);
    if names.is_empty() {
        return Err(format!("no interface is up beneath {top}"));
    }
    let mut taps = Vec::new();
    for name in &names {
        let settings = TapSettings {
            interface: name,
            snap_bytes: SNAP_BYTES,
            one_in: 1,
        };
        let tap = Tap::open(settings).map_err(|error| refused(name, &error))?;
        taps.push((name.clone(), tap));
    }
    let mark = mark().map_err(|error| format!("no random bytes: {error}"))?;
    for pace in PACES {
        let watched = watch(datagrams, &mut taps, (&mark, pace), interrupt)?;
        if let Some(seal) = look(&watched, &mark, PACKETS) {
            return Ok(seal);
        }
    }
    let names = names.join(", ");
    Err(format!(
        "the packets were not found on {names}: joined, compressed or padded?"
    ))
}

/// Sends both bursts, and returns what left.
fn watch(
    datagrams: &Datagrams,
    taps: &mut [(String, Tap)],
    (mark, pace): (&[u8; MARK_BYTES], Duration),
    interrupt: &Interrupt,
) -> Result<Vec<Watched>, String> {
    let mut watched: Vec<Watched> = taps
        .iter()
        .map(|(name, _)| Watched {
            interface: name.clone(),
            bursts: Vec::new(),
        })
        .collect();
    for payload in PAYLOADS {
        for number in 0..PACKETS {
            if interrupt.is_set() {
                return Err("interrupted".to_owned());
            }
            datagrams
                .send(Kind::Marked, number, (payload.into(), mark))
                .map_err(|error| format!("marked packets cannot be sent: {error}"))?;
            std::thread::sleep(pace);
        }
        let inner_bytes = u32::from(payload + datagrams.ip_bytes());
        for ((_, tap), watched) in taps.iter_mut().zip(&mut watched) {
            let frames = drain(tap).map_err(|error| format!("packets cannot be read: {error}"))?;
            watched.bursts.push(Burst {
                inner_bytes,
                same_bytes: usize::from(payload) - HEADER_BYTES,
                frames,
            });
        }
    }
    Ok(watched)
}

/// The frames that left since the last call.
fn drain(tap: &mut Tap) -> io::Result<Vec<Left>> {
    let mut frames = Vec::new();
    let end = Instant::now() + REST;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let read = tap.read(left, |frame| {
            if frame.is_outgoing && frames.len() < FRAMES_MAX {
                frames.push(Left {
                    whole_bytes: frame.whole_bytes,
                    bytes: frame.bytes.to_vec(),
                });
            }
        })?;
        if read == 0 && left.is_zero() {
            return Ok(frames);
        }
    }
}

fn mark() -> io::Result<[u8; MARK_BYTES]> {
    let mut mark = [0; MARK_BYTES];
    getrandom::fill(&mut mark).map_err(io::Error::other)?;
    Ok(mark)
}

fn refused(interface: &str, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "needs root on this host".to_owned()
    } else {
        format!("cannot look at {interface}: {error}")
    }
}
