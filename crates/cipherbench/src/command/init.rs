//! `cipherbench init`: first files, from answers to a few questions or from flags.

mod ask;

use crate::cli::{Init, InitCampaign, InitDevice, InitGateway, InitLab};
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use ask::Dialogue;
use session::init::{self, BOXES, Device, Draft, Gateways, Ports, SUBJECTS, Subject};
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

pub(crate) fn init(arguments: &Init) -> Result<Exit, Failure> {
    match arguments {
        Init::Campaign(arguments) => campaign(arguments),
        Init::Lab(arguments) => lab(arguments),
        Init::Gateway(arguments) => gateway(arguments),
    }
}

/// The option that names another file.
const OUTPUT: &str = "--output";

fn campaign(arguments: &InitCampaign) -> Result<Exit, Failure> {
    let InitCampaign {
        what, quick, place, ..
    } = arguments;
    let path = place
        .output
        .clone()
        .unwrap_or_else(|| "campaign.yaml".into());
    // Before the first question: nobody answers questions for a file that cannot be written.
    Draft::new(OUTPUT)
        .file(path.clone(), String::new())
        .refuse_existing(place.force)?;
    let dialogue = Dialogue::of("campaign", "`--what box|programs|encryptor|device`");
    let what = match what {
        Some(what) => *what,
        None => dialogue.choose("what do you want to measure", &SUBJECTS, &SUBJECTS[2])?,
    };
    if let Some((flags, of)) = misplaced(arguments, what.value) {
        return Err(Failure::new(
            Exit::Usage,
            format!(
                "{flags} are for `--what {of}`, not `--what {}`\nhelp: leave them out; nothing was written",
                what.word
            ),
        ));
    }
    let (text, lab) = match what.value {
        Subject::Encryptor => (init::encryptor_campaign(*quick), None),
        Subject::Programs => (programs(arguments, dialogue)?, None),
        Subject::Device => {
            let device = device(&arguments.device, dialogue)?;
            (init::device_campaign(&device, *quick), None)
        }
        Subject::Box => {
            let kind = match arguments.kind {
                Some(kind) => kind,
                None if dialogue.is_possible() => {
                    dialogue.choose("what is between the ports", &BOXES, &BOXES[1])?
                }
                None => &BOXES[1],
            };
            let flags = "`--what box --ports A,B`";
            let ports = ports(arguments.ports.as_ref(), Dialogue::of("campaign", flags))?;
            let lab = lab_beside(&path);
            let text = init::ports_lab(&lab.display().to_string(), &ports)?;
            (init::box_campaign(&kind.value, *quick), Some((lab, text)))
        }
    };
    let name = path.display().to_string();
    let lab_name = lab.as_ref().map(|(path, _)| path.display().to_string());
    let with_lab = lab.as_ref().zip(lab_name.as_deref());
    let with_lab = with_lab.map(|((_, text), name)| (name, &**text));
    let summary = init::summary((&name, &text), with_lab)?;
    let (mut draft, mut files) = (Draft::new(OUTPUT), vec![path.clone()]);
    draft = draft.file(path.clone(), text);
    if let Some((path, text)) = lab.clone() {
        files.push(path.clone());
        draft = draft.file(path, text);
    }
    write(&draft, place.force)?;
    let words: Vec<_> = files.iter().map(|path| shell(path)).collect();
    let (file, lab) = match &words[..] {
        [file, lab] => (file, format!(" --lab {lab}")),
        words => (&words[0], String::new()),
    };
    let mut said = wrote(&files);
    let _ = write!(
        said,
        "{summary}\n\n\
         next:\n  \
           cipherbench check {}\n  \
           cipherbench plan {file}{lab}\n  \
           cipherbench run {file}{lab}\n",
        words.join(" ")
    );
    if !quick {
        said += "`plan --quick` and `run --quick` take its short form, of a few minutes.\n";
    }
    output::done(&said)
}

/// Flags that are given although they are for another subject, with that subject.
fn misplaced(arguments: &InitCampaign, what: Subject) -> Option<(&'static str, &'static str)> {
    let InitDevice {
        pkcs11,
        provider,
        engine,
        ..
    } = &arguments.device;
    let of_device = [pkcs11, provider, engine].into_iter().any(Option::is_some);
    let of_box = arguments.kind.is_some() || arguments.ports.is_some();
    let of_programs = !arguments.programs.is_empty();
    let given = [
        (of_box, Subject::Box, "`--box` and `--ports`", "box"),
        (
            of_programs,
            Subject::Programs,
            "names of programs",
            "programs",
        ),
        (of_device, Subject::Device, "flags of a device", "device"),
    ];
    let mut misplaced = given
        .into_iter()
        .filter(|(is_given, of, ..)| *is_given && *of != what);
    misplaced.next().map(|(_, _, flags, of)| (flags, of))
}

fn programs(arguments: &InitCampaign, dialogue: Dialogue) -> Result<String, Failure> {
    let missing = |program: &init::Program| {
        let missing = init::missing_programs(program);
        (!missing.is_empty()).then(|| format!("not installed here: {}", missing.join(", ")))
    };
    let chosen = if !arguments.programs.is_empty() {
        arguments.programs.clone()
    } else {
        let installed = init::installed();
        if dialogue.is_possible() {
            let mark = |program: &init::Program| {
                missing(program).map_or_else(String::new, |missing| format!(" ({missing})"))
            };
            let question = "which of them, with commas";
            dialogue.choose_several(question, &init::PROGRAMS, &installed, mark)?
        } else {
            installed
        }
    };
    let text = init::program_campaign(&chosen, arguments.quick)?;
    for program in &chosen {
        if let Some(missing) = missing(&program.value) {
            output::warn(&[format!("{}: {missing}", program.word)]);
        }
    }
    Ok(text)
}

fn device(flags: &InitDevice, dialogue: Dialogue) -> Result<Device, Failure> {
    let InitDevice {
        pkcs11,
        token,
        pin_file,
        provider,
        engine,
        module,
    } = flags;
    let pin = init::DEFAULT_PIN_FILE;
    let module = module.clone();
    Ok(match (pkcs11, provider, engine) {
        (Some(file), ..) => Device::Pkcs11 {
            module: file.clone(),
            token: token.clone(),
            pin_file: pin_file.clone().unwrap_or_else(|| pin.to_owned()),
        },
        (_, Some(name), _) => Device::Provider {
            name: name.clone(),
            module,
        },
        (.., Some(name)) => Device::Engine {
            name: name.clone(),
            module,
        },
        _ if !dialogue.is_possible() => Device::OpenSsl,
        _ => {
            let kind = dialogue.choose("which device", &init::DEVICES, &init::DEVICES[3])?;
            let text = |question: &str, default| dialogue.line::<String>(question, default);
            match kind.word {
                "pkcs11" => Device::Pkcs11 {
                    module: text("file of the module", None)?,
                    token: None,
                    pin_file: text("file with the PIN", Some(pin))?,
                },
                "provider" => Device::Provider {
                    name: text("name of the provider", None)?,
                    module: None,
                },
                "engine" => Device::Engine {
                    name: text("name of the engine", None)?,
                    module: None,
                },
                _ => Device::OpenSsl,
            }
        }
    })
}

fn lab(arguments: &InitLab) -> Result<Exit, Failure> {
    let InitLab {
        ports: named,
        hosts,
        place,
    } = arguments;
    let path = place.output.clone().unwrap_or_else(|| "lab.yaml".into());
    let unwritten = Draft::new(OUTPUT).file(path.clone(), String::new());
    unwritten.refuse_existing(place.force)?;
    let name = path.display().to_string();
    let flags = "`--ports A,B` for ports of this machine, `--hosts A,B --ports A,B` for two hosts";
    let dialogue = Dialogue::of("lab", flags);
    let hosts = match hosts {
        None if named.is_none() && dialogue.is_possible() => {
            let kind = dialogue.choose("where is the lab", &init::LABS, &init::LABS[0])?;
            let host = |place: &str| -> Result<String, Failure> {
                let question = format!("{place} host: a name for ssh, a command, or `here`");
                dialogue.line(&question, None)
            };
            match kind.word {
                "hosts" => Some([host("first")?, host("second")?]),
                _ => None,
            }
        }
        hosts => hosts.clone(),
    };
    let text = match hosts {
        None => init::ports_lab(&name, &ports(named.as_ref(), dialogue)?)?,
        Some(hosts) => {
            let ports = match named {
                Some(ports) => ports.clone(),
                None => {
                    let dialogue = Dialogue::of("lab", "`--ports A,B`, the port of each host");
                    let port = |host: &String| -> Result<String, Failure> {
                        dialogue.line(&format!("port of {host} at the cable"), Some("eth1"))
                    };
                    [port(&hosts[0])?, port(&hosts[1])?]
                }
            };
            init::hosts_lab(&name, &hosts, &ports)?
        }
    };
    write(&Draft::new(OUTPUT).file(path.clone(), text), place.force)?;
    let file = shell(&path);
    output::done(&format!(
        "{}\n\
         next:\n  \
           cipherbench check {file}\n  \
           cipherbench doctor --lab {file}\n  \
           cipherbench run CAMPAIGN --lab {file}\n",
        wrote(&[path])
    ))
}

/// Two ports of this machine: the named ones, or those that a user selects from the free ones.
fn ports(named: Option<&[String; 2]>, dialogue: Dialogue) -> Result<[String; 2], Failure> {
    let found = Ports::of_this_machine();
    if let Some(named) = named {
        let warnings: Vec<_> = named
            .iter()
            .filter_map(|name| found.warning(name))
            .collect();
        output::warn(&warnings);
        return Ok(named.clone());
    }
    output::stderr(&found.text());
    let free: Vec<&str> = found.free().map(|port| &*port.name).collect();
    let ask = |station: &str, index: usize| -> Result<String, Failure> {
        let question = format!("port of station {station}");
        dialogue.line(&question, free.get(index).copied())
    };
    let ports = [ask("A", 0)?, ask("B", 1)?];
    let warnings: Vec<_> = ports
        .iter()
        .filter_map(|name| found.warning(name))
        .collect();
    output::warn(&warnings);
    Ok(ports)
}

fn gateway(arguments: &InitGateway) -> Result<Exit, Failure> {
    let InitGateway {
        peer,
        local,
        network,
        peer_network,
        folder,
        force,
    } = arguments;
    let gateways = |addresses| Gateways {
        addresses,
        networks: [network.clone(), peer_network.clone()],
        folder: folder.clone(),
    };
    // Which files there will be does not depend on the addresses.
    let unwritten = gateways([IpAddr::from([0; 4]); 2]);
    unwritten.paths().refuse_existing(*force)?;
    let peer = match peer {
        Some(peer) => *peer,
        None => {
            let dialogue = Dialogue::of("gateway", "`--peer ADDRESS`");
            dialogue.line("address of the peer", None)?
        }
    };
    let local = match local {
        Some(local) => *local,
        None => init::address_towards(peer)?,
    };
    let gateways = gateways([local, peer]);
    write(&gateways.draft()?, *force)?;
    output::done(&instructions(&gateways))
}

/// The commands that bring each end's files to their place, and start it.
fn instructions(gateways: &Gateways) -> String {
    const PLACE: &str = "/etc/cipherbench";
    let Gateways {
        addresses: [local, peer],
        ..
    } = gateways;
    // scp takes what is before the first colon for the host.
    let host = match peer {
        IpAddr::V4(peer) => peer.to_string(),
        IpAddr::V6(peer) => format!("[{peer}]"),
    };
    let [here, there] = {
        let mut ends = gateways.ends().map(|(folder, _)| shell(&folder));
        [ends.next(), ends.next()].map(|folder| folder.expect("two ends"))
    };
    let authority = shell(&gateways.authority());
    let inner = gateways.inner_peer();
    format!(
        "made {here} (this host, {local}) and {there} (the peer, {peer}): configuration, certificate and key of each\n\
         made {authority}, which makes certificates: keep it where no gateway is\n\n\
         1. copy each end's files to their place, as root, and delete the peer's key here:\n  \
              install -d -m 700 {PLACE} && cp {here}/* {PLACE}/\n  \
              ssh root@{peer} install -d -m 700 {PLACE}\n  \
              scp {there}/* root@{host}:{PLACE}/ && rm -r {there}\n\
         2. start the encryptors, on this host and on the peer:\n  \
              cipherbench encrypt --config {PLACE}/gw1.yaml\n  \
              cipherbench encrypt --config {PLACE}/gw2.yaml\n   \
            or as services, with the units of the packages and of `make install`:\n  \
              systemctl enable --now cipherbench-encrypt@gw1\n  \
              systemctl enable --now cipherbench-encrypt@gw2\n\
         3. try the tunnel from this host:\n  \
              ping -c 3 {inner}\n"
    )
}

/// The lab's file that belongs to a campaign's file.
fn lab_beside(campaign: &Path) -> PathBuf {
    let mut name = campaign.file_stem().unwrap_or_default().to_owned();
    name.push("-lab.yaml");
    campaign.with_file_name(name)
}

/// Writes all files or none, also if Ctrl-C is pressed meanwhile.
fn write(draft: &Draft, force: bool) -> Result<(), Failure> {
    // From here on a termination signal only sets the flag: it takes milliseconds, and half of the
    // files would be worse than all of them.
    let _interrupt = signals::interrupt()?;
    Ok(draft.write(force)?)
}

fn wrote(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!("wrote {}\n", names.join(" and "))
}

/// A path as a word of a POSIX shell.
fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./+@%,:".contains(c);
    if !text.starts_with('-') && text.chars().all(is_plain) {
        return text;
    }
    // `./` keeps a name from being read as an option.
    let text = match text.strip_prefix('-') {
        Some(_) => format!("./{text}"),
        None => text,
    };
    format!("'{}'", text.replace('\'', r"'\''"))
}
