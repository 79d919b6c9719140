//! Messages as users see them. `UPDATE_GOLDEN=1 cargo test -p cipherbench-yaml` rewrites the
//! expected texts; review the difference like code.

use std::path::Path;
use std::time::Duration;
use units::{Bytes, Layer};
use yaml::{Mistakes, Node, Reported};

/// One value of every kind that the decoder supports.
fn decode(root: Node<'_>) -> Result<(), Reported> {
    root.map(|map| {
        let name = map
            .required("name")
            .and_then(|node| node.identifier(1..=32));
        let title = map.required("title").and_then(Node::text);
        let repeats = map.with_default("repeats", 3, |node| node.integer(1..=100_u32));
        let engine = map.with_default("engine", 0, |node| {
            node.one_of("engine", &[("auto", 0), ("aws-lc-rs", 1), ("ipsec-mb", 2)])
        });
        let listen = map.optional("listen").map(Node::socket_address).transpose();
        let peer = map.optional("peer").map(Node::ip).transpose();
        let inside = map
            .optional("inside")
            .map(|node| node.one_or_many(Node::prefix))
            .transpose();
        let key = map.optional("key").map(|node| node.hex(4)).transpose();
        let trials = map.required("trials").and_then(|node| node.list(trial));
        let _ = (
            name?, title?, repeats?, engine?, listen?, peer?, inside?, key?, trials?,
        );
        Ok(())
    })
}

fn trial(node: Node<'_>) -> Result<(), Reported> {
    let (_, body) = node.variant("trial", &[("tcp", ()), ("udp", ()), ("ping", ())])?;
    body.map(|map| {
        let sizes = Bytes::new(68)..=Bytes::new(9216);
        let mtu = map
            .required("mtu")
            .and_then(|node| node.one_or_many(|item| item.size(sizes.clone())));
        let window = map.with_default("window", None, |node| {
            node.word_or("auto", |node| {
                node.size(Bytes::new(1024)..=Bytes::new(1 << 29))
            })
        });
        let rate = map.with_default("rate", None, |node| {
            node.word_or("max", |node| {
                node.bit_rate(Layer::Payload, 1..=10_u64.pow(12))
            })
        });
        let times = Duration::from_secs(1)..=Duration::from_secs(60);
        let duration = map
            .optional("duration")
            .map(|node| node.duration(times))
            .transpose();
        let offloads = map.with_default("offloads", true, Node::bool);
        let _ = (mtu?, window?, rate?, duration?, offloads?);
        Ok(())
    })
}

fn mistakes(file: &str, text: &str) -> Mistakes {
    match yaml::parse(file, text) {
        Ok(document) => document.decode(decode).unwrap_err(),
        Err(mistakes) => mistakes,
    }
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{name} differs; it is now:\n{actual}");
}

#[test]
fn every_mistake_of_a_file_is_reported_at_once() {
    let text = "\
name: Night Run
titel: Nachtlauf über die 漢字-Strecke
repeats: 0
engine: awslc
listen: 192.0.2.1
peer: ten.example
inside: [10.1.0.5/24, 10.2.0.0, fd00::/8]
key: 00112g
repeats: 5
trials:
  - tcp: { mtu: [40 B, 1500, 1500 bytes], window: large, offloads: maybe }
  - udp:
      mtu: [1500 B, \"9000 B\"]
      rate: 10 gbps
      duration: 5 m
      \"título\": x
  - tcp:
    mtu: 1500 B
  - sctp: { mtu: 1500 B }
  - tcp: { mtu: 1,500 B }
  - tcp: { mtu: [\"1,500 B\", \"9'000B\", \"1,50 B\"] }
  - kind: tcp
    mtu: 1500 B
  - transfers: { tool: udp, mtu: 1500 B }
  - ping
  - { tcp: { mtu: { a: 1 } }, udp: {} }
  -
";
    compare(
        "every-mistake.txt",
        &format!("{}\n", mistakes("campaigns/night.yaml", text)),
    );
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let text = "\
%YAML 1.2
---
name: &n night
title: !!str Night
<<: { repeats: 3 }
? [a, b]
: c
engine: *n
trials:
  - tcp: { mtu: 0x5DC }
  - tcp: { mtu: \"\" }
  - tcp: { mtu: [] }
  - *n
...
---
name: other
";
    compare(
        "not-supported.txt",
        &format!("{}\n", mistakes("c.yaml", text)),
    );
}

#[test]
fn a_number_in_words_is_to_be_written_in_digits() {
    for (value, help) in [
        (
            "\"four\"",
            "write a whole number in digits, without quotes, for example `4`",
        ),
        ("\"4\"", "write `4` without quotes"),
    ] {
        let text =
            format!("name: x\ntitle: y\ntrials: [ping: {{ mtu: 1500 B }}]\nrepeats: {value}\n");
        let found = mistakes("c.yaml", &text).to_string();
        assert!(found.contains(help), "{found}");
    }
}

#[test]
fn a_syntax_error_has_its_place_and_a_hint() {
    let mut all = String::new();
    for text in [
        "title: One: two\n",
        "trials:\n\t- ping\n",
        "title: @home\n",
        "title: \"open\n",
        "trials: [a, b\nname: x\n",
        "trials: [a, b]]\n",
        "title: *emphasis*\n",
        "a: 1\n b: 2\n",
        "trials:\n  - ping\n   - tcp\n",
        "trials:\n  - ping\n - tcp\n",
        "name: x\ntitle: \u{1b}[2Jgone\n",
        "name: x\ntitle: bell\u{7}\n",
        "",
        "# only a comment\n",
        "just text\n",
        "- a list\n",
        &format!("{}1", "[".repeat(40)),
        &format!("{}1", "[".repeat(4000)),
    ] {
        all.push_str(&format!("{}\n\n", mistakes("c.yaml", text)));
    }
    compare("syntax.txt", &all);
}

#[test]
fn a_file_with_secrets_is_not_quoted() {
    let text = "\
name: hunter2!
titel: hunter2
key: hunter2
engine: hunter2
hunter2: hunter2
hunter2: hunter2
listen: hunter2
inside: [hunter2, hunter2/8, 127.0.0.1/8]
repeats: hunter2
trials: [hunter2, tcp: { hunter2: hunter2, mtu: hunter2, rate: hunter2, offloads: hunter2 }]
";
    let document = yaml::parse_secret("keys.yaml", text).unwrap();
    let rendered = document.decode(decode).unwrap_err().to_string();
    assert!(!rendered.contains("hunter2"), "{rendered}");
    compare("secret.txt", &format!("{rendered}\n"));

    for broken in [
        "key: hunter2: 2\n",
        "key: \"hunter2\n",
        "key: @hunter2\n",
        "key: *hunter2\n",
    ] {
        let rendered = yaml::parse_secret("keys.yaml", broken)
            .unwrap_err()
            .to_string();
        assert!(!rendered.contains("hunter2"), "{rendered}");
    }
}
