//! Readings without a command: objects of SNMP agents and metrics of pages, one request for each
//! agent or page.

use super::Answer;
use super::snmp::Session;
use crate::exposition::{Sample, samples};
use crate::http::Page;
use async_snmp::Oid;
use plan::{SnmpAgent, Source};
use std::collections::BTreeMap;
use std::time::Instant;

/// Queries of several values. A value has the number that the caller gave it.
#[derive(Default)]
pub(crate) struct Queries {
    agents: Vec<(Session, Vec<usize>, Vec<Oid>)>,
    pages: Vec<(Page, Vec<(usize, Metric)>)>,
}

/// A metric of a page.
struct Metric {
    name: String,
    labels: BTreeMap<String, String>,
    /// The label that is read instead of the value.
    label: Option<String>,
    /// Whether all samples that match are added.
    is_sum: bool,
}

/// Values that one request returned.
pub(crate) struct TimedAnswers {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// By number.
    pub(crate) answers: Vec<(usize, Result<Answer, String>)>,
}

impl Queries {
    /// Prepares queries; commands are left out. Each source comes with its number, and whether it
    /// is a counter, which may have several parts on a page.
    ///
    /// # Errors
    /// Why a source cannot be used, such as a missing secret.
    pub(crate) fn prepare<'s>(
        sources: impl Iterator<Item = (usize, &'s Source, bool)>,
    ) -> Result<Self, String> {
        // By agent and by page: each gets one request a round, however many values it has.
        let mut agents: BTreeMap<&SnmpAgent, (Vec<usize>, Vec<Oid>)> = BTreeMap::new();
        let mut pages: BTreeMap<&str, Vec<(usize, Metric)>> = BTreeMap::new();
        for (number, source, is_sum) in sources {
            match source {
                Source::Command(_) => {}
                Source::Snmp { agent, oid } => {
                    let parsed = Oid::parse(oid).map_err(|error| format!("`{oid}`: {error}"))?;
                    let (numbers, oids) = agents.entry(agent).or_default();
                    numbers.push(number);
                    oids.push(parsed);
                }
                Source::Prometheus {
                    url,
                    metric,
                    labels,
                    label,
                } => pages.entry(url).or_default().push((
                    number,
                    Metric {
                        name: metric.clone(),
                        labels: labels.clone(),
                        label: label.clone(),
                        is_sum,
                    },
                )),
            }
        }
        let mut queries = Self::default();
        for (agent, (numbers, oids)) in agents {
            queries.agents.push((Session::open(agent)?, numbers, oids));
        }
        for (url, metrics) in pages {
            queries.pages.push((Page::at(url)?, metrics));
        }
        Ok(queries)
    }

    /// Makes the requests lazily: each one when the previous result has been taken.
    pub(crate) fn read(&self) -> impl Iterator<Item = TimedAnswers> {
        let agents = self.agents.iter().map(|(session, numbers, oids)| {
            timed(|| {
                let answers = session.get(oids);
                numbers.iter().copied().zip(answers).collect()
            })
        });
        let pages = self.pages.iter().map(|(page, metrics)| {
            timed(|| {
                let text = page.get();
                let of_page = |metric: &Metric| metric.read(&page.url, text.as_deref());
                let read = metrics.iter();
                read.map(|(number, metric)| (*number, of_page(metric)))
                    .collect()
            })
        });
        agents.chain(pages)
    }

    /// The values, by number.
    ///
    /// # Errors
    /// The first value that could not be read: its number and why.
    pub(crate) fn all(&self) -> Result<BTreeMap<usize, Answer>, (usize, String)> {
        let answers = self.read().flat_map(|found| found.answers);
        answers
            .map(|(number, answer)| match answer {
                Ok(answer) => Ok((number, answer)),
                Err(error) => Err((number, error)),
            })
            .collect()
    }
}

fn timed(read: impl FnOnce() -> Vec<(usize, Result<Answer, String>)>) -> TimedAnswers {
    let from = Instant::now();
    let answers = read();
    let to = Instant::now();
    TimedAnswers { from, to, answers }
}

impl Metric {
    fn read(&self, url: &str, page: Result<&str, &String>) -> Result<Answer, String> {
        let text = page.map_err(Clone::clone)?;
        let matching = |sample: &Sample<'_>| {
            let mut labels = self.labels.iter();
            sample.name == self.name
                && labels.all(|(label, value)| sample.label(label) == Some(value))
        };
        let found: Vec<Sample<'_>> = samples(text).filter(matching).collect();
        let words = self.words();
        match (&found[..], &self.label) {
            ([], _) => Err(format!(
                "{url} has no metric {words}\nhelp: see what the page has: `curl {url}`"
            )),
            ([first, ..], Some(label)) => match first.label(label) {
                Some(value) => Ok(Answer::Text(value.to_owned())),
                None => Err(format!("{url} has {words} without the label `{label}`")),
            },
            ([_, _, ..], None) if !self.is_sum => Err(format!(
                "{url} has {} metrics {words}\nhelp: add labels that only one of them has, for example `{}`",
                found.len(),
                printed(&found[0])
            )),
            (found, None) => {
                // A counter is the sum of its parts, such as one for each lane.
                let values = found
                    .iter()
                    .map(|sample| match sample.value.parse::<f64>() {
                        Ok(value) if value.is_finite() => Ok(value),
                        _ => Err(format!("{url} has {words} with the value {}", sample.value)),
                    });
                // A single whole count of more than 53 bits stays exact.
                match found {
                    [only] if only.value.parse::<u64>().is_ok() => {
                        Ok(Answer::Count(only.value.parse().unwrap_or_default()))
                    }
                    _ => values.sum::<Result<f64, String>>().map(Answer::Decimal),
                }
            }
        }
    }

    fn words(&self) -> String {
        let labels: Vec<_> = self
            .labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        if labels.is_empty() {
            format!("`{}`", self.name)
        } else {
            format!("`{}{{{}}}`", self.name, labels.join(","))
        }
    }
}

fn printed(sample: &Sample<'_>) -> String {
    let labels = sample.labels.iter();
    let labels: Vec<_> = labels
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    format!("{}{{{}}}", sample.name, labels.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "temp{chip=\"cpu\",core=\"0\"} 41.5\ntemp{chip=\"cpu\",core=\"1\"} 43\n\
                        packets_total{lane=\"0\"} 5\npackets_total{lane=\"1\"} 7\n\
                        big_total 18446744073709551615\nodd NaN\n\
                        build_info{version=\"1.2\"} 1\n";

    fn metric(name: &str, labels: &[(&str, &str)], is_sum: bool) -> Metric {
        let labels = labels.iter();
        Metric {
            name: name.to_owned(),
            labels: labels
                .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
                .collect(),
            label: None,
            is_sum,
        }
    }

    fn read(metric: &Metric) -> Result<Answer, String> {
        metric.read("http://box/metrics", Ok(PAGE))
    }

    #[test]
    fn a_gauge_is_one_sample_and_a_counter_the_sum_of_all_that_match() {
        let one = metric("temp", &[("core", "1")], false);
        assert_eq!(read(&one).unwrap().milli(1_000_000), Ok(43_000));
        let two = read(&metric("temp", &[("chip", "cpu")], false)).unwrap_err();
        assert!(two.contains("2 metrics `temp{chip=\"cpu\"}`"), "{two}");
        assert!(
            two.contains("for example `temp{chip=\"cpu\",core=\"0\"}`"),
            "{two}"
        );
        assert_eq!(
            read(&metric("packets_total", &[], true)),
            Ok(Answer::Decimal(12.0))
        );
        // Above 2^53, so a float would not keep it.
        let big = read(&metric("big_total", &[], true));
        assert_eq!(big, Ok(Answer::Count(u64::MAX)));
    }

    #[test]
    fn what_is_not_there_or_no_number_is_an_error() {
        let none = read(&metric("temp", &[("core", "9")], true)).unwrap_err();
        assert!(none.contains("no metric `temp{core=\"9\"}`"), "{none}");
        assert!(
            read(&metric("odd", &[], false))
                .unwrap_err()
                .contains("NaN")
        );
        let failed = "cannot get it".to_owned();
        let error = metric("temp", &[], true).read("u", Err(&failed));
        assert_eq!(error, Err(failed));
    }

    #[test]
    fn a_version_is_the_value_of_a_label() {
        let version = |label: &str| Metric {
            label: Some(label.to_owned()),
            ..metric("build_info", &[], false)
        };
        assert_eq!(
            read(&version("version")),
            Ok(Answer::Text("1.2".to_owned()))
        );
        assert!(read(&version("revision")).is_err());
    }
}
