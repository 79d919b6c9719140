//! Trials of IKEv2: their mistakes and their plan.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text};
use plan::to_text;

#[test]
fn invalid_trials_of_ike_are_reported() {
    let text = "\
campaign: ike
duts: [strongswan]
trials:
  - ike: { mtu: 1400 B, setups_per_s: 0, up_to: 1, within: 10 s, duration: 0 s, peers: 3 }
  - ike: { mtu: 1400 B, setups_per_s: [100, 10000], duration: [5 s, 10 s] }
  - ike: { setups_per_s: max, up_to: 20000, duration: 4 s }
";
    let found = from_text("campaigns/ike.yaml", text).unwrap_err();
    compare("ike-mistakes.txt", &format!("{found}\n"));
    let others = "\
campaign: ike
duts: [direct, cipherbench, strongswan]
trials:
  - ike: { mtu: 1400 B }
";
    let found = from_text("campaigns/ike.yaml", others).unwrap_err();
    compare("ike-duts-mistakes.txt", &format!("{found}\n"));
}

#[test]
fn a_plan_of_ike() {
    let text = "\
campaign: ike
duts:
  - strongswan: { auth: [psk, certificates] }
trials:
  - ike: { mtu: 1400 B, setups_per_s: [20, max], up_to: 400 }
";
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    compare("ike-plan.txt", &to_text(&plan, |_| Vec::new()));
}
