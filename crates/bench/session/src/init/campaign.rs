//! Campaigns by what they measure.

use super::choice::Choice;
use super::error::InitError;
use super::template::{fill, quoted};
use crate::planning;
use crate::programs::missing_for;
use campaign::{Campaign, LabFile};

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Boxes between two ports.
    Box,
    /// Programs of this machine.
    Programs,
    /// Our encryptor.
    Encryptor,
    /// A crypto device.
    Device,
}

/// The subjects, in the order of the question.
pub static SUBJECTS: [Choice<Subject>; 4] = [
    Choice::new(
        "box",
        "a box, or a pair of boxes, between two ports",
        Subject::Box,
    ),
    Choice::new(
        "programs",
        "two or more encrypting programs on this machine",
        Subject::Programs,
    ),
    Choice::new(
        "encryptor",
        "our encryptor on this machine",
        Subject::Encryptor,
    ),
    Choice::new(
        "device",
        "a crypto device: a PKCS#11 module, or OpenSSL with a provider or engine",
        Subject::Device,
    ),
];

/// A program to compare with others.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The programs of its kind: only the first one that is installed is proposed.
    kind: &'static str,
    /// Its entry under `duts`.
    dut: &'static str,
    /// What the file says about it.
    comment: &'static str,
}

const OURS: &str = "ours";
/// Programs that implement WireGuard.
const WIREGUARD: &str = "wireguard";
/// What the kernel implements: whether it has the module is seen only when it is used.
const KERNEL: &str = "kernel";

const fn program(kind: &'static str, dut: &'static str, comment: &'static str) -> Program {
    Program { kind, dut, comment }
}

/// The programs, in the order of the question.
pub static PROGRAMS: [Choice<Program>; 7] = [
    Choice::new(
        OURS,
        "our encryptor",
        program(
            OURS,
            "cipherbench: { suite: aes-256-gcm, workers: 1 }",
            "Ours: ESP in UDP. `suite`, `workers`, `aggregate` and `engine` may be lists.",
        ),
    ),
    Choice::new(
        "wireguard-go",
        "WireGuard in Go",
        program(
            WIREGUARD,
            "wireguard-go",
            "WireGuard in Go. Its only suite is ChaCha20-Poly1305.",
        ),
    ),
    Choice::new(
        "boringtun",
        "WireGuard in Rust, by Cloudflare",
        program(
            WIREGUARD,
            "boringtun",
            "WireGuard in Rust, by Cloudflare. Its only suite is ChaCha20-Poly1305.",
        ),
    ),
    Choice::new(
        "gotatun",
        "WireGuard in Rust, by Mullvad",
        program(
            WIREGUARD,
            "gotatun",
            "WireGuard in Rust, by Mullvad. Its only suite is ChaCha20-Poly1305.",
        ),
    ),
    Choice::new(
        "wireguard",
        "WireGuard of the kernel, if it has the module",
        program(
            KERNEL,
            "wireguard",
            "WireGuard of the kernel, which must have the module. Its only suite is ChaCha20-Poly1305.",
        ),
    ),
    Choice::new(
        "openvpn",
        "OpenVPN",
        program(
            "openvpn",
            "openvpn: { suite: aes-256-gcm }",
            "OpenVPN over UDP. Other suites are aes-128-gcm and chacha20-poly1305.",
        ),
    ),
    Choice::new(
        "strongswan",
        "strongSwan, with ESP in its own process",
        program(
            "strongswan",
            "strongswan: { suite: aes-256-gcm, data_path: libipsec }",
            "strongSwan with ESP in its own process; `data_path: kernel` is for kernels with ESP.",
        ),
    ),
];

/// What is between the two ports, in texts.
#[derive(Debug, Clone, Copy)]
pub struct BoxTexts {
    subject: &'static str,
    title: &'static str,
    dut: &'static str,
    trials: &'static str,
}

const PATH_TRIALS: &str = include_str!("templates/box/path-trials.yaml");

/// What may be between the two ports, in the order of the question.
pub static BOXES: [Choice<BoxTexts>; 4] = [
    Choice::new(
        "router",
        "a router, switch or firewall, which does not encrypt",
        BoxTexts {
            subject: "A router, switch or firewall between two ports.",
            title: "A router between two ports",
            dut: include_str!("templates/box/router.yaml"),
            trials: PATH_TRIALS,
        },
    ),
    Choice::new(
        "pair",
        "a pair of gateways with a tunnel between them",
        BoxTexts {
            subject: "A pair of gateways with a tunnel between them.",
            title: "A pair of gateways",
            dut: include_str!("templates/box/pair.yaml"),
            trials: PATH_TRIALS,
        },
    ),
    Choice::new(
        "bumps",
        "a pair of link encryptors, which forward Ethernet frames",
        BoxTexts {
            subject: "A pair of link encryptors, which forward Ethernet frames.",
            title: "A pair of link encryptors",
            dut: include_str!("templates/box/bumps.yaml"),
            trials: PATH_TRIALS,
        },
    ),
    Choice::new(
        "gateway",
        "one gateway with IKEv2, with this machine as its peer",
        BoxTexts {
            subject: "One gateway with IKEv2; the station at port B is its peer.",
            title: "One gateway, encrypting and decrypting",
            dut: include_str!("templates/box/gateway.yaml"),
            trials: include_str!("templates/box/gateway-trials.yaml"),
        },
    ),
];

/// The file of a token's PIN, if no other is named.
pub const DEFAULT_PIN_FILE: &str = "/etc/cipherbench/token.pin";

/// A crypto device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// A token behind a PKCS#11 module.
    Pkcs11 {
        /// The module's file.
        module: String,
        /// The token's label, if the module has several tokens.
        token: Option<String>,
        /// The file with the PIN.
        pin_file: String,
    },
    /// OpenSSL with a provider.
    Provider {
        /// The provider's name.
        name: String,
        /// Its file, if it is not where OpenSSL looks.
        module: Option<String>,
    },
    /// OpenSSL with an engine.
    Engine {
        /// The engine's name.
        name: String,
        /// Its file, if it is not where OpenSSL looks.
        module: Option<String>,
    },
    /// OpenSSL as it is on this machine.
    OpenSsl,
}

/// The kinds of crypto devices, in the order of the question.
pub static DEVICES: [Choice<()>; 4] = [
    Choice::new("pkcs11", "a token behind a PKCS#11 module", ()),
    Choice::new("provider", "a provider of OpenSSL", ()),
    Choice::new("engine", "an engine of OpenSSL", ()),
    Choice::new("openssl", "OpenSSL as it is here", ()),
];

impl Device {
    /// The entry under `devices`.
    fn entry(&self) -> String {
        match self {
            Self::Pkcs11 {
                module,
                token,
                pin_file,
            } => {
                let token = match token {
                    Some(label) => format!("token: {}", quoted(label)),
                    None => "# token: bench".to_owned(),
                };
                format!(
                    "  - pkcs11:\n      \
                       # What tables call it.\n      \
                       name: token\n      \
                       # The PKCS#11 module.\n      \
                       module: {}\n      \
                       # The token by its label, if the module has several; `slot` names it by number.\n      \
                       {token}\n      \
                       # File with nothing but the user's PIN, mode 600.\n      \
                       pin_file: {}\n",
                    quoted(module),
                    quoted(pin_file)
                )
            }
            Self::Provider { name, module } => openssl("provider", name, module.as_deref()),
            Self::Engine { name, module } => openssl("engine", name, module.as_deref()),
            Self::OpenSsl => "  # OpenSSL as it is here. `provider` or `engine` selects another implementation by name.\n  \
                              - openssl\n"
                .to_owned(),
        }
    }
}

/// OpenSSL with a provider or engine.
fn openssl(key: &str, name: &str, module: Option<&str>) -> String {
    let module = match module {
        Some(module) => format!("module: {}", quoted(module)),
        None => format!("# module: /usr/lib/{key}.so"),
    };
    format!(
        "  - openssl:\n      \
           # What tables call it.\n      \
           name: {key}\n      \
           # The {key} of OpenSSL by its name.\n      \
           {key}: {}\n      \
           # Its file, if it is not where OpenSSL looks.\n      \
           {module}\n      \
           # Whether it takes work off the CPU: figures then need proof that it did.\n      \
           offload: off\n",
        quoted(name)
    )
}

/// A campaign of our encryptor against the path without it.
#[must_use]
pub fn encryptor_campaign(is_quick: bool) -> String {
    fill(include_str!("templates/encryptor.yaml"), is_quick, &[])
}

/// A campaign that compares programs.
///
/// # Errors
/// [`InitError::OneProgram`] if there are not two.
pub fn program_campaign(
    programs: &[&'static Choice<Program>],
    is_quick: bool,
) -> Result<String, InitError> {
    let mut words: Vec<_> = programs.iter().map(|it| it.word).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() < 2 {
        return Err(InitError::OneProgram);
    }
    // In the order of the list, in which ours is first, and each once.
    let chosen = PROGRAMS.iter().filter(|it| words.contains(&it.word));
    let duts: String = chosen
        .map(|Choice { value, .. }| format!("  # {}\n  - {}\n", value.comment, value.dut))
        .collect();
    let template = include_str!("templates/programs.yaml");
    Ok(fill(template, is_quick, &[("duts", &duts)]))
}

/// A campaign of a crypto device against the CPU.
#[must_use]
pub fn device_campaign(device: &Device, is_quick: bool) -> String {
    let entry = device.entry();
    let template = include_str!("templates/device.yaml");
    fill(template, is_quick, &[("devices", &entry)])
}

/// A campaign of boxes between two ports.
#[must_use]
pub fn box_campaign(texts: &BoxTexts, is_quick: bool) -> String {
    let trials = fill(texts.trials, is_quick, &[]);
    let values: [(&str, &str); 4] = [
        ("subject", texts.subject),
        ("title", texts.title),
        ("dut", texts.dut),
        ("trials", &trials),
    ];
    fill(include_str!("templates/box.yaml"), is_quick, &values)
}

/// Checks a campaign, with its lab if it has one, as `check` does. Each is given by its name in
/// messages and its text. Returns the campaign in a line, with its estimated time.
///
/// # Errors
/// All mistakes.
pub fn summary((file, text): (&str, &str), lab: Option<(&str, &str)>) -> Result<String, InitError> {
    let campaign = campaign::from_text(file, text)?;
    let lab = match lab {
        Some((file, text)) => campaign::lab_from_text(file, text)?,
        None => campaign.usual_lab(),
    };
    let host = planning::host_facts();
    if let Some(short) = campaign.shortened() {
        short.plan(&lab, &host)?;
    }
    Ok(planning::summary(&campaign.plan(&lab, &host)?))
}

/// The names of what a program needs and this host lacks.
#[must_use]
pub fn missing_programs(program: &Program) -> Vec<String> {
    // The check of a campaign with this DUT alone: one list of needs serves both.
    let text = format!(
        "campaign: programs\nduts: [{{ {} }}]\ntrials: [ping: {{ mtu: 1400 B }}]\n",
        match program.dut.split_once(": ") {
            Some(_) => program.dut.to_owned(),
            None => format!("{}: {{}}", program.dut),
        }
    );
    let plan = campaign::from_text("programs.yaml", &text)
        .and_then(|it: Campaign| it.plan(&LabFile::built_in(), &planning::host_facts()));
    let plan = plan.expect("each program has a valid entry");
    let missing = missing_for(&plan).into_iter().filter(|it| !it.lab);
    missing.map(|it| it.program).collect()
}

/// The programs to propose: ours, and of each other kind one that is installed here.
#[must_use]
pub fn installed() -> Vec<&'static Choice<Program>> {
    let mut proposed: Vec<&'static Choice<Program>> = Vec::new();
    for program in &PROGRAMS {
        let Choice { value, .. } = program;
        let is_known = proposed.iter().any(|it| it.value.kind == value.kind);
        let is_here = value.kind == OURS || missing_programs(value).is_empty();
        if !is_known && value.kind != KERNEL && is_here {
            proposed.push(program);
        }
    }
    proposed
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::estimate;
    use std::time::Duration;

    /// The longest quick campaign, by its estimate.
    const QUICK_MAX: Duration = Duration::from_secs(5 * 60);

    fn devices() -> Vec<Device> {
        let some = |text: &str| Some(text.to_owned());
        vec![
            Device::OpenSsl,
            Device::Pkcs11 {
                module: "/opt/my card/libpkcs11 ключ.so".to_owned(),
                token: None,
                pin_file: DEFAULT_PIN_FILE.to_owned(),
            },
            Device::Pkcs11 {
                module: "/opt/p11.so".to_owned(),
                token: some("a: \"token\" # 1"),
                pin_file: "/root/pin".to_owned(),
            },
            Device::Provider {
                name: "fips".to_owned(),
                module: None,
            },
            Device::Engine {
                name: "gost".to_owned(),
                module: some("/opt/my card/gost.so"),
            },
        ]
    }

    /// All campaigns of a length, with the lab of each.
    fn all(is_quick: bool) -> Vec<(String, Option<String>)> {
        let ports = ["eth1", "eth2"].map(str::to_owned);
        let lab = super::super::lab::ports_lab("lab.yaml", &ports).expect("a lab");
        let boxes = BOXES
            .iter()
            .map(|it| (box_campaign(&it.value, is_quick), Some(lab.clone())));
        let programs: Vec<_> = PROGRAMS.iter().collect();
        let programs = program_campaign(&programs, is_quick).expect("a campaign");
        let devices = devices()
            .into_iter()
            .map(|it| (device_campaign(&it, is_quick), None));
        let others = [(encryptor_campaign(is_quick), None), (programs, None)];
        boxes.chain(others).chain(devices).collect()
    }

    #[test]
    fn every_campaign_passes_the_check_and_a_quick_one_takes_minutes() {
        for is_quick in [true, false] {
            for (text, lab) in all(is_quick) {
                let lab = lab.as_deref().map(|text| ("lab.yaml", text));
                let checked = summary(("c.yaml", &text), lab);
                checked.unwrap_or_else(|error| panic!("{error}\n{text}"));
                let campaign = campaign::from_text("c.yaml", &text).expect("a campaign");
                assert_eq!(campaign.shortened().is_none(), is_quick, "{text}");
                let quick = campaign.shortened().unwrap_or(campaign);
                let lab = match lab {
                    Some((file, text)) => campaign::lab_from_text(file, text).expect("a lab"),
                    None => quick.usual_lab(),
                };
                let plan = quick.plan(&lab, &planning::host_facts()).expect("a plan");
                let time = Duration::from_nanos(plan.estimate_ns());
                assert!(time <= QUICK_MAX, "{}:\n{text}", estimate::in_words(&plan));
            }
        }
    }

    #[test]
    fn every_key_has_a_comment() {
        let indentation = |line: &str| line.len() - line.trim_start().len();
        for (text, _) in all(true) {
            let mut before = "";
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let is_described = [before, line].map(|it| it.trim_start().starts_with('#'));
                // One comment may be for several keys, or for a map with its first key.
                let together = before.ends_with(':') || indentation(before) == indentation(line);
                assert!(is_described.contains(&true) || together, "{line}\n{text}");
                before = line;
            }
        }
    }

    #[test]
    fn fewer_than_two_programs_are_refused() {
        let ours = &PROGRAMS[0];
        for programs in [vec![], vec![ours], vec![ours, ours]] {
            let refused = program_campaign(&programs, true);
            assert!(matches!(refused, Err(InitError::OneProgram)));
        }
    }

    #[test]
    fn ours_is_always_proposed_and_one_program_of_each_other_kind() {
        let proposed = installed();
        assert_eq!(proposed[0].word, OURS);
        let wireguards = proposed.iter().filter(|it| it.value.kind == WIREGUARD);
        assert!(wireguards.count() <= 1);
    }
}
