//! Independent clients of ETSI GS QKD 014, run against the simulator: `etsi-qkd-014-client` of the
//! Sorbonne and `qkdsec`, which has probes of a KME's conformance. Both are on PyPI;
//! `scripts/peers.sh` installs them.

use crate::kme::lab::Lab;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A Python with both packages.
fn python() -> Option<PathBuf> {
    let peers = std::env::var_os("PEERS").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".cache/cipherbench-peers"))
    });
    let python = peers.map(|peers| peers.join("qkd014/bin/python"));
    let has_both = |python: &PathBuf| {
        let probe = Command::new(python)
            .args(["-c", "import etsi_qkd_014_client, qkdsec.doctor"])
            .output();
        probe.is_ok_and(|output| output.status.success())
    };
    let found = python.filter(has_both);
    if found.is_none() {
        testing::lacks(
            "independent clients of a KME",
            "etsi-qkd-014-client and qkdsec",
            "scripts/peers.sh",
        );
    }
    found
}

/// Runs a script with the KMEs' addresses as arguments, and reads what it prints.
fn run(lab: &Lab, script: &str) -> Option<Value> {
    let addresses = lab
        .simulator()
        .kmes()
        .iter()
        .map(|(_, address)| address.to_string());
    let output = Command::new(python()?)
        .current_dir(lab.folder())
        .env("NO_PROXY", "*")
        .args(["-c", script])
        .args(addresses)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}")))
}

#[test]
fn the_client_of_the_sorbonne_shares_keys() {
    let lab = Lab::new("{}");
    let script = r#"
import json, sys
from etsi_qkd_014_client import QKD014Client

master, slave = (
    QKD014Client(address, f"{sae}.pem", f"{sae}.key", "ca.pem")
    for address, sae in zip(sys.argv[1:], ("gw1", "gw2"))
)
code, status = master.get_status("gw2")
assert code == 200, code
done = {"source": status.source_kme_id, "target": status.target_kme_id, "size": status.key_size}

def shared(**request):
    code, sent = master.get_key("gw2", **request)
    assert code == 200, sent
    ids = [key.key_id for key in sent.keys]
    code, found = slave.get_key_with_key_IDs("gw1", ids)
    assert code == 200, found
    pairs = lambda container: [(key.key_id, key.key) for key in container.keys]
    assert pairs(sent) == pairs(found)
    code, error = slave.get_key_with_key_IDs("gw1", ids)
    assert code == 400, code
    return len(ids), error.message

done["plain"] = shared()
done["many"] = shared(number=5, size=512)
done["options"] = shared(
    additional_slave_sae_ids=["gw3"], extension_optional=[{"abc_max_age": 30000}]
)
code, error = master.get_key("gw2", size=100)
done["size_refused"] = code, error.message
code, error = master.get_key("gw2", extension_mandatory=[{"abc_route_type": "direct"}])
done["extension_refused"] = code, error.message, error.details
print(json.dumps(done))
"#;
    let Some(done) = run(&lab, script) else {
        return;
    };
    let gone = "one or more keys specified are not found on KME";
    let expected = serde_json::json!({
        "source": "kme-a", "target": "kme-b", "size": 256,
        "plain": [1, gone], "many": [5, gone], "options": [1, gone],
        "size_refused": [400, "size shall be a multiple of 8"],
        "extension_refused": [
            400,
            "not all extension_mandatory parameters are supported",
            [{"extension_mandatory_unsupported": "abc_route_type is not supported"}],
        ],
    });
    assert_eq!(done, expected);
}

/// All probes of `qkdsec doctor` pass except one, which warns: it expects 404 for a missing key,
/// where the standard requires 400 (clause 5.4, table 8).
#[test]
fn the_probes_of_qkdsec_pass() {
    let lab = Lab::new("{}");
    let script = r#"
import json, sys
from qkdsec.client import ETSI014Client
from qkdsec.doctor.probes import run_all

# The probes use one certificate for both sides of a key: the SAE asks for keys for itself.
client = ETSI014Client(
    f"https://{sys.argv[1]}", client_cert=("gw1.pem", "gw1.key"), verify="ca.pem"
)
print(json.dumps(run_all(client, "gw1").to_dict()))
"#;
    let Some(report) = run(&lab, script) else {
        return;
    };
    let results = report["results"].as_array().unwrap();
    assert!(results.len() >= 10, "{report:#}");
    for result in results {
        let expected = match result["name"].as_str().unwrap() {
            "error_contract_404" => "warn",
            _ => "pass",
        };
        assert_eq!(result["status"], expected, "{result:#}");
    }
    let warned = results.iter().find(|result| result["status"] == "warn");
    assert_eq!(warned.unwrap()["details"]["http_status"], 400);
}
