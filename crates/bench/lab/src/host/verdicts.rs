//! The verdicts on the facts, one topic per function. Pure: every verdict is tested without a
//! matching machine.
//!
//! How to add one: a fact in [`Facts`] or its parts, and a finding here.

use super::cards::Card;
use super::findings::{Facts, Finding, Status};
use super::probes::{Attempt, Probes};
use super::tuning::WANTED;
use super::versions::Installed;
use crate::perf;
use crate::programs::{KNOWN, Known, how_to_get, refusal};
use std::collections::BTreeMap;
use std::io;
use testbed::LabError;

/// With fewer cores, stations and DUT share them.
const CORES_ENOUGH: u32 = 8;

const GIB: u64 = 1 << 30;
const MEMORY_ENOUGH: u64 = 2 * GIB;

/// Clock sources that are read without a system call.
const FAST_CLOCKS: &[&str] = &[
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];

/// Returns the findings for all facts, the most important first.
#[must_use]
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![privilege(facts)];
    findings.extend(KNOWN.iter().map(|known| judge_tool(known, &facts.tools)));
    match &facts.probes {
        Ok(Some(probes)) => findings.extend(features(probes)),
        Ok(None) => {}
        Err(reason) => findings.push(Finding {
            needed: true,
            ..missing(
                "network namespace",
                reason,
                "every place of the lab is one",
                "run as root",
            )
        }),
    }
    findings.extend(facts.cards.iter().map(card));
    findings.extend(machine(facts));
    // The changes are in the order of `WANTED`; rings of cards, which would follow, are not asked
    // for.
    let tuning = facts.tuning.iter().zip(WANTED);
    findings.extend(tuning.map(|(change, wanted)| {
        let found = change
            .after
            .clone()
            .unwrap_or_else(|| "this kernel does not have it".to_owned());
        if change.is_below(wanted) {
            let advice = format!(
                "raise it to {}: sudo cipherbench doctor --apply",
                wanted.at_least
            );
            warning(&change.name, &found, &change.reason, &advice)
        } else {
            good(&change.name, &found, &change.reason)
        }
    }));
    if facts.cards.is_empty() {
        findings.push(good(
            "offloads",
            "nothing to set on this machine",
            "a run sets those of its own links, and no traffic takes another interface",
        ));
    }
    findings
}

fn privilege(facts: &Facts) -> Finding {
    const NAME: &str = "privilege";
    const WHY: &str = "network namespaces and TUN devices need it";
    let finding = match &facts.privilege {
        Ok(privilege) => good(NAME, privilege.describe(), WHY),
        Err(LabError::CannotBuild { what, help }) => missing(NAME, what, WHY, help),
        Err(error) => missing(NAME, &error.to_string(), WHY, "run as root"),
    };
    Finding {
        needed: true,
        ..finding
    }
}

fn judge_tool(known: &Known, installed: &BTreeMap<String, Installed>) -> Finding {
    let Known { name, purpose, .. } = known;
    let finding = match installed.get(*name) {
        Some(its) => {
            let version = its.version.as_deref().unwrap_or("version not readable");
            let found = format!("{version}, {}", its.path.display());
            match (&its.unfit, &its.limit) {
                // Trials may need a version or a maker that nothing shows then.
                (None, None) if its.version.is_none() => warning(
                    name,
                    &found,
                    &format!(
                        "`{name} {}` prints no version: it may be another program, or broken",
                        known.version
                    ),
                    &format!(
                        "run that command and read its message; or {}",
                        how_to_get(name)
                    ),
                ),
                (Some(problem), _) => missing(name, &found, problem, &how_to_get(name)),
                (None, Some(problem)) => warning(name, &found, problem, &how_to_get(name)),
                (None, None) => good(name, &found, purpose),
            }
        }
        None => missing(
            name,
            refusal(name).map_or("not installed", |_| "installed, but not used"),
            &format!("for {purpose}"),
            &how_to_get(name),
        ),
    };
    Finding {
        needed: known.needed,
        ..finding
    }
}

fn features(probes: &Probes) -> Vec<Finding> {
    let tun = match &probes.tun {
        Ok(packets) if packets.tcp && packets.udp => {
            good("TUN device", "takes TCP and UDP super-packets", "")
        }
        Ok(packets) => {
            let takes = if packets.tcp {
                "takes TCP super-packets only"
            } else {
                "takes single packets only"
            };
            let why = "encryptors move one packet a system call there: expect far lower rates";
            warning(
                "TUN device",
                takes,
                why,
                "a newer kernel takes them: TCP since 2.6.27, UDP since 6.2",
            )
        }
        Err(reason) => missing(
            "TUN device",
            reason,
            "software encryptors need it",
            "sudo modprobe tun",
        ),
    };
    let feature = |name: &str, attempt: &Attempt<()>, why: &str, advice: &str| match attempt {
        Ok(()) => good(name, "works", why),
        Err(reason) => missing(name, reason, why, advice),
    };
    let of_kernel = "nothing to do for other DUTs; a kernel that has it may need its module loaded";
    vec![
        // Needed: the privilege for a lab includes the device.
        Finding {
            needed: true,
            ..tun
        },
        feature(
            "UDP_SEGMENT",
            &probes.udp_segment,
            "the encryptor sends many datagrams in one system call with it",
            "Linux 4.18 or newer",
        ),
        feature(
            "UDP_GRO",
            &probes.udp_gro,
            "the encryptor receives many datagrams in one system call with it",
            "Linux 5.0 or newer",
        ),
        Finding {
            needed: true,
            ..feature(
                "AF_PACKET",
                &probes.packet_socket,
                "the watch on the cipher link needs it",
                "sudo modprobe af_packet",
            )
        },
        feature(
            "AF_XDP",
            &probes.xdp_socket,
            "the fastest way to send small frames",
            of_kernel,
        ),
        feature(
            "shaper",
            &probes.shaper,
            "links with a line rate need it",
            "sudo modprobe sch_tbf",
        ),
        feature(
            "NAT",
            &probes.nat,
            "a router with NAT needs it, as a DUT or in the path",
            "sudo modprobe -a nf_tables nft_ct nft_masq",
        ),
        feature(
            "Linux bridge",
            &probes.bridge,
            "a switch as a DUT needs it",
            "sudo modprobe bridge",
        ),
        feature(
            "kernel ESP",
            &probes.kernel_esp,
            "the kernel's own IPsec as a DUT",
            of_kernel,
        ),
        feature(
            "kernel WireGuard",
            &probes.kernel_wireguard,
            "the kernel's WireGuard as a DUT",
            of_kernel,
        ),
        feature(
            "kernel L2TP",
            &probes.kernel_l2tp,
            "L2TPv3 as an element of the path",
            of_kernel,
        ),
    ]
}

fn machine(facts: &Facts) -> Vec<Finding> {
    let machine = &facts.machine;
    let mut findings = Vec::new();
    let cores = machine.cpus.to_string();
    let why =
        "stations and DUT share them: ratios of one run hold, absolute rates are this machine's";
    findings.push(match machine.cpus {
        CORES_ENOUGH.. => good("cores", &cores, why),
        _ => warning(
            "cores",
            &cores,
            why,
            &format!("{CORES_ENOUGH} or more give each its own"),
        ),
    });
    let load = facts.load.in_words();
    findings.push(if facts.load.is_high() {
        warning(
            "load",
            &load,
            "stations and DUT get less time: lower rates, and trials that are invalid",
            "stop what else runs here, or measure when it has ended",
        )
    } else {
        good("load", &load, "")
    });
    let features = machine.cpu_features.join(" ");
    let why = "without AES instructions every AES suite is slow";
    findings.push(
        if machine.cpu_features.iter().any(|feature| feature == "aes") {
            good("CPU features", &features, why)
        } else {
            warning(
                "CPU features",
                &features,
                why,
                "measure chacha20-poly1305 as well",
            )
        },
    );
    findings.push(match machine.governor.as_str() {
        "" => good(
            "CPU governor",
            "none here: the clock is not this system's to change",
            "",
        ),
        "performance" => good("CPU governor", "performance", ""),
        other => warning(
            "CPU governor",
            other,
            "the clock changes with the load, and results with it",
            "sudo cpupower frequency-set -g performance",
        ),
    });
    findings.push(match machine.hypervisor.as_str() {
        "" => good("hypervisor", "none", ""),
        name => warning(
            "hypervisor",
            name,
            "other guests take time that this one does not see: repeat, and compare \
             within one run only",
            "",
        ),
    });
    // Rounded for the reader only: the verdict compares bytes.
    let memory = format!("{:.1} GiB", machine.memory_bytes as f64 / GIB as f64);
    findings.push(if machine.memory_bytes >= MEMORY_ENOUGH {
        good("memory", &memory, "")
    } else {
        warning(
            "memory",
            &memory,
            "large windows and captures may not fit",
            "2 GiB are enough",
        )
    });
    let clock = facts.clock_source.as_str();
    findings.push(if FAST_CLOCKS.contains(&clock) {
        good("clock source", clock, "")
    } else {
        let name = if clock.is_empty() { "unknown" } else { clock };
        let why = "every time stamp may cost a slow read: latencies look longer than they are";
        warning(
            "clock source",
            name,
            why,
            "see /sys/devices/system/clocksource/clocksource0",
        )
    });
    let discipline = facts.discipline.describe();
    let why =
        "labs of two hosts compare their clocks, which a discipline keeps from drifting apart";
    findings.push(
        // Without cards the lab is on one machine, which has one clock.
        if facts.discipline.is_synchronised || facts.cards.is_empty() {
            good("clock discipline", &discipline, why)
        } else {
            let advice = "let chrony or ptp4l discipline the clock of each host";
            warning("clock discipline", &discipline, why, advice)
        },
    );
    let threads = match facts.threads_share_cores {
        Some(true) => "on: stations are not given two threads of a core while there are others",
        Some(false) => "off",
        None => "unknown",
    };
    findings.push(good("SMT", threads, ""));
    findings.push(counters(&facts.counters));
    findings
}

/// An interface that a lab uses.
fn card(card: &Card) -> Finding {
    let name = format!("interface {}", card.interface);
    let found = card.describe();
    let finding = match card.receive_ring {
        _ if !card.exists => missing(
            &name,
            "there is no such interface",
            "the lab's cable is plugged in there",
            "correct the lab; `ip link` lists the interfaces",
        ),
        Some([now, most]) if now < most => {
            let why = "a short ring loses bursts while a core is busy: the tester's loss, not the device's";
            let advice = format!("sudo ethtool -G {} rx {most}", card.interface);
            warning(&name, &found, why, &advice)
        }
        _ if card.queues > 1 && card.is_on_one_cpu() => warning(
            &name,
            &found,
            "one core receives what several queues bring",
            "spread them: start irqbalance, or write to /proc/irq/*/smp_affinity_list",
        ),
        _ => good(&name, &found, ""),
    };
    Finding {
        needed: true,
        ..finding
    }
}

fn counters(counters: &io::Result<()>) -> Finding {
    const NAME: &str = "hardware counters";
    const WHY: &str = "cycles per packet need them; CPU time does not";
    match counters {
        Ok(()) => good(NAME, "cycles and instructions", WHY),
        Err(refusal) => {
            let (what, help) = perf::explain(refusal);
            missing(NAME, &format!("not available: {what}"), WHY, help)
        }
    }
}

fn good(name: &str, found: &str, why: &str) -> Finding {
    finding(Status::Good, name, found, why, "")
}

fn warning(name: &str, found: &str, why: &str, advice: &str) -> Finding {
    finding(Status::Warning, name, found, why, advice)
}

fn missing(name: &str, found: &str, why: &str, advice: &str) -> Finding {
    finding(Status::Missing, name, found, why, advice)
}

fn finding(status: Status, name: &str, found: &str, why: &str, advice: &str) -> Finding {
    Finding {
        name: name.to_owned(),
        status,
        needed: false,
        found: found.to_owned(),
        why: why.to_owned(),
        advice: advice.to_owned(),
    }
}

#[cfg(test)]
mod tests;
