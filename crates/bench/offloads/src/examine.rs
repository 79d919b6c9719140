//! The examination: a covering array, then the narrowing of what fails or is slow.

use crate::covering::{Factors, Level, Pair, has};
use crate::narrow::{Narrowed, narrow};
use crate::observed::{Answer, Answers, DirectedQuestion, checksum_twins};
use crate::setting::Setting;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A rate below the best one by this factor is slow. Neighbours on a machine halve rates.
const SLOW: f64 = 3.0;
/// A rate below the best one by this factor is a fault. TCP that loses each super-packet stalls, or
/// goes on by timeouts at a few hundred kbit/s: which of the two depends on the congestion control
/// and on chance, and the cause is the same.
const STALLED: f64 = 100.0;
/// Share of the time for the covering array, in percent; the rest is for narrowing.
const ARRAY_PERCENT: u32 = 50;
/// Trials that must all fail before a combination counts as failing.
const AGREEING: usize = 2;

/// A path with settings.
pub trait Subject {
    /// Why a trial cannot be made.
    type Error;

    /// The settings that can be changed, each with two levels.
    fn settings(&self) -> &[Setting];

    /// Sets a level of each setting; returns the levels in force.
    ///
    /// # Errors
    /// When the path is gone.
    fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>, Self::Error>;

    /// Asks all questions, or one.
    ///
    /// # Errors
    /// When the path is gone; a question without an answer is a fault in [`Answers`].
    fn answers(&mut self, only: Option<DirectedQuestion>) -> Result<Answers, Self::Error>;
}

/// The kind of a symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Fault,
    Slow,
}

/// Something that a combination of settings does to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Symptom {
    /// The question.
    pub asked: DirectedQuestion,
    /// The fault, or how slow.
    pub words: String,
    kind: Kind,
}

/// A cause with its symptoms.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The settings at these levels; none: in every combination.
    pub causes: Vec<Level>,
    /// Their effect.
    pub symptoms: Vec<Symptom>,
    /// Whether all of them were found at these levels.
    pub in_force: bool,
    /// Whether the symptoms came and went once more with one of the causes.
    pub confirmed: bool,
    /// Whether the trials that confirm it were made.
    was_tried: bool,
    /// A combination with the symptoms.
    failing: Vec<u8>,
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Examination {
    /// Causes, those in force first.
    pub findings: Vec<Finding>,
    /// The answers with the settings as they were found.
    pub found: Answers,
    /// Combinations of the covering array that were tried.
    pub rows: usize,
    /// The pairs of levels that were in force together, of all that the drivers allow.
    pub pairs_covered: usize,
    /// Those pairs.
    pub pairs: usize,
    /// Trials of all kinds.
    pub trials: usize,
    /// Symptoms without a cause, with the reason.
    pub unexplained: Vec<String>,
    /// Remarks about trials with the settings as found.
    pub notes: Vec<String>,
}

/// Why the examination cannot go on.
enum Halt<E> {
    OutOfTime,
    Lost(E),
}

impl<E> From<E> for Halt<E> {
    fn from(error: E) -> Self {
        Self::Lost(error)
    }
}

/// A combination with its answers.
struct Tried {
    row: Vec<u8>,
    answers: Answers,
    /// Symptoms that were not there again.
    dismissed: Vec<(Kind, DirectedQuestion)>,
}

struct Examiner<'a, S: Subject> {
    subject: &'a mut S,
    settings: Vec<Setting>,
    levels: Vec<u8>,
    deadline: Instant,
    tried: Vec<Tried>,
    best: BTreeMap<DirectedQuestion, f64>,
    trials: usize,
    result: Examination,
    progress: &'a mut dyn FnMut(&str),
}

/// Examines a path within a time. `progress` gets a line for each step.
///
/// # Errors
/// When a trial cannot be made.
pub fn examine<S: Subject>(
    subject: &mut S,
    time: Duration,
    progress: &mut dyn FnMut(&str),
) -> Result<Examination, S::Error> {
    let begin = Instant::now();
    let settings = subject.settings().to_vec();
    let mut examiner = Examiner {
        levels: vec![2; settings.len()],
        settings,
        subject,
        deadline: begin + time,
        tried: Vec::new(),
        best: BTreeMap::new(),
        trials: 0,
        result: Examination::default(),
        progress,
    };
    examiner.cover(begin + time * ARRAY_PERCENT / 100)?;
    for kind in [Kind::Fault, Kind::Slow] {
        match examiner.explain_all(kind) {
            Ok(()) => {}
            Err(Halt::OutOfTime) => break,
            Err(Halt::Lost(error)) => return Err(error),
        }
    }
    examiner.compare_checksums();
    match examiner.confirm_all() {
        Ok(()) | Err(Halt::OutOfTime) => {}
        Err(Halt::Lost(error)) => return Err(error),
    }
    examiner.dismiss_unconfirmed();
    // As it was, even if a later trial is made.
    let found = vec![0; examiner.levels.len()];
    examiner.subject.apply(&found)?;
    let mut result = examiner.result;
    result.trials = examiner.trials;
    result
        .findings
        .sort_by_key(|finding| (!finding.in_force, finding.causes.clone()));
    Ok(result)
}

/// The pairs that a driver cannot have in force together: a feature that is on, and one that it
/// needs and that is off.
fn forbidden(settings: &[Setting]) -> Vec<Pair> {
    let level = |factor, level| Level { factor, level };
    let mut pairs = Vec::new();
    for (a, setting) in settings.iter().enumerate() {
        for (b, other) in settings.iter().enumerate() {
            if needs(setting, other) {
                let on = u8::from(setting.value(0) != "on");
                let off = u8::from(other.value(0) == "on");
                pairs.push((level(a, on), level(b, off)));
            }
        }
    }
    pairs
}

/// Whether a feature needs another one, at the same interface.
fn needs(setting: &Setting, other: &Setting) -> bool {
    match (setting, other) {
        (
            Setting::Feature { at, feature, .. },
            Setting::Feature {
                at: other_at,
                feature: other,
                ..
            },
        ) => at == other_at && feature.needs.contains(&other.word),
        _ => false,
    }
}

impl<S: Subject> Examiner<'_, S> {
    /// Tries the combinations of a covering array until `limit`.
    fn cover(&mut self, limit: Instant) -> Result<(), S::Error> {
        let levels = self.levels.clone();
        let forbidden = forbidden(&self.settings);
        let factors = Factors {
            levels: &levels,
            forbidden: &forbidden,
        };
        let found = vec![0; levels.len()];
        let covering = factors.covering(std::slice::from_ref(&found));
        (self.progress)(&format!(
            "{} settings, {} combinations cover all pairs",
            levels.len(),
            covering.rows.len()
        ));
        // The first trial fills caches of all kinds: it only counts for what it finds wrong twice.
        self.subject.apply(&found)?;
        let warm = self.ask(None)?;
        self.learn(&warm);
        for (number, row) in covering.rows.iter().enumerate() {
            if Instant::now() > limit && number > 0 {
                break;
            }
            let row = self.subject.apply(row)?;
            let answers = self.ask(None)?;
            let faults = answers
                .values()
                .filter(|answer| answer.fault.is_some())
                .count();
            (self.progress)(&format!(
                "combination {} of {}: {}",
                number + 1,
                covering.rows.len(),
                if faults == 0 {
                    "intact".to_owned()
                } else {
                    format!("{faults} of {} checks fail", answers.len())
                }
            ));
            self.tried.push(Tried {
                row,
                answers,
                dismissed: Vec::new(),
            });
        }
        let covered = |pair: &Pair| self.tried.iter().any(|tried| has(&tried.row, pair));
        let pairs: Vec<Pair> = factors
            .pairs()
            .filter(|pair| !covering.impossible.contains(pair))
            .collect();
        self.result.rows = self.tried.len();
        self.result.pairs = pairs.len();
        self.result.pairs_covered = pairs.iter().filter(|pair| covered(pair)).count();
        self.result.found = self.tried[0].answers.clone();
        let noted = self.result.found.iter();
        self.result.notes = noted
            .filter_map(|(asked, answer)| Some(format!("{asked}: {}", answer.note.as_ref()?)))
            .collect();
        Ok(())
    }

    fn ask(&mut self, only: Option<DirectedQuestion>) -> Result<Answers, S::Error> {
        let answers = self.subject.answers(only)?;
        self.trials += 1;
        self.learn(&answers);
        Ok(answers)
    }

    fn learn(&mut self, answers: &Answers) {
        for (asked, answer) in answers {
            if let Some(bps) = answer.bps.filter(|_| answer.fault.is_none()) {
                let best = self.best.entry(*asked).or_default();
                *best = best.max(bps);
            }
        }
    }

    /// Whether an answer has a symptom; the limit of a slow rate may only rise.
    fn has_symptom(&self, kind: Kind, asked: DirectedQuestion, answer: &Answer) -> bool {
        let is_below = |factor: f64| match (answer.bps, self.best.get(&asked)) {
            (Some(bps), Some(best)) => bps * factor < *best,
            _ => false,
        };
        let is_fault = answer.fault.is_some() || is_below(STALLED);
        match kind {
            Kind::Fault => is_fault,
            // A faulty answer is no slow one.
            Kind::Slow => !is_fault && is_below(SLOW),
        }
    }

    /// Whether a combination has a symptom in all of several trials.
    fn fails(
        &mut self,
        row: &[u8],
        kind: Kind,
        asked: DirectedQuestion,
    ) -> Result<bool, Halt<S::Error>> {
        for _ in 0..AGREEING {
            if Instant::now() > self.deadline {
                return Err(Halt::OutOfTime);
            }
            self.subject.apply(row)?;
            let answers = self.ask(Some(asked))?;
            let answer = answers.get(&asked).cloned().unwrap_or_default();
            if !self.has_symptom(kind, asked, &answer) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the causes of all symptoms of a kind.
    fn explain_all(&mut self, kind: Kind) -> Result<(), Halt<S::Error>> {
        let mut asked: Vec<DirectedQuestion> = self.result.found.keys().copied().collect();
        asked.sort();
        for asked in asked {
            while let Some(at) = self.unexplained(kind, asked) {
                if let Err(halt) = self.explain(kind, asked, at) {
                    let words = format!("{asked}: {} (no time left)", self.words(kind, asked, at));
                    self.result.unexplained.push(words);
                    return Err(halt);
                }
            }
        }
        Ok(())
    }

    /// A tried combination with a symptom that no finding explains: the one that was found first.
    fn unexplained(&self, kind: Kind, asked: DirectedQuestion) -> Option<usize> {
        self.tried.iter().position(|tried| {
            let answer = tried.answers.get(&asked);
            answer.is_some_and(|answer| self.has_symptom(kind, asked, answer))
                && !tried.dismissed.contains(&(kind, asked))
                && !self.result.findings.iter().any(|finding| {
                    let about = finding
                        .symptoms
                        .iter()
                        .any(|symptom| symptom.asked == asked);
                    about && is_in(&finding.causes, &tried.row)
                })
        })
    }

    fn words(&self, kind: Kind, asked: DirectedQuestion, at: usize) -> String {
        let answer = self.tried[at]
            .answers
            .get(&asked)
            .cloned()
            .unwrap_or_default();
        let slow = || {
            let best = self.best.get(&asked).copied().unwrap_or_default();
            let bps = answer.bps.unwrap_or_default();
            format!(
                "slow: {} instead of {}, {:.1} times less",
                units::human::bit_rate(bps),
                units::human::bit_rate(best),
                best / bps.max(1.0)
            )
        };
        match kind {
            Kind::Fault => answer.fault.clone().unwrap_or_else(slow),
            Kind::Slow => slow(),
        }
    }

    /// Finds the cause of a symptom of a combination.
    fn explain(
        &mut self,
        kind: Kind,
        asked: DirectedQuestion,
        at: usize,
    ) -> Result<(), Halt<S::Error>> {
        let failing = self.tried[at].row.clone();
        let symptom = Symptom {
            asked,
            words: self.words(kind, asked, at),
            kind,
        };
        // Another symptom of a known cause.
        for known in 0..self.result.findings.len() {
            let causes = self.result.findings[known].causes.clone();
            if causes.is_empty() || !is_in(&causes, &failing) {
                continue;
            }
            let without = flipped(&failing, causes[0]);
            if !self.fails(&without, kind, asked)? && self.fails(&failing, kind, asked)? {
                self.result.findings[known].symptoms.push(symptom);
                return Ok(());
            }
        }
        if !self.fails(&failing, kind, asked)? {
            // Not in further trials: the machine was busy, or the fault comes and goes.
            self.tried[at].dismissed.push((kind, asked));
            if kind == Kind::Fault {
                let words = format!("{asked}: {} (not again in a repeated trial)", symptom.words);
                self.result.unexplained.push(words);
            }
            return Ok(());
        }
        let passing = self.nearest_passing(kind, asked, &failing);
        let Some(passing) = passing else {
            // No setting matters.
            self.add(Vec::new(), symptom, failing, true);
            return Ok(());
        };
        (self.progress)(&format!(
            "{asked}: {}; looking for the cause",
            symptom.words
        ));
        let settings = self.settings.clone();
        let levels = self.levels.clone();
        let is_protected = |causes: &[usize], at: usize| {
            causes.iter().any(|&cause| is_needed(&settings, cause, at))
        };
        let found = narrow(&failing, &passing, &levels, is_protected, |row| {
            self.fails(row, kind, asked)
        })?;
        match found {
            Narrowed::Causes(causes) => {
                // Among settings that are no causes, so that the symptom goes with each of these.
                let is_set = |at: usize| causes.contains(&at) || is_protected(&causes, at);
                let least = (0..levels.len())
                    .map(|at| if is_set(at) { failing[at] } else { passing[at] })
                    .collect();
                let causes = causes.iter().map(|&factor| Level {
                    factor,
                    level: failing[factor],
                });
                self.add(causes.collect(), symptom, least, false);
            }
            Narrowed::Unstable => {
                self.tried[at].dismissed.push((kind, asked));
                let words = format!("{asked}: {} (comes and goes)", symptom.words);
                self.result.unexplained.push(words);
            }
        }
        Ok(())
    }

    fn add(&mut self, causes: Vec<Level>, symptom: Symptom, failing: Vec<u8>, confirmed: bool) {
        let known = &mut self.result.findings;
        if let Some(same) = known.iter_mut().find(|finding| finding.causes == causes) {
            same.symptoms.push(symptom);
            return;
        }
        known.push(Finding {
            in_force: causes.iter().all(|cause| cause.level == 0),
            causes,
            symptoms: vec![symptom],
            confirmed,
            was_tried: confirmed,
            failing,
        });
    }

    /// The combination without the symptom that differs least.
    fn nearest_passing(
        &self,
        kind: Kind,
        asked: DirectedQuestion,
        failing: &[u8],
    ) -> Option<Vec<u8>> {
        let distance = |row: &[u8]| row.iter().zip(failing).filter(|(a, b)| a != b).count();
        let passing = self.tried.iter().filter(|tried| {
            let answer = tried.answers.get(&asked);
            answer.is_some_and(|answer| {
                // A rate that is not even near the limit, in an answer without a fault.
                answer.fault.is_none() && !self.has_symptom(kind, asked, answer)
            })
        });
        let nearest = passing.min_by_key(|tried| distance(&tried.row))?;
        Some(nearest.row.clone())
    }

    /// Datagrams without checksums that are slow in every combination: no setting explains them,
    /// but a part of the path that coalesces only others does.
    fn compare_checksums(&mut self) {
        for direction in probe::Direction::BOTH {
            let [with, without] = checksum_twins(direction);
            let rates = self.tried.iter().filter_map(|tried| {
                let rate = |asked| tried.answers.get(asked)?.bps;
                Some((rate(&with)?, rate(&without)?))
            });
            let rates: Vec<(f64, f64)> = rates.collect();
            let ratios = rates.iter().map(|(with, without)| with / without.max(1.0));
            let least = ratios.fold(f64::INFINITY, f64::min);
            if rates.len() > 1 && least > SLOW {
                let words = format!(
                    "slow: at least {least:.1} times less than with checksums, in every combination: a part of the \
                     path does not coalesce them"
                );
                let symptom = Symptom {
                    asked: without,
                    words,
                    kind: Kind::Slow,
                };
                self.add(Vec::new(), symptom, vec![0; self.levels.len()], true);
            }
        }
    }

    /// Lets each symptom go and come once more.
    fn confirm_all(&mut self) -> Result<(), Halt<S::Error>> {
        for at in 0..self.result.findings.len() {
            let finding = self.result.findings[at].clone();
            let (Some(&cause), Some(symptom)) = (finding.causes.first(), finding.symptoms.first())
            else {
                continue;
            };
            let &Symptom { asked, kind, .. } = symptom;
            let without = flipped(&finding.failing, cause);
            let confirmed =
                !self.fails(&without, kind, asked)? && self.fails(&finding.failing, kind, asked)?;
            self.result.findings[at].confirmed = confirmed;
            self.result.findings[at].was_tried = true;
        }
        Ok(())
    }

    /// Removes causes that the last repetition did not confirm, and causes of slow rates that no
    /// time was left to confirm: a busy machine slows any trial.
    fn dismiss_unconfirmed(&mut self) {
        let settings = &self.settings;
        let unexplained = &mut self.result.unexplained;
        self.result.findings.retain(|finding| {
            let mut symptoms = finding.symptoms.iter();
            let slows = symptoms.all(|symptom| symptom.kind == Kind::Slow);
            let stays = finding.confirmed || !(finding.was_tried || slows);
            if !stays {
                let causes = finding.causes.iter().map(|cause| {
                    let setting = &settings[cause.factor];
                    format!("`{}` = {}", setting.name(), setting.value(cause.level))
                });
                let causes = causes.collect::<Vec<_>>().join(" and ");
                unexplained.extend(finding.symptoms.iter().map(|symptom| {
                    let Symptom { asked, words, .. } = symptom;
                    format!("{asked}: {words} (with {causes}, but not confirmed: measure again on an idle machine)")
                }));
            }
            stays
        });
    }
}

/// Whether a setting takes effect only with another one, over any number of steps.
fn is_needed(settings: &[Setting], cause: usize, at: usize) -> bool {
    needs(&settings[cause], &settings[at])
        || (0..settings.len())
            .any(|step| needs(&settings[cause], &settings[step]) && is_needed(settings, step, at))
}

fn is_in(causes: &[Level], row: &[u8]) -> bool {
    causes.iter().all(|cause| row[cause.factor] == cause.level)
}

fn flipped(row: &[u8], cause: Level) -> Vec<u8> {
    let mut row = row.to_vec();
    row[cause.factor] = 1 - row[cause.factor];
    row
}

#[cfg(test)]
mod tests;
