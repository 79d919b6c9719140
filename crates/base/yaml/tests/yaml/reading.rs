//! Values and their places.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::io::Write;
use std::time::{Duration, Instant};
use units::Ratio;
use yaml::{Mistakes, Node, Place, Reported};

fn decode<T>(
    text: &str,
    read: impl FnOnce(Node<'_>) -> Result<T, Reported>,
) -> Result<T, Mistakes> {
    yaml::parse("folder/c.yaml", text)?.decode(read)
}

/// The text at a place, cut out of its source line.
fn marked(place: &Place) -> String {
    let spot = place.spot.as_ref().unwrap();
    let line = spot.source_line.as_ref().unwrap();
    line.chars()
        .skip(spot.column - 1)
        .take(spot.length)
        .collect()
}

/// Reports every scalar and every key of a file, so that tests can check their places.
fn report_all(node: Node<'_>) -> Result<(), Reported> {
    // Each way to read is tried in turn; the mistakes of the ways that fail are no subject here.
    let below = match node.list(report_all) {
        Ok(_) => return Ok(()),
        Err(_) => node.map(|_| Ok(())),
    };
    below.or_else(|_| node.text().and_then(|text| Err(node.mistake(text, ""))))
}

#[test]
fn a_map_whose_keys_are_values_is_read_entry_by_entry() {
    let text = "mix: { 64 B: 7, 594 B: 33.5 %, 1518 B: 1 }\n";
    let read = |root: Node<'_>| {
        root.map(|map| {
            let mix = map.required("mix")?;
            assert!(mix.is_map());
            mix.entries(|key, value| {
                Ok((
                    key.value.to_owned(),
                    marked(&key.place),
                    value.text()?.to_owned(),
                ))
            })
        })
    };
    let entry = |key: &str, value: &str| (key.to_owned(), key.to_owned(), value.to_owned());
    let expected = [
        entry("64 B", "7"),
        entry("594 B", "33.5 %"),
        entry("1518 B", "1"),
    ];
    assert_eq!(decode(text, read).unwrap(), expected);
}

#[test]
fn every_mistake_among_entries_is_reported() {
    let text = "mix: { 64 B: x, 594 B: 1, 1518 B: y }\n";
    let mistakes = decode(text, |root| {
        root.map(|map| {
            map.required("mix")?
                .entries(|_, value| value.integer(1..=9_u8))
        })
    });
    let places: Vec<_> = mistakes
        .unwrap_err()
        .iter()
        .map(|mistake| marked(&mistake.place))
        .collect();
    assert_eq!(places, ["x", "y"]);
    let mistakes = decode("mix: [1]\n", |root| {
        root.map(|map| {
            map.required("mix")?
                .entries(|_, value| value.integer(1..=9_u8))
        })
    });
    assert!(mistakes.unwrap_err().to_string().contains("expected a map"));
}

#[test]
fn ratios_are_in_per_cent() {
    let range = || Ratio::from_percent(1)..=Ratio::from_percent(50);
    let read = |text: &str| {
        decode(text, |root| {
            root.map(|map| map.required("r")?.ratio(range()))
        })
    };
    assert_eq!(read("r: 12.5 %\n").unwrap(), Ratio::from_ppm(125_000));
    let message = read("r: 51 %\n").unwrap_err().to_string();
    assert!(
        message.contains("`r` must be from 1 % to 50 %"),
        "{message}"
    );
}

#[test]
fn values_of_every_type_are_read() {
    let text = "\
# A comment.
name: night-1
title: 'It''s: quoted'
more: >-
  folded
  text
on: [on, off, true, no]
port: 4500
listen: \"[2001:db8::1]:4500\"
addresses: [192.0.2.1, '::1']
key: 00fFa1
file: keys/gw1.key
absolute: /etc/gw1.key
";
    let read = |root: Node<'_>| {
        root.map(|map| {
            let key = |name| map.required(name);
            assert_eq!(key("name")?.identifier(1..=32)?, "night-1");
            assert_eq!(key("title")?.text()?, "It's: quoted");
            assert_eq!(key("more")?.text()?, "folded text");
            assert_eq!(
                key("on")?.one_or_many(Node::bool)?,
                [true, false, true, false]
            );
            assert_eq!(key("port")?.port()?, 4500);
            assert_eq!(
                key("listen")?.socket_address()?.to_string(),
                "[2001:db8::1]:4500"
            );
            let addresses = key("addresses")?.list(Node::ip)?;
            assert_eq!(
                addresses
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
                ["192.0.2.1", "::1"]
            );
            assert_eq!(key("key")?.hex(3)?, [0x00, 0xff, 0xa1]);
            assert_eq!(key("file")?.path()?.to_str(), Some("keys/gw1.key"));
            assert_eq!(key("absolute")?.path()?.to_str(), Some("/etc/gw1.key"));
            assert!(map.optional("absent").is_none());
            assert_eq!(
                map.with_default("absent", 7, |node| node.integer(1..=9_u8))?,
                7
            );
            Ok(())
        })
    };
    decode(text, read).unwrap();
    // Files of other systems have other line ends, a byte order mark, or marks of a document.
    decode(&text.replace('\n', "\r\n"), read).unwrap();
    decode(&format!("\u{feff}---\n{text}...\n"), read).unwrap();
}

#[test]
fn a_path_shows_list_items_but_not_the_list_of_a_scalar_or_list_key() {
    let text = "a:\n  - b: [1, x]\n";
    let mistakes = decode(text, |root| {
        root.map(|map| {
            map.required("a")?.list(|item| {
                item.map(|map| {
                    map.required("b")?
                        .one_or_many(|node| node.integer(0..=9_u8))
                })
            })
        })
    })
    .unwrap_err();
    let place = &mistakes.iter().next().unwrap().place;
    assert_eq!(
        (place.path.as_str(), place.to_string().as_str()),
        ("a[0].b", "folder/c.yaml:2:12")
    );
}

#[test]
fn a_value_kept_with_its_place_can_be_refused_later() {
    let spanned = decode("a: 漢\nb: xyz\n", |root| {
        root.map(|map| {
            let (a, b) = (map.required("a")?, map.required("b")?);
            Ok((a.spanned(1), b.spanned(2)))
        })
    })
    .unwrap();
    assert_eq!(marked(&spanned.0.place), "漢");
    assert_eq!(spanned.1.place.to_string(), "folder/c.yaml:2:4");
    assert!(
        spanned
            .1
            .place
            .mistake("no", "")
            .to_string()
            .contains("2 | b: xyz\n  |    ^^^")
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake_without_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mistakes = yaml::load(&folder.path().join("gone.yaml")).unwrap_err();
    assert!(
        mistakes
            .to_string()
            .starts_with("error: the file cannot be read: No such file"),
        "{mistakes}"
    );

    let path = folder.path().join("latin1.yaml");
    std::fs::File::create(&path)
        .unwrap()
        .write_all(b"a: 1\nb: caf\xe9\n")
        .unwrap();
    let mistakes = yaml::load(&path).unwrap_err();
    assert!(
        mistakes
            .to_string()
            .starts_with("error: line 2 is not UTF-8 text\n"),
        "{mistakes}"
    );

    std::fs::write(&path, "#".repeat(yaml::FILE_BYTES_MAX + 1)).unwrap();
    let mistakes = yaml::load(&path).unwrap_err();
    assert!(
        mistakes
            .to_string()
            .starts_with("error: the file is longer than 1 MiB\n"),
        "{mistakes}"
    );
    // Exactly the limit, and still a file.
    std::fs::write(&path, "#".repeat(yaml::FILE_BYTES_MAX - 5) + "\na: 1").unwrap();
    assert!(yaml::load(&path).is_ok());
}

#[test]
fn what_has_no_end_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.yaml");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for (path, kind) in [
        (fifo.as_path(), "a FIFO"),
        (std::path::Path::new("/dev/zero"), "a device"),
        (folder.path(), "a folder"),
    ] {
        let text = yaml::load(path).unwrap_err().to_string();
        let expected = format!("error: the file cannot be read: it is {kind}, not a file\n");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn mistakes_beyond_the_limit_are_counted_but_not_kept() {
    let text: String = (0..1000).map(|i| format!("k{i}: 1\n")).collect();
    let mistakes = decode(&text, |root| root.map(|_| Ok(()))).unwrap_err();
    assert_eq!(
        (mistakes.iter().count(), mistakes.count()),
        (yaml::MISTAKES_MAX, 1000)
    );
    assert!(
        mistakes
            .to_string()
            .ends_with("1000 mistakes in folder/c.yaml, 800 of them not shown")
    );
}

/// Texts that make careless parsers take exponential time are read in a second at most.
#[test]
fn hostile_files_are_read_quickly() {
    let half = yaml::FILE_BYTES_MAX / 2;
    let repeated = |unit: &str| unit.repeat(half / unit.len());
    // "Billion laughs": aliases that would multiply to 9²⁰ nodes, if they were resolved.
    let laughs = (1..20).map(|i| format!("a{i}: &a{i} [{}]\n", format!("*a{},", i - 1).repeat(9)));
    let texts = [
        repeated("["),
        repeated("{"),
        repeated("- "),
        repeated("? "),
        repeated("a: "),
        repeated("&a "),
        repeated("!a "),
        repeated("---\n"),
        repeated("%A b\n"),
        repeated("\""),
        repeated("\t"),
        format!("[{}]", repeated("a,")),
        format!("a: [{}]", repeated("[],")),
        format!("a: {{{}}}", repeated("a: 1,")),
        (0..half / 8).map(|i| format!("{i:06}: \n")).collect(),
        format!("{}: {{{}}}", "k".repeat(1000), repeated("&a b: !t c,")),
        format!("a0: &a0 [x]\n{}", laughs.collect::<String>()),
    ];
    for text in texts {
        let start = Instant::now();
        let _ = decode(&text, report_all);
        assert!(
            // Quadratic time would take minutes for half a megabyte; the margin is for a busy
            // machine.
            start.elapsed() < Duration::from_secs(20),
            "{:?}…",
            &text[..20]
        );
    }
}

fn word() -> impl Strategy<Value = String> {
    "[a-zé漢字☕ñ]([a-z é漢字☕0-9]{0,6}[a-zé漢字☕0-9])?"
}

/// Fragments of YAML, to be combined in any order.
const TOKENS: &[&str] = &[
    "a", "é", "漢", ": ", "- ", "? ", "\n", "\r", "\t", "  ", "[", "]", "{", "}", ", ", "\"", "'",
    "#", "%", "~", "<<", "&x ", "*x ", "!t ", "| \n", "> \n", "---\n", "...\n", "\u{feff}", "\0",
];

proptest! {
    #[test]
    fn places_of_keys_and_values_mark_exactly_their_text(
        items in vec((word(), vec(word(), 1..4), 0..4_u8), 1..6),
        line_break in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
    ) {
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (key, values, style) in &items {
            match style {
                0 => text.push_str(&format!("- {}  # c{line_break}", values[0])),
                1 => text.push_str(&format!("-   [{}]{line_break}", values.join(" , "))),
                2 => {
                    text.push_str(&format!("-{line_break}"));
                    for value in values {
                        text.push_str(&format!("  -   {value}{line_break}"));
                    }
                }
                _ => text.push_str(&format!("- \t {{ {key}: {} }}{line_break}", values[0])),
            }
            match style {
                0 => expected.push(values[0].clone()),
                3 => expected.push(key.clone()),
                _ => expected.extend(values.iter().cloned()),
            }
        }
        let mut styles = items.iter().map(|item| item.2);
        let mistakes = decode(&text, |root| {
            root.list(|item| match styles.next() {
                // The unknown key is a mistake at the key.
                Some(3) => item.map(|_| Ok(Vec::new())),
                _ => item.one_or_many(|value| {
                    value.text().and_then(|_| Err::<(), _>(value.mistake("here", "")))
                }),
            })
        });
        let found: Vec<String> = mistakes.unwrap_err().iter().map(|m| marked(&m.place)).collect();
        prop_assert_eq!(found, expected, "{}", text);
    }

    #[test]
    fn random_text_never_panics(text in any::<String>()) {
        let _ = decode(&text, report_all);
    }

    #[test]
    fn random_yaml_never_panics(parts in vec(select(TOKENS), 0..60)) {
        let text = parts.concat();
        let _ = decode(&text, report_all).map_err(|mistakes| mistakes.to_string());
        let _ = yaml::parse_secret("s", &text).map(|document| document.decode(report_all));
    }
}

/// A key that is nearly a required one is one mistake; others leave the required one missing.
#[test]
fn a_mistyped_required_key_is_one_mistake() {
    let found = |text: &str| -> Vec<(String, String)> {
        let document = yaml::parse("a.yaml", text).unwrap();
        let decoded = document.decode(|root| {
            root.map(|map| {
                let name = map.required("name").and_then(Node::text);
                let names = map.optional("names").map(Node::text).transpose();
                let hours = map.required("hours").and_then(Node::text);
                Ok((name?.len(), names?.is_some(), hours?.len()))
            })
        });
        let mistakes = decoded.unwrap_err();
        let texts = mistakes
            .iter()
            .map(|one| (one.what.clone(), one.help.clone()));
        texts.collect()
    };
    let both = found("nmae: night\nhuors: 8 h\n");
    let known = "known keys are name, names, hours";
    assert_eq!(
        both,
        [("nmae", "name"), ("huors", "hours")].map(|(key, meant)| (
            format!("the key `{key}` is not known here"),
            format!("did you mean `{meant}`? {known}")
        ))
    );
    // The missing one was meant, although another is as near.
    let near = found("namee: night\nnames: x\nhours: 8 h\n");
    assert_eq!(near.len(), 1, "{near:?}");
    assert!(near[0].1.starts_with("did you mean `name`?"), "{near:?}");
    let other = found("colour: red\nname: night\n");
    let what: Vec<&str> = other.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(
        what,
        [
            "the key `colour` is not known here",
            "the key `hours` is missing"
        ]
    );
}
