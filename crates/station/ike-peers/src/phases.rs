//! The phases of each load.

use crate::agenda::{Action, Agenda, Rate, Series};
use crate::engine::Engine;
use crate::error::PeersError;
use crate::report::{Back, Memory, Rekeys, Report, Standing, Storm, Traffic};
use crate::resources::{cpu_ns, memory_bytes};
use crate::sockets::Sockets;
use crate::spec::{Load, Rekeyed, Spec};
use crate::tally::Tally;
use crate::triggers::{Progress, Triggers};
use std::os::fd::AsFd;
use std::time::Duration;

/// Actions and timers in a row, before datagrams are read again: answers must not wait for starts.
const ACTIONS: usize = 16;
const TIMERS: usize = 64;
const PERCENT: [u8; 4] = [50, 90, 99, 100];
/// Pause between the preparation of a storm and its start, at least.
const HEADROOM_NS: u64 = 50_000_000;
/// After a stop all deletes begin within this time, in seconds.
const LEAVING_S: u32 = 2;
/// After a stop exchanges under way may take this time, in nanoseconds.
const GRACE_NS: u64 = 2_000_000_000;

/// When a phase is over.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// All actions have begun, and their exchanges are over.
    Settled,
    /// At this time.
    At(u64),
    /// The storm is triggered.
    Triggered,
}

/// The peers with their sockets, in one trial.
pub(crate) struct Station<'a> {
    pub(crate) engine: Engine,
    pub(crate) sockets: &'a mut Sockets,
    pub(crate) triggers: Triggers<'a>,
    pub(crate) patience_ns: u64,
    /// The process's memory before the first peer.
    pub(crate) before_bytes: Option<u64>,
    /// A stop was seen: peers that are up still leave, and nothing else begins.
    pub(crate) is_leaving: bool,
}

impl Station<'_> {
    /// Plays all phases.
    pub(crate) fn run(
        mut self,
        spec: &Spec,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, PeersError> {
        let mut report = Report::default();
        let all = u64::from(spec.peers);
        // Peers are set up a second time, and need their certificates until then.
        self.engine.sets_up_again = matches!(
            spec.load,
            Load::Churn { .. }
                | Load::Storm {
                    after_per_s: Some(_)
                }
        );
        if !matches!(spec.load, Load::Storm { after_per_s: None }) {
            progress(Progress::Ready);
        }
        match spec.load {
            Load::Setup { per_s } => {
                self.set_up(Some(Rate::per_s(per_s)), all)?;
                report.memory = self.memory();
            }
            Load::Concurrent { per_s, hold_ns } => {
                self.set_up(Some(Rate::per_s(per_s)), all)?;
                report.memory = self.memory();
                progress(Progress::Up(self.engine.up));
                report.standing = Some(self.hold(hold_ns)?);
            }
            Load::Storm { after_per_s } => {
                if let Some(per_s) = after_per_s {
                    self.before_storm(per_s, progress)?;
                }
                if !self.triggers.stop.is_raised() {
                    report.storm = Some(self.storm(after_per_s.is_some(), progress)?);
                    report.memory = self.memory();
                }
            }
            Load::Churn {
                per_s,
                duration_ns,
                lifetime_ns,
            } => {
                self.engine.lifetime_ns = Some(lifetime_ns);
                let count = u128::from(per_s) * u128::from(duration_ns) / 1_000_000_000;
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                self.set_up(Some(Rate::per_s(per_s)), count)?;
            }
            Load::Rekey {
                per_s,
                window_ns,
                what,
            } => {
                self.set_up(Some(Rate::per_s(per_s)), all)?;
                report.memory = self.memory();
                progress(Progress::Up(self.engine.up));
                if !self.triggers.stop.is_raised() {
                    self.rekey(window_ns, what)?;
                }
            }
            Load::HalfOpen { .. } => unreachable!("it has no sessions"),
        }
        report.is_partial = self.triggers.stop.is_raised();
        if let Some(per_s) = spec.delete_per_s {
            if report.is_partial {
                self.abort()?;
            } else {
                self.delete(per_s)?;
            }
        }
        self.fill(&mut report);
        Ok(report)
    }

    fn fill(self, report: &mut Report) {
        let engine = self.engine;
        report.setups = engine.setups.outcomes();
        report.deletes = engine.deletes.outcomes();
        report.traffic = engine.traffic;
        report.ignored = engine.ignored;
        let rekeys = engine.rekeys.outcomes();
        if rekeys.intended > 0 {
            report.rekeys = Some(Rekeys {
                outcomes: rekeys,
                same_exchanges: engine.exchanges[0],
                fewer_exchanges: engine.exchanges[1],
            });
        }
        if let Some(storm) = &mut report.storm {
            let setups = &report.setups;
            let after = |percent: u8| {
                let part = f64::from(percent) / 100.0;
                setups.latency.quantile(part, setups.intended)
            };
            storm.back = PERCENT
                .map(|percent| Back {
                    percent,
                    after_ns: after(percent),
                })
                .to_vec();
        }
    }

    fn set_up(&mut self, rate: Option<Rate>, count: u64) -> Result<(), PeersError> {
        self.set_up_from(self.engine.now_ns(), rate, count)
    }

    fn set_up_from(
        &mut self,
        begin_ns: u64,
        rate: Option<Rate>,
        count: u64,
    ) -> Result<(), PeersError> {
        self.engine.setups = Tally::new(begin_ns);
        self.engine.setups.counts().intended = count;
        let begin_cpu_ns = cpu_ns();
        let series = Series {
            action: Action::SetUp,
            begin_ns,
            rate,
            count,
            peers: self.engine.peer_count(),
        };
        self.play(series, Until::Settled)?;
        self.engine.setups.counts().cpu_ns = cpu_ns().saturating_sub(begin_cpu_ns);
        Ok(())
    }

    /// Peers stay up until the storm is triggered.
    fn before_storm(
        &mut self,
        per_s: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), PeersError> {
        self.set_up(Some(Rate::per_s(per_s)), self.engine.peer_count().into())?;
        progress(Progress::Up(self.engine.up));
        self.play(self.nothing(), Until::Triggered)
    }

    /// All peers begin, after they have forgotten their SAs if they had some.
    fn storm(
        &mut self,
        is_again: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Storm, PeersError> {
        let mut before = None;
        if is_again {
            self.engine.forget_all();
            let setups = std::mem::replace(&mut self.engine.setups, Tally::new(0));
            before = Some(setups.outcomes());
            self.engine.sets_up_again = false;
        }
        let from_ns = self.prepared();
        if !is_again {
            progress(Progress::Ready);
        }
        self.set_up_from(from_ns, None, self.engine.peer_count().into())?;
        Ok(Storm {
            before,
            back: Vec::new(),
        })
    }

    /// Makes the first requests of all peers; returns their start time.
    fn prepared(&mut self) -> u64 {
        let began_ns = self.engine.now_ns();
        self.engine.prepare(began_ns);
        let took_ns = self.engine.now_ns() - began_ns;
        // Again, for the time when this one will be over: the timers of requests begin then.
        let from_ns = self.engine.now_ns() + 2 * took_ns + HEADROOM_NS;
        self.engine.prepare(from_ns);
        from_ns
    }

    fn rekey(&mut self, window_ns: u64, what: Rekeyed) -> Result<(), PeersError> {
        let begin_ns = self.engine.now_ns();
        let peers = self.engine.peer_count();
        self.engine.rekeys = Tally::new(begin_ns);
        self.engine.rekeys.counts().intended = peers.into();
        let begin_cpu_ns = cpu_ns();
        let series = Series {
            action: match what {
                Rekeyed::Ike => Action::RekeyIke,
                Rekeyed::Child => Action::RekeyChild,
            },
            begin_ns,
            rate: Some(Rate {
                count: peers,
                in_ns: window_ns,
            }),
            count: peers.into(),
            peers,
        };
        self.play(series, Until::Settled)?;
        self.engine.rekeys.counts().cpu_ns = cpu_ns().saturating_sub(begin_cpu_ns);
        Ok(())
    }

    fn delete(&mut self, per_s: u32) -> Result<(), PeersError> {
        let begin_ns = self.engine.now_ns();
        // After a churn they go on.
        if self.engine.deletes.counts().intended == 0 {
            self.engine.deletes = Tally::new(begin_ns);
        }
        let peers = self.engine.peer_count();
        let series = Series {
            action: Action::Delete,
            begin_ns,
            rate: Some(Rate::per_s(per_s)),
            count: peers.into(),
            peers,
        };
        self.play(series, Until::Settled)
    }

    /// After a stop: exchanges under way end, then all peers leave at once, or nearly.
    fn abort(&mut self) -> Result<(), PeersError> {
        self.is_leaving = true;
        self.patience_ns = GRACE_NS;
        self.engine.lifetime_ns = None;
        self.play(self.nothing(), Until::Settled)?;
        self.delete(self.engine.peer_count().div_ceil(LEAVING_S))
    }

    fn hold(&mut self, hold_ns: u64) -> Result<Standing, PeersError> {
        let (begin_ns, begin_cpu_ns) = (self.engine.now_ns(), cpu_ns());
        let (up, before) = (self.engine.up, self.engine.standing);
        let repeated = self.engine.checks_repeated;
        self.play(self.nothing(), Until::At(begin_ns + hold_ns))?;
        let after = self.engine.standing;
        Ok(Standing {
            hold_ns: self.engine.now_ns() - begin_ns,
            up,
            left: self.engine.up,
            lost: self.engine.lost.clone(),
            retransmissions: self.engine.checks_repeated - repeated,
            traffic: Traffic {
                sent: after.sent - before.sent,
                sent_bytes: after.sent_bytes - before.sent_bytes,
                received: after.received - before.received,
                received_bytes: after.received_bytes - before.received_bytes,
            },
            cpu_ns: cpu_ns().saturating_sub(begin_cpu_ns),
        })
    }

    fn memory(&self) -> Option<Memory> {
        let (before_bytes, with_bytes) = (self.before_bytes?, memory_bytes()?);
        let peers = self.engine.up;
        Some(Memory {
            peers,
            before_bytes,
            with_bytes,
            bytes_per_peer: with_bytes.saturating_sub(before_bytes).checked_div(peers)?,
        })
    }

    fn nothing(&self) -> Series {
        Series {
            action: Action::SetUp,
            begin_ns: self.engine.now_ns(),
            rate: None,
            count: 0,
            peers: 1,
        }
    }

    /// One phase: actions, timers and datagrams in turn.
    fn play(&mut self, series: Series, until: Until) -> Result<(), PeersError> {
        let patient_ns = series.end_ns().saturating_add(self.patience_ns);
        let mut agenda = Agenda::new(series);
        let engine = &mut self.engine;
        while self.is_leaving || !self.triggers.stop.is_raised() {
            let now_ns = engine.now_ns();
            for _ in 0..ACTIONS {
                let Some(task) = agenda.due(now_ns) else {
                    break;
                };
                engine.act(task, self.sockets);
            }
            for _ in 0..TIMERS {
                let Some(peer) = engine.timers.due(now_ns) else {
                    break;
                };
                engine.tick(peer, self.sockets);
            }
            self.sockets.flush();
            engine.follow.drain(..).for_each(|task| agenda.add(task));
            let next = agenda.next_at();
            let limit_ns = match until {
                Until::Settled if next.is_none() && engine.busy == 0 => return Ok(()),
                // Deletes of a churn follow later than the last set-up.
                Until::Settled if next.is_none() && now_ns >= patient_ns => {
                    engine.give_up();
                    return Ok(());
                }
                Until::Settled if next.is_none() => Some(patient_ns),
                Until::Settled => None,
                Until::At(end_ns) if now_ns >= end_ns => return Ok(()),
                Until::At(end_ns) => Some(end_ns),
                Until::Triggered if self.triggers.storm.is_raised() => return Ok(()),
                Until::Triggered => None,
            };
            let times = [next, engine.timers.next(), limit_ns];
            let next_ns = times.into_iter().flatten().min();
            let wait = next_ns.map(|at| Duration::from_nanos(at.saturating_sub(engine.now_ns())));
            let stop = self.triggers.stop.as_fd();
            let flags = [stop, self.triggers.storm.as_fd()];
            let flags = match until {
                Until::Triggered => &flags[..],
                // It is raised already, and would end each wait.
                _ if self.is_leaving => &[],
                _ => &flags[..1],
            };
            self.sockets.wait(wait, flags)?;
            self.sockets.receive(|sockets, datagram, local, remote| {
                engine.receive(datagram, (local, remote), sockets);
            });
            self.sockets.flush();
        }
        Ok(())
    }
}
