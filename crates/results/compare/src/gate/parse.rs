//! From text to gates.

use super::{Filter, Gate};
use plan::{Axis, Measurement};
use stats::Quantity;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

const VERBS: [&str; 2] = ["drops", "rises"];
const EXAMPLE: &str = "tcp dut=cipherbench throughput drops > 5 %";
/// Longest gate, in bytes.
const TEXT_MAX: usize = 1000;

/// Why a text is not a gate, with the place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateError {
    text: String,
    /// Byte range of the problem in the text; empty and past the end if something is missing.
    at: Range<usize>,
    problem: String,
    help: String,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = |range: Range<usize>| self.text[range].chars().count();
        let (before, marked) = (columns(0..self.at.start), columns(self.at.clone()));
        writeln!(f, "{} in the gate", self.problem)?;
        writeln!(f, "  {}", self.text)?;
        writeln!(f, "  {}{}", " ".repeat(before), "^".repeat(marked.max(1)))?;
        write!(f, "help: {}", self.help)
    }
}

impl std::error::Error for GateError {}

/// A word, quoted or not, or one of the signs `>` and `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    word: String,
    at: Range<usize>,
}

/// Parses the remaining tokens of a gate.
struct Parser<'t> {
    text: &'t str,
    tokens: std::vec::IntoIter<Token>,
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        // Control characters would spoil the terminal line with the marker below it.
        let shown: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let error = |at, problem: &str, help: &str| GateError {
            text: shown.clone(),
            at,
            problem: problem.to_owned(),
            help: help.to_owned(),
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

/// Splits a gate into tokens. The error is the position of an unclosed quotation mark.
fn tokens(text: &str) -> Result<Vec<Token>, usize> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut token = Token {
            word: String::new(),
            at: start..start + first.len_utf8(),
        };
        // The start of the open quotation, for the error if it has no end. The marks themselves are
        // no part of the word.
        let mut quoted = (first == '"').then_some(start);
        if quoted.is_none() {
            token.word.push(first);
        }
        let is_sign = |c| matches!(c, '>' | '%');
        // Signs are tokens even without blanks: `drops >5%` has four. Quotation marks may begin
        // inside a word, as in `dut="a b"`.
        while !is_sign(first) || quoted.is_some() {
            let Some(&(at, c)) = rest.peek() else { break };
            if quoted.is_none() && (c.is_whitespace() || is_sign(c)) {
                break;
            }
            rest.next();
            token.at.end = at + c.len_utf8();
            match (c, quoted) {
                ('"', None) => quoted = Some(at),
                ('"', Some(_)) => quoted = None,
                _ => token.word.push(c),
            }
        }
        if let Some(start) = quoted {
            return Err(start);
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// A value as a filter has it: in quotation marks if it has blanks or signs.
pub(super) fn quoted(value: &str) -> String {
    if value.contains(|c: char| c.is_whitespace() || matches!(c, '>' | '%')) {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    }
}

impl Parser<'_> {
    fn error(&self, at: Range<usize>, problem: String, help: String) -> GateError {
        GateError {
            text: self.text.to_owned(),
            at,
            problem,
            help,
        }
    }

    /// Returns the next token; `what` names it in the error if it is missing.
    fn next(&mut self, what: &str) -> Result<Token, GateError> {
        self.tokens.next().ok_or_else(|| {
            let end = self.text.trim_end().len();
            let help = format!("a gate is like `{EXAMPLE}`");
            self.error(end..end, format!("{what} is missing"), help)
        })
    }

    fn sign(&mut self, sign: &str) -> Result<(), GateError> {
        let found = self.next(&format!("`{sign}`"))?;
        if found.word == sign {
            Ok(())
        } else {
            Err(self.error(
                found.at,
                format!("`{}` where `{sign}` must be", found.word),
                format!("a gate is like `{EXAMPLE}`"),
            ))
        }
    }

    fn gate(mut self) -> Result<Gate, GateError> {
        let mut words: Vec<Token> = Vec::new();
        let drops = loop {
            let token = self.next("`drops` or `rises`")?;
            match token.word.as_str() {
                "drops" => break true,
                "rises" => break false,
                ">" | "%" => {
                    let help = "a quantity `drops` or `rises`, such as `throughput drops > 5 %`";
                    let problem = format!("`{}` without `drops` or `rises` before it", token.word);
                    return Err(self.error(token.at, problem, help.to_owned()));
                }
                _ => words.push(token),
            }
        };
        // The last word is the quantity, as some kinds of trials have the name of one: `throughput
        // throughput drops`.
        let Some(quantity) = words.pop() else {
            let problem = "no quantity before `drops` or `rises`".to_owned();
            let help = format!("known quantities are {}", quantities().join(", "));
            let at = self.text.len() - self.text.trim_start().len();
            return Err(self.error(at..at, problem, help));
        };
        if !quantities().contains(&quantity.word.as_str()) {
            let help = yaml::names::help(&quantity.word, "quantity", &quantities());
            // `help` forms plurals by an `s`.
            let help = help.replace("quantitys", "quantities");
            let problem = format!("unknown quantity `{}`", quantity.word);
            return Err(self.error(quantity.at, problem, help));
        }
        let filters = words.into_iter().map(|word| self.filter(&word));
        let filters = filters.collect::<Result<_, _>>()?;
        self.sign(">")?;
        let percent = self.percent(drops)?;
        self.sign("%")?;
        if let Some(extra) = self.tokens.next() {
            let problem = format!("`{}` behind the end", extra.word);
            let help = "one gate has one bound; give `--gate` again for another".to_owned();
            return Err(self.error(extra.at, problem, help));
        }
        Ok(Gate {
            text: self.text.trim().to_owned(),
            filters,
            quantity: quantity.word,
            drops,
            percent,
        })
    }

    fn filter(&self, token: &Token) -> Result<Filter, GateError> {
        let word = token.word.as_str();
        let Some((key, value)) = word.split_once('=') else {
            let kinds: Vec<_> = Measurement::kinds().collect();
            if kinds.contains(&word) {
                return Ok(Filter::Kind(word.to_owned()));
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
            let help = "write it without blanks, or in quotation marks: dut=\"a b\"".to_owned();
            return Err(self.error(token.at.clone(), problem, help));
        }
        if key == "dut" {
            return Ok(Filter::Device(value.to_owned()));
        }
        match Axis::all().find(|axis| axis.key() == key) {
            Some(axis) => Ok(Filter::Value(axis, value.to_owned())),
            None => {
                let keys = std::iter::once("dut").chain(Axis::all().map(Axis::key));
                let keys: Vec<&str> = keys.collect();
                let help = yaml::names::help(key, "key", &keys);
                let problem = format!("unknown key `{key}`");
                Err(self.error(token.at.clone(), problem, help))
            }
        }
    }

    fn percent(&mut self, drops: bool) -> Result<f64, GateError> {
        let token = self.next("a number of per cent")?;
        let number: Option<f64> = token.word.parse().ok();
        // Nothing drops by 100 % or more. `contains` also refuses `nan`, which `parse` accepts.
        let most = if drops { 100.0 } else { 1e6 };
        match number.filter(|number| (0.0..most).contains(number)) {
            Some(number) => Ok(number),
            None => Err(self.error(
                token.at,
                format!("`{}` is no bound in per cent", token.word),
                format!("write a number from 0 to below {most}, such as `> 2.5 %`"),
            )),
        }
    }
}

/// The names of all quantities, without duplicates.
fn quantities() -> Vec<&'static str> {
    // Quantities of different kinds of trials share a word.
    let mut words: Vec<&str> = Vec::new();
    for quantity in Quantity::ALL {
        if !words.contains(&quantity.word()) {
            words.push(quantity.word());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Gate>().unwrap_err().to_string()
    }

    #[test]
    fn a_gate_has_filters_a_quantity_a_verb_and_a_bound() {
        let gate: Gate = EXAMPLE.parse().unwrap();
        assert_eq!(
            gate.filters,
            [
                Filter::Kind("tcp".into()),
                Filter::Device("cipherbench".into())
            ]
        );
        assert_eq!((gate.quantity.as_str(), gate.drops), ("throughput", true));
        assert!((gate.bound() - 0.95).abs() < 1e-12);
        let tight: Gate = "throughput throughput drops>5%".parse().unwrap();
        assert_eq!(tight.filters, [Filter::Kind("throughput".into())]);
        let spaced: Gate = "dut=\"a > b\" mtu=1500 p99 rises > 2.5 %".parse().unwrap();
        assert_eq!(
            spaced.filters,
            [
                Filter::Device("a > b".into()),
                Filter::Value(Axis::Mtu, "1500".into())
            ]
        );
        assert!((spaced.bound() - 1.025).abs() < 1e-12);
    }

    #[test]
    fn a_mistake_is_shown_with_its_place_and_a_hint() {
        assert_eq!(
            error("tcp thruput drops > 5 %"),
            "unknown quantity `thruput` in the gate\n  tcp thruput drops > 5 %\n      ^^^^^^^\nhelp: did \
             you mean `throughput`? known quantities are throughput, transactions, operations, \
             efficiency, p50, p99, burst, recovery"
        );
        assert_eq!(
            error("tcp throughput drops > 5"),
            "`%` is missing in the gate\n  tcp throughput drops > 5\n                          ^\nhelp: a \
             gate is like `tcp dut=cipherbench throughput drops > 5 %`"
        );
        for (text, place, words) in [
            ("", "\n  ^\n", "`drops` or `rises` is missing"),
            (
                "tpc throughput drops > 5 %",
                "\n  ^^^\n",
                "did you mean `tcp`?",
            ),
            (
                "µtu=1 p50 rises > 5 %",
                "\n  ^^^^^\n",
                "did you mean `mtu`?",
            ),
            (
                "dut= p50 rises > 5 %",
                "\n  ^^^^\n",
                "no value behind `dut=`",
            ),
            ("dut=\"a p50 rises > 5 %", "\n      ^\n", "without its end"),
            ("p50 > 5 %", "\n      ^\n", "without `drops` or `rises`"),
            (
                "p50 rises 5 %",
                "\n            ^\n",
                "`5` where `>` must be",
            ),
            (
                "p50 rises > 5,0 %",
                "\n              ^^^\n",
                "no bound in per cent",
            ),
            ("p50 drops > 100 %", "\n              ^^^\n", "below 100"),
            (
                "p50 rises > nan %",
                "\n              ^^^\n",
                "no bound in per cent",
            ),
            (
                "p50 rises > 5 % p99",
                "\n                  ^^^\n",
                "behind the end",
            ),
            ("drops > 5 %", "\n  ^\n", "no quantity"),
            ("p50 p99 rises > 5 %", "\n  ^^^\n", "the order is"),
        ] {
            let shown = error(text);
            assert!(shown.contains(place) && shown.contains(words), "{shown}");
        }
    }
}
