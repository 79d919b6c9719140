//! The machine, its tools, the lab and the devices.

use crate::kit::table::{Cell, Table};
use crate::layout::{Run, shown};
use journal::record::Environment;
use plan::{Dut, Element, LabKind};

/// Name and value of every known fact; facts that could not be read are omitted.
pub(super) fn environment(run: &Run<'_>) -> Table {
    let header = &run.journal.header;
    let machine = &header.environment;
    let mut table = Table::new("Machine, tools and lab", "")
        .labels(["What"])
        .texts(["Value"]);
    let mut push = |name: &str, value: String| {
        if !value.is_empty() {
            table.push(vec![Cell::label(name), Cell::plain(value)]);
        }
    };
    // The run comes first, then the machine, other hosts, the lab with its devices, and the tools.
    push("Started", journal::time::utc(header.started_unix_ns));
    for resumed in &run.journal.resumed {
        push("Resumed", journal::time::utc(resumed.at_unix_ns));
    }
    if let Some(end) = &run.journal.end {
        push("Ended", journal::time::utc(end.at_unix_ns));
    }
    push("Program", format!("cipherbench {}", header.program));
    push("CPU", machine.cpu_model.clone());
    push(
        "Logical CPUs",
        run.cpus().map_or_else(String::new, |cpus| cpus.to_string()),
    );
    push("CPU features", machine.cpu_features.join(", "));
    push("Hardware counters", machine.hardware_counters.clone());
    push("Energy counters", machine.energy_counters.clone());
    push("Frequency governor", machine.governor.clone());
    // 0 means that it could not be read.
    let memory = match machine.memory_bytes {
        0 => String::new(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    };
    push("Memory", memory);
    push("Kernel", machine.kernel.clone());
    push("System", machine.os.clone());
    push("Hypervisor", machine.hypervisor.clone());
    push("Clock discipline", machine.clock_discipline.clone());
    push("Privilege", machine.privilege.clone());
    for (name, host) in &machine.hosts {
        push(&format!("Host {name}"), of_host(host));
    }
    push("Lab", lab(run));
    for (name, settings) in devices(run) {
        push(&format!("Device {name}"), settings);
    }
    for (what, values) in [
        ("Tool", &machine.tools),
        ("Engine", &machine.engines),
        ("Sysctl", &machine.sysctls),
    ] {
        for (name, value) in values {
            push(&format!("{what} {name}"), value.clone());
        }
    }
    table
}

/// Describes another host in one line.
fn of_host(host: &Environment) -> String {
    // 0 means that it could not be read.
    let cpus = match host.cpus {
        0 => String::new(),
        cpus => format!("{cpus} logical CPUs"),
    };
    let clock = format!("clock discipline: {}", host.clock_discipline);
    let hypervisor = match host.hypervisor.as_str() {
        "" => String::new(),
        name => format!("hypervisor {name}"),
    };
    let parts = [
        &host.cpu_model,
        &cpus,
        &host.kernel,
        &host.os,
        &hypervisor,
        &clock,
    ];
    let known = parts.into_iter().filter(|part| !part.is_empty());
    known.map(String::as_str).collect::<Vec<_>>().join("; ")
}

fn lab(run: &Run<'_>) -> String {
    let lab = &run.plan().lab;
    let kind = match lab.kind {
        LabKind::Namespaces => "namespaces on this machine",
        LabKind::Hosts => "two hosts that a cable joins",
        LabKind::Memory => "rings in memory, in one process",
        LabKind::Device => return format!("{}: crypto devices on this machine", lab.name),
    };
    let mtu = match lab.cipher_mtu {
        Some(mtu) => format!("{mtu} B"),
        None => "as large as the cell needs".into(),
    };
    let links = lab.link_bps.map_or_else(String::new, |bps| {
        format!(", links of {}", units::human::bit_rate(bps as f64))
    });
    let between = lab.path.iter().map(|element| match element {
        Element::Bridge => "a bridge",
        Element::Router => "a router",
        Element::Nat => "a router with NAT",
        Element::Impair => "an impaired path",
    });
    // In the order from gateway 1 to gateway 2.
    let between: Vec<&str> = between.collect();
    let between = if between.is_empty() {
        String::new()
    } else {
        format!(", between the gateways {}", between.join(", "))
    };
    format!(
        "{}: {kind}, MTU between the gateways {mtu}{links}{between}",
        lab.name
    )
}

/// Each device with its settings, in the plan's order.
fn devices(run: &Run<'_>) -> Vec<(String, String)> {
    let mut devices: Vec<(String, String)> = Vec::new();
    for cell in &run.plan().cells {
        let shown = shown(&cell.dut);
        if devices.iter().all(|(name, _)| *name != shown) {
            devices.push((shown, settings(&cell.dut)));
        }
    }
    devices
}

fn settings(dut: &Dut) -> String {
    let control = stats::Control::of(&dut.adapter);
    let control = control.map_or_else(String::new, |is| format!("; {}", is.name()));
    dut.settings() + &control
}
