//! One trial of IKEv2: simulated peers beside gw2 set up tunnels to gw1, open-loop.
//!
//! 1. Start the DUT, and let gw1 serve the peers.
//! 2. Offer loads, one after the other: the given rate, or those that a search asks for and its
//!    result once more. Each peer is set up once.
//! 3. When all set-ups of a load are over, ask the gateway for its IKE SAs; the peers then delete
//!    theirs, and the gateway must have forgotten them before the next load.
//! 4. Make every check of the load with the figures.

mod evidence;

use crate::command::{CommandError, Cores, sub_command};
use crate::counters::{Counters, CpuReading, by_machine};
use crate::error::TrialError;
use crate::measurer::{Trial, machines, with_dut};
use crate::quiet;
use crate::tools::{INTERRUPT_STEP, Tools};
use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Pem, Ppk, Report, Selectors, Sources, Spec,
};
use journal::record::{
    Cpu, Evidence, Figures, GatewaySas, IkeFailure, IkeResult, IkeSearch, IkeTrial, Measured,
    Outcome,
};
use plan::{Direction, IkeTest};
use search::{Bisection, Counts, Goal, Limits, Searcher, Step};
use std::time::{Duration, Instant};
use testbed::protocol::{Program, Ready, Request, Response};
use testbed::{Bench, IkeSas, Interrupt, LabError, NodeId, PeersGateway, PeersProof, RunningDut};

const SUB_COMMAND: &str = "ike-peers";
/// Peers stay up until they are told to leave.
const HOLD_NS: u64 = 3_600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Time for the peers to leave, and to report.
const LEAVE_LIMIT: Duration = Duration::from_secs(15);
/// Time for the gateway to forget half-open IKE SAs: strongSwan keeps them for 30 s.
const FORGET_LIMIT: Duration = Duration::from_secs(45);
const FORGET_STEP: Duration = Duration::from_millis(100);
/// Most time of a search.
const SEARCH_NS: u64 = 3_600 * SECOND_NS;
/// Rounds of a search and the load that confirms its result.
const CONFIRMATIONS_MAX: usize = 3;
/// Times that a load is offered if the generator was late: it then proves nothing about a gateway.
const TRIES: usize = 3;
/// Parts per thousand of the intended set-ups whose times are kept.
const PERMILLE: [u16; 5] = [500, 900, 990, 999, 1000];

/// Makes a trial of IKEv2.
pub(crate) fn attempt(
    bench: &mut dyn Bench,
    (trial, test): (&Trial<'_>, &IkeTest),
    interrupt: &Interrupt,
    words: &mut Vec<Vec<String>>,
) -> Result<Outcome, TrialError> {
    let stations = trial.cell.stations.ok_or(CommandError::NoStations)?;
    bench.configure(trial.links)?;
    let cores = Cores::assign(stations.cores, machines(bench)?)?;
    with_dut(bench, trial, Direction::Both, |bench, dut| {
        let impaired = crate::impaired::ImpairedPath::begin(bench, trial, dut)?;
        quiet::await_quiet(bench, interrupt)?;
        let gateway = bench.serve_peers()?;
        let mut peers = Peers {
            bench,
            dut,
            test,
            gateway,
            cores: cores.b,
            interrupt,
            trials: Vec::new(),
        };
        let found = peers.measure();
        words.push(peers.shown());
        let (figure, search, last) = found?;
        let impaired = impaired.as_ref().map(|path| path.end()).transpose()?;
        let trials = peers.trials;
        let mut evidence = Evidence {
            interfaces: last.interfaces,
            dut_facts: dut.facts.clone(),
            impaired,
            ..Evidence::default()
        };
        evidence.checks = evidence::checks(&trials[figure], &last.cpu);
        let objection = match search {
            Some(search) if search.lower_per_s.is_none() => Some(format!(
                "not even 1 set-up per second of which {} % completed in time was found",
                IkeTest::SHARE_PPM / 10_000
            )),
            _ => None,
        };
        let result = IkeResult {
            trials,
            figure,
            search,
        };
        let measured = Measured {
            figures: Figures::Ike(Box::new(result)),
            cpu: last.cpu,
            evidence,
            ..Measured::default()
        };
        Ok((measured, objection))
    })
}

/// Readings around a load.
#[derive(Default)]
struct Around {
    cpu: Cpu,
    interfaces: std::collections::BTreeMap<String, journal::record::InterfaceCounters>,
}

/// The place of the load with the figures, the search, and the readings around that load.
type FigureLoad = (usize, Option<IkeSearch>, Around);

struct Peers<'a> {
    bench: &'a dyn Bench,
    dut: &'a RunningDut,
    test: &'a IkeTest,
    gateway: PeersGateway,
    cores: Vec<u16>,
    interrupt: &'a Interrupt,
    trials: Vec<IkeTrial>,
}

impl Peers<'_> {
    fn measure(&mut self) -> Result<FigureLoad, TrialError> {
        if let Some(per_s) = self.test.setups_per_s {
            let around = self.offer_on_time(per_s)?;
            return Ok((self.trials.len() - 1, None, around));
        }
        let goal = Goal {
            loss_ratio_ppm: 1_000_000 - IkeTest::SHARE_PPM,
            exceed_ratio_ppm: 0,
            initial_trial_ns: self.test.duration_ns,
            final_trial_ns: self.test.duration_ns,
            duration_sum_ns: self.test.duration_ns,
            width_ppm: IkeTest::WIDTH_PPM,
        };
        let highest = self.test.up_to_per_s.into();
        let mut search = Bisection::rfc2544(&[goal], 1, highest, Limits::time(SEARCH_NS))?;
        let mut confirmed = None;
        for _ in 0..CONFIRMATIONS_MAX {
            while let Step::Measure(load) = search.next() {
                self.offer_on_time(u32::try_from(load.load).unwrap_or(u32::MAX))?;
                self.record(&mut search, load);
            }
            let Some(lower) = search.bounds(0).lower else {
                break;
            };
            let around = self.offer_on_time(u32::try_from(lower).unwrap_or(u32::MAX))?;
            let load = search::Trial {
                load: lower,
                duration_ns: self.test.duration_ns,
            };
            let is_carried = !self.counts().is_high_loss(goal.loss_ratio_ppm);
            confirmed = Some((self.trials.len() - 1, around));
            if is_carried {
                break;
            }
            // Evidence that contradicts the result is another trial of the search.
            self.record(&mut search, load);
        }
        let bounds = search.bounds(0);
        let found = IkeSearch {
            lower_per_s: bounds.lower,
            upper_per_s: bounds.upper,
        };
        let (figure, around) =
            confirmed.unwrap_or_else(|| (self.trials.len().saturating_sub(1), Around::default()));
        Ok((figure, Some(found), around))
    }

    fn record(&self, search: &mut Bisection, load: search::Trial) {
        let took_ns = load.duration_ns;
        search.record(load, self.counts(), took_ns);
    }

    /// The last load as a search counts it.
    fn counts(&self) -> Counts {
        let last = self.trials.last();
        Counts {
            intended: last.map_or(0, |trial| trial.intended),
            forwarded: last.map_or(0, |trial| trial.in_time),
        }
    }

    /// Offers a load, again if the generator itself was late; the last one counts.
    fn offer_on_time(&mut self, per_s: u32) -> Result<Around, TrialError> {
        let mut around = Around::default();
        for _ in 0..TRIES {
            let (trial, read) = self.offer(per_s)?;
            let is_on_time = evidence::is_on_schedule(&trial);
            self.trials.push(trial);
            around = read;
            if is_on_time {
                break;
            }
        }
        Ok(around)
    }

    fn offer(&self, per_s: u32) -> Result<(IkeTrial, Around), TrialError> {
        let before = self.bench.ike_sas()?;
        let counters = Counters::read(self.bench, self.dut)?;
        let gateway_ns = self.gateway_cpu_ns()?;
        let machines = by_machine(self.bench)?;
        let [node, _] = self.gateway.ends;
        let mut tools = Tools::new(self.bench);
        let process = tools.start(node, &self.program(per_s))?;
        let cpu = CpuReading::read(self.bench, &machines, tools.running(), self.dut)?;
        self.await_up(node, process)?;
        let up = self.bench.ike_sas()?;
        let spent = CpuReading::read(self.bench, &machines, tools.running(), self.dut)?.since(&cpu);
        let gateway_cpu_ns = self
            .gateway_cpu_ns()?
            .zip(gateway_ns)
            .map(|(after, before)| after.saturating_sub(before));
        let ended = tools.stop(node, process, LEAVE_LIMIT)?;
        let report = ended.stdout.lines().last().unwrap_or_default();
        let report: Report = serde_json::from_str(report).map_err(|_| TrialError::Tool {
            node: node.name(),
            problem: format!(
                "the simulated peers made no report ({}){}",
                ended.how(),
                ended.last_words()
            ),
        })?;
        let interfaces = Counters::read(self.bench, self.dut)?.interfaces_since(&counters);
        let after = self.await_forgotten(before)?;
        let gateway = GatewaySas {
            before: before.all,
            up: up.all,
            half_open: up.half_open,
            after: after.all,
        };
        let trial = trial_of(
            &report,
            (per_s, self.test.within_ns),
            gateway_cpu_ns,
            gateway,
        );
        Ok((
            trial,
            Around {
                cpu: spent,
                interfaces,
            },
        ))
    }

    /// Waits until all set-ups of a load are over.
    fn await_up(&self, node: NodeId, process: u64) -> Result<(), TrialError> {
        let limit = Duration::from_nanos(self.test.duration_ns) + IkeTest::PATIENCE + LEAVE_LIMIT;
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            self.interrupt.check()?;
            let request = Request::AwaitLine {
                process,
                prefix: "up ".to_owned(),
                limit_ms: INTERRUPT_STEP.as_millis() as u64 * 10,
            };
            match self.bench.node(node).call(request)? {
                Response::Line(Some(_)) => return Ok(()),
                Response::Line(None) => {}
                other => return Err(self.bench.node(node).unexpected(&other).into()),
            }
            if self.bench.node(node).status(process)?.is_some() {
                break;
            }
        }
        let ended = self.bench.node(node).stop(process, LEAVE_LIMIT)?;
        Err(TrialError::Tool {
            node: node.name(),
            problem: format!(
                "the simulated peers did not finish their set-ups ({}){}",
                ended.how(),
                ended.last_words()
            ),
        })
    }

    /// Waits until the gateway has as many IKE SAs as before; returns the last count.
    fn await_forgotten(&self, before: IkeSas) -> Result<IkeSas, TrialError> {
        let deadline = Instant::now() + FORGET_LIMIT;
        loop {
            let now = self.bench.ike_sas()?;
            if now.all <= before.all || Instant::now() > deadline {
                return Ok(now);
            }
            self.interrupt.check()?;
            std::thread::sleep(FORGET_STEP);
        }
    }

    /// CPU time of the processes of the gateway.
    fn gateway_cpu_ns(&self) -> Result<Option<u64>, LabError> {
        if self.dut.elsewhere {
            return Ok(None);
        }
        let [_, gateway] = self.gateway.ends;
        let here = self.dut.processes.iter().filter(|(id, _)| *id == gateway);
        let mut sum = 0;
        for &(id, process) in here {
            let time = self.bench.node(id).cpu_time(Some(process))?;
            sum += time.user_ns + time.system_ns;
        }
        Ok(Some(sum))
    }

    fn program(&self, per_s: u32) -> Program {
        let mut program = sub_command(SUB_COMMAND, &self.spec(per_s));
        program.argv.push("--station".to_owned());
        Program {
            cores: self.cores.clone(),
            ready: Ready::Line("ready".to_owned()),
            ..program
        }
    }

    fn spec(&self, per_s: u32) -> Spec {
        let gateway = &self.gateway;
        let peers = self.test.peers_at(per_s).max(1) as u32;
        let secret = |text: &String| Hidden(text.clone());
        Spec {
            gateway: gateway.address.into(),
            port: 500,
            nat_port: 4500,
            peers,
            sources: Sources::Addresses {
                first: gateway.first.into(),
                count: peers,
                port: gateway.ports[0],
                nat_port: gateway.ports[1],
            },
            identity: "peer-{n}.example".to_owned(),
            gateway_identity: Some(gateway.identity.clone()),
            authentication: match &gateway.proof {
                PeersProof::SharedKey(key) => Authentication::SharedKey(secret(key)),
                PeersProof::Certificates {
                    authority,
                    key,
                    trusted,
                } => Authentication::Certificates {
                    authority: Pem {
                        certificate: authority.clone(),
                        key: secret(key),
                    },
                    trusted: trusted.clone(),
                },
            },
            proposal: gateway.proposal.clone(),
            ppk: gateway.ppk.as_ref().map(|[identity, key]| Ppk {
                identity: identity.clone(),
                key: secret(key),
                required: true,
            }),
            selectors: Selectors {
                local: gateway.local.into(),
                remote_first: gateway.remote[0].into(),
                remote_last: gateway.remote[1].into(),
            },
            behaviour: Behaviour {
                patience_ns: IkeTest::PATIENCE.as_nanos() as u64,
                ..Behaviour::default()
            },
            load: Load::Concurrent {
                per_s,
                hold_ns: HOLD_NS,
            },
            delete_per_s: Some(per_s),
        }
    }

    /// The command of the last load, without secrets.
    fn shown(&self) -> Vec<String> {
        let rate = self.trials.last().map_or(0, |trial| trial.per_s);
        let [node, gateway] = self.gateway.ends;
        let spec = self.spec(u32::try_from(rate).unwrap_or(u32::MAX));
        format!(
            "cipherbench ike-peers {} --peers {} --rate {rate} --proposal {} --load concurrent # on {} against {}",
            spec.gateway,
            spec.peers,
            spec.proposal,
            node.name(),
            gateway.name()
        )
        .split(' ')
        .map(str::to_owned)
        .collect()
    }
}

/// A load by the generator's report.
fn trial_of(
    report: &Report,
    (per_s, within_ns): (u32, u64),
    gateway_cpu_ns: Option<u64>,
    gateway: GatewaySas,
) -> IkeTrial {
    let setups = &report.setups;
    let in_time = setups.latency.buckets.iter();
    let in_time = in_time.filter(|(upto_ns, _)| *upto_ns <= within_ns);
    let failed = setups.failed.iter().map(|(name, failure)| {
        let failure = IkeFailure {
            count: failure.count,
            example: failure.example.clone(),
        };
        (name.clone(), failure)
    });
    let times = PERMILLE.into_iter().filter_map(|permille| {
        let part = f64::from(permille) / 1000.0;
        let time = setups.latency.quantile(part, setups.intended)?;
        Some((permille, time))
    });
    IkeTrial {
        per_s: per_s.into(),
        intended: setups.intended,
        started: setups.started,
        completed: setups.completed,
        in_time: in_time.map(|(_, count)| count).sum(),
        failed: failed.collect(),
        latency_ns: times.collect(),
        late_p99_ns: setups.late_p99_ns().unwrap_or(0),
        elapsed_ns: setups.elapsed_ns,
        retransmissions: setups.retransmissions,
        cookies: setups.cookies,
        sent: setups.traffic.sent,
        sent_bytes: setups.traffic.sent_bytes,
        received: setups.traffic.received,
        received_bytes: setups.traffic.received_bytes,
        generator_lost: report.generator.missed + report.generator.unsent,
        generator_cpu_ns: setups.cpu_ns,
        gateway_cpu_ns,
        gateway,
    }
}
