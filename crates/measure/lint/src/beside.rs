//! What a file states of its own figures for those who measure the same: which measurement
//! corresponds to them, and why figures differ or cannot be measured. Campaigns read it; no rule
//! does.

use crate::figure::Figure;
use crate::unit::Unit;
use yaml::Place;

/// What a table or figure states of the measurement beside which it is printed.
#[derive(Debug, Default)]
pub struct Beside {
    /// The settings of the measurement, in file order, where the file states any.
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
    /// The key; of a key in an inner table with that table's: `counts.kind`.
    pub key: String,
    /// The value as written.
    pub text: String,
    /// Where the value is.
    pub place: Place,
}

/// A figure outside tables.
#[derive(Debug)]
pub struct Single {
    /// The id by which claims refer to it.
    pub id: Option<String>,
    /// The measured system; may be empty.
    pub system: String,
    /// The measured quantity, in words; may be empty.
    pub what: String,
    /// The figure.
    pub figure: Figure,
    /// Its unit.
    pub unit: Option<Unit>,
    /// The measurement beside which it is printed.
    pub beside: Beside,
}

/// A drawing of the report that has no numbers to compare.
#[derive(Debug)]
pub struct Chart {
    /// The report's number of it: `chart 2.3`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Id of the section of our report that shows the same.
    pub section: Option<String>,
    /// Why our report does not show it; one sentence.
    pub absent: Option<String>,
}
