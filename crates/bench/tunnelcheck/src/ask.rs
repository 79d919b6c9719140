//! The end that asks: it drives the check, step after step.

use crate::asker::{ANSWER_LIMIT, Asker, Question, unexpected};
use crate::connection::connect;
use crate::error::CheckError;
use crate::findings::{Findings, OffloadFindings, PerDirection, Seal, Stream};
use crate::leaving::leaving;
use crate::listen::{TAIL, facts};
use crate::message::{Answer, Ask, STREAM_MS_MAX};
use crate::pings::pings;
use crate::under_test::under_test;
use crate::{path_mtu, stream, trying};
use probe::PathMtu;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const IDLE_PINGS: u32 = 100;

/// Makes the check.
///
/// # Errors
/// [`CheckError`] if there is no answer at all: a step without a result is a finding.
pub fn ask(question: &Question<'_>) -> Result<Findings, CheckError> {
    let begun = Instant::now();
    let mut asker = Asker::begin(question)?;
    if question.offloads {
        asker.may_try_offloads()?;
    }
    let seal = asker.seal()?;
    let mtu = asker.mtu()?;
    let idle = asker.idle()?;
    let streams = PerDirection {
        from_here: asker.stream_from_here()?,
        to_here: asker.stream_to_here()?,
    };
    let offloads = if question.offloads {
        asker.step("searching the offload that hurts\n")?;
        Some(asker.offloads(&seal.from_here, &mtu)?)
    } else {
        None
    };
    // The listener has given everything; one that is gone does not matter.
    let _ = asker.connection.write(&Ask::Bye);
    Ok(Findings {
        peer: question.peer.ip().to_string(),
        here: facts(question.peer.ip()),
        there: asker.there,
        seal,
        mtu,
        idle,
        streams,
        offloads,
        took_ms: begun.elapsed().as_millis() as u64,
    })
}

impl Asker<'_> {
    /// Refuses to try offloads where an ssh session could be cut, before anything is measured.
    fn may_try_offloads(&mut self) -> Result<(), CheckError> {
        let refuse = |end, reason| Err(CheckError::NoOffloads { end, reason });
        if let Err(reason) = under_test(self.peer(), None) {
            return refuse("here", reason);
        }
        match self.request(&Ask::MayTry, ANSWER_LIMIT, "looked for ssh sessions")? {
            Answer::MayTry { refused: None } => Ok(()),
            Answer::MayTry {
                refused: Some(reason),
            } => refuse("there", reason),
            other => Err(unexpected(&other)),
        }
    }

    fn offloads(
        &mut self,
        seal: &Seal,
        mtu: &PerDirection<Result<PathMtu, String>>,
    ) -> Result<Result<OffloadFindings, String>, CheckError> {
        let passed = [&mtu.from_here, &mtu.to_here].map(|found| match found {
            Ok(found) => Some(found.passed_bytes),
            Err(_) => None,
        });
        let least = passed.into_iter().flatten().min();
        trying::offloads(self, seal.interface(), least)
    }

    fn seal(&mut self) -> Result<PerDirection<Seal>, CheckError> {
        self.step("sending marked packets, and looking at what leaves both hosts\n")?;
        let from_here = match &self.datagrams {
            Ok(datagrams) => leaving(datagrams, self.peer(), self.question.interrupt),
            Err(reason) => {
                let reason = reason.clone();
                return Ok(PerDirection {
                    from_here: Seal::Unknown {
                        reason: reason.clone(),
                    },
                    to_here: Seal::Unknown { reason },
                });
            }
        };
        let during = "looked at its packets";
        match self.request(&Ask::Leaving, ANSWER_LIMIT, during)? {
            Answer::Leaving { seal } => Ok(PerDirection {
                from_here,
                to_here: seal,
            }),
            other => Err(unexpected(&other)),
        }
    }

    fn mtu(&mut self) -> Result<PerDirection<Result<PathMtu, String>>, CheckError> {
        self.step("searching the largest packet that passes\n")?;
        let from_here = match &self.datagrams {
            Ok(datagrams) => path_mtu::find(datagrams, self.round_trip, self.question.interrupt),
            Err(reason) => {
                return Ok(PerDirection {
                    from_here: Err(reason.clone()),
                    to_here: Err(reason.clone()),
                });
            }
        };
        self.step("")?;
        let limit = path_mtu::LIMIT + ANSWER_LIMIT;
        match self.request(&Ask::Mtu, limit, "searched its largest packet")? {
            Answer::Mtu { found } => Ok(PerDirection {
                from_here,
                to_here: found,
            }),
            other => Err(unexpected(&other)),
        }
    }

    fn idle(&self) -> Result<Result<crate::RoundTrips, String>, CheckError> {
        self.step("timing round trips without load\n")?;
        let datagrams = match &self.datagrams {
            Ok(datagrams) => datagrams,
            Err(reason) => return Ok(Err(reason.clone())),
        };
        let interrupt = self.question.interrupt;
        Ok(pings(datagrams, |sent| {
            sent < IDLE_PINGS && !interrupt.is_set()
        }))
    }

    fn stream_from_here(&mut self) -> Result<Result<Stream, String>, CheckError> {
        let seconds = self.question.seconds;
        self.step(&format!("TCP from here for {seconds} s\n"))?;
        let stream = match self.join(&Ask::Receive { ms: self.ms() })? {
            Ok(stream) => stream,
            Err(reason) => return Ok(Err(reason)),
        };
        let (time, interrupt) = (self.time() + TAIL, self.question.interrupt);
        let (own, round_trips) = self.loaded(|| stream::send(stream, time, interrupt));
        match self.end_of_stream()? {
            Answer::Received { report } => Ok(report.and_then(|receiver| {
                Ok(Stream {
                    sender: own.map_err(|error| error.to_string())?,
                    receiver,
                    round_trips,
                })
            })),
            other => Err(unexpected(&other)),
        }
    }

    fn stream_to_here(&mut self) -> Result<Result<Stream, String>, CheckError> {
        let seconds = self.question.seconds;
        self.step(&format!("TCP to here for {seconds} s\n"))?;
        let stream = match self.join(&Ask::Send { ms: self.ms() })? {
            Ok(stream) => stream,
            Err(reason) => return Ok(Err(reason)),
        };
        let (time, interrupt) = (self.time(), self.question.interrupt);
        let (own, round_trips) = self.loaded(|| stream::receive(stream, time, interrupt));
        match self.end_of_stream()? {
            Answer::Sent { report } => Ok(report.and_then(|sender| {
                Ok(Stream {
                    sender,
                    receiver: own.map_err(|error| error.to_string())?,
                    round_trips,
                })
            })),
            other => Err(unexpected(&other)),
        }
    }

    fn ms(&self) -> u32 {
        (self.question.seconds * 1000).clamp(2000, STREAM_MS_MAX)
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.ms().into())
    }

    /// Opens the connection of a stream.
    fn join(&mut self, ask: &Ask) -> Result<Result<TcpStream, String>, CheckError> {
        match self.request(ask, ANSWER_LIMIT, "began a stream")? {
            Answer::Ready {} => {}
            other => return Err(unexpected(&other)),
        }
        let joined = connect(self.question.peer, false).and_then(|mut stream| {
            stream.write_all(self.question.token.digits().as_bytes())?;
            Ok(stream)
        });
        match joined {
            Ok(stream) => Ok(Ok(stream)),
            Err(error) => {
                // The listener answers once it has given up.
                self.end_of_stream()?;
                Ok(Err(format!("no second connection: {error}")))
            }
        }
    }

    /// Pings while `work` is done.
    fn loaded<T: Send>(&self, work: impl FnOnce() -> T + Send) -> (T, Option<crate::RoundTrips>) {
        let Ok(datagrams) = &self.datagrams else {
            return (work(), None);
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let pinging = scope.spawn(|| pings(datagrams, |_| !is_over.load(Ordering::Relaxed)));
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            let round_trips = pinging.join().ok().and_then(Result::ok);
            (done, round_trips)
        })
    }

    fn end_of_stream(&mut self) -> Result<Answer, CheckError> {
        let read = self.connection.read(self.time() + ANSWER_LIMIT);
        read.map_err(|silence| silence.during("ended a stream"))
    }
}
