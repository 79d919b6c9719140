//! Values on axes, in ids and in sentences.

use super::{Axis, Column, Conditions, Coordinate, DECLARATIONS, Declaration, Named, Unit};
use crate::Measurement;
use crate::value::Value;
use crate::words::{compact, compact_time};
use std::fmt;
use std::time::Duration;
use units::{BitRate, Bytes, Layer};

impl Axis {
    /// Every axis, in the order of texts and tables.
    pub fn all() -> impl Iterator<Item = Self> {
        DECLARATIONS.iter().map(|declared| declared.axis)
    }

    fn declared(self) -> &'static Declaration {
        // Each axis is declared at the place of its variant; a test compares them.
        &DECLARATIONS[self as usize]
    }

    /// Name in ids: `mtu`.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.declared().key
    }

    pub(crate) fn value(self, conditions: &Conditions<'_>) -> Option<Value> {
        (self.declared().value)(conditions)
    }

    /// Describes cells with these values in a sentence about traffic, for example `64 flows`, or `1
    /// to 1000 tunnels` if their numbers differ; `None` without a value, and for axes that
    /// sentences leave out.
    pub fn phrase(self, values: impl Iterator<Item = Value>) -> Option<String> {
        let in_words = self.declared().phrase?;
        let values: Vec<Value> = values.collect();
        // Cells of a group may differ here: each DUT may have another number of tunnels.
        let (least, most) = (values.iter().min()?, values.iter().max()?);
        Some(if least == most {
            in_words(most)
        } else {
            format!("{} to {}", least.plain(), in_words(most))
        })
    }

    /// Whether a figure is printed without this value.
    #[must_use]
    pub fn is_usual(self, value: &Value) -> bool {
        (self.declared().is_usual)(value)
    }

    /// Its column in `results.csv`, if any.
    #[must_use]
    pub fn column(self) -> Option<Column> {
        self.declared().column
    }

    /// Whether every id of trials of this kind contains it, even if no other value is measured.
    #[must_use]
    pub fn is_always_named(self, measurement: &Measurement) -> bool {
        match self.declared().named {
            Named::Always => true,
            Named::IfVaried => false,
            Named::AlwaysInTransfers => measurement.tool().is_some(),
            Named::ExceptInTransfers => measurement.tool().is_none(),
        }
    }

    /// A coordinate on this axis.
    #[must_use]
    pub fn at(self, value: impl Into<Value>) -> Coordinate {
        let value = value.into();
        Coordinate { axis: self, value }
    }

    /// The value with its unit: `1500 B`.
    #[must_use]
    pub fn in_words(self, value: &Value) -> String {
        // Ids leave this unit out; the units of other numbers are part of their printed form.
        let unit = match (self.declared().unit, value) {
            (Unit::Bytes, Value::Number(_)) => " B",
            _ => "",
        };
        self.print(value) + unit
    }

    /// A value as in ids, without the name of the axis.
    fn print(self, value: &Value) -> String {
        let Value::Number(number) = *value else {
            return match value {
                Value::Open => self.declared().open.to_owned(),
                other => other.plain(),
            };
        };
        match self.declared().unit {
            Unit::Plain | Unit::Bytes => number.to_string(),
            Unit::Size => compact(&Bytes::new(number)),
            Unit::Rate => compact(&BitRate::new(number, Layer::Payload)),
            Unit::Time => compact_time(Duration::from_nanos(number)),
            Unit::Percent => format!("{number}%"),
        }
    }
}

impl Coordinate {
    /// The value as in ids: `1500`.
    #[must_use]
    pub fn printed(&self) -> String {
        self.axis.print(&self.value)
    }

    /// The coordinates in the id of a group, their only place in older journals.
    #[must_use]
    pub fn all_in(group: &str) -> Vec<Self> {
        let parts = group.split('/').filter_map(|part| part.split_once('='));
        let coordinate = |(key, text): (&str, &str)| {
            let declared = DECLARATIONS.iter().find(|declared| declared.key == key)?;
            // Other units are rounded in print or have a prefix. As words they are printed as
            // they were, and are not compared with numbers.
            let is_number = matches!(declared.unit, Unit::Plain | Unit::Bytes);
            let number = text.parse().ok().filter(|_| is_number);
            let value = number.map_or_else(|| Value::Word(text.to_owned()), Value::Number);
            Some(declared.axis.at(value))
        };
        parts.filter_map(coordinate).collect()
    }
}

/// Form in ids: `mtu=1500`.
impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.axis.key(), self.axis.print(&self.value))
    }
}
