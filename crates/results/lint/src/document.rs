//! A report's tables and statements, independent of the file format.

mod courses;

use crate::beside::{Beside, Chart, Single};
use crate::claim::Claim;
use crate::encapsulation::{Encapsulation, UDP_HEADERS_BYTES, is_without_tunnel, named_in};
use crate::figure::Figure;
use crate::interval::Interval;
use crate::unit::{Quantity, Unit};
use units::Layer;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, MIN_BYTES, PREAMBLE_AND_GAP_BYTES};
use yaml::Place;

/// Header bytes of IPv4 and TCP without options (RFC 791 §3.1, RFC 9293 §3.1).
const TCP_HEADERS_BYTES: f64 = 40.0;

/// One file.
#[derive(Debug, Default)]
pub struct Document {
    /// The report; empty if not stated.
    pub source: String,
    /// Its tables, in file order.
    pub tables: Vec<Table>,
    /// Number of tables in Markdown or CSV, including tables of words and skipped ones.
    pub numbered: usize,
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
    /// The conclusions of its text.
    pub claims: Vec<Claim>,
    /// Keys that were guessed, and parts that no rule can check.
    pub remarks: Vec<Remark>,
    /// Marks of footnotes in tables of Markdown and CSV.
    pub footnotes: Vec<Footnote>,
}

/// An assumption or omission of the reader.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// Its place.
    pub place: Place,
    /// The remark, in one sentence without a full stop.
    pub what: String,
}

/// A mark of a footnote in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Footnote {
    /// The mark: `*`, `[1]`.
    pub mark: String,
    /// Its place.
    pub place: Place,
    /// The id of the table.
    pub table: String,
    /// Whether the file has a note for it.
    pub is_explained: bool,
}

/// One table of figures.
#[derive(Debug)]
pub struct Table {
    /// The name that other tables and claims use.
    pub id: String,
    /// The measured system, or the title; may be empty.
    pub title: String,
    /// Its place.
    pub place: Place,
    /// The measurement that it is printed next to.
    pub beside: Beside,
    /// The unit of figures that have no unit in their cell or column.
    pub unit: Option<Unit>,
    /// The layer of bit rates; `None` if not stated.
    pub layer: Option<Layer>,
    /// The transport of the payload; `None` if not stated.
    pub transport: Option<Transport>,
    /// The capacity of the link in one direction, in bits per second at L1.
    pub link_bps: Option<u64>,
    /// The MTU of every cell, in bytes, if no column states one.
    pub mtu: Option<f64>,
    /// The encapsulation of packets on the link; `None` if not stated.
    pub encapsulation: Option<Encapsulation>,
    /// Whether a program sends the frames, which may be slower than the device.
    pub software_sender: bool,
    /// Whether it is part of a program's result: equal values there are no copies.
    pub is_result: bool,
    /// The kind of the columns.
    pub axis: Axis,
    /// The columns, without row names and mean frame rates.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The table of the same measurement without the device.
    pub baseline: Option<Reference>,
    /// The table that this one repeats.
    pub repeats: Option<Reference>,
    /// The table of the CPU that this accelerator takes work off.
    pub accelerates: Option<Reference>,
    /// Digits to which all figures were rounded, if printed zeros hide that.
    pub significant: Option<usize>,
}

/// The name of another table in the same file.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Its id.
    pub id: String,
    /// The place of the reference.
    pub place: Place,
}

/// The kind of a table's columns.
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
    /// Rates of devices, each in any units; rows are frame sizes.
    Devices,
    /// Anything else.
    Names,
}

/// The transport of a payload over IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// One column.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The size in bytes; for mixes, the mean.
    pub size: Option<f64>,
    /// The mix that it names.
    pub mix: Option<Mix>,
    /// The unit in its heading.
    pub unit: Option<Unit>,
    /// If rows are frame sizes: the layer of a bit rate that the heading states, `None` for a frame
    /// rate.
    pub layer: Option<Layer>,
    /// The heading without its unit.
    pub words: String,
    /// If rows are frame sizes: the heading without unit, layer and words for rates. Columns with
    /// the same one are rates of one device.
    pub device: String,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Its heading.
    pub name: String,
    /// Its place.
    pub place: Place,
    /// If rows are frame sizes, or if the name of a row among others has one: the frame size in
    /// bytes; for a mix, its mean.
    pub size: Option<f64>,
    /// If rows are frame sizes: the mix that it names.
    pub mix: Option<Mix>,
    /// If rows are frame sizes: the words before the size; empty if all rows are of one system.
    pub system: String,
    /// The layer of a bit rate that the name states.
    pub layer: Option<Layer>,
    /// The name without unit, layer and words for rates. Rows with the same one are rates of one
    /// device.
    pub device: String,
    /// One per column; `None` if the report has no figure.
    pub cells: Vec<Option<Figure>>,
    /// The mean of the row's frame rates as printed; in frames per second without a unit.
    pub mean_frame_rate: Option<Figure>,
}

/// Numbers and their sum, as the report states it.
#[derive(Debug)]
pub struct Sum {
    /// The subject of the numbers.
    pub what: String,
    /// The place of the numbers.
    pub place: Place,
    /// The numbers.
    pub parts: Vec<Figure>,
    /// Their sum.
    pub total: Figure,
}

/// A mix of frame sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// Its name.
    pub name: String,
    /// Mean frame size in bytes.
    pub mean_bytes: f64,
    /// How far the mean may be off, in bytes: half of its last printed digit's step; 0 if the
    /// report states the sizes.
    pub half_step: f64,
    /// Weights, as shares of 1, and frame sizes in bytes; empty if the report states only the mean.
    pub shares: Vec<(f64, f64)>,
}

/// A cell, with its table, row and column.
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
    /// A table about which nothing is stated, without columns and rows.
    pub(crate) fn bare(id: String, place: Place) -> Self {
        Self {
            id,
            title: String::new(),
            place,
            beside: Beside::default(),
            unit: None,
            layer: None,
            transport: None,
            link_bps: None,
            mtu: None,
            encapsulation: None,
            software_sender: false,
            is_result: false,
            axis: Axis::Names,
            columns: Vec::new(),
            rows: Vec::new(),
            baseline: None,
            repeats: None,
            accelerates: None,
            significant: None,
        }
    }

    /// Returns every cell that has a figure, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.rows.iter().flat_map(|row| self.cells_of(row))
    }

    /// Returns the cells of one row that have figures, by column.
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

    /// Returns the cell of a row and column by their names.
    #[must_use]
    pub fn cell(&self, row: &str, column: &str) -> Option<Cell<'_>> {
        let row = self.rows.iter().find(|it| it.name == row)?;
        self.cells_of(row).find(|cell| cell.column.name == column)
    }

    /// Returns a column in words: `MTU 8000`.
    #[must_use]
    pub fn column_name(&self, column: &Column) -> String {
        let is_size = column.size.is_some() && column.mix.is_none();
        match self.axis {
            _ if !is_size => column.name.clone(),
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

    /// Whether the rows are frame sizes.
    #[must_use]
    pub const fn has_size_rows(&self) -> bool {
        matches!(self.axis, Axis::Rates | Axis::Devices)
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
    /// Returns the size of its column or row, in bytes; for a mix, the mean.
    #[must_use]
    pub(crate) fn size(&self) -> Option<f64> {
        self.column.size.or(self.row.size)
    }

    /// Returns the size as its heading has it, without a unit; for a mix, its name.
    #[must_use]
    pub(crate) fn size_name(&self) -> String {
        match self.row.size.filter(|_| self.table.has_size_rows()) {
            Some(bytes) if self.row.mix.is_none() => bytes.to_string(),
            Some(_) => self.row.name.clone(),
            None => self.column.name.clone(),
        }
    }

    /// Returns the unit of the figure.
    #[must_use]
    pub fn unit(&self) -> Option<&'a Unit> {
        let own = self.figure.unit.as_ref();
        own.or(self.column.unit.as_ref())
            .or(self.table.unit.as_ref())
    }

    /// Returns all values that round to the figure, in its unit.
    #[must_use]
    pub fn rounded(&self) -> Interval {
        // Zeros behind the digits that the table was rounded to carry no information, so the step
        // is of the last digit that does.
        let hidden = self.table.significant.map_or(0.0, |digits| {
            if self.figure.value > 0.0 && self.figure.digits > digits {
                let magnitude = self.figure.value.log10().floor() as i32;
                10f64.powi(magnitude + 1 - digits as i32) / 2.0
            } else {
                0.0
            }
        });
        self.figure.rounded(hidden)
    }

    /// As `rounded`, in bits or frames per second; `None` for other quantities.
    #[must_use]
    pub fn rate(&self) -> Option<Interval> {
        let unit = self.unit()?;
        let is_rate = matches!(unit.quantity, Quantity::BitRate | Quantity::FrameRate);
        is_rate.then(|| self.rounded().scaled(unit.scale))
    }

    /// Returns the frame rate in frames per second: its own, or the one that follows from a bit
    /// rate.
    #[must_use]
    pub fn frame_rate(&self) -> Option<Interval> {
        self.as_frame_rate(self.rate()?)
    }

    /// Converts a rate in the quantity of this cell to frames per second.
    pub(crate) fn as_frame_rate(&self, rate: Interval) -> Option<Interval> {
        match self.unit()?.quantity {
            Quantity::FrameRate => Some(rate),
            _ => Some(rate.scaled(1.0 / (8.0 * self.lengths()?.counted))),
        }
    }

    /// As `rate`, with all values that the figure may have been cut off from instead of rounded:
    /// less than one step of its last digit away.
    pub(crate) fn cut_off(&self) -> Option<Interval> {
        let rate = self.rate()?;
        let scale = self.unit()?.scale;
        let step = 2.0 * self.figure.half_step;
        let whole = self.figure.rounded(step).scaled(scale);
        Some(Interval {
            low: rate.low.min(whole.low),
            high: rate.high.max(whole.high),
        })
    }

    /// Returns the bit rate in bits per second.
    #[must_use]
    pub fn bit_rate(&self) -> Option<Interval> {
        let unit = self.unit()?;
        (unit.quantity == Quantity::BitRate).then(|| self.rounded().scaled(unit.scale))
    }

    /// Returns the figure with its unit, as printed.
    #[must_use]
    pub fn shown(&self) -> String {
        match (&self.figure.unit, self.unit()) {
            (None, Some(unit)) => format!("{} {}", self.figure.text, unit.text),
            _ => self.figure.text.clone(),
        }
    }

    /// Returns the name of the cell: `2.2, row 10, MTU 8000`.
    #[must_use]
    pub fn name(&self) -> String {
        let column = self.table.column_name(self.column);
        format!("{}, row {}, {column}", self.table.id, self.row.name)
    }

    /// Returns the frame size of the cell, FCS included, in bytes; for a mix, its mean; `None` if
    /// not stated.
    #[must_use]
    pub fn frame_bytes(&self) -> Option<f64> {
        match self.table.axis {
            Axis::Frame | Axis::Mix => self.column.size,
            Axis::Rates | Axis::Devices | Axis::Names => self.row.size,
            _ => None,
        }
    }

    /// Returns the layer of the bit rate that its row or column states.
    #[must_use]
    pub(crate) fn own_layer(&self) -> Option<Layer> {
        self.column.layer.or(self.row.layer)
    }

    /// Returns the mix of the cell's column or row.
    #[must_use]
    pub fn mix(&self) -> Option<&'a Mix> {
        self.column.mix.as_ref().or(self.row.mix.as_ref())
    }

    /// Returns the bytes of one frame at the layer of the rate, and on the wire; `None` if the
    /// table states too little.
    #[must_use]
    pub fn lengths(&self) -> Option<Lengths> {
        self.lengths_with(0.0)
    }

    /// As `lengths`, for a frame that is `more` bytes longer.
    fn lengths_with(&self, more: f64) -> Option<Lengths> {
        let (layer, transport) = (self.table.layer, self.table.transport);
        let (frame, layer, transport) = match self.table.axis {
            Axis::Frame | Axis::Mix => (self.column.size?, self.row.layer.or(layer)?, transport),
            // A heading with a layer comes before the table's. Frame testers send UDP, so a payload
            // is one of UDP unless the table states another transport.
            Axis::Rates | Axis::Devices => (
                self.row.size?,
                self.column.layer.or(layer)?,
                transport.or(Some(Transport::Udp)),
            ),
            // An MTU counts the IP packet, so the frame has header and FCS in addition.
            Axis::Mtu => (packet_frame(self.column.size?), layer?, transport),
            // The row names the size: `firewall throughput, 64 byte UDP`.
            Axis::Names if self.row.size.is_some() => {
                (self.row.size?, layer?, transport.or(Some(Transport::Udp)))
            }
            // Columns without a packet size have one frame for all cells, if the table states its
            // MTU.
            Axis::Bytes | Axis::Names => (packet_frame(self.table.mtu?), layer?, transport),
        };
        let frame = frame + more;
        let lengths = lengths(frame, layer, transport)?;
        Some(Lengths {
            // The tunnel's bytes occupy the link, and the printed rate does not count them.
            wire: lengths.wire + self.added_bytes(frame),
            ..lengths
        })
    }

    /// Returns the encapsulation of this cell's packets: the table's, except in a row or column of
    /// the link without a tunnel, or of another tunnel that its name names.
    #[must_use]
    pub fn encapsulation(&self) -> Option<Encapsulation> {
        let of_table = self.table.encapsulation.as_ref()?;
        let names = [&self.row.name, &self.column.name];
        if names.into_iter().any(|name| is_without_tunnel(name)) {
            return None;
        }
        let own = names
            .into_iter()
            .find_map(|name| Encapsulation::parse(named_in(name)?));
        let other = own.filter(|own| !own.is_kind_of(of_table));
        Some(other.unwrap_or_else(|| of_table.clone()))
    }

    /// Returns the minimum overhead of the cell's encapsulation per frame, in bytes; for a mix,
    /// the mean.
    #[must_use]
    pub fn added_bytes(&self, frame: f64) -> f64 {
        let Some(encapsulation) = self.encapsulation() else {
            return 0.0;
        };
        let shares = self.mix().map_or(&[][..], |mix| &mix.shares);
        // Only the mean is known. Padding depends on the size, so an overhead at the mean is the
        // best guess.
        if shares.is_empty() {
            return encapsulation.added_to_frame(frame);
        }
        let added = shares
            .iter()
            .map(|(share, bytes)| share * encapsulation.added_to_frame(*bytes));
        added.sum()
    }

    /// Returns the highest bit rate that the link carries at this cell's layer and size, in bits
    /// per second.
    #[must_use]
    pub fn ceiling_bps(&self) -> Option<f64> {
        // The largest mean that rounds to the printed one.
        let lengths = self.lengths_with(self.mix().map_or(0.0, |mix| mix.half_step))?;
        Some(self.table.link_bps? as f64 * lengths.counted / lengths.wire)
    }

    /// Returns the highest frame rate that the link carries at this cell's frame size, in frames
    /// per second.
    #[must_use]
    pub fn ceiling_fps(&self) -> Option<f64> {
        let frame = self.frame_bytes()?;
        // The smallest mean that rounds to the printed one.
        let frame = frame - self.mix().map_or(0.0, |mix| mix.half_step);
        let wire = frame + self.added_bytes(frame) + PREAMBLE_AND_GAP_BYTES as f64;
        (frame > 0.0).then_some(self.table.link_bps? as f64 / (8.0 * wire))
    }

    /// Whether the rate is at the link's limit: at least 95 % of its capacity.
    #[must_use]
    pub fn is_at_link(&self) -> bool {
        let unit = self.unit().map(|unit| unit.quantity);
        let ceiling = match unit {
            Some(Quantity::FrameRate) => self.ceiling_fps(),
            _ => self.ceiling_bps(),
        };
        ceiling
            .zip(self.rate())
            // `high`, so that a coarsely rounded rate counts as at the link: rules excuse these
            // cells, and a false excuse costs less than a false finding.
            .is_some_and(|(ceiling, rate)| rate.high >= 0.95 * ceiling)
    }
}

/// Returns the length of the frame around an IP packet, in bytes.
fn packet_frame(packet: f64) -> f64 {
    packet + (HEADER_BYTES + FCS_BYTES) as f64
}

/// Bytes of one frame as a rate counts them, and on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// At the rate's layer.
    pub counted: f64,
    /// With preamble and gap.
    pub wire: f64,
}

/// Returns the lengths of a frame of a size in bytes; `None` if it has no payload, or its transport
/// is not stated.
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
    // A shorter frame is padded, to a length that is not stated here.
    (frame >= MIN_BYTES as f64 - 18.0 && counted > 0.0).then_some(Lengths { counted, wire })
}

impl Document {
    /// Returns the number of figures, in tables and outside.
    #[must_use]
    pub fn figure_count(&self) -> usize {
        let in_tables: usize = self.tables.iter().map(|it| it.cells().count()).sum();
        in_tables + self.figures.len()
    }

    /// Returns the table with an id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}
