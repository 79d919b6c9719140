//! A station's part in a trial, from its [`Spec`] to its [`Report`].

use crate::analyser::{Analyser, Goal};
use crate::attack;
use crate::error::TrafficError;
use crate::flows::expected_ports;
use crate::generator::{Generator, drive};
use crate::keys::{KeyUse, Keys, open_keys};
use crate::reflect::reflect_all;
use crate::tally::Tally;
use crate::threads::on_threads;
use port::{
    FramePortError, FramePortKind, FramePortStats, FrameReceiver, FrameSender, LinkError,
    OpenFrames, Packets, Stop, open_outgoing, open_prompt_receivers, open_receivers, open_senders,
};
use std::io::{self, Write};
use traffic_spec::{
    Attack, Clock, KeySource, Monotonic, Part, Peer, READY, Receive, Received, Reflect, Report,
    Role, Send, Sent, Spec,
};
use wire::mix::{ETHERNET_HEADER_BYTES, FCS_BYTES};
use wire::overhead::{Outer, WIREGUARD_BYTES, WIREGUARD_PAD_TO_BYTES, outer_bytes};

/// Time for threads to start before the first frame is due.
const LEAD_NS: u64 = 1_000_000;

/// Why a station did not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The caller's mistake.
    #[error(
        "the specification of the trial cannot be read: {0}\nhelp: it is JSON, as `cipherbench run` writes it"
    )]
    Spec(#[from] serde_json::Error),
    /// No port.
    #[error(transparent)]
    Port(#[from] FramePortError),
    /// No traffic.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// No port of an impaired path.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Frames would also pass by the kernel.
    #[error(
        "the kernel cannot be kept from forwarding what `{0}` receives\nhelp: this needs CAP_BPF and Linux 6.6: run as root"
    )]
    KernelListens(String),
    /// An interface of an impaired path went away.
    #[error("the impaired path broke: {0}\nhelp: look what took its interface down, and repeat")]
    Bridge(#[source] io::Error),
    /// The parent has closed the output.
    #[error(
        "the report cannot be written: {0}\nhelp: keep standard output open until the trial has ended"
    )]
    Output(#[source] io::Error),
}

/// Runs the [`Spec`] in `input` (JSON): opens the ports, prints [`READY`] on one line, works, and
/// prints the [`Report`] on one line of JSON. When `stop` is raised it ends early, and still
/// reports. The report is printed before the ports are closed, which may take the kernel longer
/// than everything else.
///
/// # Errors
/// [`ServeError`]; nothing has been printed then, or [`READY`] alone.
pub fn serve(input: &str, mut output: impl Write, stop: &Stop) -> Result<(), ServeError> {
    let spec: Spec = serde_json::from_str(input)?;
    match &spec.role {
        Role::Send(send) => serve_send(&spec, send, stop, &mut output),
        Role::Receive(receive) => serve_receive(&spec, receive, stop, &mut output),
        Role::Reflect(reflect) => serve_reflect(&spec, reflect, stop, &mut output),
        Role::Attack(attack) => serve_attack(&spec, attack, stop, &mut output),
    }
}

pub(crate) fn print_line(output: &mut dyn Write, line: &str) -> Result<(), ServeError> {
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(ServeError::Output)
}

fn serve_send(
    spec: &Spec,
    send: &Send,
    stop: &Stop,
    output: &mut dyn Write,
) -> Result<(), ServeError> {
    let wanted = OpenFrames {
        interface: &spec.interface,
        kind: spec.port,
        max_frame_bytes: slot_bytes(send.frames.mix.largest_bytes(), send.peer.as_ref()),
        threads: sender_threads(send, spec.threads),
        packets: packets(send.peer.as_ref(), &[]),
    };
    // Ports before keys: an epoch is drawn only for a station that can send.
    let (mut ports, mut passed_over) = open_senders(&wanted)?;
    let fewer = fewer_threads(send, spec.threads, ports.len());
    passed_over.extend(ports.first().map(|port| port.kind()).zip(fewer));
    let keys = open_keys(send.peer.as_ref(), KeyUse::Seal)?;
    let generators = generators(send, spec.tag, ports.len(), keys.as_ref())?;
    print_line(output, READY)?;
    let sent = send_all_at(send.start_ns, generators, &mut ports, stop)?;
    let report = Report {
        port: ports.first().map(|port| port.kind()),
        xdp_mode: ports.first().and_then(|port| port.xdp_mode()),
        passed_over,
        threads: ports.len() as u16,
        port_stats: sum(ports.iter().map(FrameSender::stats)),
        engine: keys.map(|keys| keys.engine().to_owned()),
        sent: Some(sent),
        ..Report::default()
    };
    print_line(output, &serde_json::to_string(&report)?)
}

fn serve_receive(
    spec: &Spec,
    receive: &Receive,
    stop: &Stop,
    output: &mut dyn Write,
) -> Result<(), ServeError> {
    // The port filters by them in the kernel.
    let udp_ports = udp_ports(receive);
    let wanted = OpenFrames {
        interface: &spec.interface,
        kind: spec.port,
        max_frame_bytes: slot_bytes(receive.frames.mix.largest_bytes(), receive.peer.as_ref()),
        threads: usize::from(spec.threads.max(1)),
        packets: packets(receive.peer.as_ref(), &udp_ports),
    };
    let (mut ports, passed_over) = open_receivers(&wanted)?;
    let keys = open_keys(receive.peer.as_ref(), KeyUse::Open)?;
    let analysers = analysers(receive, spec.tag, ports.len(), keys.as_ref())?;
    print_line(output, READY)?;
    let received = receive_all(receive, analysers, &mut ports, keys.as_ref(), stop)?;
    let report = Report {
        port: ports.first().map(|port| port.kind()),
        xdp_mode: ports.first().and_then(|port| port.xdp_mode()),
        passed_over,
        threads: ports.len() as u16,
        port_stats: sum(ports.iter().map(FrameReceiver::stats)),
        // The reader of the report may open the key file, so it is released first.
        engine: keys.map(|keys| keys.engine().to_owned()),
        sent: None,
        received: Some(received),
        ..Report::default()
    };
    print_line(output, &serde_json::to_string(&report)?)
}

fn serve_reflect(
    spec: &Spec,
    reflect: &Reflect,
    stop: &Stop,
    output: &mut dyn Write,
) -> Result<(), ServeError> {
    let receive = reflect.receive();
    let udp_ports = udp_ports(&receive);
    let wanted = OpenFrames {
        interface: &spec.interface,
        kind: spec.port,
        max_frame_bytes: slot_bytes(reflect.frames.mix.largest_bytes(), None),
        threads: usize::from(spec.threads.max(1)),
        packets: Packets::Udp(&udp_ports),
    };
    // Prompt: a frame that waits in a block of the kernel would be residence time.
    let (mut receivers, mut passed_over) = open_prompt_receivers(&wanted)?;
    let (mut senders, others) = open_senders(&OpenFrames {
        kind: reflect.send_port,
        ..wanted
    })?;
    passed_over.extend(others);
    // A socket's port has the payload alone, and no headers to exchange.
    let kinds = [
        receivers.first().map(|port| port.kind()),
        senders.first().map(|port| port.kind()),
    ];
    if let Some(kind) = kinds
        .into_iter()
        .flatten()
        .find(|kind| *kind == FramePortKind::Socket)
    {
        return Err(TrafficError::ReflectPort { kind }.into());
    }
    let analysers = analysers(&receive, spec.tag, receivers.len(), None)?;
    print_line(output, READY)?;
    let ports = (&mut receivers[..], &mut senders[..]);
    let (received, sent, reflected) = reflect_all(&receive, analysers, ports, stop)?;
    let report = Report {
        port: kinds[0],
        xdp_mode: receivers.first().and_then(|port| port.xdp_mode()),
        passed_over,
        threads: receivers.len() as u16,
        port_stats: sum(receivers
            .iter()
            .map(FrameReceiver::stats)
            .chain(senders.iter().map(FrameSender::stats))),
        sent: Some(sent),
        received: Some(received),
        reflected: Some(reflected),
        ..Report::default()
    };
    print_line(output, &serde_json::to_string(&report)?)
}

/// On one thread, and with AF_PACKET alone: a UDP socket cannot send as the DUT does, and AF_XDP
/// carries no long frames.
fn serve_attack(
    spec: &Spec,
    attack: &Attack,
    stop: &Stop,
    output: &mut dyn Write,
) -> Result<(), ServeError> {
    // A kind that was asked for and cannot do this is an error, not replaced silently.
    if let Some(kind) = spec.port.filter(|kind| *kind != FramePortKind::Packet) {
        return Err(TrafficError::AttackPort { kind }.into());
    }
    let mut captures = open_outgoing(&spec.interface)?;
    let wanted = OpenFrames {
        interface: &spec.interface,
        kind: Some(FramePortKind::Packet),
        // Frames that left by the interface fit it.
        max_frame_bytes: 0,
        threads: 1,
        packets: Packets::Udp(&[]),
    };
    let (mut ports, passed_over) = open_senders(&wanted)?;
    print_line(output, READY)?;
    let mut report = Report {
        port: Some(FramePortKind::Packet),
        passed_over,
        threads: 1,
        ..Report::default()
    };
    let clock = Monotonic::new();
    if let Some(port) = ports.first_mut() {
        let attacked = attack::attack(&mut captures, port, attack, spec.tag, &clock, stop)?;
        report.port_stats = port.stats();
        report.attacked = Some(attacked);
    }
    print_line(output, &serde_json::to_string(&report)?)
}

/// Number of threads that `send` can be divided among, up to `threads`: each has at least one flow.
/// When it seals, threads divide lanes or tunnels, so that each SA belongs to one thread: its
/// sequence numbers are used once. A session of WireGuard is one SA.
#[must_use]
pub fn sender_threads(send: &Send, threads: u16) -> usize {
    let most = u32::from(threads).clamp(1, send.frames.flows.max(1));
    let divides = |threads: &u32| match &send.peer {
        Some(peer) => peer.divides_among(*threads),
        None => true,
    };
    (1..=most).rev().find(divides).unwrap_or(1) as usize
}

/// Why a sender has fewer threads than it may have.
fn fewer_threads(send: &Send, allowed: u16, threads: usize) -> Option<String> {
    let peer = send.peer.as_ref()?;
    (threads < usize::from(allowed)).then(|| {
        let sas = u32::from(peer.lanes) * u32::from(peer.tunnels);
        format!(
            "{threads} thread(s) of {allowed}: each needs SAs of its own, as many as the others, and \
             there are {sas}"
        )
    })
}

/// One generator for each of `threads`, as computed by [`sender_threads`]. All begin at time 0.
///
/// # Errors
/// [`TrafficError`] when `send` requests impossible frames.
pub fn generators(
    send: &Send,
    tag: u16,
    threads: usize,
    keys: Option<&Keys>,
) -> Result<Vec<Generator>, TrafficError> {
    let of = threads as u32;
    (0..of)
        .map(|index| Generator::new(send, tag, Part { index, of }, keys))
        .collect()
}

/// Runs each generator on its port and thread, all on one schedule. When one fails or panics,
/// `stop` is raised, and the others end.
///
/// # Errors
/// [`TrafficError::PortGone`].
pub fn send_all<P: FrameSender>(
    generators: Vec<Generator>,
    ports: &mut [P],
    stop: &Stop,
) -> Result<Sent, TrafficError> {
    send_all_at(None, generators, ports, stop)
}

/// As [`send_all`], but starts at a given time of the clock. If it has passed, the first frames are
/// late.
fn send_all_at<P: FrameSender>(
    start_ns: Option<u64>,
    generators: Vec<Generator>,
    ports: &mut [P],
    stop: &Stop,
) -> Result<Sent, TrafficError> {
    let clock = Monotonic::new();
    clock.settle();
    // One start for all threads, or their shares of the schedule would be shifted.
    let soon_ns = clock.now_ns() + LEAD_NS;
    let start_ns = start_ns.unwrap_or(soon_ns);
    let work = |(mut generator, port): (Generator, &mut P)| {
        generator.begin_at(start_ns);
        drive(generator, port, &clock, stop)
    };
    let tasks = generators.into_iter().zip(ports);
    let sent = on_threads("send", tasks, work, || stop.raise())?;
    Ok(sent.into_iter().fold(Sent::default(), Sent::and))
}

/// One analyser for each of `threads`.
///
/// # Errors
/// [`TrafficError::Flows`].
pub fn analysers<'k>(
    receive: &Receive,
    tag: u16,
    threads: usize,
    keys: Option<&'k Keys>,
) -> Result<Vec<Analyser<'k>>, TrafficError> {
    (0..threads)
        .map(|_| Analyser::new(receive, tag, keys))
        .collect()
}

/// Runs each analyser on its port and thread until all together have received the expected frames,
/// or `stop` is raised; they end as [`receive`](crate::receive) does. Each flow must stay on one
/// port, or a duplicate may be counted as new.
///
/// # Errors
/// [`TrafficError::PortGone`], or [`TrafficError::Keys`] when the peer's epoch cannot be recorded.
pub fn receive_all<P: FrameReceiver>(
    receive: &Receive,
    analysers: Vec<Analyser<'_>>,
    ports: &mut [P],
    keys: Option<&Keys>,
    stop: &Stop,
) -> Result<Received, TrafficError> {
    let goal = Goal::new(receive.expected)?;
    let clock = Monotonic::new();
    let work = |(analyser, port): (Analyser<'_>, &mut P)| {
        goal.run_to_goal(analyser, port, &clock, stop, Analyser::poll)
    };
    let mut whole = Tally::new(receive);
    let mut proven_epoch = 0;
    let tasks = analysers.into_iter().zip(ports);
    for (tally, epoch) in on_threads("receive", tasks, work, || goal.give_up())? {
        // By thread, not shared: counters are private while frames arrive.
        whole.merge(tally);
        proven_epoch = proven_epoch.max(epoch);
    }
    if let Some(keys) = keys {
        keys.note_peer_epoch(proven_epoch)?;
    }
    Ok(whole.received())
}

/// Length in a port's slot, without FCS, of a frame that has `frame_bytes` on the clear side.
fn slot_bytes(frame_bytes: u16, peer: Option<&Peer>) -> usize {
    let clear = usize::from(frame_bytes.saturating_sub(FCS_BYTES));
    match peer {
        None => clear,
        Some(peer) => {
            let inner = clear.saturating_sub(ETHERNET_HEADER_BYTES);
            ETHERNET_HEADER_BYTES + outer_bytes_of(peer, inner)
        }
    }
}

/// Length of an IP packet of `inner` bytes once the peer has sealed it, with its outer headers.
const fn outer_bytes_of(peer: &Peer, inner: usize) -> usize {
    let outer = Outer {
        ipv6: peer.local.is_ipv6(),
        udp: peer.port.is_some(),
    };
    match peer.keys {
        KeySource::WireGuard(_) => {
            let padded = inner.next_multiple_of(WIREGUARD_PAD_TO_BYTES);
            outer.header_bytes() + WIREGUARD_BYTES + padded
        }
        _ => outer_bytes(peer.suite, outer, inner),
    }
}

/// UDP destination ports of the received packets; empty for bare ESP.
fn udp_ports(receive: &Receive) -> Vec<u16> {
    match &receive.peer {
        None => expected_ports(receive).collect(),
        Some(peer) => peer.udp_ports(),
    }
}

/// The packets of a station, sealed if it replaces a peer.
fn packets<'p>(peer: Option<&Peer>, udp_ports: &'p [u16]) -> Packets<'p> {
    peer.map_or(Packets::Udp(udp_ports), |peer| peer.packets(udp_ports))
}

fn sum(stats: impl Iterator<Item = FramePortStats>) -> FramePortStats {
    stats.fold(FramePortStats::default(), |sum, more| FramePortStats {
        sent: sum.sent + more.sent,
        send_failed: sum.send_failed + more.send_failed,
        receive_dropped: sum.receive_dropped + more.receive_dropped,
    })
}
