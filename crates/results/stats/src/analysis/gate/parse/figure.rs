//! Figures with their units, behind a comparison.

use super::token::{Token, joined};
use super::{GateError, Parser};
use crate::analysis::gate::{Gate, GateLimit, GateReference, GateUnit};
use plan::Bound;
use std::ops::Range;
use units::{BitRate, ErrorKind, FrameRate, Layer};

impl Parser<'_> {
    /// The condition of a comparison: a figure, or a share of another one.
    pub(super) fn limit(
        &self,
        (quantity, sign): (&str, &str),
        sign_at: &Range<usize>,
        tokens: &[Token],
        reference: Option<GateReference>,
    ) -> Result<GateLimit, GateError> {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            let end = self.text.len();
            let problem = format!("no figure behind `{sign}`");
            return Err(self.error(end..end, problem, example(quantity)));
        };
        let at = first.at.start..last.at.end;
        let text = joined(tokens);
        let is_loss = quantity == Gate::LOSS;
        if sign == "=" {
            if is_loss && is_zero(&text) && reference.is_none() {
                return Ok(GateLimit::NoLoss);
            }
            let problem = "`=` is of `loss = 0` only".to_owned();
            let help = "no two repeats have the same figure: write `>=` or `<=`";
            return Err(self.error(sign_at.clone(), problem, help));
        }
        let bound = match sign {
            ">=" => Bound::AtLeast,
            _ => Bound::AtMost,
        };
        if is_loss {
            if let Some(reference) = reference {
                let problem = format!("a loss is compared with no other: {}", reference.in_words());
                return Err(self.error(at, problem, "write `loss = 0` or `loss <= 0.1 %`"));
            }
            if bound == Bound::AtLeast {
                let problem = "a loss is limited from above".to_owned();
                return Err(self.error(sign_at.clone(), problem, "write `<=`"));
            }
            return self.loss(&text, at);
        }
        let percent = text.strip_suffix('%').map(str::trim_end);
        match (percent, reference) {
            (Some(number), reference) => {
                let percent: Option<f64> = number.parse().ok();
                let percent = percent.filter(|percent| *percent > 0.0 && *percent < 1e6);
                let percent = percent.ok_or_else(|| {
                    let help = "write for example `>= 80 % of baseline`";
                    self.error(at, format!("`{text}` is no share in per cent"), help)
                })?;
                Ok(GateLimit::Ratio {
                    bound,
                    ratio: percent / 100.0,
                    reference,
                })
            }
            (None, Some(_)) => {
                let problem = format!("`{text}` is no share of another figure");
                let help = "write it in per cent: `>= 80 % of baseline`";
                Err(self.error(at, problem, help))
            }
            (None, None) => {
                let (value, unit) = self.figure(quantity, &text, at)?;
                Ok(GateLimit::Figure { bound, value, unit })
            }
        }
    }

    fn loss(&self, text: &str, at: Range<usize>) -> Result<GateLimit, GateError> {
        if is_zero(text) {
            return Ok(GateLimit::NoLoss);
        }
        let (number, scale) = match (text.strip_suffix('%'), text.strip_suffix("ppm")) {
            (Some(number), _) => (number, 1e-2),
            (_, Some(number)) => (number, 1e-6),
            (None, None) => return Err(self.no_figure(Gate::LOSS, text, at)),
        };
        let share: Option<f64> = number.trim().parse().ok();
        let share = share.map(|number| number * scale);
        match share.filter(|share| *share > 0.0 && *share < 1.0) {
            Some(value) => Ok(GateLimit::Figure {
                bound: Bound::AtMost,
                value,
                unit: GateUnit::Share,
            }),
            None => Err(self.no_figure(Gate::LOSS, text, at)),
        }
    }

    fn figure(
        &self,
        quantity: &str,
        text: &str,
        at: Range<usize>,
    ) -> Result<(f64, GateUnit), GateError> {
        let found = match quantity {
            "throughput" => rate(text),
            "efficiency" => bits(text),
            "transactions" | "set-ups" | "operations" => {
                number_of(text, &["/s", "1/s"], GateUnit::PerS)
            }
            "burst" => number_of(text, &["frames", "frame"], GateUnit::Frames),
            _ => {
                let time = units::time::parse(text).ok();
                time.map(|time| (time.as_nanos() as f64, GateUnit::Ns))
            }
        };
        found
            .filter(|(value, _)| *value > 0.0)
            .ok_or_else(|| self.no_figure(quantity, text, at))
    }

    fn no_figure(&self, quantity: &str, text: &str, at: Range<usize>) -> GateError {
        let problem = if text.parse::<f64>().is_ok() {
            format!("`{text}` has no unit")
        } else {
            format!("`{text}` is no limit of `{quantity}`")
        };
        // `1 Gbps` and the like have one spelling here, which the parser of rates knows.
        let spelled = BitRate::parse(text, Layer::Payload).err();
        let spelled = spelled.filter(|error| {
            error.kind == ErrorKind::UnknownUnit && error.help().starts_with("write ")
        });
        match spelled.filter(|_| matches!(quantity, "throughput" | "efficiency")) {
            Some(error) => self.error(at, error.to_string(), error.help().to_owned()),
            None => self.error(at, problem, example(quantity)),
        }
    }
}

fn rate(text: &str) -> Option<(f64, GateUnit)> {
    let layers = [Layer::L1, Layer::L2, Layer::Ip];
    let layered = layers.iter().find_map(|layer| {
        let rate = BitRate::parse(text.strip_suffix(layer.name())?.trim_end(), *layer).ok()?;
        Some((rate.bps() as f64, GateUnit::BitsAt(*layer)))
    });
    let frames = || {
        let rate = FrameRate::parse(text).ok()?;
        Some((rate.fps() as f64, GateUnit::FramesPerS))
    };
    layered.or_else(|| bits(text)).or_else(frames)
}

fn bits(text: &str) -> Option<(f64, GateUnit)> {
    let rate = BitRate::parse(text, Layer::Payload).ok()?;
    Some((rate.bps() as f64, GateUnit::Bits))
}

fn number_of(text: &str, names: &[&str], unit: GateUnit) -> Option<(f64, GateUnit)> {
    let number = names.iter().find_map(|name| text.strip_suffix(name))?;
    let value: f64 = number.trim_end().parse().ok()?;
    value.is_finite().then_some((value, unit))
}

fn is_zero(text: &str) -> bool {
    let number = text.trim_end_matches('%').trim_end_matches("ppm").trim();
    number.parse().is_ok_and(|value: f64| value.abs() <= 0.0)
}

/// How a limit of a quantity is written.
fn example(quantity: &str) -> String {
    let figure = match quantity {
        "throughput" => ">= 5 Gbit/s`, of frames `>= 1 Mpps` or `>= 10 Gbit/s L1",
        "efficiency" => ">= 5 Gbit/s",
        "transactions" | "set-ups" | "operations" => ">= 5000/s",
        "burst" => ">= 100 frames",
        Gate::LOSS => "= 0` or `<= 0.1 %",
        _ => "<= 300 us",
    };
    format!("write for example `{figure}`")
}
