//! Campaigns of crypto devices.

use crate::golden::{HOST, compare};
use campaign::{Campaign, LabFile, from_text};
use plan::{Adapter, DeviceTest, Measurement, Plan, to_text};

fn lab() -> LabFile {
    LabFile::built_in_named("device").unwrap()
}

fn plan(text: &str) -> Plan {
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign
        .plan(&lab(), &HOST)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn a_plan_of_devices_reads_well() {
    let plan = plan(
        "\
campaign: card
title: A card against the CPU
devices:
  - engine: { name: cpu }
  - engine: { kernel: avx2 }
  - openssl: { engine: gost, module: /usr/lib/gost.so }
  - pkcs11: { module: /opt/p11.so, token: blue card, pin_file: /etc/pin }
  - softhsm
  - model: { name: card, rate: 2 Gbit/s, latency: 50 us, operation: 5 us, parallel: 8, errors: 0.1 %, count: [1, 2] }
  - several: { name: mixed, members: [softhsm, openssl] }
trials:
  - kat: { algorithms: [sha-256, aes-128-cbc], devices: [cpu, softhsm] }
  - speed: { operation: [sha-256, rsa-2048-pss sign], size: [64 B, 1 KiB], concurrency: [1, 40], devices: [cpu, card] }
  - speed: { operation: ed25519, workers: processes, concurrency: 3, duration: 200 ms, devices: mixed }
  - fatigue: { operations: [ecdsa-p256, aes-256-gcm encrypt], threads: 150, loops: 1000, devices: cpu }
  - fatigue: { threads: 1000, duration: 20 h, invalid_every: 0, restart: false, devices: cpu }
",
    );
    compare("devices-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn every_mistake_of_devices_is_reported_at_once() {
    let text = "\
campaign: card
devices:
  - enigma
  - engine: { kernel: avx1024 }
  - openssl: { provider: legacy, engine: gost }
  - openssl: { module: /usr/lib/gost.so }
  - pkcs11: { module: /opt/p11.so, token: a, slot: 0 }
  - model: { latency: 1 h, rate: 100, errors: 101 %, fault: explodes }
  - several: { members: [] }
  - softhsm: { pin: 1234 }
trials:
  - kat: { algorithms: [sha256, aes-128-cbc encrypt] }
  - speed: { operation: [aes128-cbc encrypt, aes-128-cbc sing], concurrency: 1001 }
  - speed: { operation: [aes-128-ecb encrypt, sha-256], size: [16 B, 20 B, 0 B] }
  - speed: { operation: rsa-2048-pss sign, size: 64 B, workers: fibres }
  - speed: {}
  - fatigue: { threads: 0, loops: 0, duration: 100 ms, operations: [] }
  - tcp: { mtu: 1500 B }
";
    let mistakes = from_text("campaigns/card.yaml", text).unwrap_err();
    compare("devices-mistakes.txt", &format!("{mistakes}\n"));
}

#[test]
fn incompatible_settings_are_reported() {
    let mut all = String::new();
    for text in [
        "devices: [engine]\nduts: [direct]\ntrials: [kat]",
        "devices: []\ntrials: [kat]",
        "devices: [engine]\ntrials: []",
        "devices: [engine, model: { rate: 1 Gbit/s }]\ntrials: [speed: { operation: sha-256, concurrency: [1, 5], workers: processes }]",
        "devices: [engine]\ntrials: [kat: { devices: card }]",
        "devices: [engine]\ntrials: [kat]\nclaims: []",
        "devices: [engine]\ntrials: [kat]\ncalibrate: on",
        "devices: [engine]\ntrials: [kat]\npublished: enigma",
    ] {
        let mistakes = from_text("c.yaml", &format!("campaign: a\n{text}\n")).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    let devices = from_text("c.yaml", "campaign: a\ndevices: [engine]\ntrials: [kat]\n").unwrap();
    let mistakes = devices.plan(&LabFile::built_in(), &HOST).unwrap_err();
    all.push_str(&format!("{mistakes}\n\n"));
    let mistakes = Campaign::quick().plan(&lab(), &HOST).unwrap_err();
    all.push_str(&format!("{mistakes}\n\n"));
    compare("devices-between-mistakes.txt", &all);
}

#[test]
fn operations_without_a_size_have_one_cell_and_the_others_one_for_each() {
    let plan = plan(
        "campaign: a\ndevices: [engine]\ntrials: [speed: { operation: [sha-256, ecdsa-p256 sign], concurrency: [1, 2] }]\n",
    );
    let of = |cell: &plan::Cell| match &cell.measurement {
        Measurement::Device(DeviceTest::Speed(speed)) => {
            (speed.operation.clone(), speed.bytes, speed.concurrency)
        }
        other => panic!("{other:?}"),
    };
    let cells: Vec<_> = plan.cells.iter().map(of).collect();
    // Five sizes of `sha-256`, none of a signature, each by one and by two.
    assert_eq!(cells.len(), 5 * 2 + 2);
    assert_eq!(cells[0], ("sha-256".to_owned(), Some(16), 1));
    assert_eq!(cells[11], ("ecdsa-p256 sign".to_owned(), None, 2));
    let ids: std::collections::BTreeSet<_> = plan.cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), 12);
}

#[test]
fn two_cards_are_two_devices_that_are_said_to_spare_the_cpu() {
    let plan = plan(
        "campaign: a\ndevices: [model: { name: card, rate: 1 Gbit/s, count: [1, 2] }]\ntrials: [kat]\n",
    );
    let names: Vec<_> = plan.cells.iter().map(|cell| &*cell.dut.name).collect();
    assert_eq!(names, ["card", "card x2"]);
    let Adapter::Device(devices) = &plan.cells[1].dut.adapter else {
        panic!("{:?}", plan.cells[1].dut);
    };
    assert!(devices.offloads);
    let names: Vec<_> = devices.members.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["card 1", "card 2"]);
}

#[test]
fn published_figures_stand_beside_the_cells_that_measure_the_same() {
    let plan = plan(
        "\
campaign: a
devices: [engine, openssl]
trials:
  - speed: { operation: [sha-256, md5], size: [64 B, 100 B], concurrency: [1, 5] }
published: crypto-card
",
    );
    // Two CPUs have figures of both at 64 B by one; none has any at 100 B or by five. Neither of
    // these devices takes work off the CPU, as the published cards do.
    assert_eq!(plan.published.len(), 4);
    for figure in &plan.published {
        assert!(figure.what.ends_with(", 64 B"), "{figure:?}");
        assert_eq!(figure.cells.len(), 2, "{figure:?}");
    }
    let cpu = plan
        .published
        .iter()
        .find(|figure| figure.system == "host one, CPU" && figure.what == "md5, 64 B");
    assert_eq!(cpu.map(|figure| figure.value), Some(143_525_000));
}
