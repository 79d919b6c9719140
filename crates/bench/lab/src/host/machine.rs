//! Reads the machine: processor, memory, kernel and the settings that bear on results.

use super::discipline::Discipline;
use crate::cpus;
use crate::procfs::{sysctl_path, sysctl_words};
use crate::scan::field;
use journal::record::Environment;
use nix::sys::utsname::uname;
use std::fs;
use std::path::Path;

/// Features that a data path can use, by the names that `/proc/cpuinfo` has on x86 and ARM.
const CPU_FEATURES: &[&str] = &[
    "aes",
    "pclmulqdq",
    "ssse3",
    "sse4_2",
    "avx",
    "avx2",
    "bmi2",
    "vaes",
    "vpclmulqdq",
    "gfni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "sha_ni",
    "asimd",
    "pmull",
    "sha2",
    "sve",
    "sve2",
];

/// Sysctls that bear on results; those missing from a kernel are omitted. Sysctls of the network
/// are watched during trials ([`crate::settings`]).
pub(crate) const SYSCTLS: &[&str] = &[
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.unprivileged_userns_clone",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "user.max_net_namespaces",
    "user.max_user_namespaces",
];

/// Reads all but privilege, tools and engines. Empty texts and maps, and zeros, mean "could not be
/// read here".
pub(super) fn read(discipline: &Discipline) -> Environment {
    let cpuinfo = text("/proc/cpuinfo");
    let online = cpus::online();
    let kernel = uname().map_or_else(
        |_| String::new(),
        |name| {
            let parts = [name.sysname(), name.release(), name.version()];
            parts.map(|part| part.to_string_lossy()).join(" ")
        },
    );
    let sysctl = |name: &&str| {
        let value = sysctl_words(&text(sysctl_path(name)));
        (!value.is_empty()).then(|| ((*name).to_owned(), value))
    };
    Environment {
        cpu_model: cpu_model(&cpuinfo),
        cpus: u32::try_from(online.len()).unwrap_or(u32::MAX),
        topology: cpus::logical(&online),
        cpu_features: cpu_features(&cpuinfo),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes: memory_bytes(&text("/proc/meminfo")),
        kernel,
        os: os_name(&text("/etc/os-release")),
        hypervisor: hypervisor(&cpuinfo),
        clock_discipline: discipline.describe(),
        sysctls: SYSCTLS.iter().filter_map(sysctl).collect(),
        ..Environment::default()
    }
}

/// Whether two hardware threads share a core; `None` when the kernel does not say.
pub(super) fn threads_share_cores() -> Option<bool> {
    match text("/sys/devices/system/cpu/smt/active").trim() {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// Returns the kernel's clock source.
pub(super) fn clock_source() -> String {
    text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Reads a small file and trims it; empty if it cannot be read.
fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// ARM has no model name; its implementer and part identify it.
fn cpu_model(cpuinfo: &str) -> String {
    if let Some(model) = field(cpuinfo, "model name") {
        return model.to_owned();
    }
    match (
        field(cpuinfo, "CPU implementer"),
        field(cpuinfo, "CPU part"),
    ) {
        (Some(implementer), Some(part)) => format!("implementer {implementer}, part {part}"),
        _ => String::new(),
    }
}

fn cpu_features(cpuinfo: &str) -> Vec<String> {
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features"));
    let flags: Vec<&str> = flags.unwrap_or_default().split_ascii_whitespace().collect();
    let has = |feature: &&&str| flags.contains(feature);
    CPU_FEATURES
        .iter()
        .filter(has)
        .map(|feature| (*feature).to_owned())
        .collect()
}

fn memory_bytes(meminfo: &str) -> u64 {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    // The unit is always written as kB, and means KiB.
    let kib = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0_u64) * 1024
}

fn os_name(os_release: &str) -> String {
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

/// Returns the hypervisor that the CPU reports, with the machine's vendor, if any.
fn hypervisor(cpuinfo: &str) -> String {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    if !flags
        .split_ascii_whitespace()
        .any(|flag| flag == "hypervisor")
    {
        // The flag is x86's; Xen names itself in this file on every architecture.
        return text("/sys/hypervisor/type");
    }
    let signature = hypervisor_name(&hypervisor_signature());
    let vendor = text("/sys/class/dmi/id/sys_vendor");
    match (signature.is_empty(), vendor.is_empty()) {
        (true, true) => "an unnamed hypervisor".to_owned(),
        (true, false) => vendor,
        (false, true) => signature,
        (false, false) => format!("{signature} ({vendor})"),
    }
}

/// Returns the common name of the hypervisor with that signature.
fn hypervisor_name(signature: &str) -> String {
    let name = match signature {
        "KVMKVMKVM" => "KVM",
        "MicrosoftHv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        other => other,
    };
    name.to_owned()
}

/// Twelve letters in CPUID leaf 0x4000_0000, for example `KVMKVMKVM`.
#[cfg(target_arch = "x86_64")]
fn hypervisor_signature() -> String {
    const LEAF: u32 = 0x4000_0000;
    // The CPU reports a hypervisor, which defines this leaf.
    let leaf = std::arch::x86_64::__cpuid(LEAF);
    let letters = [leaf.ebx, leaf.ecx, leaf.edx]
        .map(u32::to_le_bytes)
        .concat();
    let printable = letters
        .into_iter()
        .filter(u8::is_ascii_graphic)
        .map(char::from);
    printable.collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_signature() -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_x86_and_an_arm_processor() {
        let x86 = "processor\t: 0\nmodel name\t: Fast CPU @ 2 GHz\nflags\t\t: fpu aes avx2 vaes\n\n\
                   processor\t: 1\nmodel name\t: Other\nflags\t\t: fpu\n";
        assert_eq!(cpu_model(x86), "Fast CPU @ 2 GHz");
        assert_eq!(cpu_features(x86), ["aes", "avx2", "vaes"]);
        let arm = "processor\t: 0\nFeatures\t: fp asimd aes pmull\nCPU implementer\t: 0x41\n\
                   CPU part\t: 0xd40\n";
        assert_eq!(cpu_model(arm), "implementer 0x41, part 0xd40");
        assert_eq!(cpu_features(arm), ["aes", "asimd", "pmull"]);
        assert_eq!(cpu_model(""), "");
    }

    #[test]
    fn counts_memory_and_reads_the_name_of_the_system() {
        assert_eq!(
            memory_bytes("MemTotal:       1024 kB\nMemFree: 1 kB\n"),
            1 << 20
        );
        assert_eq!(
            os_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            "Debian GNU/Linux 12"
        );
    }

    #[test]
    fn this_machine_has_a_processor_memory_and_a_kernel() {
        let machine = read(&Discipline::default());
        assert!(machine.cpus > 0 && machine.memory_bytes > 0);
        assert!(machine.kernel.starts_with("Linux "));
        assert!(machine.sysctls.contains_key("net.core.rmem_max"));
    }
}
