//! Trials over HTTP: rates and times with the terms of RFC 9411, and what limited them.

use crate::figures::bulk::CpuResult;
use crate::figures::estimate::Estimate;
use crate::figures::latency::Distribution;
use crate::figures::repeats::{Total, estimate, per_second, ratio};
use journal::record::{Cpu, HttpResult, HttpTimes, Measured, TimeBucket};
use plan::{Cell, HttpServer, HttpTest, Store};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A station is full if it uses at least this share of its cores, and a store if it takes at least
/// this share of its direct rate.
const FULL_RATIO: f64 = 0.9;

/// Transactions over HTTP. Rates are of the sustain phase; they count transactions that brought the
/// whole object.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HttpFigures {
    /// Bits of objects received by the client per second.
    pub object_throughput_bps: Estimate,
    /// Transactions per second.
    pub transactions_per_s: Estimate,
    /// Connections established per second, TLS included; `null`: the client does not report them.
    pub connections_per_s: Option<Estimate>,
    /// Most connections open at one time, over all repeats; `null`: the client does not report
    /// them.
    pub connections_most: Option<u64>,
    /// Transactions begun in all phases, over all repeats.
    pub transactions_attempted: u64,
    /// Of these, failed.
    pub transactions_failed: u64,
    /// Times by size of the objects; empty: the client does not report them.
    pub times: Vec<HttpTimesResult>,
    /// Rate of the client's store for files of the same sizes, written directly right after the
    /// transfer, in bit/s; `null` if the client stores none.
    pub direct_write_bps: Option<Estimate>,
    /// Cores that a client of files kept busy while it ran; `null` for others.
    pub client_cores: Option<Estimate>,
    /// What limited the figures, by the evidence.
    pub limit: HttpLimit,
}

/// Times of the transactions with objects of one size, all repeats pooled.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HttpTimesResult {
    /// Size of the objects in bytes.
    pub object_bytes: u64,
    /// To the first byte (TTFB).
    pub first_byte: Percentiles,
    /// To the last byte (TTLB).
    pub last_byte: Percentiles,
}

/// Percentiles of times, resolved to 1 %. One is `null` if fewer than one time would exceed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Percentiles {
    /// Number of times.
    pub n: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
}

/// What limited the figures of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HttpLimit {
    /// The intended rate of transactions, which was carried.
    IntendedRate,
    /// CPU time of the client.
    Client,
    /// CPU time of the server.
    Server,
    /// The client's disk: files arrived as fast as it takes them.
    Disk,
    /// The client's RAM disk, likewise.
    RamDisk,
    /// CPU time of the device under test: all threads of both its gateways were full.
    Device,
    /// CPU time of the machine, used by any program: hardly any core was idle.
    Machine,
    /// None of these was full. The limit is unknown: the path, its encryptors, round trips, or a
    /// server or client that waits without using its core.
    Unknown,
}

impl HttpLimit {
    /// For people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::IntendedRate => "intended rate",
            Self::Client => "CPU of the client",
            Self::Server => "CPU of the server",
            Self::Disk => "disk of the client",
            Self::RamDisk => "RAM disk of the client",
            Self::Device => "CPU of the device",
            Self::Machine => "CPU of the machine",
            Self::Unknown => "unknown",
        }
    }
}

impl HttpFigures {
    /// `None` if a repeat has no figure, or without repeats.
    pub(crate) fn of(cell: &Cell, test: &HttpTest, measured: &[(u32, &Measured)]) -> Option<Self> {
        let trials: Vec<(u32, &HttpResult)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.http()?)))
            .collect();
        let rate = |count: fn(&HttpResult) -> Option<u64>| {
            estimate(&trials, |http| per_second(count(http)?, http.duration_ns))
        };
        let sum =
            |count: fn(&HttpResult) -> u64| trials.iter().map(|(_, http)| count(http)).total();
        let throughput = rate(|http| Some(http.object_bytes))?.scaled(8.0);
        let direct = estimate(&trials, |http| {
            Some(8.0 * http.stored?.direct_bytes_per_s as f64)
        });
        let client_cores = estimate(&trials, |http| {
            ratio(http.stored?.client_cpu_ns, http.duration_ns)
        });
        let most = trials.iter().filter_map(|(_, http)| http.connections_most);
        Some(Self {
            transactions_per_s: rate(|http| Some(http.transactions))?,
            connections_per_s: rate(|http| http.connections),
            connections_most: most.max(),
            transactions_attempted: sum(|http| http.attempted),
            transactions_failed: sum(HttpResult::failures),
            times: times(&trials),
            limit: limit(
                (cell, test),
                measured,
                client_cores.as_ref(),
                (&throughput, direct.as_ref()),
            ),
            object_throughput_bps: throughput,
            direct_write_bps: direct,
            client_cores,
        })
    }
}

/// The first of the possible limits that is full.
fn limit(
    (cell, test): (&Cell, &HttpTest),
    measured: &[(u32, &Measured)],
    client_cores: Option<&Estimate>,
    (throughput, direct): (&Estimate, Option<&Estimate>),
) -> HttpLimit {
    if test.transactions_per_s.is_some() {
        // A cell that did not carry its rate has no figure.
        return HttpLimit::IntendedRate;
    }
    if direct.is_some_and(|direct| throughput.mean >= FULL_RATIO * direct.mean) {
        return match test.store {
            Store::Disk => HttpLimit::Disk,
            Store::Ram => HttpLimit::RamDisk,
        };
    }
    let cpu = CpuResult::of(measured);
    let cpu = cpu.as_ref();
    let cores = f64::from(cell.stations.map_or(1, |stations| stations.cores));
    // Python runs one thread at a time.
    let of_server = match test.server {
        HttpServer::Nginx | HttpServer::Plain => cores,
        HttpServer::Python => 1.0,
    };
    let is_full = |busy: Option<&Estimate>, cores: f64| {
        busy.is_some_and(|busy| busy.mean >= FULL_RATIO * cores)
    };
    // wget2 pauses between batches while files are compared. The cores of its running time alone
    // show whether it is full.
    let client = client_cores.or(cpu.map(|cpu| &cpu.station_a_cores));
    let server = cpu.map(|cpu| &cpu.station_b_cores);
    // From the specific to the general: a full station also makes the machine look full.
    if is_full(server, of_server) {
        HttpLimit::Server
    } else if is_full(client, cores) {
        HttpLimit::Client
    } else if is_full(
        cpu.and_then(|cpu| cpu.dut_cores.as_ref()),
        device_threads(cell),
    ) {
        HttpLimit::Device
    } else if is_machine_full(measured) {
        HttpLimit::Machine
    } else {
        HttpLimit::Unknown
    }
}

/// Threads of our encryptor on both gateways; of others it is not known how many there are.
fn device_threads(cell: &Cell) -> f64 {
    let encryptor = cell.dut.adapter.encryptor();
    // An infinite number of threads is never full.
    encryptor.map_or(f64::INFINITY, |found| 2.0 * f64::from(found.workers))
}

/// Whether the cores of a machine were busy in every repeat, except for a small share of their
/// time: of the only one, or of one of two hosts, each of which can be the limit.
fn is_machine_full(measured: &[(u32, &Measured)]) -> bool {
    let on_a = |cpu: &Cpu| Some((cpu.busy_ns, cpu.idle_ns?));
    let on_b = |cpu: &Cpu| cpu.machine_b.map(|host| (host.busy_ns, host.idle_ns));
    let is_full = |times: &dyn Fn(&Cpu) -> Option<(u64, u64)>| {
        measured.iter().all(|(_, found)| {
            // A repeat without idle time on record shows nothing, so its machine does not count as
            // full.
            let share = times(&found.cpu)
                .and_then(|(busy_ns, idle_ns)| ratio(idle_ns, idle_ns.saturating_add(busy_ns)));
            share.is_some_and(|share| share <= 1.0 - FULL_RATIO)
        })
    };
    is_full(&on_a) || is_full(&on_b)
}

fn times(trials: &[(u32, &HttpResult)]) -> Vec<HttpTimesResult> {
    let Some((_, first)) = trials.first() else {
        return Vec::new();
    };
    // Sizes are of the plan, and so the same in every repeat.
    let sizes = first.objects.iter().map(|times| times.object_bytes);
    let of_size = |object_bytes: u64| {
        let all = || {
            let objects = trials.iter().flat_map(|(_, http)| &http.objects);
            objects.filter(move |times| times.object_bytes == object_bytes)
        };
        Some(HttpTimesResult {
            object_bytes,
            first_byte: percentiles(all(), |times| &times.first_byte)?,
            last_byte: percentiles(all(), |times| &times.last_byte)?,
        })
    };
    sizes.filter_map(of_size).collect()
}

fn percentiles<'t>(
    all: impl Iterator<Item = &'t HttpTimes>,
    of: fn(&HttpTimes) -> &Vec<TimeBucket>,
) -> Option<Percentiles> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for bucket in all.flat_map(of) {
        let count = counts.entry(bucket.upto_ns).or_default();
        *count = count.saturating_add(bucket.count);
    }
    let pooled = Distribution::of(counts)?;
    let n = pooled.n();
    let at = |beyond_ppb: u64| {
        let beyond = u128::from(n) * u128::from(beyond_ppb);
        (beyond >= 1_000_000_000).then(|| pooled.at(beyond_ppb))
    };
    Some(Percentiles {
        n,
        p50_ns: pooled.at(500_000_000),
        p90_ns: at(100_000_000),
        p99_ns: at(10_000_000),
        p99_9_ns: at(1_000_000),
        max_ns: pooled.at(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{Figures, HttpStored, MachineCpu};
    use plan::{Adapter, Dut, Encryptor, HttpClient, Measurement, Stations};

    const SECOND_NS: u64 = 1_000_000_000;

    fn cell(test: HttpTest) -> Cell {
        Cell {
            id: "http/direct".into(),
            group: "http".into(),
            coordinates: Vec::new(),
            dut: Dut::new("direct", Adapter::Direct),
            stations: Some(Stations {
                mtu: 1500,
                cores: 1,
                offloads: true,
                overlay: plan::Overlay::None,
                dscp: None,
            }),
            measurement: Measurement::Http(test),
            impair: None,
            tune: false,
            estimate_ns: 0,
            calibration: false,
        }
    }

    fn result() -> HttpResult {
        let bucket = |upto_ns, count| TimeBucket { upto_ns, count };
        HttpResult {
            duration_ns: SECOND_NS,
            transactions: 100,
            object_bytes: 100 << 10,
            connections: Some(2),
            connections_most: Some(2),
            attempted: 150,
            received_bytes: 160 << 10,
            connections_in_all: 3,
            objects: vec![HttpTimes {
                object_bytes: 1024,
                first_byte: vec![bucket(1000, 60), bucket(2000, 40)],
                last_byte: vec![bucket(2000, 99), bucket(9000, 1)],
            }],
            ..HttpResult::default()
        }
    }

    /// The figures of two repeats with this CPU time of the stations.
    fn figures(test: HttpTest, http: &HttpResult, [a_ns, b_ns]: [u64; 2]) -> HttpFigures {
        let measured = Measured {
            figures: Figures::Http(Box::new(http.clone())),
            cpu: Cpu {
                wall_ns: SECOND_NS,
                station_a_ns: a_ns,
                station_b_ns: b_ns,
                ..Cpu::default()
            },
            ..Measured::default()
        };
        HttpFigures::of(&cell(test), &test, &[(1, &measured), (2, &measured)]).unwrap()
    }

    #[test]
    fn rates_are_of_the_sustain_phase_and_times_are_pooled() {
        let found = figures(HttpTest::default(), &result(), [0, 0]);
        assert!((found.transactions_per_s.mean - 100.0).abs() < 1e-9);
        assert!((found.object_throughput_bps.mean - 819_200.0).abs() < 1e-6);
        assert!((found.connections_per_s.unwrap().mean - 2.0).abs() < 1e-9);
        assert_eq!(found.transactions_attempted, 300);
        let [times] = &found.times[..] else {
            panic!("{:?}", found.times)
        };
        assert_eq!(times.first_byte.n, 200);
        assert_eq!(times.first_byte.p50_ns, 1000);
        assert_eq!(times.first_byte.p90_ns, Some(2000));
        assert_eq!(times.first_byte.p99_9_ns, None);
        assert_eq!(
            (times.last_byte.p99_ns, times.last_byte.max_ns),
            (Some(2000), 9000)
        );
    }

    #[test]
    fn the_first_of_what_is_full_is_the_limit() {
        let full = SECOND_NS * 95 / 100;
        let limit = |test, cpu| figures(test, &result(), cpu).limit;
        let test = HttpTest::default();
        assert_eq!(limit(test, [0, 0]), HttpLimit::Unknown);
        assert_eq!(limit(test, [full, 0]), HttpLimit::Client);
        assert_eq!(limit(test, [full, full]), HttpLimit::Server);
        let open_loop = HttpTest {
            transactions_per_s: Some(100),
            ..test
        };
        assert_eq!(limit(open_loop, [full, full]), HttpLimit::IntendedRate);
    }

    #[test]
    fn a_device_or_a_machine_without_idle_time_is_the_limit() {
        let limit_with = |adapter: Adapter, dut_ns, idle_ns, b_idle_ns: Option<u64>| {
            let on_b = |idle_ns| MachineCpu {
                busy_ns: SECOND_NS,
                idle_ns,
                ..MachineCpu::default()
            };
            let measured = Measured {
                figures: Figures::Http(Box::new(result())),
                cpu: Cpu {
                    wall_ns: SECOND_NS,
                    dut_ns: Some(dut_ns),
                    busy_ns: SECOND_NS,
                    idle_ns,
                    machine_b: b_idle_ns.map(on_b),
                    ..Cpu::default()
                },
                ..Measured::default()
            };
            let test = HttpTest::default();
            let mut cell = cell(test);
            cell.dut.adapter = adapter;
            HttpFigures::of(&cell, &test, &[(1, &measured)])
                .unwrap()
                .limit
        };
        let limit = |adapter, dut_ns, idle_ns| limit_with(adapter, dut_ns, idle_ns, None);
        let ours = Adapter::Cipherbench(Encryptor::new(wire::Suite::Aes256Gcm));
        assert_eq!(limit(ours.clone(), 2 * SECOND_NS, None), HttpLimit::Device);
        assert_eq!(limit(ours, SECOND_NS, None), HttpLimit::Unknown);
        assert_eq!(limit(Adapter::Direct, 0, Some(0)), HttpLimit::Machine);
        assert_eq!(
            limit(Adapter::Direct, 0, Some(SECOND_NS)),
            HttpLimit::Unknown
        );
        // Of two hosts either one may be full.
        let hosts = |a, b| limit_with(Adapter::Direct, 0, Some(a), Some(b));
        assert_eq!(hosts(SECOND_NS, 0), HttpLimit::Machine);
        assert_eq!(hosts(0, SECOND_NS), HttpLimit::Machine);
        assert_eq!(hosts(SECOND_NS, SECOND_NS), HttpLimit::Unknown);
    }

    #[test]
    fn files_that_arrive_as_fast_as_the_store_takes_them_are_limited_by_it() {
        let limit = |store, direct_bytes_per_s| {
            let test = HttpTest {
                client: HttpClient::Wget2,
                store,
                ..HttpTest::default()
            };
            let stored = Some(HttpStored {
                client_cpu_ns: SECOND_NS / 10,
                direct_bytes_per_s,
            });
            let http = HttpResult { stored, ..result() };
            // Comparing files takes CPU time that is not wget2's.
            figures(test, &http, [SECOND_NS, 0]).limit
        };
        assert_eq!(limit(Store::Disk, 110 << 10), HttpLimit::Disk);
        assert_eq!(limit(Store::Ram, 110 << 10), HttpLimit::RamDisk);
        assert_eq!(limit(Store::Disk, 200 << 10), HttpLimit::Unknown);
    }
}
