//! Boxes that tunnel in clear, in GRE and L2TPv3, and link encryptors with a format of their own:
//! an honest one, and others that each hide less than they claim, or count otherwise.

use super::gateway::kill;
use super::rack::{Does, Rack, adapter};
use super::{assert_found_in_clear, lab_of, ping_cell};
use crate::frames::{assert_all_came, frames, load, passes, short};
use crate::trials::{TestLab, cell, ping};
use journal::record::{Measured, Outcome};
use plan::{BoxFormat, Cell, Direction, External, ExternalBox, Measurement};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// What the boxes print as their suite, and claim.
const CIPHER: &str = "shake128-blake2";

/// GRE by hand: the kernel routes packets into `gre0`, and a raw socket carries them. `hide` mixes
/// them.
const GRE: &str = r"
import fcntl, os, select, socket, struct, sys
near, far, how = sys.argv[1:]
inside = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(inside, 0x400454ca, struct.pack('16sH14x', b'gre0', 0x1001))
outside = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47)
outside.bind((near, 0))
def mixed(packet):
    return bytes(byte ^ 0x55 for byte in packet) if how == 'hide' else packet
print('ready version=1', flush=True)
while True:
    for ready in select.select([inside, outside], [], [])[0]:
        try:
            if ready is outside:
                os.write(inside, mixed(outside.recv(65536)[24:]))
            else:
                outside.sendto(b'\x00\x00\x08\x00' + mixed(os.read(inside, 65536)), (far, 0))
        except OSError as error:
            print(error, flush=True)
";

/// A bump in the wire with a format of its own: an EtherType, a byte, a number, whole frames, a
/// tag. Its cipher is none that is in use.
const OPAQUE: &str = r"
import hashlib, select, socket, struct, sys, zlib
how, key = sys.argv[1], b'a key of the test'
def port(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(263, 23, 1)
    opened.bind((name, 3))
    return opened
def crypt(nonce, text):
    if how == 'sign':
        return text
    stream = hashlib.shake_128(key + nonce).digest(len(text))
    mixed = int.from_bytes(text, 'big') ^ int.from_bytes(stream, 'big')
    return mixed.to_bytes(len(text), 'big')
def tag(nonce, text):
    return hashlib.blake2b(nonce + text, key=key, digest_size=16).digest()
inside, outside = port('eth0'), port('wan')
taken = sent = newest = 0
waiting = []
def seal():
    global sent
    text = b''.join(struct.pack('>H', len(frame)) + frame for frame in waiting)
    if how == 'compress':
        text = zlib.compress(text, 1)
    ends = waiting[0][:12]
    waiting.clear()
    sent += 1
    number = struct.pack('>I', sent)
    nonce = ends[6:] + number
    text = crypt(nonce, text)
    for _ in range(2 if how == 'twice' else 1):
        outside.send(ends + b'\x99\x99\x07' + number + text + tag(nonce, text))
def open_frames(frame):
    global newest
    nonce, text = frame[6:12] + frame[15:19], frame[19:-16]
    number = int.from_bytes(frame[15:19], 'big')
    if tag(nonce, text) != frame[-16:] or number <= newest:
        return
    newest = number
    text = crypt(nonce, text)
    if how == 'compress':
        text = zlib.decompress(text)
    while text:
        end = 2 + struct.unpack('>H', text[:2])[0]
        inside.send(text[2:end])
        text = text[end:]
print('ready version=1 suite=shake128-blake2', flush=True)
while True:
    try:
        came = select.select([inside, outside], [], [], 0.002 if waiting else None)[0]
        if waiting and not came:
            seal()
        for ready in came:
            frame = ready.recv(65536)
            if ready is inside:
                taken += 1
                if taken % 10 == 0 and how == 'leak':
                    outside.send(frame)
                    continue
                if taken % 10 == 0 and how == 'drop':
                    continue
                waiting.append(frame)
                if how != 'join' or len(waiting) == 2:
                    seal()
            elif frame[12:15] == b'\x99\x99\x07':
                open_frames(frame)
            elif how == 'leak':
                inside.send(frame)
    except OSError as error:
        print(error, flush=True)
";

/// Starts a script in a box and waits until it is ready, and not what an earlier one printed.
fn started(rack: &Rack, number: usize, command: &str) -> String {
    let named = rack.path(&format!("box{number}")).display().to_string();
    format!(
        ": > {named}.log; {command} > {named}.log 2>&1 & echo $! > {named}.pid\n\
         until grep -q ^ready {named}.log\n\
         do kill -0 $! || {{ cat {named}.log >&2; exit 1; }}; sleep 0.01; done"
    )
}

fn script(rack: &Rack, name: &str, text: &str) -> String {
    let path = rack.path(name);
    fs::write(&path, text).unwrap();
    // An encryptor believes no configuration that others may change.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    format!("python3 {}", path.display())
}

/// The device with these boxes, in place of one that seals with a known suite.
fn device(does: Does, rack: &Rack, format: BoxFormat, ports: &[u16]) -> External {
    External {
        carrier: None,
        format: Some(format),
        ports: ports.to_vec(),
        ..rack.device(does)
    }
}

fn gre_boxes(rack: &Rack, how: &str) -> External {
    let program = script(rack, "gre.py", GRE);
    let mut device = device(Does::ForwardInClear, rack, BoxFormat::Gre, &[]);
    for (number, its) in (1..).zip(&mut device.boxes) {
        let (peer, [near, far]) = match number {
            1 => ("b", ["{cipher_a}", "{cipher_b}"]),
            _ => ("a", ["{cipher_b}", "{cipher_a}"]),
        };
        let command = format!("{program} {near} {far} {how}");
        its.up.extend([
            started(rack, number, &command),
            format!(
                "ip link set gre0 mtu {{mtu}} up; ip route replace {{network_{peer}}} dev gre0; \
                 ip route replace {{test_network_{peer}}} dev gre0"
            ),
        ]);
        let pid = rack.path(&format!("box{number}.pid")).display().to_string();
        its.down.insert(0, kill(&pid));
    }
    device
}

/// Our own encryptor in the boxes, as a pseudowire without ESP.
fn l2tpv3_boxes(rack: &Rack) -> External {
    let mut device = device(Does::SealFrames, rack, BoxFormat::L2tpv3, &[1701]);
    let this = std::env::current_exe().unwrap();
    for (number, its) in (1..).zip(&mut device.boxes) {
        let ([near, far], [own, peers]) = match number {
            1 => (["{cipher_a}", "{cipher_b}"], [1, 2]),
            _ => (["{cipher_b}", "{cipher_a}"], [2, 1]),
        };
        let config = format!(
            "local: {near}\\nport: 1701\\nworkers: 1\\ninsecure: true\\nmode: l2tpv3\\ninterface: eth0\\n\
             l2tpv3: {{ session: {own}, peer_session: {peers}, encapsulation: udp }}\\n\
             peers:\\n  - {{ remote: {far} }}\\n"
        );
        let path = rack
            .path(&format!("box{number}.yaml"))
            .display()
            .to_string();
        let command = format!("{} encrypt --config {path}", this.display());
        // The last command starts the bump, which another program replaces here.
        its.up.pop();
        its.up.extend([
            format!("ip address replace {near}/24 dev wan"),
            format!("printf '{config}' > {path}"),
            started(rack, number, &command),
        ]);
        its.down.push("ip address flush dev wan".to_owned());
    }
    device
}

const fn opaque_format(aggregate: bool) -> BoxFormat {
    BoxFormat::Opaque {
        expands_bytes: 64,
        aggregate,
    }
}

fn opaque_boxes(rack: &Rack, how: &str) -> External {
    let program = script(rack, "opaque.py", OPAQUE);
    let mut device = device(Does::SealFrames, rack, opaque_format(false), &[]);
    for (number, its) in (1..).zip(&mut device.boxes) {
        let ExternalBox { up, .. } = its;
        // As above.
        up.pop();
        up.push(started(rack, number, &format!("{program} {how}")));
    }
    device
}

/// Echoes with a long payload: of TCP and UDP a virtual cable leaves the checksums to hardware that
/// the boxes do not have.
fn long_ping_cell(device: External) -> Cell {
    let Measurement::Ping {
        count, interval_ns, ..
    } = ping()
    else {
        unreachable!("it is a ping")
    };
    let long = Measurement::Ping {
        count,
        interval_ns,
        payload_bytes: 1400,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    cell(adapter(device), 1, true, long)
}

fn frames_cell(device: External, duplex: bool) -> Cell {
    let mut traffic = short(Direction::Both);
    traffic.duplex = duplex;
    frames(adapter(device), traffic, load(200))
}

fn assert_passes(measured: &Measured, checks: &[&str]) {
    for check in checks {
        let all = &measured.evidence.checks;
        assert!(passes(measured, check), "{check}: {all:#?}");
    }
    assert!(measured.evidence.cipher_link.esp_frames > 0);
}

/// The trial is invalid, and these checks say so.
fn assert_found_by(outcome: &Outcome, checks: &[&str]) {
    let Outcome::Invalid { reasons, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    for check in checks {
        let found = reasons.iter().any(|reason| reason.starts_with(check));
        assert!(found, "{check} is not among {reasons:#?}");
    }
}

/// Tunnels that do not encrypt pass where their form and the stations' data are seen, and nothing
/// else.
fn assert_tunnels_in_clear(lab: &mut TestLab, device: &External) {
    let tools = lab.measured(&ping_cell(device.clone()));
    let frames = lab.measured(&frames_cell(device.clone(), true));
    assert_all_came(&frames, 200, 2);
    for measured in [tools, frames] {
        assert_passes(
            &measured,
            &[
                "cipher-link-encapsulated",
                "clear-text-visible",
                "no-foreign-frames",
                "cipher-link-amount",
            ],
        );
        let link = &measured.evidence.cipher_link;
        assert!(link.marker_frames > 0 && link.other_frames == 0, "{link:?}");
    }
}

/// What crosses beside the tunnel is found out.
fn assert_needs_its_form(lab: &mut TestLab, rack: &Rack, format: BoxFormat, ports: &[u16]) {
    let device = device(Does::ForwardInClear, rack, format, ports);
    for cell in [ping_cell(device.clone()), frames_cell(device, false)] {
        let checks = ["cipher-link-encapsulated", "no-foreign-frames"];
        assert_found_by(&lab.record(&cell).outcome, &checks);
    }
}

/// GRE passes in clear; what only looks like it is found out, and so is what is not GRE.
pub(super) fn gre() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    assert_tunnels_in_clear(&mut lab, &gre_boxes(&rack, "pass"));
    let hiding = ping_cell(gre_boxes(&rack, "hide"));
    assert_found_by(&lab.record(&hiding).outcome, &["clear-text-visible"]);
    assert_needs_its_form(&mut lab, &rack, BoxFormat::Gre, &[]);
    drop(lab);
    assert!(rack.has_all_back());
}

pub(super) fn l2tpv3() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let device = l2tpv3_boxes(&rack);
    assert_tunnels_in_clear(&mut lab, &device);
    let on_another_port = External {
        ports: vec![1702],
        ..device
    };
    let cell = ping_cell(on_another_port);
    let checks = ["cipher-link-encapsulated", "no-foreign-frames"];
    assert_found_by(&lab.record(&cell).outcome, &checks);
    drop(lab);
    assert!(rack.has_all_back());
}

/// A box that hides everything passes.
pub(super) fn opaque() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let device = opaque_boxes(&rack, "hide");
    let tools = lab.measured(&ping_cell(device.clone()));
    let long = lab.measured(&long_ping_cell(device.clone()));
    let frames = lab.measured(&frames_cell(device.clone(), true));
    assert_all_came(&frames, 200, 2);
    for measured in [tools, long, frames] {
        assert_passes(
            &measured,
            &[
                "cipher-link-encrypted",
                "no-clear-text",
                "no-foreign-frames",
                "cipher-link-amount",
                "cipher-link-frames",
            ],
        );
        let facts = &measured.evidence.dut_facts;
        assert_eq!(facts["gw1/suite"], CIPHER);
        assert!(facts["tester/cipher"].starts_with("not proven"));
    }
    // A box that says otherwise is not measured.
    let mut other = device;
    other.boxes[1].suite_told = Some("echo des".to_owned());
    match lab.record(&ping_cell(other)).outcome {
        Outcome::Failed { reason } => {
            assert!(reason.contains("does not say on gw2"), "{reason}");
        }
        other => panic!("{other:#?}"),
    }
    drop(lab);
    assert!(rack.has_all_back());
}

/// Boxes that hide less than they claim, or do not carry each frame in one, are found out.
pub(super) fn opaque_lies() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    // The text is shifted by a header of five bytes and a length.
    for how in ["sign", "leak"] {
        let device = opaque_boxes(&rack, how);
        for cell in [ping_cell(device.clone()), frames_cell(device, false)] {
            assert_found_in_clear(&lab.record(&cell).outcome);
        }
    }
    let compressing = long_ping_cell(opaque_boxes(&rack, "compress"));
    assert_found_by(&lab.record(&compressing).outcome, &["cipher-link-amount"]);

    let twice = frames_cell(opaque_boxes(&rack, "twice"), false);
    assert_found_by(&lab.record(&twice).outcome, &["cipher-link-frames"]);

    let mut joining = opaque_boxes(&rack, "join");
    let joined = lab.record(&frames_cell(joining.clone(), false)).outcome;
    assert_found_by(&joined, &["cipher-link-frames"]);
    joining.format = Some(opaque_format(true));
    let measured = lab.measured(&frames_cell(joining, false));
    assert_passes(&measured, &["cipher-link-frames", "cipher-link-amount"]);

    // Loss is no lie: it is in the figure.
    let measured = lab.measured(&frames_cell(opaque_boxes(&rack, "drop"), false));
    let trial = &measured.frames().unwrap().trials[0];
    assert!(trial.lost() * 12 > trial.sent, "{trial:?}");
    drop(lab);
    assert!(rack.has_all_back());
}
