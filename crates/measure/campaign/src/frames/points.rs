//! A frame trial's points: every combination of its axes, ready to become cells.

use crate::axis::product;
use crate::expand::{AxisValue, Point, always, sometimes};
use crate::frames::{FrameTrial, Places, flows_for};
use crate::plan::{FrameTest, Measurement, Traffic};
use crate::trial::Trial;
use crate::words::on_off;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES};
use wire::mix::FrameMix;
use yaml::Spanned;

/// A link of a smaller MTU carries no IPv6 (RFC 8200 §5), and below 68 B no IPv4.
pub(crate) const LINK_MTU_MIN: u16 = 1280;

/// The largest frame's IP packet.
pub(crate) fn packet_bytes_max(mix: &FrameMix) -> u16 {
    mix.largest_bytes()
        .saturating_sub((HEADER_BYTES + FCS_BYTES) as u16)
}

impl FrameTrial {
    /// How many points it has; saturates.
    pub(crate) fn count(&self) -> usize {
        self.lengths().into_iter().fold(1, usize::saturating_mul)
    }

    fn lengths(&self) -> [usize; 10] {
        [
            self.frame.len(),
            self.direction.len(),
            self.ip.len(),
            self.cores.len(),
            self.flows.len(),
            self.tunnels.len(),
            self.duplex.len(),
            self.ports.len(),
            self.offloads.len(),
            self.procedures.len(),
        ]
    }

    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Trial) -> Vec<Point<'a>> {
        product(self.lengths())
            .map(|indexes| self.point(trial, indexes))
            .collect()
    }

    fn point<'a>(
        &'a self,
        trial: &'a Trial,
        [
            frame,
            direction,
            ip,
            cores,
            flows,
            tunnels,
            duplex,
            ports,
            offloads,
            procedure,
        ]: [usize; 10],
    ) -> Point<'a> {
        let (frame, direction, cores) = (
            &self.frame[frame],
            &self.direction[direction],
            &self.cores[cores],
        );
        let (tunnels, ports) = (&self.tunnels[tunnels], &self.ports[ports]);
        let (ip, duplex) = (&self.ip[ip], &self.duplex[duplex]);
        let offloads = &self.offloads[offloads];
        let (flows, asked) = (&self.flows[flows], &self.procedures[procedure]);
        // Those of the DUT, where it is not said, are told when the DUT is.
        let tunnel_count = tunnels.value.unwrap_or(1);
        let mix = &frame.value;
        let traffic = Traffic {
            mix: mix.clone(),
            ip: ip.value,
            flows: flows
                .value
                .unwrap_or_else(|| flows_for(tunnel_count, cores.value)),
            tunnels: tunnel_count,
            direction: direction.value,
            duplex: duplex.value,
            ports: ports.value,
        };
        let mut axes = vec![
            always("frame", mix_id(mix)),
            always("direction", direction.value.name()),
            sometimes("ip", ip.value.number()),
            sometimes("cores", cores.value),
            sometimes("flows", auto_or(flows.value)),
            sometimes("tunnels", auto_or(tunnels.value)),
            sometimes("duplex", on_off(duplex.value)),
            sometimes("ports", ports.value),
            sometimes("offloads", on_off(offloads.value)),
        ];
        axes.extend(asked.axes());
        let loads = asked.loads().map(|load| Spanned {
            value: load.value.frames_per_s(mix),
            place: load.place.clone(),
        });
        Point {
            trial,
            mtu: packet_bytes_max(mix).max(LINK_MTU_MIN),
            mtu_place: &frame.place,
            cores: cores.value,
            cores_place: &cores.place,
            offloads: offloads.value,
            tune: false,
            frames: Some(Places {
                ip: ip.place.clone(),
                direction: direction.place.clone(),
                tunnels: tunnels.place.clone(),
                auto_tunnels: tunnels.value.is_none(),
                flows: flows.clone(),
                ports: ports.place.clone(),
                duplex: duplex.place.clone(),
                offloads: offloads.place.clone(),
                loads: loads.collect(),
                event: asked.event_place().cloned(),
            }),
            measurement: Measurement::Frames(FrameTest {
                traffic,
                procedure: asked.resolve(mix),
            }),
            axes: axes.into_iter().collect::<Vec<AxisValue>>(),
        }
    }
}

fn auto_or(count: Option<u32>) -> String {
    count.map_or("auto".to_owned(), |count| count.to_string())
}

/// `64`, `imix1`, `7x64+4x594+1x1518`.
fn mix_id(mix: &FrameMix) -> String {
    if mix.shares.len() == 1 || FrameMix::named(&mix.name).is_some() {
        return mix.name.clone();
    }
    let shares = mix.shares.iter();
    let shares: Vec<_> = shares
        .map(|share| format!("{}x{}", share.weight, share.frame_bytes))
        .collect();
    shares.join("+")
}
