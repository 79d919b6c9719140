//! From text to gates.

mod figure;
mod token;

use super::{Gate, GateFilter, GateLimit, GateLoad, GateReference, Places};
use crate::analysis::quantity::Quantity;
use plan::{Axis, Bound, Measurement};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use token::{Token, tokens};

const VERBS: [&str; 2] = ["drops", "rises"];
const COMPARISONS: [&str; 3] = [">=", "<=", "="];
/// Words in front of a reference.
const TO: [&str; 2] = ["of", "against"];
const EXAMPLES: &str =
    "a gate is like `tcp dut=cipherbench throughput drops > 5 %` or `tcp throughput >= 5 Gbit/s`";
/// Longest gate, in bytes.
const TEXT_MAX: usize = 1000;

/// Why a text is not a gate, or why it cannot be about the cells of a plan; with the place in the
/// text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateError {
    text: String,
    /// Byte range of the problem in the text; empty and past the end if something is missing.
    at: Range<usize>,
    problem: String,
    help: String,
}

impl GateError {
    pub(super) fn new(text: &str, at: Range<usize>, problem: String, help: String) -> Self {
        Self {
            text: text.to_owned(),
            at,
            problem,
            help,
        }
    }

    /// Characters before the problem, and characters of it: at least one.
    #[must_use]
    pub fn columns(&self) -> (usize, usize) {
        let columns = |range: Range<usize>| self.text[range].chars().count();
        (columns(0..self.at.start), columns(self.at.clone()).max(1))
    }

    /// The problem in a line.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, marked) = self.columns();
        writeln!(f, "{} in the gate", self.problem)?;
        writeln!(f, "  {}", self.text)?;
        writeln!(f, "  {}{}", " ".repeat(before), "^".repeat(marked))?;
        write!(f, "help: {}", self.help)
    }
}

impl std::error::Error for GateError {}

/// Parses the remaining tokens of a gate.
struct Parser<'t> {
    text: &'t str,
    tokens: std::vec::IntoIter<Token>,
}

/// The words before the condition.
struct Subject {
    filters: Vec<Token>,
    quantity: Token,
    load: Vec<Token>,
    /// The comparison or the verb.
    condition: Token,
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        // Control characters would spoil the terminal line with the marker below it; at the ends
        // they are space like any other.
        let shown: String = text
            .trim_matches(|c: char| c.is_whitespace() || c.is_control())
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let error = |at, problem: &str, help: &str| {
            GateError::new(&shown, at, problem.to_owned(), help.to_owned())
        };
        if shown.len() > TEXT_MAX {
            let end = shown.len();
            return Err(error(
                end..end,
                "more than 1000 bytes",
                "split it into several gates",
            ));
        }
        let tokens = tokens(&shown).map_err(|start| {
            error(
                start..start + 1,
                "a quotation mark without its end",
                "add `\"` behind the text",
            )
        })?;
        Parser {
            text: &shown,
            tokens: tokens.into_iter(),
        }
        .gate()
    }
}

impl Parser<'_> {
    fn error(&self, at: Range<usize>, problem: String, help: impl Into<String>) -> GateError {
        GateError::new(self.text, at, problem, help.into())
    }

    /// Returns the next token; `what` names it in the error if it is missing.
    fn next(&mut self, what: &str) -> Result<Token, GateError> {
        self.tokens.next().ok_or_else(|| {
            let end = self.text.len();
            self.error(end..end, format!("{what} is missing"), EXAMPLES)
        })
    }

    fn sign(&mut self, sign: &str) -> Result<(), GateError> {
        let found = self.next(&format!("`{sign}`"))?;
        if found.word == sign {
            Ok(())
        } else {
            let problem = format!("`{}` where `{sign}` must be", found.word);
            Err(self.error(found.at, problem, EXAMPLES))
        }
    }

    fn gate(mut self) -> Result<Gate, GateError> {
        let subject = self.subject()?;
        let load = self.load(&subject.load)?;
        let filters = self.filters(&subject.filters)?;
        let rest: Vec<Token> = self.tokens.by_ref().collect();
        let end = self.text.len();
        let condition = subject.condition.word.as_str();
        let (value, reference) = match rest.iter().position(|it| TO.contains(&it.word.as_str())) {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => (&rest[..], None),
        };
        // Before anything else is read: two conditions in one line look like a bad figure.
        let is_another = |it: &&Token| {
            let word = it.word.as_str();
            COMPARISONS.contains(&word) || VERBS.contains(&word)
        };
        if let Some(second) = rest.iter().find(is_another) {
            let problem = format!("`{}` is a second condition", second.word);
            let help = "one gate has one condition; write another gate for the other";
            return Err(self.error(second.at.clone(), problem, help));
        }
        let reference = reference.map(|it| self.reference(it)).transpose()?;
        let span = |tokens: &[Token]| match tokens {
            [] => end..end,
            [first, .., last] => first.at.start..last.at.end,
            [only] => only.at.clone(),
        };
        let places = Places {
            filters: filters.iter().map(|(_, at)| at.clone()).collect(),
            quantity: subject.quantity.at.clone(),
            load: span(&subject.load),
            limit: span(value),
            reference: reference.as_ref().map_or(end..end, |(_, at)| at.clone()),
        };
        let reference = reference.map(|(reference, _)| reference);
        let is_loss = subject.quantity.word == Gate::LOSS;
        let limit = if VERBS.contains(&condition) {
            if is_loss {
                let problem = "a loss that was 0 has no change in per cent".to_owned();
                let help = "write `loss = 0` or `loss <= 0.1 %`";
                return Err(self.error(subject.quantity.at, problem, help));
            }
            self.change(condition == "drops", value, reference)?
        } else {
            let of = (subject.quantity.word.as_str(), condition);
            self.limit(of, &subject.condition.at, value, reference)?
        };
        Ok(Gate {
            text: self.text.to_owned(),
            filters: filters.into_iter().map(|(filter, _)| filter).collect(),
            quantity: subject.quantity.word,
            at: load,
            limit,
            places,
        })
    }

    /// Reads up to the comparison or the verb.
    fn subject(&mut self) -> Result<Subject, GateError> {
        let mut words: Vec<Token> = Vec::new();
        let mut load: Option<Vec<Token>> = None;
        let condition = loop {
            let token = self.next("`drops`, `rises`, `>=`, `<=` or `=`")?;
            match (token.word.as_str(), &mut load) {
                (word, _) if VERBS.contains(&word) || COMPARISONS.contains(&word) => break token,
                ("at", None) => load = Some(Vec::new()),
                ("%", Some(load)) => load.push(token),
                (">" | "<" | "%", _) => {
                    let help = "a quantity `drops` or `rises`, such as `throughput drops > 5 %`, or is compared by \
                                `>=`, `<=` or `=`";
                    let problem = format!("`{}` without `drops` or `rises` before it", token.word);
                    return Err(self.error(token.at, problem, help));
                }
                (_, Some(load)) => load.push(token),
                (_, None) => words.push(token),
            }
        };
        // The last word is the quantity, as some kinds of trials have the name of one: `throughput
        // throughput drops`.
        let Some(quantity) = words.pop() else {
            let problem = format!("no quantity before `{}`", condition.word);
            let help = format!("known quantities are {}", quantities().join(", "));
            return Err(self.error(0..0, problem, help));
        };
        if !quantities().contains(&quantity.word.as_str()) {
            let help = yaml::names::help(&quantity.word, "quantity", &quantities());
            // `help` forms plurals by an `s`.
            let help = help.replace("quantitys", "quantities");
            let problem = format!("unknown quantity `{}`", quantity.word);
            return Err(self.error(quantity.at, problem, help));
        }
        if load.as_ref().is_some_and(Vec::is_empty) {
            let problem = "no load behind `at`".to_owned();
            let help = "write for example `at 1 Mpps` or `at 50 %`";
            return Err(self.error(condition.at, problem, help));
        }
        Ok(Subject {
            filters: words,
            quantity,
            load: load.unwrap_or_default(),
            condition,
        })
    }

    fn filters(&self, words: &[Token]) -> Result<Vec<(GateFilter, Range<usize>)>, GateError> {
        let mut filters = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            // Two words, as people say it.
            let trip = words.next_if(|next| word.word == "round" && next.word == "trip");
            filters.push(match trip {
                Some(trip) => (GateFilter::RoundTrip, word.at.start..trip.at.end),
                None => (self.filter(word)?, word.at.clone()),
            });
        }
        Ok(filters)
    }

    fn filter(&self, token: &Token) -> Result<GateFilter, GateError> {
        let word = token.word.as_str();
        let Some((key, value)) = word.split_once('=') else {
            let kinds: Vec<_> = Measurement::kinds().collect();
            if kinds.contains(&word) {
                return Ok(GateFilter::Kind(word.to_owned()));
            }
            let help = if VERBS
                .iter()
                .chain(&quantities())
                .any(|known| *known == word)
            {
                "the order is: filters, one quantity, `drops` or `rises`".to_owned()
            } else {
                yaml::names::help(word, "kind", &kinds)
            };
            let problem = format!("unknown kind of trial `{word}`");
            return Err(self.error(token.at.clone(), problem, help));
        };
        if value.is_empty() {
            let problem = format!("no value behind `{key}=`");
            let help = "write it without blanks, or in quotation marks: dut=\"a b\"";
            return Err(self.error(token.at.clone(), problem, help));
        }
        if key == "dut" {
            return Ok(GateFilter::Device(value.to_owned()));
        }
        match Axis::all().find(|axis| axis.key() == key) {
            Some(axis) => Ok(GateFilter::Value(axis, value.to_owned())),
            None => {
                let keys = std::iter::once("dut").chain(Axis::all().map(Axis::key));
                let keys: Vec<&str> = keys.collect();
                let help = yaml::names::help(key, "key", &keys);
                let problem = format!("unknown key `{key}`");
                Err(self.error(token.at.clone(), problem, help))
            }
        }
    }

    fn load(&self, tokens: &[Token]) -> Result<Option<GateLoad>, GateError> {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Ok(None);
        };
        let text = token::joined(tokens);
        let percent = text.strip_suffix('%').map(|number| number.trim().parse());
        let found = match percent {
            Some(Ok(percent)) if percent <= 100 => Some(GateLoad::Percent(percent)),
            Some(_) => None,
            None => units::FrameRate::parse(&text)
                .ok()
                .map(|rate| GateLoad::FramesPerS(rate.fps())),
        };
        found.map(Some).ok_or_else(|| {
            let problem = format!("`{text}` is no load");
            let help = "write for example `at 1 Mpps` or `at 50 %`";
            self.error(first.at.start..last.at.end, problem, help)
        })
    }

    /// The condition of `drops` or `rises`.
    fn change(
        &mut self,
        drops: bool,
        tokens: &[Token],
        reference: Option<GateReference>,
    ) -> Result<GateLimit, GateError> {
        self.tokens = Vec::from(tokens).into_iter();
        self.sign(">")?;
        let number = self.next("a number of per cent")?;
        // Nothing drops by 100 % or more. `contains` also refuses `nan`, which `parse` accepts.
        let most = if drops { 100.0 } else { 1e6 };
        let percent: Option<f64> = number.word.parse().ok();
        let Some(percent) = percent.filter(|percent| (0.0..most).contains(percent)) else {
            let problem = format!("`{}` is no bound in per cent", number.word);
            let help = format!("write a number from 0 to below {most}, such as `> 2.5 %`");
            return Err(self.error(number.at, problem, help));
        };
        self.sign("%")?;
        if let Some(extra) = self.tokens.next() {
            let problem = format!("`{}` behind the end", extra.word);
            let help = "one gate has one bound; write another gate for another bound";
            return Err(self.error(extra.at, problem, help));
        }
        let (bound, ratio) = if drops {
            (Bound::AtLeast, 1.0 - percent / 100.0)
        } else {
            (Bound::AtMost, 1.0 + percent / 100.0)
        };
        Ok(GateLimit::Ratio {
            bound,
            ratio,
            reference,
        })
    }

    /// The reference behind `of` or `against`, with its place.
    fn reference(&self, tokens: &[Token]) -> Result<(GateReference, Range<usize>), GateError> {
        let help = "write `of baseline`, `of dut=NAME` or `of run=FOLDER`";
        let [word, reference, more @ ..] = tokens else {
            let end = self.text.len();
            let problem = format!("nothing behind `{}`", tokens[0].word);
            return Err(self.error(end..end, problem, help));
        };
        if let Some(extra) = more.first() {
            let problem = format!("`{}` behind the end", extra.word);
            let help = "nothing follows what the figure is compared with";
            return Err(self.error(extra.at.clone(), problem, help));
        }
        let at = reference.at.clone();
        let found = match reference.word.split_once('=') {
            None if reference.word == "baseline" => Some(GateReference::Baseline),
            Some(("dut", name)) if !name.is_empty() => Some(GateReference::Dut(name.to_owned())),
            Some(("run", folder)) if !folder.is_empty() => {
                Some(GateReference::Run(folder.to_owned()))
            }
            _ => None,
        };
        found.map(|found| (found, at.clone())).ok_or_else(|| {
            let problem = format!(
                "`{}` behind `{}` names no figure",
                reference.word, word.word
            );
            self.error(at, problem, help)
        })
    }
}

/// The names of all quantities, without duplicates.
pub(super) fn quantities() -> Vec<&'static str> {
    // Quantities of different kinds of trials share a word.
    let mut words: Vec<&str> = Vec::new();
    for quantity in Quantity::ALL {
        if !words.contains(&quantity.word()) {
            words.push(quantity.word());
        }
    }
    words.push(Gate::LOSS);
    words
}

#[cfg(test)]
mod tests;
