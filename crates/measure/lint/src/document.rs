//! A report's tables and statements, whatever format they were written in.

use crate::beside::{Beside, Chart, Single};
use crate::claim::Claim;
use crate::figure::Figure;
use crate::interval::Interval;
use crate::unit::{Quantity, Unit};
use units::Layer;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, MIN_BYTES, PREAMBLE_AND_GAP_BYTES};
use yaml::Place;

/// Header bytes of IPv4 and of UDP or TCP without options (RFC 791 §3.1, RFC 768, RFC 9293 §3.1).
const UDP_HEADERS_BYTES: f64 = 28.0;
const TCP_HEADERS_BYTES: f64 = 40.0;

/// One file.
#[derive(Debug, Default)]
pub struct Document {
    /// The report; empty if the file does not say.
    pub source: String,
    /// Its tables, in file order.
    pub tables: Vec<Table>,
    /// Figures outside tables.
    pub figures: Vec<Single>,
    /// Drawings without numbers.
    pub charts: Vec<Chart>,
    /// Why measurements elsewhere differ from all its figures; one sentence.
    pub differs: Option<String>,
    /// Numbers that the report adds up.
    pub sums: Vec<Sum>,
    /// Mixes of frame sizes.
    pub mixes: Vec<Mix>,
    /// What its text concludes from figures.
    pub claims: Vec<Claim>,
}

/// One table of figures.
#[derive(Debug)]
pub struct Table {
    /// The name by which others refer to it.
    pub id: String,
    /// What was measured; may be empty.
    pub title: String,
    /// Where it is.
    pub place: Place,
    /// The measurement beside which it is printed.
    pub beside: Beside,
    /// The unit of figures that have none of their own, and whose column has none.
    pub unit: Option<Unit>,
    /// The layer at which bit rates are counted; `None` if the report does not state it.
    pub layer: Option<Layer>,
    /// What carries the payload; `None` if the report does not state it.
    pub transport: Option<Transport>,
    /// What the link carries in one direction, in bits per second at L1.
    pub link_bps: Option<u64>,
    /// The MTU of every cell, in bytes, where no column states one.
    pub mtu: Option<f64>,
    /// Whether a program sends the frames, which may be slower than the device.
    pub software_sender: bool,
    /// What the columns are.
    pub axis: Axis,
    /// The columns, without that of row names and without the mean frame rate.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The table of the same measurement without the device.
    pub baseline: Option<Reference>,
    /// The table that this one repeats.
    pub repeats: Option<Reference>,
    /// The table of the CPU whose work this accelerator does.
    pub accelerates: Option<Reference>,
    /// Digits to which all figures were rounded, where printed zeros hide that.
    pub significant: Option<usize>,
}

/// The name of another table in the same file.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Its id.
    pub id: String,
    /// Where it is named.
    pub place: Place,
}

/// What the columns of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Frame sizes in bytes, FCS included.
    Frame,
    /// MTUs in bytes.
    Mtu,
    /// Input sizes of an operation, in bytes.
    Bytes,
    /// Mixes of frame sizes, each with its mean.
    Mix,
    /// One frame rate and its bit rates by layer; rows are frame sizes.
    Rates,
    /// Anything else.
    Names,
}

/// What carries a payload over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// For sizes: bytes; for mixes: their mean.
    pub size: Option<f64>,
    /// The unit in its heading.
    pub unit: Option<Unit>,
    /// Of a table of rates: the layer of a bit rate, `None` for a frame rate.
    pub layer: Option<Layer>,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Its heading.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Of a table of rates: the frame size in bytes.
    pub size: Option<f64>,
    /// One for each column; `None` where the report has no figure.
    pub cells: Vec<Option<Figure>>,
    /// The mean of the row's frame rates as printed, in frames per second.
    pub mean_frame_rate: Option<Figure>,
}

/// Numbers whose sum the report states.
#[derive(Debug)]
pub struct Sum {
    /// What they are.
    pub what: String,
    /// Where they are.
    pub place: Place,
    /// The numbers.
    pub parts: Vec<Figure>,
    /// Their sum.
    pub total: Figure,
}

/// A mix of frame sizes.
#[derive(Debug)]
pub struct Mix {
    /// Its name.
    pub name: String,
    /// Mean frame size in bytes.
    pub mean_bytes: f64,
}

/// One cell with all that its table states of it.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// The table.
    pub table: &'a Table,
    /// The row.
    pub row: &'a Row,
    /// The column.
    pub column: &'a Column,
    /// The figure.
    pub figure: &'a Figure,
}

impl Table {
    /// Every cell that has a figure, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.rows.iter().flat_map(|row| self.cells_of(row))
    }

    /// The cells of one row that have figures, by column.
    pub fn cells_of<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = Cell<'a>> {
        let pairs = self.columns.iter().zip(&row.cells);
        pairs.filter_map(move |(column, figure)| {
            Some(Cell {
                table: self,
                row,
                column,
                figure: figure.as_ref()?,
            })
        })
    }

    /// The cell of a row and column by their names.
    #[must_use]
    pub fn cell(&self, row: &str, column: &str) -> Option<Cell<'_>> {
        let row = self.rows.iter().find(|it| it.name == row)?;
        self.cells_of(row).find(|cell| cell.column.name == column)
    }

    /// A column in words: `MTU 8000`.
    #[must_use]
    pub fn column_name(&self, column: &Column) -> String {
        match self.axis {
            Axis::Frame | Axis::Bytes => format!("{} B", column.name),
            Axis::Mtu => format!("MTU {}", column.name),
            _ => column.name.clone(),
        }
    }

    /// Whether the columns are sizes, in ascending order or not.
    #[must_use]
    pub const fn has_sizes(&self) -> bool {
        matches!(self.axis, Axis::Frame | Axis::Mtu | Axis::Bytes)
    }

    /// Finds the digits to which all figures were rounded though more are printed, as in `195.0`,
    /// `383.0`, `1070.0`: at least three figures print more digits than any needs, all of them
    /// zeros. Fewer may end in zeros by chance.
    pub(crate) fn find_precision(&mut self) {
        let figures = || self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let needed = figures().map(|it| it.significant).max().unwrap_or(0);
        let padded = figures().filter(|it| it.digits > needed).count();
        self.significant = (padded >= 3).then_some(needed);
    }
}

impl<'a> Cell<'a> {
    /// The unit of the figure.
    #[must_use]
    pub fn unit(&self) -> Option<&'a Unit> {
        let own = self.figure.unit.as_ref();
        own.or(self.column.unit.as_ref())
            .or(self.table.unit.as_ref())
    }

    /// All values that round to the figure, in its unit.
    #[must_use]
    pub fn rounded(&self) -> Interval {
        let hidden = self.table.significant.map_or(0.0, |digits| {
            match self.figure.value > 0.0 && self.figure.digits > digits {
                true => {
                    let magnitude = self.figure.value.log10().floor() as i32;
                    10f64.powi(magnitude + 1 - digits as i32) / 2.0
                }
                false => 0.0,
            }
        });
        self.figure.rounded(hidden)
    }

    /// The same in bits or frames per second; `None` for other quantities.
    #[must_use]
    pub fn rate(&self) -> Option<Interval> {
        let unit = self.unit()?;
        let is_rate = matches!(unit.quantity, Quantity::BitRate | Quantity::FrameRate);
        is_rate.then(|| self.rounded().scaled(unit.scale))
    }

    /// The bit rate in bits per second.
    #[must_use]
    pub fn bit_rate(&self) -> Option<Interval> {
        let unit = self.unit()?;
        (unit.quantity == Quantity::BitRate).then(|| self.rounded().scaled(unit.scale))
    }

    /// The figure with its unit, as printed.
    #[must_use]
    pub fn shown(&self) -> String {
        match (&self.figure.unit, self.unit()) {
            (None, Some(unit)) => format!("{} {}", self.figure.text, unit.text),
            _ => self.figure.text.clone(),
        }
    }

    /// `2.2, row 10, MTU 8000`.
    #[must_use]
    pub fn name(&self) -> String {
        let column = self.table.column_name(self.column);
        format!("{}, row {}, {column}", self.table.id, self.row.name)
    }

    /// Bytes of one frame at the layer of the rate, and on the wire; `None` where the table states
    /// too little.
    #[must_use]
    pub fn lengths(&self) -> Option<Lengths> {
        match self.table.axis {
            Axis::Frame | Axis::Mix => {
                lengths(self.column.size?, self.table.layer?, self.table.transport)
            }
            Axis::Rates => lengths(
                self.row.size?,
                self.column.layer?,
                self.table.transport.or(Some(Transport::Udp)),
            ),
            Axis::Mtu => self.packet_lengths(self.column.size?),
            Axis::Bytes | Axis::Names => self.packet_lengths(self.table.mtu?),
        }
    }

    /// Lengths of frames that carry packets as long as the MTU.
    fn packet_lengths(&self, mtu: f64) -> Option<Lengths> {
        let frame = mtu + (HEADER_BYTES + FCS_BYTES) as f64;
        lengths(frame, self.table.layer?, self.table.transport)
    }

    /// The highest bit rate that the link carries at this cell's layer and size, in bits per
    /// second.
    #[must_use]
    pub fn ceiling_bps(&self) -> Option<f64> {
        let lengths = self.lengths()?;
        Some(self.table.link_bps? as f64 * lengths.counted / lengths.wire)
    }

    /// Whether the rate is that of the link: at least 95 % of what it carries.
    #[must_use]
    pub fn is_at_link(&self) -> bool {
        let ceiling = self.ceiling_bps();
        ceiling
            .zip(self.bit_rate())
            .is_some_and(|(ceiling, rate)| rate.high >= 0.95 * ceiling)
    }
}

/// Bytes of one frame as a rate counts them, and on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// At the rate's layer.
    pub counted: f64,
    /// With preamble and gap.
    pub wire: f64,
}

/// The lengths of a frame of a size in bytes; `None` if it has no payload, or its transport is not
/// stated.
#[must_use]
pub fn lengths(frame: f64, layer: Layer, transport: Option<Transport>) -> Option<Lengths> {
    let wire = frame + PREAMBLE_AND_GAP_BYTES as f64;
    let ip = frame - (HEADER_BYTES + FCS_BYTES) as f64;
    let counted = match layer {
        Layer::L1 => wire,
        Layer::L2 => frame,
        Layer::Ip => ip,
        Layer::Payload => match transport? {
            Transport::Udp => ip - UDP_HEADERS_BYTES,
            Transport::Tcp => ip - TCP_HEADERS_BYTES,
        },
    };
    // A shorter frame is padded, which no size here says.
    (frame >= MIN_BYTES as f64 - 18.0 && counted > 0.0).then_some(Lengths { counted, wire })
}

impl Document {
    /// The number of figures, in tables and outside.
    #[must_use]
    pub fn figure_count(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|it| it.cells().count()).sum();
        in_tables + self.figures.len()
    }

    /// The table with an id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}
