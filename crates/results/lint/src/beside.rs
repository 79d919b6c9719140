//! Statements of a file for measurements that repeat its figures: the corresponding settings, and
//! why figures differ or cannot be measured. Campaigns read them; no rule does.

use crate::figure::Figure;
use crate::unit::Unit;
use yaml::Place;

/// Statements of a table or figure about the measurement that it is printed next to.
#[derive(Debug, Default)]
pub struct Beside {
    /// The settings of the measurement, in file order, if stated.
    pub cells: Vec<Setting>,
    /// Why a measurement elsewhere differs; one sentence.
    pub differs: Option<String>,
    /// Why it cannot be measured; one sentence.
    pub absent: Option<String>,
    /// Columns that the measurement has no figure for, each with the reason.
    pub elsewhere: Vec<(String, String)>,
}

/// A setting of the measurement: a key, or one of several values of it.
#[derive(Debug)]
pub struct Setting {
    /// The key, after the keys of the tables around it: `counts.kind`.
    pub key: String,
    /// The value as written.
    pub text: String,
    /// The place of the value.
    pub place: Place,
}

/// A figure outside tables.
#[derive(Debug)]
pub struct Single {
    /// Its id in claims.
    pub id: Option<String>,
    /// The measured system; may be empty.
    pub system: String,
    /// The measured quantity, in words; may be empty.
    pub what: String,
    /// The figure.
    pub figure: Figure,
    /// Its unit.
    pub unit: Option<Unit>,
    /// The measurement that it is printed next to.
    pub beside: Beside,
}

/// A drawing of the report that has no numbers to compare.
#[derive(Debug)]
pub struct Chart {
    /// Its number in the report: `chart 2.3`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Id of the section of our report that shows the same.
    pub section: Option<String>,
    /// Why our report does not show it; one sentence.
    pub absent: Option<String>,
}
