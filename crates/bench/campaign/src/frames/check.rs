//! Checks which axes of frame trials and DUTs are incompatible.

use crate::dut::{Listed, names};
use crate::frames::{FLOWS_PER_TUNNEL_MAX, TrafficAxes};
use crate::point::{FrameSettings, Point};
use plan::{
    Ability, Axis, Direction, Form, FrameTest, IpVersion, PortKind, Ports, Procedure, Traffic,
};
use wire::Suite;
use wire::mix::{Contents, FRAME_BYTES_MIN};
use wire::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES};
use yaml::{Node, Place, Spanned};

/// Smallest frame of IPv6: the smallest of IPv4 and the longer header, since both carry the stamp.
const FRAME_BYTES_MIN_V6: u16 = FRAME_BYTES_MIN + (IPV6_HEADER_BYTES - IPV4_HEADER_BYTES) as u16;

const RANDOM_IN_TUNNELS: &str = "frames of several IPv4 tunnels with random contents have no bytes in \
                                 common, by which clear text is recognised behind an encryptor";
const RANDOM_IN_TUNNELS_HELP: &str = "write `ip: 6`, or `contents: fixed`";

impl TrafficAxes {
    /// Checks axes against each other.
    pub(crate) fn check(&self, node: Node<'_>) {
        self.check_sizes(node);
        self.check_flows(node);
        self.check_duplex(node);
        self.check_ports(node);
        self.check_contents(node);
    }

    fn check_sizes(&self, node: Node<'_>) {
        if !self.ip.iter().any(|ip| ip.value == IpVersion::V6) {
            return;
        }
        for frame in self.frame.iter() {
            let smallest = frame.value.smallest_bytes();
            if smallest < FRAME_BYTES_MIN_V6 {
                let what = format!("frames of {smallest} B are too short for IPv6");
                let help = format!(
                    "the smallest with room for the IPv6 header and the stamp is \
                     {FRAME_BYTES_MIN_V6} B"
                );
                node.mistake_at(&frame.place, what, help);
            }
        }
    }

    fn check_flows(&self, node: Node<'_>) {
        // If the DUT decides, one is the minimum; whether flows suffice is checked with the DUT.
        let tunnels = || {
            self.tunnels
                .iter()
                .map(|tunnels| tunnels.value.unwrap_or(1))
        };
        // Axes multiply: in some cell a number of flows meets the most tunnels and cores, and in
        // another the fewest tunnels.
        let (most_tunnels, least_tunnels) = (tunnels().max(), tunnels().min());
        let most_cores = self.cores.iter().map(|cores| cores.value).max();
        let (most_tunnels, least_tunnels) = (most_tunnels.unwrap_or(1), least_tunnels.unwrap_or(1));
        let most_cores = u32::from(most_cores.unwrap_or(1));
        for spanned in self.flows.iter() {
            let Some(flows) = spanned.value else { continue };
            let plural = if flows == 1 { "flow is" } else { "flows are" };
            let (what, help) = if flows < most_tunnels {
                (
                    format!("{flows} {plural} too few for {most_tunnels} tunnels"),
                    format!("each tunnel needs one: write {most_tunnels} or more, or `auto`"),
                )
            } else if flows < most_cores {
                (
                    format!("{flows} {plural} too few for {most_cores} cores"),
                    format!("each core sends its own: write {most_cores} or more, or `auto`"),
                )
            } else if flows.div_ceil(least_tunnels) > FLOWS_PER_TUNNEL_MAX {
                let plural = if least_tunnels == 1 {
                    "tunnel"
                } else {
                    "tunnels"
                };
                (
                    format!("{flows} flows are too many for {least_tunnels} {plural}"),
                    format!(
                        "flows of a tunnel differ by source port: at most {FLOWS_PER_TUNNEL_MAX} \
                         for each"
                    ),
                )
            } else {
                continue;
            };
            node.mistake_at(&spanned.place, what, help);
        }
    }

    fn check_duplex(&self, node: Node<'_>) {
        let Some(duplex) = self.duplex.iter().find(|duplex| duplex.value) else {
            return;
        };
        let mut directions = self.direction.iter().map(|direction| direction.value);
        if let Some(one_way) = directions.find(|direction| *direction != Direction::Both) {
            let name = one_way.name();
            let what = format!("`duplex` loads both ways at once, and `{name}` is one way");
            let help = "write `direction: both`, or leave `duplex` off";
            node.mistake_at(&duplex.place, what, help);
        }
    }

    /// Reports traffic that rules out timing the round trips that `path` asks for.
    pub(crate) fn check_round_trips(&self, node: Node<'_>, path: &Place) {
        let is_half = |direction: &Spanned<Direction>| direction.value != Direction::Both;
        let wrong = [
            (
                self.duplex.iter().any(|duplex| duplex.value),
                "round trips load both ways already, and so does `duplex`",
                "leave `duplex` off, or write `path: one-way`",
            ),
            (
                self.direction.iter().any(is_half),
                "round trips pass both gateways, and another direction than `both` has only one",
                "write `direction: both`, or `path: one-way`",
            ),
            (
                self.ports.iter().any(|ports| is_socket(&ports.value)),
                "plain sockets cannot send whole frames back",
                "write `ports: packet` or `xdp`, or `path: one-way`",
            ),
        ];
        for (_, what, help) in wrong.into_iter().filter(|(is_wrong, ..)| *is_wrong) {
            node.mistake_at(path, what, help);
        }
    }

    /// A disturbance of both ends of a DUT needs both in the path.
    pub(crate) fn check_whole(&self, node: Node<'_>) {
        let mut directions = self.direction.iter();
        if let Some(half) = directions.find(|direction| direction.value != Direction::Both) {
            let what = format!(
                "in direction `{}` there is one gateway only, and this happens between two",
                half.value.name()
            );
            node.mistake_at(
                &half.place,
                what,
                "write `direction: both`, or leave it out",
            );
        }
    }

    /// Random contents need whole frames, and something that shows clear text on the cipher side.
    fn check_contents(&self, node: Node<'_>) {
        let is_random =
            |contents: &&Spanned<Option<Contents>>| contents.value == Some(Contents::Random);
        let Some(random) = self.contents.iter().find(is_random) else {
            return;
        };
        let many = self.tunnels.iter().any(|tunnels| tunnels.value > Some(1));
        // The prefix of IPv6 addresses is the same in all tunnels and is searched for; of IPv4,
        // ports and lengths are, which random contents change.
        let v4 = self.ip.iter().any(|ip| ip.value == IpVersion::V4);
        if many && v4 {
            node.mistake_at(&random.place, RANDOM_IN_TUNNELS, RANDOM_IN_TUNNELS_HELP);
        }
        if self.ports.iter().any(|ports| is_socket(&ports.value)) {
            let what = "plain sockets listen at one port, and random contents have many";
            let help = "write `ports: packet` or `xdp`, or `contents: fixed`";
            node.mistake_at(&random.place, what, help);
        }
    }

    fn check_ports(&self, node: Node<'_>) {
        // Of `auto` the number is the DUT's, so `tunnels_and_flows` compares it.
        let many = self.tunnels.iter().any(|tunnels| tunnels.value > Some(1));
        let v6 = self.ip.iter().any(|ip| ip.value == IpVersion::V6);
        let mut ports = self.ports.iter();
        let Some(socket) = ports.find(|ports| is_socket(&ports.value)) else {
            return;
        };
        if many {
            let what =
                "plain sockets have the station's own address only, and tunnels differ by it";
            let help = "write `ports: packet` or `xdp`, or `tunnels: 1`";
            node.mistake_at(&socket.place, what, help);
        }
        if v6 {
            let what = "plain sockets have the station's own address, which is of IPv4";
            let help = "write `ports: packet` or `xdp`, or `ip: 4`";
            node.mistake_at(&socket.place, what, help);
        }
    }
}

/// Whether a station sends or receives by plain sockets.
fn is_socket(ports: &Ports) -> bool {
    [ports.tx, ports.rx].contains(&Some(PortKind::Socket))
}

/// The default ports and payloads for DUTs: random ones (RFC 4814) for a third-party box, which may
/// choose a core or a queue by a hash of ports, compress payloads or remove copies of them, unless
/// the traffic rules them out. All DUTs of a trial get the same.
pub(crate) fn contents_for(traffic: &Traffic, given: &FrameSettings, duts: &[&Listed]) -> Contents {
    let is_box = |dut: &&Listed| dut.dut.adapter.external().is_some();
    let tunnels = |dut: &&Listed| given.tunnels.unwrap_or(dut.dut.adapter.profile().tunnels);
    let many = duts.iter().any(|dut| tunnels(dut) > 1);
    let ports = [traffic.ports.tx, traffic.ports.rx];
    // As `check_contents` refuses them if a campaign asks for random contents.
    let rules_out =
        (traffic.ip == IpVersion::V4 && many) || ports.contains(&Some(PortKind::Socket));
    if duts.iter().any(is_box) && !rules_out {
        Contents::Random
    } else {
        Contents::Fixed
    }
}

/// The ESP suite of a station in a gateway's place, if it is the same for all DUTs that have one.
pub(crate) fn sealed_by_all(traffic: &Traffic, duts: &[&Listed]) -> Option<Suite> {
    if traffic.direction == Direction::Both {
        return None;
    }
    let carriers = duts
        .iter()
        .filter_map(|dut| dut.dut.adapter.profile().carrier);
    // Without a device the stations seal and open ESP, so other forms cannot be calibrated.
    let mut suites = carriers
        .filter(|carrier| carrier.form == Form::Esp)
        .map(|carrier| carrier.suite);
    let first = suites.next()?;
    suites.all(|suite| suite == first).then_some(first)
}

/// Traffic that some of the DUTs cannot carry: the place, the mistake and the help.
pub(crate) fn for_duts<'a>(
    test: &FrameTest,
    point: &'a Point<'_>,
    given: &'a FrameSettings,
    duts: &[&Listed],
    all: &[Listed],
) -> Vec<(&'a Place, String, String)> {
    let traffic = &test.traffic;
    let direction = traffic.direction;
    // DUTs of one trial share its group, so all of them must be able to carry its traffic.
    let can = |dut: &Listed| dut.dut.adapter.profile().directions.contains(&direction);
    let mut wrong = Vec::new();
    let one_way: Vec<_> = duts.iter().copied().filter(|dut| !can(dut)).collect();
    if let Some(first) = one_way.first() {
        let what = format!(
            "direction `{}` cannot be measured of {}",
            direction.name(),
            names(&one_way)
        );
        let known = first.dut.adapter.profile().directions.iter();
        let known: Vec<_> = known
            .map(|direction| format!("`{}`", direction.name()))
            .collect();
        let mut help = format!("`{}` can do {}", first.dut.name, known.join(", "));
        // Among all DUTs of the campaign: this trial may not select one that can.
        let others: Vec<_> = all.iter().filter(|dut| can(dut)).collect();
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|dut| dut.dut.name.as_str()).collect();
            help.push_str(&format!(
                "; or measure this direction in a trial of its own with `duts: [{}]`",
                others.join(", ")
            ));
        }
        wrong.push((point.place(Axis::Direction), what, help));
    }
    wrong.extend(beyond_abilities(&test.procedure, given, duts, all));
    wrong.extend(tunnels_and_flows(traffic, point, given, duts));
    let in_trains = |dut: &&Listed| dut.dut.adapter.encrypts();
    let in_trains: Vec<_> = duts.iter().copied().filter(in_trains).collect();
    let offloads = point.stations.is_some_and(|stations| stations.offloads);
    if offloads && !in_trains.is_empty() {
        let what = format!(
            "with `offloads` on, {} may hand packets on joined, and a station takes none apart: they \
             would count as lost or damaged",
            names(&in_trains)
        );
        let help = "leave `offloads` off in frame tests of encryptors";
        wrong.push((point.place(Axis::Offloads), what, help.to_owned()));
    }
    wrong.extend(nothing_sealed_by_sockets(traffic, point, duts));
    wrong
}

/// Disturbances that DUTs do not support.
fn beyond_abilities<'a>(
    procedure: &Procedure,
    given: &'a FrameSettings,
    duts: &[&Listed],
    all: &[Listed],
) -> Option<(&'a Place, String, String)> {
    // Only disturbances need abilities: any DUT can carry the traffic of other procedures.
    let (Procedure::Disturbed(test), Some(place)) = (procedure, &given.event) else {
        return None;
    };
    let can = |dut: &Listed| {
        dut.dut
            .adapter
            .profile()
            .abilities
            .contains(&test.event.ability())
    };
    let unable: Vec<_> = duts.iter().copied().filter(|dut| !can(dut)).collect();
    if unable.is_empty() {
        return None;
    }
    let what = format!(
        "{} cannot be measured of {}",
        test.event.in_words(),
        names(&unable)
    );
    // All DUTs of the campaign, not only the trial's: the help names some that it could select.
    let able: Vec<_> = all.iter().filter(|dut| can(dut)).collect();
    let able: Vec<_> = able.iter().map(|dut| dut.dut.name.as_str()).collect();
    let help = match able.is_empty() {
        true if test.event.ability() == Ability::Reset => {
            "no DUT of this campaign can: an `external` whose box at B's side has `reset` and \
             `started` can"
        }
        .to_owned(),
        true => "no DUT of this campaign can: `cipherbench` can, and docs/campaign.md lists what \
                 others can"
            .to_owned(),
        false => format!(
            "measure it in a trial of its own with `duts: [{}]`",
            able.join(", ")
        ),
    };
    Some((place, what, help))
}

/// Traffic that fills each of a DUT's tunnels, and no other.
fn tunnels_and_flows<'a>(
    traffic: &Traffic,
    point: &'a Point<'_>,
    given: &FrameSettings,
    duts: &[&Listed],
) -> Vec<(&'a Place, String, String)> {
    let mut wrong = Vec::new();
    let with = |is_wrong: &dyn Fn(u32) -> bool| -> Vec<&Listed> {
        let encryptors = duts
            .iter()
            .filter(|dut| dut.dut.adapter.encryptor().is_some());
        let chosen = encryptors.filter(|dut| is_wrong(dut.dut.adapter.profile().tunnels));
        chosen.copied().collect()
    };
    // The checks below are for tunnels that the DUT decides; `TrafficAxes::check` made them for
    // given ones.
    if given.tunnels.is_some() {
        let others = with(&|tunnels| tunnels != traffic.frames.tunnels);
        if !others.is_empty() {
            let what = format!(
                "traffic of {} tunnels does not meet the tunnels of {}",
                traffic.frames.tunnels,
                names(&others)
            );
            let help = "write `tunnels: auto`, which is as many as the DUT has, or give the DUT as \
                        many `tunnels`";
            wrong.push((point.place(Axis::Tunnels), what, help.to_owned()));
        }
        return wrong;
    }
    let many = with(&|tunnels| tunnels > 1);
    let ports = [traffic.ports.tx, traffic.ports.rx];
    if ports.contains(&Some(PortKind::Socket)) && !many.is_empty() {
        let what = format!(
            "plain sockets have the station's own address only, and the tunnels of {} differ by it",
            names(&many)
        );
        let help = "write `ports: packet` or `xdp`, or measure them in a trial of its own";
        wrong.push((point.place(Axis::Ports), what, help.to_owned()));
    }
    let is_random = traffic.frames.contents == Contents::Random;
    if is_random && traffic.ip == IpVersion::V4 && !many.is_empty() {
        let what = format!("{RANDOM_IN_TUNNELS}: {}", names(&many));
        let place = point.place(Axis::Contents);
        wrong.push((place, what, RANDOM_IN_TUNNELS_HELP.to_owned()));
    }
    if let Some(flows) = given.flows {
        let starving = with(&|tunnels| tunnels > flows);
        if !starving.is_empty() {
            let plural = if flows == 1 { "flow is" } else { "flows are" };
            let what = format!(
                "{flows} {plural} too few for the tunnels of {}",
                names(&starving)
            );
            let help = "each tunnel needs one: write more, or `flows: auto`";
            wrong.push((point.place(Axis::Flows), what, help.to_owned()));
        }
    }
    wrong
}

/// A station that seals or opens does so with whole frames: plain sockets have none.
fn nothing_sealed_by_sockets<'a>(
    traffic: &Traffic,
    point: &'a Point<'_>,
    duts: &[&Listed],
) -> Option<(&'a Place, String, String)> {
    let (station_does, dut_does, key, kind) = match traffic.direction {
        Direction::Encrypt => ("opens", "seals", "receive", traffic.ports.rx),
        Direction::Decrypt => ("seals", "opens", "send", traffic.ports.tx),
        Direction::Both => return None,
    };
    // A DUT that does not encrypt has clear packets at both ends, which plain sockets can carry.
    let encrypts = |dut: &&Listed| dut.dut.adapter.encrypts();
    let duts: Vec<_> = duts.iter().copied().filter(encrypts).collect();
    if kind != Some(PortKind::Socket) || duts.is_empty() {
        return None;
    }
    let what = format!(
        "in direction `{}` the station {station_does} what {} {dut_does}, and plain sockets carry \
         clear packets only",
        traffic.direction.name(),
        names(&duts)
    );
    let help = format!("write `{key}: packet` or `xdp` there, or `direction: both`");
    Some((point.place(Axis::Ports), what, help))
}
