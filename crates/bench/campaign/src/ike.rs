//! Trials of IKEv2: their axes and their points.

use crate::axis::Axes;
use crate::dut::{Listed, names};
use crate::grid::Grid;
use crate::keys::{MTU, OF_ALL, OFFLOADS, millis, seconds};
use plan::{Ability, Axis, IkeTest, nanos};
use std::time::Duration;
use yaml::Absent::Default as Usual;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    OF_ALL,
    MTU,
    Key::new("setups_per_s", Value::Axis(&Value::Or("max", &Value::Integer(1, 20_000))),
        Usual("max"),
        "Set-ups offered per second, whether earlier ones are over or not; `max`: the highest rate \
         is searched at which 99 % complete in time"),
    Key::new("up_to", Value::Integer(2, 20_000), Usual("1000"),
        "Highest rate that the search tries, per second"),
    Key::new("within", Value::Axis(&Value::Time(millis(1), seconds(9))), Usual("1 s"),
        "A set-up is in time if its first child SA is there so long after its intended start"),
    Key::new("duration", Value::Axis(&Value::Time(seconds(1), seconds(300))), Usual("10 s"),
        "Set-ups are offered for this time. Each is of another peer, and 65,000 have addresses")
        .range("1 s to 300 s"),
    OFFLOADS,
];

/// The axes of IKEv2.
#[derive(Debug)]
pub(crate) struct IkeAxes {
    rate: Vec<Spanned<Option<u32>>>,
    up_to: u32,
    within: Vec<Spanned<Duration>>,
    duration: Vec<Spanned<Duration>>,
}

/// Reads the keys of an `ike` trial.
pub(crate) fn read(map: &Map<'_>) -> Result<IkeAxes, Reported> {
    let axes = Axes::of(map);
    let read = IkeAxes {
        rate: axes.get("setups_per_s"),
        up_to: axes.one("up_to"),
        within: axes.get("within"),
        duration: axes.get("duration"),
    };
    read.check(map.node());
    axes.done().map(|()| read)
}

impl IkeAxes {
    /// Each set-up needs another peer.
    fn check(&self, node: Node<'_>) {
        for duration in &self.duration {
            for rate in &self.rate {
                let test = IkeTest {
                    setups_per_s: rate.value,
                    up_to_per_s: self.up_to,
                    within_ns: 0,
                    duration_ns: nanos(duration.value),
                };
                let highest = test.highest_per_s();
                let peers = test.peers_at(highest);
                if peers > IkeTest::PEERS_MAX.into() {
                    let what = format!(
                        "{highest} set-ups per second for {} need {peers} peers, and {} have addresses",
                        units::time::print(duration.value),
                        IkeTest::PEERS_MAX
                    );
                    let help = "set a shorter `duration`, or a lower `setups_per_s` or `up_to`";
                    node.mistake_at(&duration.place, what, help);
                }
            }
        }
    }

    /// Multiplies by the values of its axes.
    pub(crate) fn over<'a, T: Clone>(
        &'a self,
        grid: Grid<'a, T>,
        test: fn(&mut T) -> &mut IkeTest,
    ) -> Grid<'a, T> {
        let up_to = self.up_to;
        grid.over(Axis::SetupsPerS, &self.rate, move |t, it| {
            test(t).setups_per_s = it;
            test(t).up_to_per_s = up_to;
        })
        .with(Axis::UpTo, up_to)
        .over(Axis::Within, &self.within, move |t, it| {
            test(t).within_ns = nanos(it)
        })
        .over(Axis::Duration, &self.duration, move |t, it| {
            test(t).duration_ns = nanos(it)
        })
    }
}

/// Why these DUTs have no peers, and what to do; `None` if they all have.
pub(crate) fn without_peers(duts: &[&Listed], all: &[Listed]) -> Option<(String, String)> {
    let serves = |dut: &Listed| {
        let abilities = dut.dut.adapter.profile().abilities;
        abilities.contains(&Ability::Peers)
    };
    let unable: Vec<_> = duts.iter().copied().filter(|dut| !serves(dut)).collect();
    if unable.is_empty() {
        return None;
    }
    let what = format!(
        "no IKEv2 peers of a trial can set up tunnels to {}",
        names(&unable)
    );
    let able: Vec<_> = all.iter().filter(|dut| serves(dut)).collect();
    let able: Vec<_> = able.iter().map(|dut| dut.dut.name.as_str()).collect();
    let help = if able.is_empty() {
        "measure `strongswan` in this trial; any other gateway can be loaded by hand with `cipherbench ike-peers`"
            .to_owned()
    } else {
        format!(
            "measure it in a trial of its own with `duts: [{}]`",
            able.join(", ")
        )
    };
    Some((what, help))
}
