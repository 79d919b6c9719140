//! The declared keys: their tables in the reference, and their schema.

use encryptor::config::KEYS;

#[test]
fn the_reference_has_the_declared_keys() {
    testing::keys::tables("encryptor.md", KEYS);
}

#[test]
fn the_schema_accepts_the_examples_and_refuses_mistakes() {
    let schema = testing::keys::Schema::of(KEYS);
    assert_eq!(schema.accepts_examples("encryptor.md", "local:"), 9);
    let right = "local: 192.0.2.1\nremote: 192.0.2.2\nkeys: { static: gw1.key }\n";
    schema.accepts(right);
    for wrong in [
        "remote: 192.0.2.2\n".to_owned(),
        format!("{right}speed: 3\n"),
        format!("{right}workers: 0\n"),
        format!("{right}suite: aes-256\n"),
        format!("{right}tunnel: {{ mtu: 1400 }}\n"),
        format!("{right}engine: {{ below: 64 B, model: {{ latency: 1 s, rate: 1 Gbit/s }} }}\n"),
        format!("{right}peers: []\n"),
        right.replace("static:", "handshake: {}, static:"),
    ] {
        schema.refuses(&wrong);
    }
}
