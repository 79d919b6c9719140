//! Findings and the rules that make them.

use serde::{Serialize, Serializer};
use yaml::Place;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The figures cannot all be true.
    Error,
    /// The figures may be true, but do not support their use in the report.
    Warning,
    /// A weakness of presentation.
    Note,
}

impl Severity {
    /// `error`, `warning`, `note`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal, $severity:ident;)+) => {
        /// A rule. `docs/lint.md` describes each with an example.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in reports.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// The severity of its findings.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }

            /// One sentence about its findings.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim(),)+ }
            }
        }
    };
}

rules! {
    /// Bit rates of several layers do not follow from one frame rate and size.
    LayersDisagree = "layers-disagree", Error;
    /// A bit rate is off by less than its last digit: cut off instead of rounded.
    LayersImprecise = "layers-imprecise", Note;
    /// A rate is above what the link carries at that layer, size and encapsulation.
    ExceedsLink = "exceeds-link", Error;
    /// A printed mean frame rate is not the mean of the row's frame rates.
    MeanDiffers = "mean-differs", Error;
    /// A printed mean frame rate is off by less than 0.5 %, and more than rounding explains.
    MeanImprecise = "mean-imprecise", Note;
    /// Percentiles, extremes or the mean of one quantity are out of order.
    StatisticsOutOfOrder = "statistics-out-of-order", Error;
    /// Numbers do not add up to the printed sum.
    SumDiffers = "sum-differs", Error;
    /// A table is equal to another one, digit for digit.
    PastedTable = "pasted-table", Error;
    /// A row is equal to another one of its table, digit for digit.
    PastedRow = "pasted-row", Warning;
    /// A table that repeats another one has other figures.
    RepeatDiffers = "repeat-differs", Error;
    /// A conclusion of the text is not true of the figures.
    ClaimContradicted = "claim-contradicted", Error;
    /// A software sender reaches the same frame rate at all sizes: its own limit.
    ConstantFrameRate = "constant-frame-rate", Warning;
    /// The rate is the same for mixes of different mean sizes, and not in other rows.
    ConstantBitRate = "constant-bit-rate", Warning;
    /// The rate of a mix does not follow from the rates of its sizes in the same table.
    MixDiffers = "mix-differs", Warning;
    /// The frame rate rises with the frame size.
    FrameRateRises = "frame-rate-rises", Warning;
    /// The bit rate falls where the size grows.
    NotMonotonic = "not-monotonic", Warning;
    /// The rate is higher with the device than without it.
    FasterWithDevice = "faster-with-device", Warning;
    /// The rate is higher with the device, by less than the margin that repeats differ by.
    FasterByLittle = "faster-by-little", Note;
    /// A table lacks a row that its twin has.
    RowMissing = "row-missing", Warning;
    /// Tables with deviations are compared to one without.
    DeviationOnOneSide = "deviation-on-one-side", Warning;
    /// An accelerator is as fast as the CPU at every size: it may not have been used.
    AcceleratorEqualsCpu = "accelerator-equals-cpu", Warning;
    /// Units of rates are spelled differently within a table, or scaled differently within a
    /// column.
    UnitsMixed = "units-mixed", Warning;
    /// A figure has more digits than its deviation supports.
    PrecisionBeyondSpread = "precision-beyond-spread", Note;
    /// A table has the mark of a footnote, and the file no note for it.
    FootnoteMissing = "footnote-missing", Note;
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The place of the figure.
    pub place: Place,
    /// The subject: table, row and column.
    pub subject: String,
    /// The arithmetic, with the numbers.
    pub arithmetic: String,
    /// The interpretation.
    pub meaning: String,
    /// The properties that are compared with other findings of the rule, to find a common cause.
    pub likeness: Option<Likeness>,
}

/// The properties that findings of one cause have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    /// The printed figure divided by the expected one.
    pub ratio: f64,
    /// The difference of the printed rate from the expected one, in bytes per frame.
    pub bytes: Option<f64>,
    /// The table, column or figure that they are compared with.
    pub against: String,
}
