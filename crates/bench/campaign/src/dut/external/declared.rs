//! The keys of third-party boxes, in the order of `docs/campaign.md`.

use super::super::entry::{INSECURE, LEGACY, NAME, SUITE};
use super::super::settings::BOX_SETTINGS;
use super::super::strongswan::TUNNELS;
use super::FORMS;
use crate::keys::{millis, seconds};
use plan::{SnmpAuthentication, SnmpPrivacy};
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Value};

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    NAME,
    Key::new("form", Value::Name(|| Value::names(&FORMS)), Default("esp"),
        "Format of packets (`macsec` and `opaque`: of frames) [between the \
         boxes](encryptors.md#external). `gre` and `l2tpv3` do not encrypt"),
    Key::new("cipher", Value::Text, Depends("*required* with `opaque`"),
        "The cipher, in the maker's words. Reports name it a claim; `suite_told` must print it")
        .range("100 characters; only with `opaque`"),
    // At most enough for boxes that pad every frame to the length of a full one; by default a
    // header and an authentication tag.
    Key::new("expands", Value::Size(0, 2000), Default("64 B"),
        "Largest increase of a frame's length between the boxes")
        .range("0 B to 2000 B; only with `opaque`"),
    Key::new("aggregate", Value::Switch, Default("off"),
        "Several of the stations' frames may share one between the boxes")
        .range("only with `opaque`"),
    Key::new("plain", Value::Switch, Default("off"),
        "The boxes do not encrypt: a router, switch or firewall, the baseline for encrypting \
         boxes").range("without the keys of a form or suite"),
    Key::new("bump", Value::Switch, Default("off"),
        "Bumps in the wire: the boxes forward Ethernet frames, and the stations are in one \
         network"),
    SUITE.depends("the form's first").meaning("The suite to seal with; `{suite}` in commands")
        .range("as for `cipherbench`; of `wireguard`, `openvpn` and `macsec` their own; not with \
                `gre`, `l2tpv3`, `opaque`"),
    LEGACY,
    INSECURE,
    // A box has a word for suites that it names differently; the others have none here.
    Key::new("suite_words", Value::Entries(&Value::Text), Depends("our names"),
        "The boxes' names for suites: `{ aes-256-gcm: AES-GCM-256 }`; `{suite_word}` in commands"),
    Key::new("ports", Value::List(&Value::Integer(1, u16::MAX as u64)),
        Depends("by form: 500 and 4500, 51820, 1194, 1701"),
        "UDP ports of the form's packets and of the key exchange. Bare ESP is accepted, too, and \
         L2TPv3 directly in IP")
        .words("list of ports").range("1 to 8; not with `macsec`, `gre`, `opaque`"),
    TUNNELS.meaning(
        "Tunnels of the boxes; more than one: one for each pair of test addresses 198.18.0.1 and \
         198.19.0.1, 198.18.0.2 and 198.19.0.2 …; `{tunnels}` in commands")
        .range("1 to 1000; 1 with `gre`, `l2tpv3`, `opaque`"),
    // `form` decides which of the two maps applies: a rule between keys, which a schema lacks.
    Key::new("gateway", Value::Any(&[Value::Map(IKE), Value::Map(WIREGUARD)]), Depends("none"),
        "One gateway is measured alone: the station at B's cable is its peer, see below")
        .words("map").range("with `form: esp` or `wireguard`, one box"),
    Key::new("limit", LIMIT, Default("1 min"), "Longest time of one command"),
    Key::new("ready", LIMIT, Default("1 min"),
        "Longest time from the last command until A reaches B, or until the first tunnel of a \
         `gateway` is up"),
    BOX_SETTINGS,
    Key::new("boxes", Value::List(&Value::Map(BOX)), Required,
        "The box at A's cable and the one at B's; a single entry if both are managed in one \
         place, or a plain box is alone").range("1 or 2").apart(),
];
const LIMIT: Value = Value::Time(seconds(1), seconds(600));

/// Keys of a box.
#[rustfmt::skip]
pub(super) const BOX: &[Key] = &[
    Key::new("via", Value::Text, Depends("a shell on this machine"),
        "Program that takes a command as its last argument, one word: `ssh admin@192.0.2.11` \
         passes it to a shell. A program that runs others with arguments needs a shell: `docker \
         exec box sh -c`, `ip netns exec box sh -c`"),
    Key::new("up", COMMANDS, Depends("none"), "Brings it up, before each trial")
        .words("command or list").range("100"),
    Key::new("down", COMMANDS, Depends("none"),
        "Takes it down, after each trial, also after a failure")
        .words("command or list").range("100"),
    Key::new("version", Value::Any(&[Value::Text, Value::Map(VERSION)]), Depends("none"),
        "Prints the box's model and software, for the journal; or a map that names [its \
         source](#monitoring)").words("command or map"),
    Key::new("suite_told", Value::Text, Depends("none"),
        "Prints the suite in use. If the output lacks the suite's word, the device does not start")
        .words("command"),
    Key::new("counters", Value::Entries(&Value::Any(&[Value::Text, Value::Map(COUNTER)])),
        Depends("none"),
        "Command by name: the first whole number that it prints is the count, `1,234,567` too; `1 \
         234`, which may be two numbers, is refused, and so is `1.2K`. A 32-bit counter may wrap \
         once in a trial; another decrease makes the trial invalid. Or a map that names [its \
         source](#monitoring)").range("50"),
    Key::new("counter_lines", COMMANDS, Depends("none"),
        "Commands that print lines of a name and a number").words("command or list").range("100"),
    Key::new("reset", Value::Text, Depends("none"),
        "Restarts the box or a part of it, for [`reset`](#reset); returns once the restart has \
         begun").words("command").range("with `started`"),
    Key::new("started", Value::Text, Depends("none"),
        "Prints a value that changes with each restart: a boot id, a process id, a start time")
        .words("command"),
    SNMP.meaning("SNMP agent of the box, for [`oid`](#monitoring)"),
    PROMETHEUS.meaning(
        "Its page in Prometheus's text format, for [`metric`](#monitoring): \
         `http://192.0.2.11:9100/metrics`"),
    Key::new("monitor", Value::Map(MONITOR), Depends("none"),
        "Readings while traffic flows, [below](#monitoring)").apart(),
];
const COMMANDS: Value = Value::OneOrMany(&Value::Text);

/// Keys of `gateway` with ESP.
#[rustfmt::skip]
pub(super) const IKE: &[Key] = &[
    Key::new("psk_file", Value::Path, Depends("this or the next three"),
        "File with the pre-shared key in its first line"),
    Key::new("ca_file", Value::Path, Depends("none"),
        "PEM file: certificate of the authority that issued the gateway's"),
    Key::new("certificate_file", Value::Path, Depends("none"),
        "PEM file: the station's certificate"),
    Key::new("key_file", Value::Path, Depends("none"), "PEM file: the station's private key"),
    Key::new("ppk_file", Value::Path, Depends("none"),
        "File with a post-quantum pre-shared key (RFC 8784) in its first line")
        .range("with `ppk_id`"),
    Key::new("ppk_id", Value::Text, Depends("none"), "Identity of that key")
        .range("with `ppk_file`"),
    Key::new("own_id", Value::Text, Depends("its address"), "Identity of the station")
        .range("200 characters"),
    Key::new("box_id", Value::Text, Depends("its address"), "Identity of the gateway")
        .range("200 characters"),
    Key::new("ike", Value::Text, Depends("`aes256gcm16-prfsha384-x25519`"),
        "Proposal of the IKE SA").range("strongSwan's words"),
    Key::new("ml_kem", Value::Switch, Default("off"),
        "Adds ML-KEM-768 to the key exchange (RFC 9370; strongSwan 6)")
        .range("without `ike`").excludes(&["ike"]),
    Key::new("selectors", Value::Name(|| Value::names(&SELECTORS)), Default("test-networks"),
        "Traffic selectors: 198.18.0.0/16 behind the gateway and 198.19.0.0/16 behind the \
         station, or with several `tunnels` single addresses of them; or all addresses: the \
         gateway may select a part with the test addresses (198.18.0.1 and 198.19.0.1, and the \
         following ones)"),
    Key::new("initiator", Value::Name(|| Value::names(&INITIATORS)), Default("station"),
        "The side that sets up the tunnels"),
    Key::new("udp", Value::Switch, Default("on"),
        "ESP in UDP, requested by the station with NAT traversal, or bare (IP protocol 50). Bare \
         ESP also needs ESP in the station's kernel"),
];
pub(super) const SELECTORS: [(&str, bool); 2] = [("test-networks", false), ("any", true)];
pub(super) const INITIATORS: [(&str, bool); 2] = [("station", false), ("box", true)];

/// Keys of `gateway` with WireGuard.
#[rustfmt::skip]
pub(super) const WIREGUARD: &[Key] = &[
    Key::new("key_file", Value::Path, Required,
        "File with the station's private key, as `wg genkey` prints it"),
    Key::new("box_public_key", Value::Text, Required, "The gateway's public key")
        .range("44 characters"),
    Key::new("psk_file", Value::Path, Depends("none"),
        "File with a pre-shared key, as `wg genpsk` prints it"),
];

/// Keys of `monitor`.
#[rustfmt::skip]
pub(super) const MONITOR: &[Key] = &[
    Key::new("interval", Value::Time(millis(100), seconds(600)), Default("1 s"),
        "From one round of readings to the next"),
    Key::new("cpu", ONE_READING, Depends("none"), "Utilisation of its processor in %")
        .words("command or map"),
    Key::new("temperature", ONE_READING, Depends("none"), "Temperature in °C")
        .words("command or map"),
    Key::new("power", ONE_READING, Depends("none"), "Electrical power in W")
        .words("command or map"),
    Key::new("gauges", Value::Entries(&Value::Map(NAMED_READING)), Depends("none"),
        "Other values by name, with `unit`").words("map of maps").range("50 readings"),
    Key::new("counters", Value::Entries(&Value::Map(NAMED_READING)), Depends("none"),
        "Counters by name, with `unit`; their rate is reported").words("map of maps"),
];
const ONE_READING: Value = Value::Any(&[Value::Text, Value::Map(READING)]);

/// Keys of a reading that has a unit.
pub(super) const READING: &[Key] = &[COMMAND, OID, METRIC, ITS_SNMP, ITS_PAGE, SCALE];
/// Keys of the others.
#[rustfmt::skip]
pub(super) const NAMED_READING: &[Key] = &[
    COMMAND, OID, METRIC, ITS_SNMP, ITS_PAGE, SCALE,
    Key::new("unit", Value::Text, Required, "Its unit, times `scale`; of `gauges` and `counters`").range("20"),
];
/// Keys of a counter's source, and of a version's.
pub(super) const COUNTER: &[Key] = &[ITS_SNMP, ITS_PAGE, OID, METRIC];
#[rustfmt::skip]
pub(super) const VERSION: &[Key] = &[
    ITS_SNMP, ITS_PAGE, OID, METRIC,
    Key::new("label", Value::Text, Depends("none"), "Label of the metric with the version"),
];

#[rustfmt::skip]
const COMMAND: Key = Key::new("command", Value::Text, Depends(""),
    "One of `command`, `oid` and `metric` is required").words("command");
#[rustfmt::skip]
const OID: Key = Key::new("oid", Value::Text, Depends(""),
    "Object of an SNMP agent, with its instance");
#[rustfmt::skip]
const METRIC: Key = Key::new("metric", Value::Text, Depends(""),
    "Metric of a page, with required labels in braces. A gauge must select one sample; a counter \
     is the sum of all selected samples");
#[rustfmt::skip]
const SNMP: Key = Key::new("snmp", Value::Map(AGENT), Depends("none"), "").apart();
const PROMETHEUS: Key = Key::new("prometheus", Value::Text, Depends("none"), "").words("URL");
#[rustfmt::skip]
const ITS_SNMP: Key = SNMP.depends("the box's")
    .meaning("Another agent, such as a power distribution unit's");
const ITS_PAGE: Key = PROMETHEUS.depends("the box's").meaning("Another page");
#[rustfmt::skip]
const SCALE: Key = Key::new("scale", Value::Notation("^[0-9]+(\\.[0-9]+)?$"), Default("1"),
    "Factor for the value: `0.1` for tenths of a degree")
    .words("number").range("0.000001 to 1000000");

/// Keys of `snmp`.
#[rustfmt::skip]
pub(super) const AGENT: &[Key] = &[
    Key::new("agent", Value::Text, Required, "Its address; default port UDP 161")
        .words("host, or host:port"),
    Key::new("community", SECRET, Depends(""), "Community of version 2c").words("secret").apart(),
    Key::new("user", Value::Text, Depends(""), "User of version 3"),
    Key::new("password", SECRET, Depends("*required* with `user`"),
        "Its password for authentication, at least 8 characters").words("secret").apart(),
    Key::new("authentication", Value::Name(|| Value::names(&AUTHENTICATIONS)), Default("sha-256"),
        "Protocol of authentication"),
    Key::new("privacy", Value::Name(|| Value::names(&PRIVACIES)), Depends("none"),
        "Protocol of encryption; without it authNoPriv"),
    Key::new("privacy_password", SECRET, Depends("*required* with `privacy`"),
        "Its password for encryption").words("secret").apart(),
];
const SECRET: Value = Value::Map(SECRET_KEYS);
/// Keys of a secret.
#[rustfmt::skip]
pub(super) const SECRET_KEYS: &[Key] = &[
    Key::new("secret_file", Value::Notation("^/"), Depends("one of the two"),
        "Path of the file with the secret in its first line").excludes(&["secret_env"]),
    Key::new("secret_env", Value::Notation("^[A-Za-z0-9_]+$"), Depends("one of the two"),
        "Environment variable of the run"),
];

pub(super) const AUTHENTICATIONS: [(&str, SnmpAuthentication); 5] = [
    ("sha-256", SnmpAuthentication::Sha256),
    ("sha-384", SnmpAuthentication::Sha384),
    ("sha-512", SnmpAuthentication::Sha512),
    ("sha-1", SnmpAuthentication::Sha1),
    ("md5", SnmpAuthentication::Md5),
];
pub(super) const PRIVACIES: [(&str, SnmpPrivacy); 4] = [
    ("aes-128", SnmpPrivacy::Aes128),
    ("aes-256", SnmpPrivacy::Aes256),
    ("aes-256-cisco", SnmpPrivacy::Aes256Cisco),
    ("des", SnmpPrivacy::Des),
];
