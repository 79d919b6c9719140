//! The configuration file of `cipherbench encrypt`; `docs/encryptor.md` has the reference.

use engine::Choice;
use esp::WindowSize;
use port::{TunOffloads, UdpOffloads};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use units::Bytes;
use wire::Suite;
use yaml::{Map, Mistakes, Node, Prefix, Reported};

/// Most lanes in one encryptor; an SPI has room for 4096.
const WORKERS_MAX: u16 = 256;
/// The kernel's default of 500 loses small packets at the rates that one lane carries.
const QUEUE_LENGTH_DEFAULT: u32 = 5000;
/// ESP in UDP (RFC 3948 §2).
const PORT_DEFAULT: u16 = 4500;
/// Every IPv4 host takes packets of this length (RFC 791).
pub(crate) const MTU_MIN: u16 = 576;
const MTU_MAX: u16 = 65_535;

/// Everything that the encryptor is told, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Own address on the cipher side.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// UDP port of lane 0, here and there; lane *i* has `port + i`.
    pub port: u16,
    /// ESP suite.
    pub suite: Suite,
    /// Lanes, each a thread; both sides must have the same number.
    pub workers: u16,
    /// Crypto engine.
    pub engine: Choice,
    /// Static key file.
    pub keys: PathBuf,
    /// Sequence numbers that may arrive late, per lane.
    pub replay_window: WindowSize,
    /// The interface on the clear side.
    pub tunnel: Tunnel,
    /// Where counters are served to Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Offloads to use where they work.
    pub offloads: Offloads,
}

/// The interface on the clear side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// Its IP MTU in bytes; `None`: as large as the route to the peer allows.
    pub mtu: Option<u16>,
    /// Packets that may wait to be sealed.
    pub queue_length: u32,
    /// Its own address, if it is to have one.
    pub address: Option<InterfaceAddress>,
    /// Networks behind the peer: routed into the tunnel, and the only sources taken from it.
    pub routes: Vec<Prefix>,
}

/// An interface's address with the length of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// The network that it is in.
    pub network: Prefix,
}

impl std::fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.network.length())
    }
}

/// Offloads that may be used; each is still proven before use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Super-packets on the clear side.
    pub tun: TunOffloads,
    /// Trains on the cipher side.
    pub udp: UdpOffloads,
}

impl Config {
    /// Reads and checks a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// All mistakes of the file, each with its place.
    pub fn load(path: &Path) -> Result<Self, Mistakes> {
        let folder = path.parent().unwrap_or(Path::new(""));
        yaml::load(path)?.decode(|root| root.map(|map| read(map, folder)))
    }

    /// Checks a configuration that is at hand as text, `file` being its name in messages.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_text(file: &str, text: &str) -> Result<Self, Mistakes> {
        yaml::parse(file, text)?.decode(|root| root.map(|map| read(map, Path::new(""))))
    }
}

fn read(map: &Map<'_>, folder: &Path) -> Result<Config, Reported> {
    let suites = Suite::ALL.map(|suite| (suite.name(), suite));
    let local = map.required("local").and_then(Node::ip);
    let remote = map
        .required("remote")
        .and_then(|node| read_remote(node, local));
    let workers = map.with_default("workers", 1, |node| node.integer(1..=WORKERS_MAX));
    let port = map.with_default("port", PORT_DEFAULT, |node| read_port(node, workers));
    let suite = map.with_default("suite", Suite::Aes256Gcm, |node| {
        node.one_of("suite", &suites)
    });
    let insecure = map.with_default("insecure", false, Node::bool);
    let engine = map.with_default("engine", Choice::Auto, |node| read_engine(node, insecure));
    let keys = map
        .required("keys")
        .and_then(|node| node.map(|keys| keys.required("static").and_then(Node::path)));
    let window = map.with_default("replay_window", WindowSize::DEFAULT, read_window);
    let metrics = map
        .optional("metrics")
        .map(Node::socket_address)
        .transpose();
    let offloads = map.with_default("offloads", Offloads::ALL, read_offloads);
    let tunnel = map
        .required("tunnel")
        .and_then(|node| node.map(|tunnel| read_tunnel(tunnel, remote)));
    Ok(Config {
        local: local?,
        remote: remote?,
        port: port?,
        suite: suite?,
        workers: workers?,
        engine: engine?,
        keys: folder.join(keys?),
        replay_window: window?,
        tunnel: tunnel?,
        metrics: metrics?,
        offloads: offloads?,
    })
}

fn read_remote(node: Node<'_>, local: Result<IpAddr, Reported>) -> Result<IpAddr, Reported> {
    let remote = node.ip()?;
    match local {
        Ok(local) if local.is_ipv4() != remote.is_ipv4() => Err(node.mistake(
            format!("`remote` {remote} and `local` {local} are of two address families"),
            "both must be IPv4, or both IPv6",
        )),
        Ok(local) if local == remote => Err(node.mistake(
            format!("`remote` {remote} is `local` itself"),
            "`remote` is the other gateway's address",
        )),
        _ => Ok(remote),
    }
}

fn read_port(node: Node<'_>, workers: Result<u16, Reported>) -> Result<u16, Reported> {
    let port = node.port()?;
    let lanes = workers.unwrap_or(1);
    if port.checked_add(lanes - 1).is_some() {
        return Ok(port);
    }
    Err(node.mistake(
        format!("port {port} leaves no ports for {lanes} lanes"),
        format!(
            "lane i uses port + i: take at most {}",
            u16::MAX - (lanes - 1)
        ),
    ))
}

fn read_engine(node: Node<'_>, insecure: Result<bool, Reported>) -> Result<Choice, Reported> {
    let names = engine::engines().iter().map(|engine| engine.name);
    let known: Vec<_> = std::iter::once("auto")
        .chain(names)
        .chain([engine::NULL])
        .map(|name| (name, name))
        .collect();
    match node.one_of("engine", &known)? {
        "auto" => Ok(Choice::Auto),
        engine::NULL if insecure == Ok(false) => Err(node.mistake(
            "the engine `null` neither encrypts nor authenticates",
            "it is a control for measurements: write `insecure: true` if that is meant",
        )),
        name => Ok(Choice::Named(name.to_owned())),
    }
}

fn read_window(node: Node<'_>) -> Result<WindowSize, Reported> {
    let packets = node.integer(WindowSize::MIN.packets()..=WindowSize::MAX.packets())?;
    WindowSize::new(packets).ok_or_else(|| {
        let larger = packets.next_power_of_two();
        node.mistake(
            format!("a window of {packets} packets is not a power of two"),
            format!("write {larger}"),
        )
    })
}

fn read_tunnel(map: &Map<'_>, remote: Result<IpAddr, Reported>) -> Result<Tunnel, Reported> {
    let name = map.with_default("name", "cb0", |node| node.identifier(1..=15));
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
        .map(read_interface_address)
        .transpose();
    let routes = map
        .required("routes")
        .and_then(|node| node.one_or_many(|node| read_route(node, remote)));
    Ok(Tunnel {
        name: name?.to_owned(),
        mtu: mtu?,
        queue_length: queue_length?,
        address: address?,
        routes: routes?,
    })
}

fn read_route(node: Node<'_>, remote: Result<IpAddr, Reported>) -> Result<Prefix, Reported> {
    let route = node.prefix()?;
    match remote {
        Ok(remote) if route.contains(remote) => Err(node.mistake(
            format!("the route {route} leads the tunnel's own packets to {remote} into the tunnel"),
            "leave `remote` out of it: `cipherbench` does not route around its own packets",
        )),
        _ => Ok(route),
    }
}

fn read_interface_address(node: Node<'_>) -> Result<InterfaceAddress, Reported> {
    let text = node.text()?;
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let network = Prefix::around(address, length.parse().ok()?)?;
        Some(InterfaceAddress { address, network })
    });
    parsed.ok_or_else(|| {
        node.mistake(
            format!("`{text}` is not an interface's address"),
            "write the address and the length of its network, for example `10.9.0.1/24`",
        )
    })
}

impl Offloads {
    /// All that work.
    pub const ALL: Self = Self {
        tun: TunOffloads {
            tso: true,
            uso: true,
        },
        udp: UdpOffloads {
            gso: true,
            gro: true,
        },
    };
}

/// A switch for each; what is not named is on.
fn read_offloads(node: Node<'_>) -> Result<Offloads, Reported> {
    node.map(|map| {
        let switch = |name| map.with_default(name, true, Node::bool);
        let (tso, uso, gso, gro) = (switch("tso"), switch("uso"), switch("gso"), switch("gro"));
        Ok(Offloads {
            tun: TunOffloads {
                tso: tso?,
                uso: uso?,
            },
            udp: UdpOffloads {
                gso: gso?,
                gro: gro?,
            },
        })
    })
}
