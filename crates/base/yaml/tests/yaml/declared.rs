//! Declared keys: numbers of quantities, groups, kinds and axes.

use std::time::Duration;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Reported, Spanned, Value, parse, schema, with_tables};

const SHARED: Key = Key::group("(shared)", SHARED_KEYS);
const SHARED_KEYS: &[Key] = &[
    Key::new(
        "wait",
        Value::Time(Duration::ZERO, Duration::from_secs(10)),
        Default("20 ms"),
        "Time",
    ),
    Key::new("share", Value::Percent(1, 50), Default("10 %"), "Share"),
];
const TCP: &[Key] = &[
    SHARED,
    Key::new("mtu", Value::Axis(&Value::Size(576, 9216)), Required, "MTU"),
];
const PING: &[Key] = &[SHARED];
const FILE: &[Key] = &[Key::new(
    "trials",
    Value::List(&Value::Kinds(|| vec![("tcp", TCP), ("ping", PING)])),
    Depends("none"),
    "Trials",
)];

fn waits(text: &str) -> Result<(u64, u8, Spanned<u64>), yaml::Mistakes> {
    parse("file", text)?.decode(|root| {
        root.keys(SHARED_KEYS, |map| {
            let (wait, share) = (map.get("wait"), map.get("share"));
            let place = map.spanned("wait");
            Ok::<_, Reported>((wait?, share?, place?))
        })
    })
}

#[test]
fn quantities_are_read_as_numbers_of_their_base_units() {
    let (wait, share, spanned) = waits("{ wait: 1 s, share: 5 % }").unwrap();
    assert_eq!((wait, share), (1_000_000_000, 5));
    assert_eq!(spanned.place.path, "wait");
    let (wait, share, spanned) = waits("{}").unwrap();
    assert_eq!((wait, share, spanned.value), (20_000_000, 10, 20_000_000));
    // A default has no place in the file but that of its map.
    assert_eq!(spanned.place.path, "");
    for wrong in ["{ share: 0.5 % }", "{ share: 51 % }", "{ wait: 11 s }"] {
        waits(wrong).unwrap_err();
    }
}

#[test]
fn a_table_has_the_keys_of_a_kind_and_another_table_those_of_a_group() {
    let document = "\
<!-- keys of: trials.tcp -->
| Key | Type | Default | Range | Meaning |
| --- | --- | --- | --- | --- |
| `old` | | | | |

<!-- keys of: trials.ping.(shared) -->
| Key | Type | Default | Range | Meaning |
| --- | --- | --- | --- | --- |
";
    let written = "\
<!-- keys of: trials.tcp -->
| Key | Type | Default | Range | Meaning |
| --- | --- | --- | --- | --- |
| `mtu` | size, axis | *required* | 576 B to 9216 B | MTU |

<!-- keys of: trials.ping.(shared) -->
| Key | Type | Default | Range | Meaning |
| --- | --- | --- | --- | --- |
| `wait` | time | 20 ms | 0 s to 10 s | Time |
| `share` | ratio | 10 % | 1 % to 50 %, whole | Share |
";
    assert_eq!(with_tables(document, FILE), written);
}

#[test]
fn a_schema_has_the_keys_of_each_kind() {
    let schema = schema("a file", FILE);
    let kinds = &schema["properties"]["trials"]["items"]["anyOf"];
    // `tcp` alone would lack its MTU.
    assert_eq!(kinds[0]["enum"], serde_json::json!(["ping"]));
    let tcp = &kinds[1]["properties"]["tcp"];
    assert_eq!(tcp["required"], serde_json::json!(["mtu"]));
    let mut names: Vec<_> = tcp["properties"].as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["mtu", "share", "wait"]);
}
