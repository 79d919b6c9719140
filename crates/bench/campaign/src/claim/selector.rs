//! Coordinates that limit a claim to some of the cells that measure it.

use crate::axis;
use crate::expand::Draft;
use crate::frames::{self, mix};
use crate::keys::{CORES_VALUE, DATAGRAM};
use plan::{Axis, Cell, Coordinate, Direction, Measurement, Value};
use yaml::Absent::Depends;
use yaml::{FromNode, Key, Map, Node, Reported, Spanned, Value as Declared};

/// The axes that can be given. To add one: its key here, and the value that a cell has in
/// [`Cell::value`].
pub(super) const KEYS: Key = Key::group("(cells)", NAMED);

#[rustfmt::skip]
const NAMED: &[Key] = &[
    selector("mtu", Declared::Size(axis::MTU_MIN, axis::MTU_MAX),
        "Restricts the claim to cells with this value, as do the keys below")
        .range("of `tcp`, `udp` and `ping`"),
    selector("cores", CORES_VALUE, "Cores of each station").range("but of `ping`"),
    selector("offloads", Declared::Switch, ""),
    selector("streams", Declared::Integer(1, axis::STREAMS_MAX as u64), "")
        .range("of `tcp` and `udp`"),
    selector("datagram", DATAGRAM, "").range("of `udp`"),
    // Limited by its type only: a value that no cell has is reported with the existing values.
    selector("payload", Declared::Size(1, 65_507), "").range("of `ping`"),
    selector("frame", mix::VALUE, "").words("size or mix").range(OF_FRAMES),
    selector("direction", frames::DIRECTION, "").range(OF_FRAMES),
    selector("ip", frames::IP, "").words("4 or 6").range(OF_FRAMES),
    selector("flows", Declared::Integer(1, u32::MAX as u64), "").range(OF_FRAMES),
    selector("tunnels", Declared::Integer(1, u32::MAX as u64), "Tunnels that share the flows")
        .range(OF_FRAMES),
    selector("workers", Declared::Integer(1, u16::MAX as u64), "").range("of `cipherbench`"),
    selector("duplex", Declared::Switch, "").range(OF_FRAMES),
];
const OF_FRAMES: &str = "of frame tests";

const fn selector(name: &'static str, value: Declared, meaning: &'static str) -> Key {
    Key::new(name, value, Depends("all"), meaning)
}

fn read(axis: Axis, node: Node<'_>, declared: &Declared) -> Result<Value, Reported> {
    match axis {
        Axis::Mtu => axis::mtu(node, axis::MTU_MAX).map(Value::from),
        Axis::Offloads | Axis::Duplex => node.bool().map(Value::from),
        Axis::Frame => mix::read(node).map(Value::from),
        Axis::Direction => {
            let direction = node.one_of("direction", &Direction::ALL.map(|it| (it.name(), it)));
            direction.map(Value::from)
        }
        Axis::Ip => node
            .one_of("IP version", &frames::IP_VERSIONS)
            .map(Value::from),
        // The others are numbers, of bytes or alone.
        _ => u64::from_node(node, declared).map(Value::from),
    }
}

/// Reads all selectors of a claim.
pub(super) fn read_all(map: &Map<'_>) -> Result<Vec<Spanned<Coordinate>>, Reported> {
    let given = NAMED.iter().map(Key::name).filter_map(|key| {
        let node = map.optional(key)?;
        let axis = Axis::all().find(|axis| axis.key() == key)?;
        let value = read(axis, node, map.value(key));
        Some(value.map(|value| node.spanned(axis.at(value))))
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
