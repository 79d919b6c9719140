//! Figures of archived runs by cell, so that a cell's history over all runs is read without
//! fetching any run.
//!
//! ```text
//! at.CELL.JOB    the cell's figures in that run; CELL: the beginning of the SHA-256 of its id
//! hist.CELL.JOB  its latency histograms in that run, if it has some
//! in.JOB         machine, program and lab of the run
//! head.JOB       the first figure of each of its first cells
//! name.CELL      the cell's name for people; runs of an earlier version have none
//! cell.CELL      the cell's id, written last
//! ```
//!
//! The figures are derived from the runs and may be lost: the runs themselves are still in the
//! archive.

use crate::bucket::Versioned;
use crate::error::FleetError;
use crate::message::Job;
use crate::store::Fleet;
use base16ct::lower::encode_string as hex;
use futures_util::{StreamExt, stream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Requests in parallel.
const AT_ONCE: usize = 16;
/// Headlines per job, each the first figure of a cell.
const HEADLINES: usize = 4;
/// Buckets in a cell's histograms. Larger histograms are not kept: an entry has a limit.
const BUCKETS_MAX: usize = 15_000;

/// The output of `cipherbench figures RUN`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFigures {
    /// Machine, program and lab.
    pub surroundings: Value,
    /// Figures by the id of each measured cell.
    pub cells: BTreeMap<String, Vec<Figure>>,
    /// The names of cells for people, by id; in the order of the plan.
    #[serde(default)]
    pub names: Vec<(String, String)>,
    /// Latency histograms by the id of the cell.
    #[serde(default)]
    pub histograms: BTreeMap<String, Vec<LoadHistogram>>,
}

/// Latencies of a cell under one load in one run, over all repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadHistogram {
    /// The load in per cent of the throughput.
    pub load_percent: u8,
    /// Highest value of each bucket in nanoseconds and its number of frames, rising.
    pub buckets: Vec<(u64, u64)>,
}

/// A quantity of a cell in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its key in exports, with its unit.
    pub key: String,
    /// For latency under several loads: the load in per cent of the throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<u8>,
    /// Geometric mean of its repeats.
    pub value: f64,
    /// Number of repeats.
    pub repeats: u32,
    /// The smallest and the largest repeat; `None` in runs of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(f64, f64)>,
}

/// A figure that summarizes a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The id of the cell.
    pub cell: String,
    /// Its name for people.
    pub name: String,
    /// The cell's first figure.
    pub figure: Figure,
}

/// A cell in one run of the archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// The job of the run.
    pub job: String,
    /// The lab that it ran in.
    pub lab: String,
    /// Labels of the lab and of the job, such as the firmware.
    pub labels: BTreeMap<String, String>,
    /// The cell's figures.
    pub figures: Vec<Figure>,
    /// When it was archived, by the server's clock, in seconds since 1970.
    #[serde(skip)]
    pub archived_at: u64,
}

fn key_of(cell: &str) -> String {
    hex(&Sha256::digest(cell)[..8])
}

impl Fleet {
    /// Adds a run's figures; adding them again changes nothing.
    ///
    /// # Errors
    /// When the server does not keep them.
    pub async fn add_figures(
        &self,
        job: &Job,
        lab: &str,
        lab_labels: &BTreeMap<String, String>,
        run: &RunFigures,
    ) -> Result<(), FleetError> {
        let within = format!("in.{}", job.id);
        self.figures.swap(&within, 0, &run.surroundings).await?;
        let first = |(cell, name): &(String, String)| {
            Some(Headline {
                cell: cell.clone(),
                name: name.clone(),
                figure: run.cells.get(cell)?.first()?.clone(),
            })
        };
        let headlines = run.names.iter().filter_map(first).take(HEADLINES);
        let headlines: Vec<Headline> = headlines.collect();
        let head = format!("head.{}", job.id);
        self.figures.swap(&head, 0, &headlines).await?;
        for (cell, name) in &run.names {
            let key = format!("name.{}", key_of(cell));
            self.figures.swap(&key, 0, name).await?;
        }
        let labels: BTreeMap<String, String> = lab_labels
            .iter()
            .chain(&job.labels)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for (cell, histograms) in &run.histograms {
            let buckets: usize = histograms.iter().map(|one| one.buckets.len()).sum();
            if buckets <= BUCKETS_MAX {
                let key = format!("hist.{}.{}", key_of(cell), job.id);
                self.figures.swap(&key, 0, histograms).await?;
            }
        }
        let add = |(cell, figures): (String, Vec<Figure>)| {
            let point = Point {
                job: job.id.clone(),
                lab: lab.to_owned(),
                labels: labels.clone(),
                figures,
                archived_at: 0,
            };
            async move {
                let key = key_of(&cell);
                let at = format!("at.{key}.{}", point.job);
                self.figures.swap(&at, 0, &point).await?;
                self.figures.swap(&format!("cell.{key}"), 0, &cell).await
            }
        };
        // In parallel: a run has hundreds of cells, with two entries each.
        let mut adding = stream::iter(run.cells.clone())
            .map(add)
            .buffer_unordered(AT_ONCE);
        while let Some(added) = adding.next().await {
            added?;
        }
        Ok(())
    }

    /// Returns a cell's figures in every run, in the order of archiving; empty if no run has the
    /// cell.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn history(&self, cell: &str) -> Result<Vec<Point>, FleetError> {
        let key = key_of(cell);
        let known: Option<Versioned<String>> = self.figures.read(&format!("cell.{key}")).await?;
        // A pattern without entries would be waited for until the limit.
        if known.is_none() {
            return Ok(Vec::new());
        }
        let found = self
            .figures
            .read_under::<Point>(&format!("at.{key}.*"))
            .await?;
        let mut points: Vec<(u64, Point)> = found
            .into_values()
            .map(|found| {
                let point = Point {
                    archived_at: found.written_at,
                    ..found.value
                };
                (found.revision, point)
            })
            .collect();
        // By revision: the clocks of agents do not count.
        points.sort_by_key(|(revision, _)| *revision);
        Ok(points.into_iter().map(|(_, point)| point).collect())
    }

    /// Returns a cell's latency histograms in these runs, by job; runs without histograms are left
    /// out.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn histograms(
        &self,
        cell: &str,
        jobs: &[&str],
    ) -> Result<BTreeMap<String, Vec<LoadHistogram>>, FleetError> {
        self.of_jobs(&format!("hist.{}.", key_of(cell)), jobs).await
    }

    /// Returns the entries of jobs, by job; their keys end with the job.
    async fn of_jobs<T: DeserializeOwned>(
        &self,
        start: &str,
        jobs: &[&str],
    ) -> Result<BTreeMap<String, T>, FleetError> {
        let keys = jobs.iter().map(|job| format!("{start}{job}"));
        let found = self.figures.read_each(keys).await?.into_iter();
        let by_job = found.filter_map(|(key, found)| {
            let job = key.strip_prefix(start)?.to_owned();
            Some((job, found.value))
        });
        Ok(by_job.collect())
    }

    /// Returns the machine, program and lab of a run; null if unknown.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn surroundings(&self, job: &str) -> Result<Value, FleetError> {
        let found = self.figures.read(&format!("in.{job}")).await?;
        Ok(found.map_or(Value::Null, |found| found.value))
    }

    /// Returns the ids of all cells.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn cells(&self) -> Result<Vec<String>, FleetError> {
        let cells = self.figures.read_under::<String>("cell.*").await?;
        let mut cells: Vec<String> = cells.into_values().map(|found| found.value).collect();
        cells.sort();
        Ok(cells)
    }

    /// Returns the names of cells for people, by id; cells of earlier versions have none.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn cell_names(
        &self,
        cells: &[String],
    ) -> Result<BTreeMap<String, String>, FleetError> {
        let keys = cells.iter().map(|cell| format!("name.{}", key_of(cell)));
        let mut found = self.figures.read_each::<String>(keys).await?;
        let names = cells.iter().filter_map(|cell| {
            let name = found.remove(&format!("name.{}", key_of(cell)))?;
            Some((cell.clone(), name.value))
        });
        Ok(names.collect())
    }

    /// Returns the headlines of runs, by job; runs of earlier versions have none.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn headlines(
        &self,
        jobs: &[&str],
    ) -> Result<BTreeMap<String, Vec<Headline>>, FleetError> {
        self.of_jobs("head.", jobs).await
    }
}
