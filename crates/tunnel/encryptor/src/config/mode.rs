//! The clear side: `mode`, `tunnel`, `interface`, `l2tpv3`.

use super::declared::{INTERFACE_NAME_BYTES_MAX, L2TPV3, TUNNEL};
use super::types::{Encapsulation, Kind, Mode, Pseudowire, Tunnel};
use super::values::{self, Consent};
use units::Bytes;
use yaml::{Map, Node, Reported};

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
                .and_then(|node| node.keys(L2TPV3, |map| read_pseudowire(map, consent)));
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
    match node {
        Some(node) => node.keys(TUNNEL, |map| {
            let tunnel = tunnel(map);
            *routes = map.optional("routes");
            tunnel
        }),
        None => Ok(yaml::defaults(TUNNEL, tunnel)),
    }
}

fn tunnel(map: &Map<'_>) -> Result<Tunnel, Reported> {
    let name = map.get("name");
    let mtu = map.get::<Option<Bytes>>("mtu");
    let queue_length = map.get("queue_length");
    let address = map
        .optional("address")
        .map(values::interface_address)
        .transpose();
    Ok(Tunnel {
        name: name?,
        mtu: mtu?.map(|size| size.get() as u16),
        queue_length: queue_length?,
        address: address?,
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
    let (own, peers) = (map.get("session"), map.get("peer_session"));
    let cookie = |key| map.read(key, read_cookie);
    let (cookie, peer_cookie) = (cookie("cookie"), cookie("peer_cookie"));
    let encapsulation = map.read("encapsulation", |node| {
        let encapsulation = node.one_of("encapsulation", &Encapsulation::NAMES)?;
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
