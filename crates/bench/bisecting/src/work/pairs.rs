//! Pairs of trials.

use super::Work;
use crate::record::Record;
use crate::words::percent;
use crate::{BisectingError, Fault, Measurer, Subject};
use bisect::{Ask, LogRatio, Order, Test};
use std::thread;
use std::time::{Duration, Instant};
use units::human::counted;

/// Trials in a row without a figure after which a version cannot be measured.
const FAULTS_MAX: u32 = 3;
/// Trials in a row that other work spoilt, after which the bisection waits for a person.
const BUSY_MAX: u32 = 10;
/// Interval at which a pause looks for an interrupt.
const PAUSE_STEP: Duration = Duration::from_millis(100);

/// The answer to an ask.
pub(super) struct Answer {
    /// Of the pairs that are complete.
    pub(super) ratios: Vec<LogRatio>,
    pub(super) end: End,
}

/// How an answer ended.
pub(super) enum End {
    /// With the last pair.
    Whole,
    /// With a version that cannot be measured.
    Faulty(usize, String),
    /// With an error.
    Broken(BisectingError),
}

impl Work {
    /// Measures the pairs of an ask; `subjects`: candidate, reference.
    pub(super) fn measure(
        &mut self,
        ask: &Ask,
        subjects: [&Subject; 2],
        measurer: &mut dyn Measurer,
    ) -> Answer {
        let mut ratios = Vec::new();
        for order in &ask.pairs {
            match self.pair(ask, *order, subjects, measurer) {
                Ok(ratio) => ratios.push(ratio),
                Err(end) => return Answer { ratios, end },
            }
        }
        let end = End::Whole;
        Answer { ratios, end }
    }

    /// Measures one pair. It is measured again, in the same order, until both trials have a
    /// figure.
    fn pair(
        &mut self,
        ask: &Ask,
        order: Order,
        [candidate, reference]: [&Subject; 2],
        measurer: &mut dyn Measurer,
    ) -> Result<LogRatio, End> {
        let candidate = (ask.candidate, candidate);
        let reference = (ask.reference, reference);
        let [first, second] = match order {
            Order::CandidateFirst => [candidate, reference],
            Order::ReferenceFirst => [reference, candidate],
        };
        let mut busy = 0;
        loop {
            // After a fault both are measured again: only trials one after the other have the drift
            // of the machine in common. The order stays, as a new draw would let faults decide on
            // it.
            let Some(figure) = self.figure_of(first, &mut busy, measurer)? else {
                continue;
            };
            let Some(other) = self.figure_of(second, &mut busy, measurer)? else {
                continue;
            };
            let ratio = match order {
                Order::CandidateFirst => LogRatio::of(figure, other),
                Order::ReferenceFirst => LogRatio::of(other, figure),
            };
            return ratio.map_err(|error| End::Broken(error.into()));
        }
    }

    /// Makes one trial of a version; `None` without a figure.
    fn figure_of(
        &mut self,
        (version, subject): (usize, &Subject),
        busy: &mut u32,
        measurer: &mut dyn Measurer,
    ) -> Result<Option<f64>, End> {
        self.interrupt
            .check()
            .map_err(|error| End::Broken(error.into()))?;
        let measured = measurer.measure(subject).map_err(End::Broken)?;
        let figure = measured.figure.as_ref().ok().copied();
        // Also without a figure: the record is the evidence for a skipped version.
        let record = Record::Trial {
            version,
            figure: figure.map(|(_, figure)| figure),
            quantity: figure.map_or(String::new(), |(quantity, _)| quantity.key().to_owned()),
            trial: measured.trial,
        };
        self.lines
            .append(&record)
            .map_err(|error| End::Broken(error.into()))?;
        let name = self.header.versions[version].name();
        match measured.figure {
            Ok((quantity, figure)) => {
                self.figures.add(version, quantity, figure);
                // Only faults in a row count against a version.
                self.faults.remove(&version);
                *busy = 0;
                Ok(Some(figure))
            }
            Err(Fault::Version(reason)) => {
                self.reporter
                    .notice(&format!("again   {name} without a figure: {reason}\n"));
                let faults = self.faults.entry(version).or_default();
                *faults += 1;
                if *faults < FAULTS_MAX {
                    return Ok(None);
                }
                *faults = 0;
                let times = counted(FAULTS_MAX, "trial");
                let problem =
                    format!("cannot be measured: {times} in a row without a figure: {reason}");
                Err(End::Faulty(version, problem))
            }
            Err(Fault::Machine(reason)) => {
                self.reporter
                    .notice(&format!("again   {name}: the machine was busy: {reason}\n"));
                // No fault of the version: else a busy machine would have sound versions skipped,
                // and the result would be a range.
                *busy += 1;
                if *busy < BUSY_MAX {
                    self.pause(measurer.pause_after(*busy))?;
                    return Ok(None);
                }
                let reason = format!(
                    "other programs or the hypervisor took cores from {} in a row",
                    counted(BUSY_MAX, "trial")
                );
                let dir = self.dir.clone();
                Err(End::Broken(BisectingError::BrokeOff { reason, dir }))
            }
        }
    }

    /// Waits for other work to end.
    fn pause(&self, time: Duration) -> Result<(), End> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.interrupt
                .check()
                .map_err(|error| End::Broken(error.into()))?;
            // In short steps: an interrupt only sets a flag, which a long sleep would not see.
            thread::sleep(PAUSE_STEP);
        }
        Ok(())
    }

    /// Shows an answer.
    pub(super) fn show(&self, ask: &Ask, ratios: &[LogRatio]) {
        let of = |at: usize| self.header.versions[at].name();
        let changes: Vec<String> = ratios.iter().map(|it| percent(it.ratio())).collect();
        let words = match ask.test {
            Test::Ends => "ends",
            Test::Search => "search",
            Test::Confirm => "confirm",
            Test::Before => "before",
            Test::After => "after",
        };
        let left = match ask.test {
            Test::Search => {
                let suspects = self.bisection.suspects();
                let left = suspects.end() + 1 - suspects.start();
                format!("; {} left", counted(left as u64, self.noun()))
            }
            _ => String::new(),
        };
        self.reporter.notice(&format!(
            "{words:7} {} against {}: {}; {} so far{left}\n",
            of(ask.candidate),
            of(ask.reference),
            changes.join(", "),
            counted(self.bisection.pairs() as u64, "pair")
        ));
    }
}
