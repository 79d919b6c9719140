//! Other people's tunnels: strongSwan, OpenVPN and the kernel's with their settings, each an axis. WireGuard's programs have
//! none.

use super::encryptor::suite;
use super::{DUTS_MAX, Listed, listed, name};
use crate::axis::axis;
use crate::expand::product;
use crate::plan::{
    Adapter, DataPath, IkeAuth, L2tpEncapsulation, L2tpv3, OpenVpn, StrongSwan, Xfrm,
};
use wire::Suite;
use yaml::{Map, Node, Reported};

const DATA_PATHS: [(&str, DataPath); 2] = [
    (DataPath::Libipsec.name(), DataPath::Libipsec),
    (DataPath::Kernel.name(), DataPath::Kernel),
];

const AUTHS: [(&str, IkeAuth); 2] = [
    (IkeAuth::Psk.name(), IkeAuth::Psk),
    (IkeAuth::Certificates.name(), IkeAuth::Certificates),
];

/// Settings that vary are added to the name, in this order: data path, suite, authentication, PPK, ML-KEM,
/// tunnels.
pub(super) fn strongswan(map: &Map<'_>) -> Result<Vec<Listed>, Reported> {
    let name = name(map, "strongswan");
    let legacy = map.with_default("legacy", false, Node::bool);
    let insecure = map.with_default("insecure", false, Node::bool);
    let data_path = axis(map, "data_path", DataPath::Libipsec, |node| {
        node.one_of("data path", &DATA_PATHS)
    });
    let suite = axis(map, "suite", Suite::Aes256Gcm, |node| {
        common(node, &legacy, &insecure)
    });
    let auth = axis(map, "auth", IkeAuth::Psk, |node| {
        node.one_of("authentication", &AUTHS)
    });
    let ppk = axis(map, "ppk", false, Node::bool);
    let ml_kem = axis(map, "ml_kem", false, Node::bool);
    let tunnels = axis(map, "tunnels", 1, |node| {
        node.integer(1..=StrongSwan::TUNNELS_MAX)
    });
    let name = name?;
    let (data_path, suite, auth) = (data_path.all()?, suite.all()?, auth.all()?);
    let (ppk, ml_kem, tunnels) = (ppk.all()?, ml_kem.all()?, tunnels.all()?);
    legacy?;
    insecure?;
    let combinations = product([
        data_path.len(),
        suite.len(),
        auth.len(),
        ppk.len(),
        ml_kem.len(),
        tunnels.len(),
    ]);
    // One more than there may be is enough to tell.
    let duts = combinations.take(DUTS_MAX + 1).map(|at| {
        let tunnel = StrongSwan {
            data_path: data_path[at[0]].value,
            suite: suite[at[1]].value,
            auth: auth[at[2]].value,
            ppk: ppk[at[3]].value,
            ml_kem: ml_kem[at[4]].value,
            tunnels: tunnels[at[5]].value,
        };
        let count = format!("t{}", tunnel.tunnels);
        let words = [
            (data_path.len() > 1, tunnel.data_path.name()),
            (suite.len() > 1, tunnel.suite.name()),
            (auth.len() > 1, tunnel.auth.name()),
            (ppk.len() > 1 && tunnel.ppk, "ppk"),
            (ml_kem.len() > 1 && tunnel.ml_kem, "ml-kem"),
            (tunnels.len() > 1, &count),
        ];
        listed(
            map,
            &name,
            with_suffix(&name, words),
            Adapter::StrongSwan(tunnel),
        )
    });
    Ok(duts.collect())
}

/// A suite that varies is added to the name.
pub(super) fn openvpn(map: &Map<'_>) -> Result<Vec<Listed>, Reported> {
    let name = name(map, "openvpn");
    let suites = axis(map, "suite", Suite::Aes256Gcm, aead);
    let (name, suites) = (name?, suites.all()?);
    let duts = suites.iter().map(|suite| {
        let words = [(suites.len() > 1, suite.value.name())];
        let adapter = Adapter::OpenVpn(OpenVpn { suite: suite.value });
        listed(map, &name, with_suffix(&name, words), adapter)
    });
    Ok(duts.collect())
}

/// A suite that varies is added to the name.
pub(super) fn xfrm(map: &Map<'_>) -> Result<Vec<Listed>, Reported> {
    let name = name(map, "xfrm");
    let legacy = map.with_default("legacy", false, Node::bool);
    let insecure = map.with_default("insecure", false, Node::bool);
    let suites = axis(map, "suite", Suite::Aes256Gcm, |node| {
        common(node, &legacy, &insecure)
    });
    let (name, suites) = (name?, suites.all()?);
    legacy?;
    insecure?;
    let duts = suites.iter().map(|suite| {
        let words = [(suites.len() > 1, suite.value.name())];
        let adapter = Adapter::Xfrm(Xfrm { suite: suite.value });
        listed(map, &name, with_suffix(&name, words), adapter)
    });
    Ok(duts.collect())
}

/// An encapsulation that varies is added to the name.
pub(super) fn l2tpv3(map: &Map<'_>) -> Result<Vec<Listed>, Reported> {
    const KNOWN: [(&str, L2tpEncapsulation); 2] = [
        (L2tpEncapsulation::Udp.name(), L2tpEncapsulation::Udp),
        (L2tpEncapsulation::Ip.name(), L2tpEncapsulation::Ip),
    ];
    let name = name(map, "l2tpv3");
    let encapsulations = axis(map, "encapsulation", L2tpEncapsulation::Udp, |node| {
        node.one_of("encapsulation", &KNOWN)
    });
    let (name, encapsulations) = (name?, encapsulations.all()?);
    let duts = encapsulations.iter().map(|encapsulation| {
        let encapsulation = encapsulation.value;
        let words = [(encapsulations.len() > 1, encapsulation.name())];
        let adapter = Adapter::L2tpv3(L2tpv3 { encapsulation });
        listed(map, &name, with_suffix(&name, words), adapter)
    });
    Ok(duts.collect())
}

/// A suite that not only our encryptor has.
fn common(
    node: Node<'_>,
    legacy: &Result<bool, Reported>,
    insecure: &Result<bool, Reported>,
) -> Result<Suite, Reported> {
    let ours = Suite::from_name(node.text()?).filter(|suite| !Suite::COMMON.contains(suite));
    if let Some(ours) = ours {
        let what = format!("neither strongSwan nor the kernel has `{ours}`");
        return Err(node.mistake(what, "to measure it use `cipherbench`"));
    }
    suite(node, &Suite::COMMON, legacy, insecure)
}

/// One of the suites that OpenVPN's data channel has a packet format for: that of AEADs. Its other ciphers
/// it has taken for obsolete since 2.5.
fn aead(node: Node<'_>) -> Result<Suite, Reported> {
    let aeads = Suite::AEADS.map(|suite| (suite.name(), suite));
    let known = Suite::from_name(node.text()?);
    let Some(other) = known.filter(|suite| !Suite::AEADS.contains(suite)) else {
        return node.one_of("suite", &aeads);
    };
    let names: Vec<_> = aeads.iter().map(|(name, _)| format!("`{name}`")).collect();
    let help = format!(
        "write one of {}; to measure `{other}` use {}`cipherbench`",
        names.join(", "),
        if Suite::COMMON.contains(&other) {
            "`strongswan` or "
        } else {
            ""
        }
    );
    let what = format!("`{other}` is no AEAD, and OpenVPN is measured with those alone");
    Err(node.mistake(what, help))
}

/// The name with what varies; of switches, those that are on.
pub(super) fn with_suffix<const N: usize>(name: &str, words: [(bool, &str); N]) -> String {
    let varying = words.into_iter().filter(|(varies, _)| *varies);
    let suffix: String = varying.map(|(_, word)| format!(" {word}")).collect();
    format!("{name}{suffix}")
}
