//! The clear side: `mode`, `tunnel`, `interface`, `l2tpv3`.

use super::types::{Encapsulation, Mode, Pseudowire, Tunnel};
use super::values::{self, Consent};
use units::Bytes;
use yaml::{Map, Node, Reported};

const TUNNEL_NAME_DEFAULT: &str = "cb0";
/// The kernel's default of 500 loses small packets at the rates that one lane carries.
const QUEUE_LENGTH_DEFAULT: u32 = 5000;
/// Every IPv4 host takes packets of this length (RFC 791).
pub(crate) const MTU_MIN: u16 = 576;
const MTU_MAX: u16 = 65_535;
/// Linux keeps 16 bytes, the last a zero.
const INTERFACE_NAME_BYTES_MAX: usize = 15;

/// The value of `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    L3,
    L2,
    L2tpv3,
}

impl Kind {
    pub(super) fn read(map: &Map<'_>) -> Result<Self, Reported> {
        map.with_default("mode", Self::L3, |node| {
            let known = [("l3", Self::L3), ("l2", Self::L2), ("l2tpv3", Self::L2tpv3)];
            node.one_of("mode", &known)
        })
    }
}

/// The clear side, and the routes of the short form of a single peer, which are part of `tunnel`.
pub(super) struct ClearSide<'d> {
    pub(super) mode: Result<Mode, Reported>,
    pub(super) routes: Option<Node<'d>>,
}

/// Reads the keys of the given kind, and refuses the keys of other kinds.
pub(super) fn read<'d>(
    map: &Map<'d>,
    kind: Result<Kind, Reported>,
    consent: Consent,
) -> ClearSide<'d> {
    let mut routes = None;
    let mode = read_mode(map, kind, consent, &mut routes);
    ClearSide { mode, routes }
}

fn read_mode<'d>(
    map: &Map<'d>,
    kind: Result<Kind, Reported>,
    consent: Consent,
    routes: &mut Option<Node<'d>>,
) -> Result<Mode, Reported> {
    let tunnel = map.optional("tunnel");
    let interface = map.optional("interface");
    let l2tpv3 = map.optional("l2tpv3");
    let kind = kind?;
    let is_l3 = kind == Kind::L3;
    let strays = [
        tunnel.filter(|_| !is_l3).map(|node| {
            node.mistake(
                "a layer-2 mode has no TUN interface",
                "remove `tunnel`: frames come from `interface`",
            )
        }),
        interface.filter(|_| is_l3).map(|node| {
            node.mistake(
                "`interface` is given, but the mode is `l3`",
                "write `mode: l2` to carry its frames, or `tunnel: { name: … }` to name the TUN interface",
            )
        }),
        l2tpv3.filter(|_| kind != Kind::L2tpv3).map(|node| {
            node.mistake("`l2tpv3` is given, but the mode is not `l2tpv3`", "write `mode: l2tpv3`")
        }),
    ];
    let mode = match kind {
        Kind::L3 => read_tunnel(tunnel, routes).map(Mode::L3),
        Kind::L2 => interface_name(map).map(|interface| Mode::L2 { interface }),
        Kind::L2tpv3 => {
            let interface = interface_name(map);
            let pseudowire = map
                .required("l2tpv3")
                .and_then(|node| node.map(|map| read_pseudowire(map, consent)));
            interface.and_then(|interface| {
                Ok(Mode::L2tpv3 {
                    interface,
                    pseudowire: pseudowire?,
                })
            })
        }
    };
    match strays.into_iter().flatten().next() {
        Some(reported) => Err(reported),
        None => mode,
    }
}

fn read_tunnel<'d>(
    node: Option<Node<'d>>,
    routes: &mut Option<Node<'d>>,
) -> Result<Tunnel, Reported> {
    let Some(node) = node else {
        return Ok(Tunnel {
            name: TUNNEL_NAME_DEFAULT.to_owned(),
            mtu: None,
            queue_length: QUEUE_LENGTH_DEFAULT,
            address: None,
        });
    };
    node.map(|map| {
        let name = map.with_default("name", TUNNEL_NAME_DEFAULT, |node| {
            node.identifier(1..=INTERFACE_NAME_BYTES_MAX)
        });
        let mtu = map.with_default("mtu", None, |node| {
            let range = Bytes::new(MTU_MIN.into())..=Bytes::new(MTU_MAX.into());
            let size = node.word_or("auto", |node| node.size(range))?;
            Ok(size.map(|size| size.get() as u16))
        });
        let queue_length = map.with_default("queue_length", QUEUE_LENGTH_DEFAULT, |node| {
            node.integer(1..=1_000_000)
        });
        let address = map
            .optional("address")
            .map(values::interface_address)
            .transpose();
        *routes = map.optional("routes");
        Ok(Tunnel {
            name: name?.to_owned(),
            mtu: mtu?,
            queue_length: queue_length?,
            address: address?,
        })
    })
}

/// Reads the name of a host interface, as the kernel accepts it.
fn interface_name(map: &Map<'_>) -> Result<String, Reported> {
    let node = map.required("interface")?;
    let name = node.text()?;
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
    if name.len() <= INTERFACE_NAME_BYTES_MAX && name.bytes().all(fits) {
        return Ok(name.to_owned());
    }
    Err(node.mistake(
        format!("`{name}` is not an interface name"),
        "write it as `ip link` shows it, for example `eth1`",
    ))
}

fn read_pseudowire(map: &Map<'_>, consent: Consent) -> Result<Pseudowire, Reported> {
    // Session 0 is for control messages (RFC 3931 §4.1).
    let session = |key| {
        map.required(key)
            .and_then(|node| node.integer(1..=u32::MAX))
    };
    let cookie = |key| map.with_default(key, Vec::new(), read_cookie);
    let (own, peers) = (session("session"), session("peer_session"));
    let (cookie, peer_cookie) = (cookie("cookie"), cookie("peer_cookie"));
    let encapsulation = map.with_default("encapsulation", Encapsulation::Esp, |node| {
        let known = [("esp", Encapsulation::Esp), ("udp", Encapsulation::Udp)];
        let encapsulation = node.one_of("encapsulation", &known)?;
        if encapsulation == Encapsulation::Udp && consent.insecure == Ok(false) {
            return Err(node.mistake(
                "L2TPv3 over UDP alone neither encrypts nor authenticates",
                "write `insecure: true` if that is intended",
            ));
        }
        Ok(encapsulation)
    });
    Ok(Pseudowire {
        session: own?,
        peer_session: peers?,
        cookie: cookie?,
        peer_cookie: peer_cookie?,
        encapsulation: encapsulation?,
    })
}

/// 4 or 8 bytes (RFC 3931 §4.1), in hexadecimal; or `none`.
fn read_cookie(node: Node<'_>) -> Result<Vec<u8>, Reported> {
    let cookie = node.word_or("none", |node| {
        let text = node.text()?;
        match text.len() {
            8 => node.hex(4),
            16 => node.hex(8),
            digits => Err(node.mistake(
                format!("a cookie of {digits} hexadecimal digits is not valid in L2TPv3"),
                "write 8 or 16 digits, in quotes: a cookie has 4 or 8 bytes",
            )),
        }
    })?;
    Ok(cookie.unwrap_or_default())
}
