//! Checks packet counts on the links in every frame trial, in both directions: they must match the
//! load, and sealed packets must match the gateways' counters.

use super::disturbed::was_acted_on;
use super::every::{Read, failed, hostile_sent, longest_packet, name, place, read, sent_most};
use super::{CONTROL_FRAMES, COUNTED_ONE_IN, FrameObserved, FrameReadings};
use crate::evidence::bounds::gateway_bytes;
use crate::evidence::check;
use crate::evidence::crossing::fragments_most;
use crate::evidence::failure::{count, then_repeat};
use crate::evidence::gateway::IN_FLIGHT_PACKETS;
use crate::evidence::neighbours;
use crate::evidence::sealed::{self, Allowed, GatewayFlow};
use crate::links::interfaces_between;
use journal::record::{Check, EndTraffic, Explanation, LostAt, TrialReadings};
use plan::Adapter;
use std::collections::BTreeMap;

/// Frames of ARP and ND on the cipher link in a second: any other frame there is foreign.
const LOOK_UPS_PER_S: u64 = 4;
/// Probes of the clocks of two hosts between two readings, either way.
const CLOCK_PROBES: u64 = 512;
/// The shortest packet that gateways send to one another.
const TALK_BYTES_LEAST: u64 = 64;
/// The two interfaces of the cipher link on a path from station to station.
const CIPHER_LINK: [&str; 2] = ["gw1/w0", "gw2/w1"];

/// Packets that may cross an interface one way.
struct Expected {
    least: u64,
    most: u64,
    /// Frames of the load that were sent this way; `None` against it.
    sent: Option<u64>,
}

/// Checks that in every frame trial each interface of the path carried, in the direction of the
/// load, no fewer packets than were received and no more than were sent, and next to nothing in the
/// other direction.
pub(super) fn links_carried_the_load(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
) -> Option<Check> {
    let names = interfaces_between(seen.ends);
    let (mut first, mut failures) = (None, Vec::new());
    let (mut trials, mut against_most) = (0, 0);
    // Packets of the previous trial that did not cross: a queue may hold them until this one.
    let mut held = BTreeMap::<(usize, bool), u64>::new();
    for read in read(observed).filter(|read| !read.2.links.is_empty()) {
        trials += 1;
        let mut differences = Vec::new();
        for (place, end) in names.iter().enumerate() {
            let Some(found) = read.2.links.get(end) else {
                continue;
            };
            for forward in [true, false] {
                let Some(expected) = expected(observed, seen, read, (place, &names), forward)
                else {
                    continue;
                };
                let (verb, packets) = crossed(*found, place, forward);
                let held = held.entry((place, forward)).or_default();
                let (least, most) = (expected.least, expected.most.saturating_add(*held));
                let against = match expected.sent {
                    Some(sent) => {
                        // Frames that were sent and have not been seen at this interface may still
                        // cross it.
                        *held = sent.saturating_sub(packets);
                        ""
                    }
                    None => {
                        against_most = packets.max(against_most);
                        ", against the load"
                    }
                };
                if !(least..=most).contains(&packets) {
                    let found = (format!("{end} {verb}"), against, packets);
                    first.get_or_insert_with(|| differs(read, &found, (least, most)));
                    differences.push(format!(
                        "{end} {verb} {packets} packets{against}, of {least} to {most} expected"
                    ));
                }
            }
        }
        if !differences.is_empty() {
            failures.push(format!("{}: {}", name(read), differences.join(", ")));
        }
    }
    (trials > 0).then_some(())?;
    let detail = format!(
        "by the counters of {} in {trials} trials; against the load at most {against_most} packets crossed one of \
         them in a trial{}",
        names.join(", "),
        failed(&failures)
    );
    check("links-carried-the-load", first, detail)
}

/// Returns an interface's count, at this place of the path, of packets in the path's direction or
/// in the opposite one.
const fn crossed(
    EndTraffic { received, sent }: EndTraffic,
    place: usize,
    forward: bool,
) -> (&'static str, u64) {
    // The first end of each link sends.
    if place.is_multiple_of(2) == forward {
        ("sent", sent)
    } else {
        ("received", received)
    }
}

/// Returns the packets that may go one way at one place of the path; `None` if unknown.
fn expected(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
    (number, trial, readings): Read<'_>,
    (place, names): (usize, &[String]),
    forward: bool,
) -> Option<Expected> {
    let path = &seen.path;
    let adapter = &path.cell.dut.adapter;
    let acted_on = was_acted_on(observed, number);
    let is_cipher = CIPHER_LINK.contains(&names[place].as_str());
    let mut beside = neighbours_most(readings) + hostile_sent(observed, number);
    if is_cipher || adapter.external().is_some() {
        beside += talk_most(adapter, readings);
    }
    let own = match (forward, trial.each_direction()) {
        (true, [own, ..]) | (false, [_, own]) => own,
        // A device that is acted on may send anything.
        _ if acted_on => return None,
        _ => {
            return Some(Expected {
                least: 0,
                most: beside,
                sent: None,
            });
        }
    };
    let (sent, _) = sent_most(own);
    // Copies made by an impaired path and by the device arrive, too.
    let impaired = path.impaired.copied().unwrap_or_default();
    let copied = impaired.a_to_b.duplicated + impaired.b_to_a.duplicated;
    let copied = copied + own.duplicated + own.too_late;
    // A sealed packet may be longer than the link between the gateways carries in one piece.
    let fragments = if is_cipher {
        let room = u64::from(path.links.cipher_mtu).saturating_sub(20).max(1);
        longest_packet(observed, adapter).div_ceil(room).max(1)
    } else {
        fragments_most(path)
    };
    let apart = CONTROL_FRAMES + sent / COUNTED_ONE_IN;
    // Then one packet on the link may hold several frames, and no number is too low.
    let may_join = path.links.offloads || is_cipher && adapter.profile().aggregates;
    // At the sender's interface all frames that were sent must have left. Behind it, some may be
    // lost.
    let first = if forward { 0 } else { names.len() - 1 };
    let least = match may_join || acted_on {
        true => 0,
        false if place == first => own.sent.saturating_sub(apart),
        false => own.received.saturating_sub(apart),
    };
    let most = sent.saturating_mul(fragments);
    Some(Expected {
        least,
        most: most.saturating_add(copied + beside + apart),
        sent: Some(sent),
    })
}

/// Packets that are not of the load and that others on a link may send between two readings.
fn neighbours_most(readings: &TrialReadings) -> u64 {
    neighbours::most_in(readings.wall_ns) + probes(readings)
}

/// Packets that a DUT's gateways may send to one another between two readings.
fn talk_most(adapter: &Adapter, readings: &TrialReadings) -> u64 {
    gateway_bytes(adapter, readings.wall_ns) / TALK_BYTES_LEAST
}

/// Maximum number of probes that compare clocks.
fn probes(readings: &TrialReadings) -> u64 {
    readings.clocks.map_or(0, |_| CLOCK_PROBES)
}

/// Explains a packet count that the load does not. The tuple has the interface and whether it sent
/// or received the packets, whether they went against the load, and their number.
fn differs(
    read: Read<'_>,
    (end, against, found): &(String, &str, u64),
    (least, most): (u64, u64),
) -> Explanation {
    let place = place(read);
    let against = if against.is_empty() {
        String::new()
    } else {
        format!("{against},")
    };
    if *found > most {
        let more = count(found - most, 0, "packet");
        return Explanation::new(
            format!("in {place} {end} {more} more{against} than the load explains"),
            "another program sends on the lab's links, or something on the path doubles packets",
            then_repeat("stop other programs that use the lab's links"),
        );
    }
    let fewer = count(least.saturating_sub(*found), least, "packet");
    Explanation::new(
        format!("in {place} {end} {fewer} fewer than the load needs"),
        "part of the frames took another way",
        then_repeat("look at the lab's routes for a way past this interface, and remove it"),
    )
}

/// Checks that in every frame trial sealed packets arrived as they were sent ([`sealed`]), the
/// links between our gateways carried the gateways' packets and control traffic, and the gateway
/// that sends against the load sealed next to nothing.
pub(super) fn sealed_as_sent(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
) -> Option<Check> {
    let path = &seen.path;
    let adapter = &path.cell.dut.adapter;
    adapter.encryptor()?;
    let impaired = path.impaired.copied().unwrap_or_default();
    let impaired = [impaired.a_to_b, impaired.b_to_a];
    // A queue between the gateways may be deep: then packets come in a later trial.
    let has_queue = path.links.rate_bps.is_some() || path.impaired.is_some();
    let waiting_most = if has_queue {
        u64::MAX
    } else {
        IN_FLIGHT_PACKETS
    };
    let counts_on_link =
        !path.links.offloads && longest_packet(observed, adapter) <= path.links.cipher_mtu.into();
    let mut waiting = [0_u64; 2];
    let mut trials = 0;
    let mut first = None;
    let mut failures = Vec::new();
    let mut last: Vec<String> = Vec::new();
    for read in read(observed) {
        let (number, _, readings) = read;
        let ways = GatewayFlow::both(&readings.dut_packets);
        // A restarted gateway counts from zero, and its packets under way are gone.
        if ways.is_empty() || was_acted_on(observed, number) {
            waiting = [0; 2];
            continue;
        }
        trials += 1;
        let hostile = hostile_sent(observed, number);
        let mut differences = Vec::new();
        for ((way, waiting), impaired) in ways.iter().zip(&mut waiting).zip(impaired) {
            let allowed = Allowed {
                made_up: impaired.corrupted + hostile,
                copies: impaired.duplicated + hostile,
                under_way: *waiting,
            };
            differences.extend(way.differences(allowed));
            *waiting = way.missing().min(waiting_most);
            let (gateway, sent) = way.sent();
            let mut ends = CIPHER_LINK.iter().filter(|end| end.starts_with(gateway));
            let end = ends
                .next()
                .and_then(|end| Some((end, readings.links.get(*end)?.sent)));
            let talk = talk_most(adapter, readings);
            let seconds = readings.wall_ns.div_ceil(1_000_000_000);
            let look_ups = LostAt::APART_PACKETS + seconds * LOOK_UPS_PER_S;
            let most = sent + hostile + talk + look_ups + probes(readings);
            if let Some((end, crossed)) =
                end.filter(|(_, crossed)| counts_on_link && *crossed > most)
            {
                differences.push(format!(
                    "{end} sent {} more than {gateway} sealed",
                    count(crossed - sent, sent, "packet")
                ));
            }
        }
        last = ways.iter().map(GatewayFlow::words).collect();
        let against = sealed_against(observed, seen, read, &ways);
        if !differences.is_empty() || against.is_some() {
            let place = format!("in {} ", place(read));
            first.get_or_insert_with(|| match &against {
                Some(against) => not_of_the_load(&place, against),
                None => sealed::differs(&place, &differences),
            });
            differences.extend(against);
            failures.push(format!("{}: {}", name(read), differences.join(", ")));
        }
    }
    (trials > 0).then_some(())?;
    let detail = format!(
        "by the gateways' counters in {trials} trials; in the last one {}{}",
        last.join("; "),
        failed(&failures)
    );
    check(sealed::NAME, first, detail)
}

/// Describes the packets sealed by the gateway that sends against the load, if they are more than
/// gateways and neighbours send.
fn sealed_against(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
    (number, trial, readings): Read<'_>,
    ways: &[GatewayFlow],
) -> Option<String> {
    let against = if seen.ends.begins_at_b() {
        "gw1"
    } else {
        "gw2"
    };
    let mut sent = ways.iter().map(GatewayFlow::sent);
    let (gateway, sent) = sent.find(|(gateway, _)| *gateway == against)?;
    let most = neighbours_most(readings)
        + talk_most(&seen.path.cell.dut.adapter, readings)
        + hostile_sent(observed, number);
    (!trial.loads_both() && sent > most).then(|| {
        format!(
            "{gateway} sealed {} against the load, of {most} or fewer allowed",
            count(sent, 0, "packet")
        )
    })
}

/// Explains packets that a gateway counts as sealed against the load.
fn not_of_the_load(place: &str, difference: &str) -> Explanation {
    Explanation::new(
        format!("{place}{difference}"),
        "another program sends through the device, or the device counts packets that it did not get",
        then_repeat("stop other programs that use the lab's links"),
    )
}
