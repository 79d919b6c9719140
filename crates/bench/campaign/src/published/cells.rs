//! The key `cells` of a published table or figure: which cells of a campaign measure the same.

use super::{columns_axis, counts_bytes};
use crate::expand::Draft;
use lint::beside::{Setting, Single};
use lint::document::{Column, Table};
use lint::unit::{Quantity, Unit};
use plan::{Adapter, Axis, Cell, Element, PublishedUnit, RateBasis, RateLayer};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use units::Layer;
use yaml::{Node, Reported};

/// Trials with comparable figures, and whether they carry traffic.
const TRIALS: [(&str, bool); 5] = [
    ("tcp", true),
    ("udp", true),
    ("throughput", true),
    ("speed", false),
    ("fatigue", false),
];
/// Key of the name of the DUT.
const DUT: &str = "dut";
/// Key that distinguishes devices that take work off the CPU from the CPU itself.
const OFFLOAD: &str = "offload";
/// Key of the elements between the gateways.
const PATH: &str = "path";

/// Which cells of a campaign correspond to a table or figure.
#[derive(Debug)]
pub(super) struct Cells {
    trial: String,
    /// The suite of the tunnel; without it, and without names of DUTs, nothing encrypts.
    suite: Option<String>,
    /// Names of DUTs; empty: any.
    duts: Vec<String>,
    /// Only single devices that take work off the CPU, or only single ones that do not; `None`:
    /// any.
    offloads: Option<bool>,
    rows: Option<Names>,
    columns: Option<Names>,
    /// The only column with figures of the trial; `None`: all.
    column: Option<String>,
    at: Vec<(Axis, String)>,
    /// Elements of the path between the gateways.
    pub(super) path: Vec<Element>,
    /// The basis of the published rates; `None` for crypto devices.
    pub(super) counts: Option<RateBasis>,
}

/// The meaning of the names of rows or columns.
#[derive(Debug, Clone, Copy)]
enum Names {
    Duts,
    Values(Axis),
}

impl Cells {
    /// Reads the key of a table; `None` if absent.
    pub(super) fn of_table(node: Node<'_>, table: &Table) -> Result<Option<Self>, Reported> {
        let axis = columns_axis(table).map(Names::Values);
        Reader {
            node,
            settings: &table.beside.cells,
        }
        .read(axis, table.layer)
    }

    /// Reads the key of a figure; `None` if absent.
    pub(super) fn of_figure(node: Node<'_>, single: &Single) -> Result<Option<Self>, Reported> {
        let settings = &single.beside.cells;
        Reader { node, settings }.read(None, None)
    }

    /// The unit of the trial's figures for a published unit; `None` if they cannot have it.
    pub(super) fn unit_of(&self, unit: &Unit) -> Option<PublishedUnit> {
        let traffic = self.counts.is_some();
        // Rates of traffic are always in bits here. Devices print bytes or operations.
        match (unit.quantity, self.trial.as_str()) {
            (Quantity::BitRate, "speed") if counts_bytes(unit) => Some(PublishedUnit::BytesPerS),
            (Quantity::BitRate, trial) if traffic || trial == "speed" => {
                (!counts_bytes(unit)).then_some(PublishedUnit::BitsPerS)
            }
            (Quantity::Other, "speed") if unit.text.starts_with("op") => {
                Some(PublishedUnit::OperationsPerS)
            }
            (Quantity::Percent, "fatigue") => Some(PublishedUnit::PercentOfDevices),
            _ => None,
        }
    }

    /// The axis that the names of rows are values of.
    pub(super) const fn rows_by(&self) -> Option<Axis> {
        match self.rows {
            Some(Names::Values(axis)) => Some(axis),
            Some(Names::Duts) | None => None,
        }
    }

    /// Ids of the cells that measure the same as a figure in this row and column.
    pub(super) fn of(&self, drafts: &[Draft], row: &str, column: Option<&Column>) -> Vec<String> {
        let name = column.map_or("", |column| column.name.as_str());
        if self.column.as_ref().is_some_and(|only| only != name) {
            return Vec::new();
        }
        let fits = |draft: &&Draft| {
            let cell = &draft.cell;
            self.fits(cell)
                && self.rows.is_none_or(|rows| rows.fit(cell, row))
                && self.columns.is_none_or(|columns| columns.fit(cell, name))
        };
        let found = drafts.iter().filter(fits);
        found.map(|draft| draft.cell.id.clone()).collect()
    }

    fn fits(&self, cell: &Cell) -> bool {
        !cell.calibration
            && cell.measurement.name() == self.trial
            && self.is_of(cell)
            && self.at.iter().all(|(axis, text)| has(cell, *axis, text))
    }

    /// Whether the DUT has one of the names, and encrypts like the published system.
    fn is_of(&self, cell: &Cell) -> bool {
        if let Adapter::Device(devices) = &cell.dut.adapter {
            // Several devices in parallel would be compared with one.
            let is_like = |offloads| devices.offloads == offloads && devices.members.len() == 1;
            return self.has_name(cell) && self.offloads.is_none_or(is_like);
        }
        let profile = cell.dut.adapter.profile();
        let suite = profile.carrier.map(|carrier| carrier.suite.name());
        match &self.suite {
            // By suite, not by kind of DUT: a published tunnel is compared with any that seals
            // alike.
            Some(wanted) => self.has_name(cell) && suite.is_some_and(|suite| suite == *wanted),
            // A maker's format has no suite, and forwards nothing in clear.
            None if self.duts.is_empty() => suite.is_none() && !profile.encrypts(),
            None => self.has_name(cell),
        }
    }

    fn has_name(&self, cell: &Cell) -> bool {
        self.duts.is_empty() || self.duts.contains(&cell.dut.name)
    }
}

impl Names {
    fn fit(self, cell: &Cell, name: &str) -> bool {
        match self {
            Self::Duts => is_same(&cell.dut.name, name),
            Self::Values(axis) => has(cell, axis, name),
        }
    }
}

/// Whether a cell has this value on an axis.
fn has(cell: &Cell, axis: Axis, text: &str) -> bool {
    // The coordinate has the value as the campaign writes it, which is how reports print it too:
    // a mix by its name. Axes that the id leaves out have the value in force.
    let named = cell.coordinates.iter().find(|at| at.axis == axis).cloned();
    let found = named.or_else(|| cell.value(axis).map(|value| axis.at(value)));
    found.is_some_and(|at| is_same(&at.printed(), text))
}

/// Whether two names are the same but for blanks, hyphens and capitals: `IMIX 0` and `imix0`.
fn is_same(a: &str, b: &str) -> bool {
    let bare = |text: &str| {
        let text = text.to_lowercase();
        text.replace([' ', '-'], "")
    };
    bare(a) == bare(b)
}

/// Reads the settings of one key `cells`.
struct Reader<'d, 's> {
    node: Node<'d>,
    settings: &'s [Setting],
}

impl Reader<'_, '_> {
    fn read(
        &self,
        columns: Option<Names>,
        layer: Option<Layer>,
    ) -> Result<Option<Cells>, Reported> {
        // The key is optional: many tables are printed only.
        let Some(first) = self.settings.first() else {
            return Ok(None);
        };
        let Some(trial) = self.one("trial") else {
            let what = "`cells` states no trial";
            return Err(self.node.mistake_at(&first.place, what, trials()));
        };
        let Some((_, traffic)) = TRIALS.into_iter().find(|(name, _)| *name == trial.text) else {
            let what = format!("figures of `{}` cannot be compared with others", trial.text);
            return Err(self.node.mistake_at(&trial.place, what, trials()));
        };
        // Without its basis a rate of traffic is not comparable: goodput of one direction may be
        // half of a sum.
        let counts = if traffic {
            Some(self.counts(trial, layer)?)
        } else {
            None
        };
        let text = |key: &str| self.one(key).map(|found| found.text.clone());
        let mut at = Vec::new();
        for setting in self.settings {
            // Any other key is an axis with one value.
            let known = [
                "trial",
                "suite",
                DUT,
                OFFLOAD,
                PATH,
                "rows",
                "columns",
                "column",
                "counts.kind",
                "counts.layer",
                "counts.direction",
            ];
            if !known.contains(&setting.key.as_str()) {
                at.push((self.axis(&setting.key, setting)?, setting.text.clone()));
            }
        }
        let duts = self.settings.iter().filter(|setting| setting.key == DUT);
        Ok(Some(Cells {
            trial: trial.text.clone(),
            suite: text("suite"),
            duts: duts.map(|setting| setting.text.clone()).collect(),
            offloads: self.switch(OFFLOAD)?,
            rows: self.names("rows")?,
            // The table's kind of column is the default.
            columns: self.names("columns")?.or(columns),
            column: text("column"),
            at,
            path: self.path()?,
            counts,
        }))
    }

    fn one(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, Reported> {
        let Some(setting) = self.one(key) else {
            return Ok(None);
        };
        match setting.text.as_str() {
            "on" => Ok(Some(true)),
            "off" => Ok(Some(false)),
            _ => {
                let what = format!("`{}` is not known as `{key}`", setting.text);
                Err(self
                    .node
                    .mistake_at(&setting.place, what, "write \"on\" or \"off\""))
            }
        }
    }

    fn path(&self) -> Result<Vec<Element>, Reported> {
        let elements = self.settings.iter().filter(|setting| setting.key == PATH);
        let element = |setting: &Setting| {
            let word: StrDeserializer<'_, Error> = setting.text.as_str().into_deserializer();
            Element::deserialize(word).map_err(|_| {
                let what = format!("`{}` is no element of a path", setting.text);
                let help = "elements are those of a lab's `path`, for example bridge, router";
                self.node.mistake_at(&setting.place, what, help)
            })
        };
        elements.map(element).collect()
    }

    fn names(&self, key: &str) -> Result<Option<Names>, Reported> {
        match self.one(key) {
            None => Ok(None),
            Some(setting) if setting.text == DUT => Ok(Some(Names::Duts)),
            Some(setting) => self
                .axis(&setting.text, setting)
                .map(|it| Some(Names::Values(it))),
        }
    }

    fn axis(&self, key: &str, setting: &Setting) -> Result<Axis, Reported> {
        Axis::all().find(|axis| axis.key() == key).ok_or_else(|| {
            let what = format!("`{key}` is no axis of a campaign");
            let help =
                "axes are named as in docs/campaign.md, for example mtu, cores, streams, direction";
            self.node.mistake_at(&setting.place, what, help)
        })
    }

    /// Reads the basis of a rate of traffic. If the layer is not stated here, it is the table's.
    fn counts(&self, trial: &Setting, layer: Option<Layer>) -> Result<RateBasis, Reported> {
        Ok(RateBasis {
            kind: self.word(trial, "counts.kind")?,
            direction: self.word(trial, "counts.direction")?,
            layer: match layer {
                Some(layer) if self.one("counts.layer").is_none() => layer.into(),
                _ => self.word::<RateLayer>(trial, "counts.layer")?,
            },
        })
    }

    fn word<'de, T: Deserialize<'de>>(
        &'de self,
        trial: &Setting,
        key: &str,
    ) -> Result<T, Reported> {
        let help = "state kind, layer and direction as in reference/README.md; `unstated` where the report does not";
        let Some(setting) = self.one(key) else {
            let what = format!("a rate of traffic needs `{key}`");
            return Err(self.node.mistake_at(&trial.place, what, help));
        };
        let word: StrDeserializer<'de, Error> = setting.text.as_str().into_deserializer();
        T::deserialize(word).map_err(|_| {
            let what = format!("`{}` is not known as `{key}`", setting.text);
            self.node.mistake_at(&setting.place, what, help)
        })
    }
}

fn trials() -> String {
    let names: Vec<_> = TRIALS.iter().map(|(name, _)| *name).collect();
    format!("write `trial = \"…\"` with one of {}", names.join(", "))
}
