//! One limit on one figure of one cell.

use super::loads::loads_at;
use super::loss::Loss;
use super::{ExpectedCell, Judge, words};
use crate::analysis::change::{Change, Needed, Pairing};
use crate::analysis::gate::{Gate, GateLimit, GateLoad, GateReference, GateUnit, LimitOutcome};
use crate::analysis::quantity::{Quantity, Reading};
use crate::analysis::significance::Level;
use crate::cell::{CellResult, Status};
use crate::figures::bands::TwoBands;
use crate::figures::estimate::{Estimate, Sample};
use crate::figures::frames::LayerRates;
use plan::{Bound, LatencyPath, StoredFigure, StoredRun};
use units::Layer;

/// A limit on one figure.
pub(super) struct Question {
    /// Place of the limit.
    pub(super) gate: usize,
    /// Place of the cell.
    pub(super) place: usize,
    /// The quantity, with its load.
    pub(super) quantity: String,
    pub(super) kind: Kind,
}

/// What is limited.
pub(super) enum Kind {
    /// A figure by a constant or by another figure.
    Ratio {
        own: Box<Reading>,
        from: Box<From>,
        bound: Bound,
        /// The ratio at the limit; 1 with a constant.
        ratio: f64,
    },
    /// Frames lost.
    Loss(Loss),
    /// There is no figure, and no further repeat gives one.
    Without(String),
}

/// What a figure is limited by.
pub(super) enum From {
    Constant(f64, GateUnit),
    /// Another cell of the run, by its place.
    Cell(usize, Reading),
    /// A stored run.
    Run {
        folder: String,
        /// The stored machine, if it is another one.
        machine: Option<String>,
        reading: Reading,
    },
}

/// What a look at the repeats shows.
pub(super) enum Answer {
    /// A repeat has no figure, with the reason, or the repeats cannot be summed up.
    Lacking {
        reason: String,
        repeats: u32,
    },
    /// The repeats fall in two bands, and the limit is near one of them.
    Bands(TwoBands, u32),
    /// With the bands that the repeats fall in, if the limit is far from both.
    Ratio(Change, Option<TwoBands>),
    Loss(super::loss::Seen),
    Without,
}

impl Question {
    /// The figures that a gate limits.
    pub(super) fn all(
        judge: &Judge<'_>,
        at: usize,
        gate: &Gate,
        stored: Option<&StoredRun>,
    ) -> Vec<Self> {
        let plan = &judge.journal.header.plan;
        let limited = gate.limited(&plan.cells);
        let places = limited.iter().filter_map(|cell| {
            let place = judge.cells.iter().position(|known| known.id == cell.id)?;
            // A cell that this machine is too small for is expected to have no figure.
            (!judge.cells[place].is_skipped()).then_some((place, *cell))
        });
        let all = places.flat_map(|(place, planned)| {
            let cell = &judge.cells[place];
            let of = |quantity: String, kind| Self {
                gate: at,
                place,
                quantity,
                kind,
            };
            let found: Vec<Self> = if gate.quantity == Gate::LOSS {
                let limit = match gate.limit {
                    GateLimit::Figure { value, .. } => Some(value),
                    _ => None,
                };
                let losses = Loss::all(cell, gate.at, limit).into_iter();
                losses
                    .map(|(words, loss)| of(words, Kind::Loss(loss)))
                    .collect()
            } else {
                let readings = readings(cell, gate).into_iter();
                let reference = gate.reference(planned, &plan.cells);
                readings
                    .map(|own| {
                        let words = words::quantity(&own);
                        let kind = kind(judge, gate, own, (cell, reference, stored));
                        of(words, kind)
                    })
                    .collect()
            };
            if found.is_empty() {
                // A figure that is missing must not pass.
                let words = gate.quantity.clone();
                vec![of(words, Kind::Without(words::no_figure(cell)))]
            } else {
                found
            }
        });
        all.collect()
    }

    /// What the repeats up to a look show.
    pub(super) fn answer(&self, judge: &Judge<'_>, look: usize) -> Answer {
        let cell = &judge.cells[self.place];
        let repeats = judge.repeats(&cell.id, look);
        match &self.kind {
            Kind::Without(_) => Answer::Without,
            Kind::Loss(loss) => match whole(&loss.share, repeats) {
                Some(share) => Answer::Loss(loss.seen(share)),
                None => Answer::Lacking {
                    reason: words::lacking(cell, &loss.share, repeats),
                    repeats,
                },
            },
            Kind::Ratio {
                own, from, ratio, ..
            } => {
                let Some(own) = upto(own, repeats) else {
                    return Answer::Lacking {
                        reason: words::lacking(cell, &own.value, repeats),
                        repeats,
                    };
                };
                let bands = own.value.bands;
                let near = |least: f64, largest: f64| {
                    let limits = (ratio * least, ratio * largest);
                    bands.filter(|bands| !bands.are_far_from(limits, most(&own)))
                };
                let close;
                let change = match &**from {
                    From::Constant(limit, _) => {
                        close = near(*limit, *limit);
                        Change::against(&own, *limit)
                    }
                    From::Cell(place, other) => {
                        let cell = &judge.cells[*place];
                        let repeats = judge.repeats(&cell.id, look);
                        let Some(other) = upto(other, repeats) else {
                            return Answer::Lacking {
                                reason: words::lacking(cell, &other.value, repeats),
                                repeats,
                            };
                        };
                        close = near(other.value.min, most(&other));
                        Change::of(&other, &own, Pairing::Blocks)
                    }
                    From::Run { reading, .. } => {
                        close = near(reading.value.min, most(reading));
                        Change::of(reading, &own, Pairing::None)
                    }
                };
                if let Some(bands) = close {
                    return Answer::Bands(bands, repeats);
                }
                change.map_or_else(
                    || Answer::Lacking {
                        reason: "The figure is 0 in a repeat.".into(),
                        repeats,
                    },
                    |change| Answer::Ratio(change, bands),
                )
            }
        }
    }

    /// The outcome at a level; `scale`: the level of the next look by that of this one.
    pub(super) fn result(
        &self,
        judge: &Judge<'_>,
        answer: Answer,
        (level, scale): (Level, f64),
    ) -> ExpectedCell {
        let cell = &judge.cells[self.place];
        let (limit, unit, reference) = self.limit(judge);
        let blank = ExpectedCell {
            cell: cell.id.clone(),
            dut: cell.dut.clone(),
            quantity: self.quantity.clone(),
            figure: None,
            low: None,
            high: None,
            limit,
            unit: unit.map_or("ratio", GateUnit::key),
            reference,
            repeats: 0,
            outcome: LimitOutcome::Undecided,
            decided_after_rounds: None,
            more_repeats: None,
            reason: String::new(),
            is_repeatable: false,
        };
        match (answer, &self.kind) {
            (Answer::Without, Kind::Without(reason)) => ExpectedCell {
                reason: reason.clone(),
                ..blank
            },
            (Answer::Lacking { reason, repeats }, _) => ExpectedCell {
                reason,
                repeats,
                // Invalid and failed trials are repeated with the round.
                is_repeatable: true,
                ..blank
            },
            (Answer::Bands(bands, repeats), _) => ExpectedCell {
                reason: words::bands(&bands, unit),
                repeats,
                is_repeatable: true,
                ..blank
            },
            (Answer::Loss(seen), _) => seen.result(blank, (level, scale), judge.looks_again),
            (Answer::Ratio(change, bands), Kind::Ratio { bound, ratio, .. }) => {
                let mut found =
                    self.of_change(judge, blank, (change, *bound, *ratio), (level, scale));
                if let Some(bands) = bands {
                    let own = if self.limit(judge).2.is_none() {
                        unit
                    } else {
                        None
                    };
                    found.reason += " ";
                    found.reason += &words::far_bands(&bands, own);
                }
                found
            }
            // An answer is made of its question's kind.
            _ => blank,
        }
    }

    fn of_change(
        &self,
        judge: &Judge<'_>,
        blank: ExpectedCell,
        (change, bound, ratio): (Change, Bound, f64),
        (level, scale): (Level, f64),
    ) -> ExpectedCell {
        let repeats = change.repeats().1;
        let (_, unit, _) = self.limit(judge);
        // Of a constant the interval is of the figure itself.
        let size = match self.from() {
            Some(From::Constant(limit, _)) => *limit,
            _ => 1.0,
        };
        let figure = size * change.ratio();
        let Some((low, high)) = change.interval(level.alpha()) else {
            return ExpectedCell {
                figure: Some(figure),
                repeats,
                is_repeatable: true,
                reason: words::no_scatter(repeats, judge.looks_again),
                ..blank
            };
        };
        let outcome = LimitOutcome::of((low, high), bound, ratio);
        let is_rate = self.quantity.starts_with("throughput") && bound == Bound::AtLeast;
        let other = (is_rate && outcome == LimitOutcome::Violated)
            .then(|| judge.other_limit(self.place))
            .flatten();
        // The tables print the arithmetic mean.
        let is_other =
            |arithmetic: f64| unit.is_some_and(|unit| unit.print(arithmetic) != unit.print(figure));
        let mean = match self.arithmetic_mean(repeats) {
            Some(arithmetic) if is_other(arithmetic) => " (geometric mean)",
            _ => "",
        };
        let mut reason = words::measured(
            (figure, size * low, size * high),
            level.alpha(),
            (unit, &blank, mean),
        );
        let (mut more, mut is_repeatable) = (None, false);
        match outcome {
            LimitOutcome::Met => {}
            LimitOutcome::Violated => {
                reason.push_str(&match other {
                    Some(why) => format!(" {why}"),
                    None => words::VIOLATED.to_owned(),
                });
            }
            LimitOutcome::Undecided => {
                let needed = change.needed(ratio, scale * level.alpha());
                if let Needed::Repeats(all) = needed {
                    more = Some(all.saturating_sub(repeats).max(1));
                }
                is_repeatable = matches!(
                    needed,
                    Needed::Repeats(_) | Needed::Scatter | Needed::TooNear
                );
                reason.push_str(&words::advice(needed, repeats, more, judge.looks_again));
            }
        }
        if let Some(From::Run {
            machine: Some(machine),
            folder,
            ..
        }) = self.from()
        {
            reason.push_str(&format!(
                " Run {folder} was made on another machine: {machine}."
            ));
        }
        ExpectedCell {
            figure: Some(figure),
            low: Some(size * low),
            high: high.is_finite().then_some(size * high),
            repeats,
            outcome,
            more_repeats: more,
            is_repeatable,
            reason,
            ..blank
        }
    }

    /// What the figure is limited by, if it has a ratio to that.
    fn from(&self) -> Option<&From> {
        match &self.kind {
            Kind::Ratio { from, .. } => Some(from),
            Kind::Loss(_) | Kind::Without(_) => None,
        }
    }

    /// The limit with its unit, and the other figure.
    fn limit(&self, judge: &Judge<'_>) -> (f64, Option<GateUnit>, Option<String>) {
        match &self.kind {
            Kind::Ratio { from, ratio, .. } => match &**from {
                From::Constant(limit, unit) => (*limit, Some(*unit), None),
                From::Cell(place, _) => (*ratio, None, Some(judge.cells[*place].id.clone())),
                From::Run { folder, .. } => (*ratio, None, Some(folder.clone())),
            },
            Kind::Loss(loss) => (loss.limit.unwrap_or(0.0), Some(GateUnit::Share), None),
            Kind::Without(_) => (0.0, None, None),
        }
    }

    /// The p-value of the finding that the figure is on one side of the limit.
    /// The arithmetic mean of a figure by a constant, if it is of as many repeats.
    fn arithmetic_mean(&self, repeats: u32) -> Option<f64> {
        match &self.kind {
            Kind::Ratio { own, from, .. } if matches!(**from, From::Constant(..)) => {
                (own.value.n == repeats).then_some(own.value.mean)
            }
            _ => None,
        }
    }

    /// The p-value of the side that it is on; 1 for a figure that is still missing, so that a
    /// repair of its trials changes no other level. `None` for a cell that never has one.
    pub(super) fn p(&self, judge: &Judge<'_>, answer: &Answer) -> Option<f64> {
        match (answer, &self.kind) {
            (Answer::Lacking { .. } | Answer::Bands(..), _) => Some(1.0),
            (Answer::Without, _) => {
                let status = judge.cells[self.place].status;
                let is_missing =
                    matches!(status, Status::Invalid | Status::Failed | Status::NotRun);
                is_missing.then_some(1.0)
            }
            (Answer::Ratio(change, _), Kind::Ratio { ratio, .. }) => {
                let sides = change.p_beyond(*ratio);
                Some(sides.map_or(1.0, |(above, below)| above.min(below)))
            }
            (Answer::Loss(seen), _) => seen.p(),
            _ => None,
        }
    }
}

/// The largest value that the repeats, and the upper bounds of a search, allow.
fn most(of: &Reading) -> f64 {
    if of.is_open {
        return f64::INFINITY;
    }
    let upper = of
        .upper
        .as_ref()
        .map_or(f64::NEG_INFINITY, |upper| upper.max);
    upper.max(of.value.max)
}

/// The figures of a cell that a gate is about.
fn readings(cell: &CellResult, gate: &Gate) -> Vec<Reading> {
    let is_asked = |reading: &Reading| {
        let is_at = match gate.at {
            Some(GateLoad::Percent(percent)) => reading.load_percent == Some(percent),
            _ => true,
        };
        reading.quantity.word() == gate.quantity && is_at
    };
    // A rate at a load is that of the load, not the highest.
    if let (Some(at), "throughput") = (gate.at, gate.quantity.as_str()) {
        let loads = loads_at(cell, Some(at)).into_iter();
        let rates = loads.map(|load| (load.forwarded.clone(), load.percent));
        let read = rates.map(|(rates, percent)| Reading {
            load_percent: percent.and_then(|percent| u8::try_from(percent).ok()),
            ..Reading::new(Quantity::FrameRate, rates.frames_per_s.clone())
        });
        let read: Vec<Reading> = read.collect();
        return read.into_iter().map(|it| in_unit(cell, it, gate)).collect();
    }
    let all = cell.readings().into_iter().filter(is_asked);
    all.map(|reading| in_unit(cell, reading, gate)).collect()
}

/// A rate of frames in the gate's unit: one constant factor for each layer.
fn in_unit(cell: &CellResult, reading: Reading, gate: &Gate) -> Reading {
    let GateLimit::Figure {
        unit: GateUnit::BitsAt(layer),
        ..
    } = gate.limit
    else {
        return reading;
    };
    let of = |rates: &LayerRates| {
        let bits = match layer {
            Layer::L1 => &rates.l1_bps,
            Layer::L2 => &rates.l2_bps,
            Layer::Ip | Layer::Payload => &rates.ip_bps,
        };
        (rates.frames_per_s.mean > 0.0).then(|| bits.mean / rates.frames_per_s.mean)
    };
    let frames = cell.frames();
    let searched = frames.and_then(|frames| frames.throughput.as_ref());
    let searched = searched.and_then(|found| found.goals.first()?.lower.as_ref());
    let rates = searched.or_else(|| frames?.fastest().map(|load| &load.forwarded));
    let factor = rates.and_then(of).unwrap_or(1.0);
    Reading {
        value: reading.value.scaled(factor),
        upper: reading.upper.map(|upper| upper.scaled(factor)),
        ..reading
    }
}

/// What a figure is limited by.
fn kind(
    judge: &Judge<'_>,
    gate: &Gate,
    own: Reading,
    (cell, reference, stored): (&CellResult, Option<&plan::Cell>, Option<&StoredRun>),
) -> Kind {
    match &gate.limit {
        GateLimit::Figure { bound, value, unit } => Kind::Ratio {
            own: Box::new(own),
            from: Box::new(From::Constant(*value, *unit)),
            bound: *bound,
            ratio: 1.0,
        },
        GateLimit::NoLoss => Kind::Without("Only a loss can be limited by 0.".into()),
        GateLimit::Ratio {
            bound,
            ratio,
            reference: named,
        } => {
            let from = match named {
                Some(GateReference::Run(_)) => stored_figure(judge, &own, cell, stored),
                _ => cell_figure(judge, &own, reference),
            };
            match from {
                Ok(from) => Kind::Ratio {
                    own: Box::new(own),
                    from: Box::new(from),
                    bound: *bound,
                    ratio: *ratio,
                },
                Err(reason) => Kind::Without(reason),
            }
        }
    }
}

fn is_same(own: &Reading, other: &Reading) -> bool {
    let key = |of: &Reading| (of.quantity, of.load_percent, of.path);
    key(own) == key(other)
}

fn cell_figure(
    judge: &Judge<'_>,
    own: &Reading,
    reference: Option<&plan::Cell>,
) -> Result<From, String> {
    let reference = reference.ok_or("The run has no figure to compare it with.")?;
    let place = judge.cells.iter().position(|cell| cell.id == reference.id);
    let place = place.ok_or("The run has no figure to compare it with.")?;
    let cell = &judge.cells[place];
    let other = cell.readings().into_iter().find(|it| is_same(own, it));
    match other {
        Some(other) => Ok(From::Cell(place, other)),
        None => Err(format!("Of `{}`: {}", cell.id, words::no_figure(cell))),
    }
}

fn stored_figure(
    judge: &Judge<'_>,
    own: &Reading,
    cell: &CellResult,
    stored: Option<&StoredRun>,
) -> Result<From, String> {
    let stored = stored.ok_or(
        "The run is not known here: give it as an argument of `compare`, without `run=` in the gate.",
    )?;
    let round_trip = own.path.map(|path| path == LatencyPath::RoundTrip);
    let is_it = |figure: &&StoredFigure| {
        figure.cell == cell.id
            && figure.quantity == own.quantity.key()
            && figure.load_percent == own.load_percent
            && figure.round_trip == round_trip
    };
    let Some(figure) = stored.figures.iter().find(is_it) else {
        let why = stored.without.get(&cell.id);
        let why = why.map_or("it has no figure of it", String::as_str);
        return Err(format!("Run {}: {why}.", stored.folder));
    };
    let estimate = |values: &[u64]| {
        let samples = (1..).zip(values).map(|(repeat, value)| Sample {
            repeat,
            value: *value as f64 / 1e3,
        });
        Estimate::of(samples.collect())
    };
    let value = estimate(&figure.values).ok_or("The stored run has no repeat of it.")?;
    let here = words::machine(&judge.journal.header.environment);
    Ok(From::Run {
        folder: stored.folder.clone(),
        machine: (stored.machine != here).then(|| stored.machine.clone()),
        reading: Reading {
            load_percent: own.load_percent,
            path: own.path,
            upper: estimate(&figure.upper),
            is_open: figure.is_open,
            ..Reading::new(own.quantity, value)
        },
    })
}

/// The first repeats of an estimate; `None` if one has no value.
fn whole(of: &Estimate, repeats: u32) -> Option<Estimate> {
    let values = of.values.iter().filter(|one| one.repeat <= repeats);
    let values: Vec<Sample> = values.copied().collect();
    (values.len() == repeats as usize).then(|| Estimate::of(values))?
}

/// The same of a reading with the bounds of a search.
fn upto(reading: &Reading, repeats: u32) -> Option<Reading> {
    let value = whole(&reading.value, repeats)?;
    let upper = reading.upper.as_ref();
    let bound = upper.and_then(|upper| whole(upper, repeats));
    Some(Reading {
        // A repeat without an upper bound leaves the search open.
        is_open: reading.is_open || upper.is_some() && bound.is_none(),
        upper: bound,
        value,
        ..reading.clone()
    })
}
