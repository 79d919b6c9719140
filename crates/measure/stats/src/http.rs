//! Trials over HTTP: rates and times with the terms of RFC 9411, and what limited them.

use crate::bulk::{CpuResult, estimate, per_second, ratio};
use crate::estimate::Estimate;
use crate::latency::Distribution;
use campaign::plan::{Cell, HttpServer, HttpTest, Store};
use journal::record::{HttpResult, HttpTimes, Measured, TimeBucket};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A station that uses at least this share of its cores is full, and a store that takes at least
/// this share of what it can take directly.
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
    /// Most connections open at one time, over all repeats; `null`: the client does not report them.
    pub connections_most: Option<u64>,
    /// Transactions begun in all phases, over all repeats.
    pub transactions_attempted: u64,
    /// Of these, failed.
    pub transactions_failed: u64,
    /// Times by size of the objects; empty: the client does not report them.
    pub times: Vec<HttpTimesResult>,
    /// Rate at which the client's store took files of the same sizes, written directly right after
    /// the transfer, in bit/s; `null`: the client stores none.
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

/// Percentiles of times, resolved to 1 %. One is `null` if less than one time would lie beyond it.
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
    /// None of these was full: the path, its encryptors and round trips remain.
    Path,
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
            Self::Path => "path",
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
        let sum = |count: fn(&HttpResult) -> u64| trials.iter().map(|(_, http)| count(http)).sum();
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
                CpuResult::of(measured).as_ref(),
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
    cpu: Option<&CpuResult>,
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
    let cores = f64::from(cell.stations.map_or(1, |stations| stations.cores));
    // Python runs one thread at a time.
    let of_server = match test.server {
        HttpServer::Nginx => cores,
        HttpServer::Python => 1.0,
    };
    let is_full = |busy: Option<&Estimate>, cores: f64| {
        busy.is_some_and(|busy| busy.mean >= FULL_RATIO * cores)
    };
    let client = client_cores.or(cpu.map(|cpu| &cpu.station_a_cores));
    let server = cpu.map(|cpu| &cpu.station_b_cores);
    if is_full(server, of_server) {
        HttpLimit::Server
    } else if is_full(client, cores) {
        HttpLimit::Client
    } else {
        HttpLimit::Path
    }
}

fn times(trials: &[(u32, &HttpResult)]) -> Vec<HttpTimesResult> {
    let Some((_, first)) = trials.first() else {
        return Vec::new();
    };
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
        *counts.entry(bucket.upto_ns).or_default() += bucket.count;
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
