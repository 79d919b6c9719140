//! The spec that the options describe.

use crate::cli::{IkePeers, Peers, PeersLoad};
use crate::exit::{Exit, Failure};
use ::ike_peers::{
    Authentication, Behaviour, Hidden, Load, Pem, Ppk, Rekeyed, Selectors, Sources, Spec,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;
use yaml::Prefix;

const FILE_BYTES_MAX: usize = 1 << 20;
/// IKE's two ports (RFC 7296 section 2).
const PORT: u16 = 500;
const NAT_PORT: u16 = 4500;
/// Time until a request is sent again for the first time; it doubles with each.
const REPEAT_FIRST: Duration = Duration::from_millis(500);
const REPEATS_MAX: u32 = 12;
/// The private key in the folder that `keys authority` makes.
const AUTHORITY_KEY: &str = "ca.key";

pub(super) fn spec(arguments: &IkePeers) -> Result<Spec, Failure> {
    let given = &arguments.peers;
    let (Some(gateway), Some(auth)) = (arguments.gateway, &given.auth) else {
        return Err(wrong("GATEWAY or `--auth` is missing", "see `--help`"));
    };
    let (remote_first, remote_last) = network("--remote", &given.remote)?;
    Ok(Spec {
        gateway,
        port: given.port,
        nat_port: given.nat_port,
        peers: given.number,
        sources: sources(gateway, given)?,
        identity: given.identity.clone(),
        gateway_identity: given.gateway_identity.clone(),
        authentication: authentication(auth, given.trusted.as_deref())?,
        proposal: given.proposal.clone(),
        ppk: given.ppk.as_deref().map(|it| ppk(it, given)).transpose()?,
        selectors: Selectors {
            local: given.local,
            remote_first,
            remote_last,
        },
        behaviour: Behaviour {
            repeat_first_ns: nanos(REPEAT_FIRST),
            repetitions: repetitions(given.patience),
            childless: given.childless,
            patience_ns: nanos(given.patience),
            ..Behaviour::default()
        },
        load: load(given),
        delete_per_s: (!given.keep).then_some(given.rate),
    })
}

/// Repetitions that are over within this time.
fn repetitions(patience: Duration) -> u32 {
    // After the last one the response has twice its pause.
    let mut total = REPEAT_FIRST;
    let mut count = 0;
    // The exponent is 12 at most, so the power fits in 32 bits.
    while count < REPEATS_MAX && total + REPEAT_FIRST * 2u32.pow(count + 1) <= patience {
        count += 1;
        total += REPEAT_FIRST * 2u32.pow(count);
    }
    count
}

fn load(given: &Peers) -> Load {
    let (per_s, duration_ns) = (given.rate, nanos(given.duration));
    let rekey = |what| Load::Rekey {
        per_s,
        window_ns: duration_ns,
        what,
    };
    match given.load {
        PeersLoad::Setup => Load::Setup { per_s },
        PeersLoad::Concurrent => Load::Concurrent {
            per_s,
            hold_ns: duration_ns,
        },
        PeersLoad::Storm => Load::Storm { after_per_s: None },
        PeersLoad::Churn => Load::Churn {
            per_s,
            duration_ns,
            lifetime_ns: nanos(given.lifetime),
        },
        PeersLoad::HalfOpen => Load::HalfOpen { per_s, duration_ns },
        PeersLoad::RekeyIke => rekey(Rekeyed::Ike),
        PeersLoad::RekeyChild => rekey(Rekeyed::Child),
    }
}

fn authentication(text: &str, trusted: Option<&Path>) -> Result<Authentication, Failure> {
    match text.split_once(':') {
        Some(("psk", path)) => {
            let key = secret(path.as_ref())?;
            Ok(Authentication::SharedKey(key))
        }
        Some(("certificates", folder)) => {
            let folder = Path::new(folder);
            let certificate = read(&folder.join(pki::AUTHORITY_CERTIFICATE))?;
            // The gateway may have its certificate from another authority than the peers.
            let trusted = trusted.map_or_else(|| Ok(certificate.clone()), read)?;
            let key = read(&folder.join(AUTHORITY_KEY))?;
            Ok(Authentication::Certificates {
                authority: Pem {
                    certificate,
                    key: Hidden(key),
                },
                trusted,
            })
        }
        _ => Err(wrong(
            &format!("`--auth {text}` is no method"),
            "write `psk:FILE`, or `certificates:DIR` with the folder of `cipherbench keys authority`",
        )),
    }
}

fn ppk(text: &str, given: &Peers) -> Result<Ppk, Failure> {
    let help = "write `IDENTITY:FILE`, with the key as text in the file";
    let (identity, path) = text
        .split_once(':')
        .ok_or_else(|| wrong(&format!("`--ppk {text}` has no file"), help))?;
    Ok(Ppk {
        identity: identity.to_owned(),
        key: secret(path.as_ref())?,
        required: given.ppk_required,
    })
}

/// A key as text, without the end of its line.
fn secret(path: &Path) -> Result<Hidden, Failure> {
    let key = read(path)?;
    // Blanks stay: only the end of the line comes from the editor.
    Ok(Hidden(key.trim_end_matches(['\n', '\r']).to_owned()))
}

fn read(path: &Path) -> Result<String, Failure> {
    guard::read_text(path, FILE_BYTES_MAX).map_err(|error| {
        let text = format!("cannot read {}: {error}", path.display());
        Failure::new(Exit::Usage, text)
    })
}

fn sources(gateway: IpAddr, given: &Peers) -> Result<Sources, Failure> {
    if let Some(from) = given.from.as_ref().filter(|it| it.contains('/')) {
        let (first, last) = network("--from", from)?;
        return Ok(Sources::Addresses {
            first,
            count: count(first, last),
            port: PORT,
            nat_port: NAT_PORT,
        });
    }
    // With one address peers differ by port, as behind a NAT. A gateway must accept requests from
    // any port (RFC 7296 §2.11).
    let address = match &given.from {
        Some(from) => from.parse().map_err(|_| not_a_network("--from", from))?,
        None => own_address(gateway)?,
    };
    let ports = given.ports.split_once('-').and_then(|(first, last)| {
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        Some((first, last.checked_sub(first)?.saturating_add(1)))
    });
    let Some((first, count)) = ports else {
        return Err(wrong(
            &format!("`--ports {}` is no range", given.ports),
            "write the first and the last, such as `10000-65535`",
        ));
    };
    Ok(Sources::Ports {
        address,
        addresses: 1,
        first,
        count,
    })
}

/// The address from which this host reaches another one.
fn own_address(gateway: IpAddr) -> Result<IpAddr, Failure> {
    let any: IpAddr = match gateway {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // `connect` of UDP sends nothing: the kernel only chooses the route, and with it the source.
    let address = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((gateway, PORT))?;
        socket.local_addr()
    });
    address.map(|it| it.ip()).map_err(|error| {
        let text = format!("no route to {gateway}: {error}\nhelp: see `ip route get {gateway}`");
        Failure::new(Exit::CannotBuild, text)
    })
}

/// The first and the last address of a network.
fn network(option: &str, text: &str) -> Result<(IpAddr, IpAddr), Failure> {
    let prefix = text.split_once('/').and_then(|(address, length)| {
        // Host bits may be set: it is the network that contains the address.
        Prefix::around(address.parse().ok()?, length.parse().ok()?)
    });
    let prefix = prefix.ok_or_else(|| not_a_network(option, text))?;
    Ok((prefix.address(), prefix.last()))
}

/// The number of addresses from one to another, up to what a spec can have.
fn count(first: IpAddr, last: IpAddr) -> u32 {
    // Both are from one network, so the last is not below the first.
    let between = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => u128::from(last.to_bits() - first.to_bits()),
        (IpAddr::V6(first), IpAddr::V6(last)) => last.to_bits() - first.to_bits(),
        _ => 0,
    };
    u32::try_from(between.saturating_add(1)).unwrap_or(u32::MAX)
}

fn not_a_network(option: &str, text: &str) -> Failure {
    wrong(
        &format!("`{option} {text}` is no network"),
        "write an address with a prefix, such as `10.9.0.0/16`",
    )
}

fn wrong(problem: &str, help: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{problem}\nhelp: {help}"))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let range = network("--from", text);
        range.map_or_else(
            |failure| failure.to_string(),
            |(first, last)| format!("{first} {last} {}", count(first, last)),
        )
    }

    #[test]
    fn a_network_has_its_first_and_last_address() {
        assert_eq!(of("10.9.1.0/16"), "10.9.0.0 10.9.255.255 65536");
        assert_eq!(of("192.0.2.1/32"), "192.0.2.1 192.0.2.1 1");
        assert_eq!(of("0.0.0.0/0"), "0.0.0.0 255.255.255.255 4294967295");
        assert_eq!(of("2001:db8::/120"), "2001:db8:: 2001:db8::ff 256");
        for text in ["10.9.0.0/33", "10.9.0.0", "2001:db8::/129", "a/8"] {
            assert!(of(text).contains("is no network"), "{text}");
        }
    }

    #[test]
    fn requests_are_repeated_within_the_patience() {
        // After 0.5, 1, 2, 4 and 8 s: 15.5 s are too long.
        assert_eq!(repetitions(Duration::from_secs(15)), 3);
        assert_eq!(repetitions(Duration::from_secs(16)), 4);
        assert_eq!(repetitions(Duration::from_millis(400)), 0);
    }
}
