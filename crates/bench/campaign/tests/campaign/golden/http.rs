//! Trials over HTTP, of short flows and of video: their mistakes and their plan.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text};
use plan::to_text;

#[test]
fn invalid_trials_over_http_are_reported() {
    let text = "\
campaign: web
duts: [direct]
trials:
  - http: { mtu: 1500 B, server: apache, object: 63 B, version: 3, tls: 1.2, store: tape, connections: 0 }
  - http: { mtu: 1500 B, server: python, version: 2, tls: 1.3, streams: 2 }
  - http: { mtu: 1500 B, client: wget2, version: 2, transactions_per_connection: 1, transactions_per_s: 5, connections: 101 }
  - http: { mtu: 1500 B, streams: 2, store: disk, object: 2 GiB, ramp: 1 ms }
  - http: { object: small, transactions_per_s: 0, tune: on }
";
    let found = from_text("campaigns/web.yaml", text).unwrap_err();
    compare("http-mistakes.txt", &format!("{found}\n"));
}

#[test]
fn a_plan_over_http() {
    let text = "\
campaign: web
duts: [direct, cipherbench]
trials:
  - http: { mtu: 1500 B }
  - http: { mtu: 1500 B, object: 1 KiB, version: 2, tls: [off, 1.3], streams: 8, transactions_per_s: 500 }
  - http: { mtu: 1500 B, client: wget2, server: python, store: [ram, disk], connections: 8, duration: 5 s }
";
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    compare("http-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn invalid_flows_and_videos_are_reported() {
    let text = "\
campaign: apps
duts: [direct]
trials:
  - flows: { mtu: 1500 B, object: mix, connections: 0, transactions_per_s: fast, server: nginx }
  - video: { mtu: 1500 B, player: mpv, transport: udp, streams: 17, picture: 4k, rate: 100 kbit/s, duration: 301 s }
  - video: { streams: two, tune: on }
";
    let found = from_text("campaigns/apps.yaml", text).unwrap_err();
    compare("applications-mistakes.txt", &format!("{found}\n"));
}

#[test]
fn a_plan_of_flows_and_video() {
    let text = "\
campaign: apps
duts: [direct, cipherbench]
trials:
  - flows: { mtu: 1500 B, object: [10 kB, 1 MB], transactions_per_s: [max, 50] }
  - video: { mtu: 1500 B }
  - video: { mtu: 1300 B, player: ffmpeg, transport: [rtp, http], streams: 4, picture: 720p, rate: 6 Mbit/s, duration: 3 s }
";
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    compare("applications-plan.txt", &to_text(&plan, |_| Vec::new()));
}
