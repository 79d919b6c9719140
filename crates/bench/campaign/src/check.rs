//! Requirements of a campaign that a lab or host does not meet, reported at their place in the
//! campaign.

use crate::expand::Draft;
use crate::frames::{LINK_MTU_MIN, packet_bytes_max};
use crate::host::HostFacts;
use crate::lab::LabFile;
use plan::{
    Adapter, Axis, DataPath, Direction, Disturbed, Dut, Event, Failure, Hosts, IpVersion,
    L2tpEncapsulation, LabKind, LatencyPath, Measurement, Mode, Overlay, PortKind, Procedure, Role,
    Traffic,
};
use units::frame_constants::{FCS_BYTES, HEADER_BYTES};
use units::{BitRate, FrameRate, Layer};
use yaml::{Mistake, Place};

/// Longest frames, FCS not counted, that an AF_XDP port of a virtual link takes: a page of memory,
/// on receipt less the headroom that the kernel reserves.
const XDP_SEND_BYTES_MAX: usize = 4096;
const XDP_RECEIVE_BYTES_MAX: usize = XDP_SEND_BYTES_MAX - 256;

impl Draft {
    /// Returns the requirements of this cell that the lab or the host does not meet. Packets on the
    /// cipher link may have up to `cipher_mtu` bytes.
    pub(crate) fn check(&self, lab: &LabFile, cipher_mtu: usize, host: &HostFacts) -> Vec<Mistake> {
        let mut mistakes: Vec<_> = self.check_kind(lab).into_iter().collect();
        // The other requirements are of links and packets.
        if matches!(self.cell.measurement, Measurement::Device(_)) {
            return mistakes;
        }
        mistakes.extend(self.check_external(lab));
        mistakes.extend(self.check_impair(lab));
        mistakes.extend(self.check_overlay(lab));
        mistakes.extend(self.check_nat(lab));
        mistakes.extend(self.check_cores(lab, host));
        mistakes.extend(self.check_mtu(lab));
        mistakes.extend(self.check_packets());
        mistakes.extend(self.check_ipv6(lab));
        mistakes.extend(self.check_ports(lab));
        mistakes.extend(self.check_xdp(lab, cipher_mtu));
        mistakes.extend(self.check_stations_in_memory(lab));
        mistakes.extend(self.check_loads(lab));
        mistakes
    }

    /// Crypto devices have no path; a lab in memory has no kernel.
    fn check_kind(&self, lab: &LabFile) -> Option<Mistake> {
        let of_device = matches!(self.cell.measurement, Measurement::Device(_));
        match (of_device, lab.plan().kind) {
            (true, LabKind::Device) => return None,
            (true, _) => {
                let what = "crypto devices are on this machine, and the lab is made of links";
                let help = "leave the lab out, or use the built-in one: `--lab device`";
                return Some(self.trial.mistake(what, help));
            }
            (false, LabKind::Device) => {
                let what = "traffic needs links, and the lab is one of crypto devices";
                let help = "use a lab of kind `namespaces`: `--lab namespaces`";
                return Some(self.trial.mistake(what, help));
            }
            (false, LabKind::Namespaces) => return None,
            (false, LabKind::Hosts) => return self.check_between_hosts(lab),
            (false, LabKind::Memory) => {}
        }
        let help = "use a lab of kind `namespaces`: `--lab namespaces`";
        if self.cell.measurement.frames().is_none() {
            let name = self.cell.measurement.name();
            let what =
                format!("`{name}` needs the kernel's stack, and the lab's stations have none");
            return Some(self.trial.mistake(what, help));
        }
        if let Some(Procedure::Disturbed(test)) =
            self.cell.measurement.frames().map(|test| &test.procedure)
        {
            let what = format!(
                "`{}` is done to programs and links, and a lab in memory has neither",
                test.event.kind().name()
            );
            return Some(self.trial.mistake(what, help));
        }
        // Last, so that a trial that no DUT can have in memory is reported as a trial's mistake.
        let dut = &self.cell.dut;
        let why = dut.adapter.profile().needs_kernel.or_else(|| {
            let why = "runs the campaign's program, and a lab in memory has no processes";
            let has_settings = dut.software.settings.is_some();
            let of_kernel = "has `settings`, and a lab in memory has no kernel";
            let why = if has_settings { of_kernel } else { why };
            (has_settings || dut.software.is_given()).then(|| why.to_owned())
        })?;
        let what = format!("`{}` {why}", dut.name);
        Some(self.dut.mistake(what, help))
    }

    /// Between hosts no link leads past the gateways, and perhaps none between them.
    fn check_between_hosts(&self, lab: &LabFile) -> Option<Mistake> {
        let (name, adapter) = (&self.cell.dut.name, &self.cell.dut.adapter);
        let has_cable = lab.plan().hosts.as_ref().is_some_and(Hosts::has_cable);
        if let Some((what, help)) = unusable_on_hosts(&self.cell.dut) {
            return Some(self.dut.mistake(what, help));
        }
        match adapter {
            Adapter::Straight { .. } => {
                let what =
                    format!("`{name}` needs a link past the gateways, and these hosts have none");
                let help = if has_cable {
                    "use `direct`, or a lab of kind `namespaces`"
                } else {
                    "leave it out, or use a lab of kind `namespaces`"
                };
                Some(self.dut.mistake(what, help))
            }
            // Boxes are reached by their cables, which `check_external` requires.
            Adapter::External(_) => None,
            _ if has_cable => None,
            _ => {
                let what = format!(
                    "`{name}` needs a cable between the gateways, and these hosts have none"
                );
                let help = format!(
                    "write the `interface` of both hosts at it in {}, or leave `{name}` out",
                    lab.file()
                );
                Some(self.dut.mistake(what, help))
            }
        }
    }

    /// Boxes need cables, IPv4, and a tap if their link is to be cut.
    fn check_external(&self, lab: &LabFile) -> Option<Mistake> {
        let name = &self.cell.dut.name;
        let external = self.cell.dut.adapter.external()?;
        // `check_kind` has reported it.
        if lab.plan().kind == LabKind::Memory {
            return None;
        }
        let Some(cables) = &lab.plan().external else {
            let what =
                format!("`{name}` is outside of this machine, and the lab has no cables to it");
            let example = match lab.plan().kind {
                LabKind::Hosts => "labs/two-hosts-boxes.yaml",
                _ => "labs/external.yaml",
            };
            let help = format!(
                "write `external: {{ station_a: eth1, station_b: eth2 }}` in a lab file, as {example} has it, and name \
                 that file with `--lab`"
            );
            return Some(self.dut.mistake(what, help));
        };
        let hosts = lab.plan().hosts.as_ref();
        if external.gateway.is_some() && hosts.is_some_and(|hosts| !hosts.has_cable()) {
            let what = format!(
                "`{name}` is one gateway, which no frame passes in clear, and these hosts have no cable of their own \
                 over which to compare their clocks"
            );
            let help = format!(
                "write the `interface` of both hosts at such a cable in {}, or measure it with both stations on one \
                 machine, as labs/gateway.yaml has it",
                lab.file()
            );
            return Some(self.dut.mistake(what, help));
        }
        if external.gateway.is_some() && self.cell.measurement.frames().is_none() {
            let what = format!(
                "`{name}` is one gateway, of which the station is the peer: programs on the stations \
                 do not reach one another through it"
            );
            let help = "measure it by frame tests with `direction: encrypt` or `decrypt`; this trial can \
                        have `duts` without it";
            return Some(self.trial.mistake(what, help));
        }
        let test = self.cell.measurement.frames()?;
        if test.traffic.ip == IpVersion::V6 {
            let what =
                format!("`{name}` is measured with IPv4 only: the stations have no IPv6 address");
            let help = "write `ip: 4`, or leave it out with `duts`";
            return Some(self.place(Axis::Ip).mistake(what, help));
        }
        let cut = matches!(
            &test.procedure,
            Procedure::Disturbed(Disturbed {
                event: Event::Failover {
                    failure: Failure::Link,
                    ..
                },
                ..
            })
        );
        (cut && cables.tap.is_none()).then(|| {
            let what = format!(
                "the link between the boxes of `{name}` cannot be cut: the lab has no tap in it"
            );
            let help = format!("write `tap: [eth3, eth4]` in `external` of {}", lab.file());
            self.trial.mistake(what, help)
        })
    }

    /// Profiles need the element that applies them, and packets that cross it.
    fn check_impair(&self, lab: &LabFile) -> Option<Mistake> {
        let place = self.place(Axis::Impair);
        // The cell's profile does not decide: it is absent if the packets cross no element, which
        // is the mistake to be found.
        let names_profile = self.cell.is_named_by(Axis::Impair);
        if !names_profile {
            return None;
        }
        if !lab.plan().is_impaired() {
            let what = "the lab has no element that impairs its path";
            let help = format!(
                "write `path: [impair]` in {}, or use labs/weather.yaml",
                lab.file()
            );
            return Some(place.mistake(what, help));
        }
        let adapter = &self.cell.dut.adapter;
        (adapter.external().is_some()).then(|| {
            let what = format!(
                "`{}` is outside of the lab, whose elements its packets do not cross",
                self.cell.dut.name
            );
            place.mistake(what, "leave it out of this trial with `duts`")
        })
    }

    /// Packets of an overlay go to the stations' own addresses, which a NAT hides from B.
    fn check_overlay(&self, lab: &LabFile) -> Option<Mistake> {
        let overlay = self.cell.stations.map_or(Overlay::None, |its| its.overlay);
        let adapter = &self.cell.dut.adapter;
        let is_tunnel = adapter.profile().role == Role::Tunnel;
        let in_path = lab.plan().translates() && !is_tunnel && adapter.crosses_elements();
        let (what, help) = if matches!(adapter, Adapter::Router { nat: true }) {
            ("it translates addresses".to_owned(), String::new())
        } else if in_path {
            let help = format!(", or take `nat` out of `path` in {}", lab.file());
            ("a NAT of the lab translates its addresses".to_owned(), help)
        } else {
            return None;
        };
        let name = &self.cell.dut.name;
        let mistake = || {
            self.place(Axis::Overlay).mistake(
                format!(
                    "B cannot reach A by {} through `{name}`: {what}",
                    overlay.title()
                ),
                format!("leave `{name}` out of this trial with `duts`{help}"),
            )
        };
        overlay.is_some().then(mistake)
    }

    /// A NAT passes only packets that have ports to translate, and no addresses inside.
    fn check_nat(&self, lab: &LabFile) -> Option<Mistake> {
        if !lab.plan().translates() {
            return None;
        }
        // Only the DUTs of the lab are listed: boxes outside do not cross its elements.
        let (why, help) = match &self.cell.dut.adapter {
            Adapter::Xfrm(_) => (
                "seals with bare ESP, which has no ports that a NAT could translate",
                "measure `cipherbench` there, or `strongswan` with `data_path: libipsec` or \
                 `kernel-udp`: they seal in UDP",
            ),
            Adapter::StrongSwan(tunnel) if tunnel.data_path == DataPath::Kernel => (
                "seals with bare ESP, which has no ports that a NAT could translate",
                "write `strongswan: { data_path: libipsec }`, which seals in UDP, or \
                 `kernel-udp` if the kernel has ESP",
            ),
            Adapter::L2tpv3(tunnel) if tunnel.encapsulation == L2tpEncapsulation::Ip => (
                "is an IP protocol without ports that a NAT could translate",
                "write `encapsulation: udp`",
            ),
            Adapter::Cipherbench(encryptor) if encryptor.mode == Mode::L2tpv3 => (
                "has the gateways' own addresses inside its packets, where no NAT translates them",
                "write `mode: l2`, or `l2tpv3-clear`",
            ),
            _ => return None,
        };
        let what = format!(
            "`{}` {why}, and the lab has one in its path",
            self.cell.dut.name
        );
        let help = format!("{help}; or take `nat` out of `path` in {}", lab.file());
        Some(self.trial.mistake(what, help))
    }

    /// The cores of a lab's hosts are known only when they are reached.
    fn check_cores(&self, lab: &LabFile, host: &HostFacts) -> Option<Mistake> {
        // In memory a station has one core, whatever the host has.
        if lab.plan().hosts.is_some() || lab.plan().kind == LabKind::Memory {
            return None;
        }
        host.lacks_cores(self.cell.stations?.cores, self.place(Axis::Cores))
    }

    /// The longest packet of the cell's traffic.
    fn packet_bytes(&self) -> u16 {
        match self.cell.measurement.frames() {
            Some(test) => packet_bytes_max(&test.traffic.frames.mix),
            None => self.cell.stations.map_or(0, |stations| stations.mtu),
        }
    }

    /// The place in the campaign that sets the packets' length.
    fn size_place(&self) -> &Place {
        self.place(match self.cell.measurement.frames() {
            Some(_) => Axis::Frame,
            None => Axis::Mtu,
        })
    }

    /// Length of the longest packet on the cipher link.
    pub(crate) fn cipher_packet_bytes(&self) -> usize {
        let profile = self.cell.dut.adapter.profile();
        profile.cipher_packet_bytes(self.packet_bytes().into())
    }

    fn check_mtu(&self, lab: &LabFile) -> Option<Mistake> {
        let limit = lab.plan().cipher_mtu?;
        let dut = &self.cell.dut;
        let (packet, needed) = (self.packet_bytes(), self.cipher_packet_bytes());
        // Nothing of `straight` crosses the cipher link.
        if needed <= usize::from(limit) || dut.adapter.is_straight() {
            return None;
        }
        // The size that the campaign names: of the frame, or the MTU.
        let added = match self.cell.measurement.frames() {
            Some(_) => (HEADER_BYTES + FCS_BYTES) as usize,
            None => 0,
        };
        let (noun, limit_noun) = match self.cell.measurement.frames() {
            Some(_) => ("frames", "frame"),
            None => ("packets", "MTU"),
        };
        let named = usize::from(packet) + added;
        let profile = dut.adapter.profile();
        let grown = match &profile.carried_in {
            Some(carried_in) => {
                let as_what = if added > 0 { "packets of " } else { "" };
                format!("{noun} of {named} B are {as_what}{needed} B in {carried_in} and")
            }
            None => format!("{noun} of {named} B"),
        };
        let what = format!("{grown} do not fit the cipher link's MTU of {limit} B");
        // None fits if the encapsulation alone is longer than the link's MTU.
        let fits = profile.clear_mtu(limit).unwrap_or(0) + added;
        let help = format!(
            "the largest {limit_noun} that fits is {fits} B; or write `cipher_mtu: auto` or \
             {needed} B in {}",
            lab.file()
        );
        Some(self.size_place().mistake(what, help))
    }

    /// A DUT may have a lower limit of packets than its links.
    fn check_packets(&self) -> Option<Mistake> {
        let limit = self.cell.dut.adapter.profile().packet_limit?;
        let most = usize::from(limit.bytes);
        let packet = usize::from(self.packet_bytes());
        let (noun, added) = match self.cell.measurement.frames() {
            Some(_) => ("frames", (HEADER_BYTES + FCS_BYTES) as usize),
            None => ("packets", 0),
        };
        (packet > most).then(|| {
            let (named, fits) = (packet + added, most + added);
            let what = format!(
                "{noun} of {named} B are too long for {}, which takes packets of {most} B at most",
                limit.by
            );
            let help = format!("write {fits} B or less, or {}", limit.help);
            self.size_place().mistake(what, help)
        })
    }

    /// Links of a smaller MTU have no IPv6 (RFC 8200 §5).
    fn check_ipv6(&self, lab: &LabFile) -> Option<Mistake> {
        let limit = lab.plan().cipher_mtu.filter(|mtu| *mtu < LINK_MTU_MIN)?;
        let test = self.cell.measurement.frames()?;
        (test.traffic.ip == IpVersion::V6).then(|| {
            let what = format!(
                "the cipher link's MTU of {limit} B is too small for IPv6, which needs \
                 {LINK_MTU_MIN} B"
            );
            let help = format!(
                "write `ip: 4`; or `cipher_mtu: auto` or {LINK_MTU_MIN} B in {}",
                lab.file()
            );
            self.place(Axis::Ip).mistake(what, help)
        })
    }

    fn check_ports(&self, lab: &LabFile) -> Option<Mistake> {
        let ports = self.cell.measurement.frames()?.traffic.ports;
        let place = self.place(Axis::Ports);
        // Rings in memory exist in one process only, and it has no interface for any other kind.
        let in_memory = lab.plan().kind == LabKind::Memory;
        let forced = [ports.tx, ports.rx];
        let wrong = forced
            .into_iter()
            .flatten()
            .find(|kind| (*kind == PortKind::Memory) != in_memory)?;
        Some(if in_memory {
            place.mistake(
                format!("a lab in memory has no port of kind `{}`", wrong.name()),
                "write `ports: auto`, or use a lab of kind `namespaces`: `--lab namespaces`",
            )
        } else {
            place.mistake(
                "ports in memory join stations of one process only",
                "write `ports: auto`, or use the lab in memory: `--lab memory`",
            )
        })
    }

    /// AF_XDP needs a queue for each core, and the lab's links have one. It also needs a page for
    /// each frame.
    fn check_xdp(&self, lab: &LabFile, cipher_mtu: usize) -> Option<Mistake> {
        let test = self.cell.measurement.frames()?;
        let Traffic {
            ports, direction, ..
        } = &test.traffic;
        let is_xdp = |kind| kind == Some(PortKind::Xdp);
        if lab.plan().kind == LabKind::Memory || !(is_xdp(ports.tx) || is_xdp(ports.rx)) {
            return None;
        }
        let cores = self.cell.stations?.cores;
        // How many queues a cable's card has is known when its port is opened.
        if cores > 1 && self.cell.dut.adapter.external().is_none() {
            let what = format!(
                "AF_XDP needs a queue for each of {cores} cores, and the lab's links have one"
            );
            let help = "write `ports: packet` or `auto`, or `cores: 1`";
            return Some(self.place(Axis::Ports).mistake(what, help));
        }
        let packet = usize::from(self.packet_bytes());
        let encrypts = self.cell.dut.adapter.encrypts();
        let sent = match test.traffic.sealed_by_station(&self.cell.dut.adapter) {
            Some(_) => (self.cipher_packet_bytes(), "the cipher link's frames"),
            None => (packet, "frames"),
        };
        // A port must accept everything that its link may carry.
        let received = match direction {
            Direction::Encrypt if encrypts => (cipher_mtu, "the cipher link's frames"),
            _ => (packet, "frames"),
        };
        // The lengths here are without the FCS, which neither port has; messages name frames with
        // it, as campaigns do.
        let ends = [
            ("send", ports.tx, sent, XDP_SEND_BYTES_MAX),
            ("receive", ports.rx, received, XDP_RECEIVE_BYTES_MAX),
        ];
        let too_long = |(_, kind, (packet, _), most): &(_, _, (usize, _), usize)| {
            is_xdp(*kind) && packet + HEADER_BYTES as usize > *most
        };
        let (key, _, (packet, noun), most) = ends.into_iter().find(too_long)?;
        let around = (HEADER_BYTES + FCS_BYTES) as usize;
        let what = format!(
            "{noun} of {} B are longer than the {} B that AF_XDP can {key}",
            packet + around,
            most + FCS_BYTES as usize
        );
        let help = format!("write `{key}: packet` or `auto` there, or shorter frames");
        Some(self.place(Axis::Ports).mistake(what, help))
    }

    /// In memory each station is one thread, and sends or receives.
    fn check_stations_in_memory(&self, lab: &LabFile) -> Vec<Mistake> {
        let (Some(test), Some(stations)) = (self.cell.measurement.frames(), self.cell.stations)
        else {
            return Vec::new();
        };
        if lab.plan().kind != LabKind::Memory {
            return Vec::new();
        }
        // All three may apply to one cell, each at a place in the campaign of its kind.
        let help = "or use a lab of kind `namespaces`: `--lab namespaces`";
        let cores = stations.cores;
        let cores = (cores > 1).then(|| {
            let what = format!("{cores} cores per station are more than the one in memory");
            let help = format!("write `cores: 1`, {help}");
            self.place(Axis::Cores).mistake(what, help)
        });
        let duplex = test.traffic.duplex.then(|| {
            let what = "a lab in memory is loaded one way only";
            let help = format!("leave `duplex` off, {help}");
            self.place(Axis::Duplex).mistake(what, help)
        });
        let path = test.procedure.latency().map(|latency| latency.path);
        let reflected = (path == Some(LatencyPath::RoundTrip)).then(|| {
            let what = "in a lab in memory no station reflects frames";
            let help = format!("write `path: one-way`, {help}");
            self.place(Axis::Path).mistake(what, help)
        });
        cores.into_iter().chain(duplex).chain(reflected).collect()
    }

    fn check_loads(&self, lab: &LabFile) -> Vec<Mistake> {
        let (Some(test), Some(given)) = (self.cell.measurement.frames(), &self.frames) else {
            return Vec::new();
        };
        let mix = &test.traffic.frames.mix;
        let lab = lab.plan();
        // Without shaped links the rate of the path is known only when it is measured.
        let (Some(bps), Some(line_rate)) = (lab.link_bps, lab.line_rate(&self.cell)) else {
            return Vec::new();
        };
        let sealed = test.traffic.sealed_by_station(&self.cell.dut.adapter);
        let sealed = sealed.map_or_else(String::new, |carrier| {
            format!(" that the station sends as {}", carrier.in_words())
        });
        let above = given.loads.iter().filter(|load| load.value > line_rate);
        let mistakes = above.map(|load| {
            // A load that is not given is the default, which every search has.
            let (noun, key) = if load.place == self.trial {
                ("the usual `min_load`", "min_load: ")
            } else {
                ("a load", "")
            };
            let what = format!(
                "{noun} of {} is above the line rate of {}",
                FrameRate::new(load.value),
                FrameRate::new(line_rate)
            );
            let mean = units::human::number(mix.mean_bytes());
            let size = if mix.shares.len() == 1 {
                ""
            } else {
                " on average"
            };
            let help = format!(
                "that is what links of {} carry of frames of {mean} B{size}{sealed}, preamble and \
                 gap counted: write `{key}{line_rate} frames/s` or less",
                BitRate::new(bps, Layer::L1)
            );
            load.place.mistake(what, help)
        });
        mistakes.collect()
    }
}

/// Why a program cannot be started on the lab's hosts, and what to do.
fn unusable_on_hosts(dut: &Dut) -> Option<(String, String)> {
    let settings = dut.software.settings.iter();
    let of_stations = settings.flat_map(|settings| settings.programs.values());
    let of_stations = of_stations.map(|its| its.program.as_str());
    let mut programs = dut
        .software
        .program
        .as_deref()
        .into_iter()
        .chain(of_stations);
    if dut.software.build.is_some() {
        let what = format!(
            "`{}` is built on this machine, and the gateways are on hosts",
            dut.name
        );
        let help = "build it on both hosts, and give its path there as `program`".to_owned();
        return Some((what, help));
    }
    let program = programs.find(|it| it.contains('/') && !it.starts_with('/'))?;
    let what = format!("`{program}` is relative to the campaign, and it is started on hosts");
    let help = "give its whole path there, the same on both hosts".to_owned();
    Some((what, help))
}
