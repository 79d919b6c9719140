//! Peers: the short form of one at the top of the file, or a list under `peers`.

use super::context::{Context, Entry};
use super::declared::PEER;
use super::types::{KeySource, Kind, Peer};
use super::{keys, overlap, selectors, values};
use crate::policy::Selectors;
use keying::LANES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use yaml::{Map, Node, Reported};

/// Reads `peers`, or the one peer of the short form.
pub(super) fn read<'d>(map: &Map<'d>, context: &Context<'_, 'd>) -> Result<Vec<Peer>, Reported> {
    let entries = match map.optional("peers") {
        Some(list) => {
            // The result is used after the list was read, so that the mistakes of both are
            // reported.
            let strays = refuse_short_form(map, context);
            let entries = read_list(list, context);
            strays?;
            entries?
        }
        None => vec![read_single(map, context)?],
    };
    overlap::check(&entries)?;
    check_ike(&entries)?;
    Ok(entries.into_iter().map(|entry| entry.peer).collect())
}

/// First messages of IKE belong to the peer with their sender's address.
fn check_ike(entries: &[Entry<'_>]) -> Result<(), Reported> {
    let mut taken = BTreeSet::new();
    let has_ike = |entry: &&Entry<'_>| matches!(entry.peer.keys, Some(KeySource::Ike(_)));
    let mut entries = entries.iter().filter(has_ike);
    match entries.find(|entry| !taken.insert(entry.peer.remote.ip())) {
        None => Ok(()),
        Some(entry) => Err(entry.node.mistake(
            format!(
                "two tunnels with IKE have the peer {}",
                entry.peer.remote.ip()
            ),
            "list all networks behind it in `routes` of one",
        )),
    }
}

/// Reads the single peer given by `remote`, `keys` and `tunnel.routes`.
fn read_single<'d>(map: &Map<'d>, context: &Context<'_, 'd>) -> Result<Entry<'d>, Reported> {
    let remote = map
        .required("remote")
        .and_then(|node| read_remote(node, context));
    let keys = keys::read(map, context, context.port);
    let (mut networks, mut routes) = (Vec::new(), Vec::new());
    if context.kind == Ok(Kind::L3) {
        let node = match context.routes {
            Some(routes) => Ok(routes),
            None => map.required("tunnel").and_then(|tunnel| {
                // A value that is not a map has been reported already.
                Err(tunnel.mistake("`tunnel` has no key `routes`", "it is required"))
            }),
        };
        networks = node.and_then(|node| {
            node.one_or_many(|node| {
                routes.push(node);
                node.prefix()
            })
        })?;
    }
    // The kernel routes the address's network into the interface, so its packets must belong to the
    // one tunnel.
    if let Some(own) = context.address
        && let Some(first) = routes.first().copied()
        && !networks.contains(&own.network)
    {
        networks.push(own.network);
        routes.push(first);
    }
    Ok(Entry {
        peer: Peer {
            id: 0,
            remote: SocketAddr::new(remote?, context.port?),
            keys: keys?,
            selectors: Selectors::to(networks),
        },
        node: map.node(),
        routes,
    })
}

/// The keys of the short form are mistakes if `peers` is given.
fn refuse_short_form(map: &Map<'_>, context: &Context<'_, '_>) -> Result<(), Reported> {
    let strays = [
        ("remote", map.optional("remote")),
        ("keys", map.optional("keys")),
        ("tunnel.routes", context.routes),
    ];
    let reported = strays.into_iter().filter_map(|(key, node)| {
        let key = key.rsplit('.').next().unwrap_or(key);
        Some(node?.mistake(
            format!("`{key}` and `peers` are both given"),
            format!(
                "it is the short form for a single peer: move it into that peer's entry of `peers`, as `{key}`"
            ),
        ))
    });
    // `last` evaluates, and so reports, every mistake.
    reported.last().map_or(Ok(()), Err)
}

fn read_list<'d>(list: Node<'d>, context: &Context<'_, 'd>) -> Result<Vec<Entry<'d>>, Reported> {
    let mut place = 0;
    let entries = list.list(|node| {
        let entry = node.keys(PEER, |map| read_entry(map, place, context));
        place += 1;
        entry
    })?;
    if entries.is_empty() {
        return Err(list.mistake("there is no peer", "give at least one"));
    }
    if context.kind != Ok(Kind::L3) && entries.len() > 1 {
        return Err(list.mistake(
            format!("{} peers share one interface's frames", entries.len()),
            "a bump in the wire has one peer: keep one, or write `mode: l3`",
        ));
    }
    let mut taken = BTreeMap::new();
    let mut result = Ok(());
    for entry in &entries {
        // The SPIs of the two tunnels would be equal.
        if let Some(first) = taken.insert(entry.peer.id, entry.node) {
            result = Err(entry.node.mistake(
                format!("two tunnels have the number {}", entry.peer.id),
                format!(
                    "the other is at {}: give each an `id` of its own",
                    first.place()
                ),
            ));
        }
    }
    result.map(|()| entries)
}

fn read_entry<'d>(
    map: &Map<'d>,
    place: usize,
    context: &Context<'_, 'd>,
) -> Result<Entry<'d>, Reported> {
    let id = map.find_with("id", |node, id| fits(node, id, context));
    let id = id.and_then(|id| id.map_or_else(|| fits(map.node(), place, context), Ok));
    let remote = map
        .required("remote")
        .and_then(|node| read_remote(node, context));
    let port = map.find_with("port", |node, port| {
        values::port(node, port, context.workers)
    });
    let port = port.and_then(|port| port.map_or(context.port, Ok));
    let keys = keys::read(map, context, port);
    let mut routes = Vec::new();
    let selectors = if context.kind == Ok(Kind::L3) {
        selectors::read(map, |node| {
            routes.push(node);
            node.prefix()
        })
    } else {
        Ok(Selectors::to(Vec::new()))
    };
    Ok(Entry {
        peer: Peer {
            id: id?,
            remote: SocketAddr::new(remote?, port?),
            keys: keys?,
            selectors: selectors?,
        },
        node: map.node(),
        routes,
    })
}

/// Checks that the SPIs of all lanes have room for a tunnel number.
fn fits(node: Node<'_>, id: usize, context: &Context<'_, '_>) -> Result<u16, Reported> {
    // A count that could not be read has been reported itself.
    let workers = context.workers.unwrap_or(1);
    let tunnels = LANES_MAX / workers;
    match u16::try_from(id) {
        Ok(id) if id < tunnels => Ok(id),
        _ => Err(node.mistake(
            format!("there is no room for a tunnel with the number {id}"),
            format!(
                "an SPI distinguishes {LANES_MAX} pairs of tunnel and worker: {LANES_MAX} / {workers} = {tunnels} tunnels, \
                 numbered from 0 to {}",
                tunnels - 1
            ),
        )),
    }
}

fn read_remote(node: Node<'_>, context: &Context<'_, '_>) -> Result<IpAddr, Reported> {
    let remote = node.ip()?;
    match context.local {
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
