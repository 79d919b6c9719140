//! Coordinates that limit a claim to some of the cells that measure it.

use crate::axis::{self, CORES_MAX, STREAMS_MAX};
use crate::expand::Draft;
use crate::frames::{self, mix};
use plan::{Axis, Cell, Coordinate, Direction, Measurement, Value};
use units::Bytes;
use yaml::{Map, Node, Reported, Spanned};

type Read = fn(Node<'_>) -> Result<Value, Reported>;

/// The axes that can be given, and their values. To add one: its line here, the
/// value that a cell has in [`Cell::value`], and its row in `docs/campaign.md`.
const SELECTORS: [(Axis, Read); 13] = [
    (Axis::Mtu, |node| {
        axis::mtu(node, axis::MTU_MAX).map(Value::from)
    }),
    (Axis::Cores, |node| integer(node, CORES_MAX.into())),
    (Axis::Offloads, switch),
    (Axis::Streams, |node| integer(node, STREAMS_MAX.into())),
    (Axis::Datagram, |node| axis::datagram(node).map(Value::from)),
    // Limited by its type only: a value that no cell has is reported with the existing values.
    (Axis::Payload, |node| {
        let size = node.size(Bytes::new(1)..=Bytes::new(65_507));
        size.map(|size| size.get().into())
    }),
    (Axis::Frame, |node| mix::read(node).map(Value::from)),
    (Axis::Direction, |node| {
        let direction = node.one_of("direction", &Direction::ALL.map(|it| (it.name(), it)));
        direction.map(Value::from)
    }),
    (Axis::Ip, |node| {
        let version = node.one_of("IP version", &frames::IP_VERSIONS);
        version.map(Value::from)
    }),
    (Axis::Flows, |node| integer(node, u32::MAX)),
    (Axis::Tunnels, |node| integer(node, u32::MAX)),
    (Axis::Workers, |node| integer(node, u16::MAX.into())),
    (Axis::Duplex, switch),
];

fn integer(node: Node<'_>, most: u32) -> Result<Value, Reported> {
    node.integer(1..=most).map(Value::from)
}

fn switch(node: Node<'_>) -> Result<Value, Reported> {
    node.bool().map(Value::from)
}

/// Reads all selectors of a claim.
pub(super) fn read_all(map: &Map<'_>) -> Result<Vec<Spanned<Coordinate>>, Reported> {
    let given = SELECTORS.iter().filter_map(|(axis, read)| {
        let node = map.optional(axis.key())?;
        Some(read(node).map(|value| node.spanned(axis.at(value))))
    });
    let found: Vec<_> = given.collect();
    found.into_iter().collect()
}

/// A cell's value on an axis of its trial; `None` if the trial does not have the axis.
fn value(axis: Axis, cell: &Cell) -> Option<Value> {
    match (axis, &cell.measurement) {
        // The stations' interfaces have one, derived from the frames.
        (Axis::Mtu, Measurement::Frames(_)) => None,
        (Axis::Cores, Measurement::Ping { .. }) => None,
        _ => cell.value(axis),
    }
}

/// The cells that meet a selector; a mistake at its place when none does.
pub(super) fn meeting<'d>(
    node: Node<'_>,
    selector: &Spanned<Coordinate>,
    trial: &str,
    found: Vec<&'d Draft>,
) -> Result<Vec<&'d Draft>, Reported> {
    let Coordinate {
        axis,
        value: wanted,
    } = &selector.value;
    let (key, mut others) = (axis.key(), Vec::<String>::new());
    let meets = |draft: &&Draft| match value(*axis, &draft.cell) {
        Some(value) if value == *wanted => true,
        Some(value) => {
            let value = axis.in_words(&value);
            if !others.contains(&value) {
                others.push(value);
            }
            false
        }
        None => false,
    };
    // Values of the cells that do not meet it are collected on the way, for the message.
    let met: Vec<&Draft> = found.into_iter().filter(meets).collect();
    if !met.is_empty() {
        return Ok(met);
    }
    let (what, help) = if others.is_empty() {
        (
            format!("no `{trial}` here has `{key}`"),
            format!("remove `{key}`"),
        )
    } else {
        (
            format!(
                "no `{trial}` here is measured with `{key}: {}`",
                axis.in_words(wanted)
            ),
            format!("it is measured with {}", others.join(", ")),
        )
    };
    Err(node.mistake_at(&selector.place, what, help))
}
