//! The declared keys: their tables in the reference, and their schema.

use qkd::kme::KEYS;

#[test]
fn the_reference_has_the_declared_keys() {
    testing::keys::tables("kme.md", KEYS);
}

#[test]
fn the_schema_accepts_the_examples_and_refuses_mistakes() {
    let schema = testing::keys::Schema::of(KEYS);
    assert_eq!(schema.accepts_examples("kme.md", "kmes:"), 2);
    let right = "kmes: [{ name: a, listen: '[::1]:0', certificate: a.pem, key: a.key, ca: ca.pem, saes: gw1 }]\n";
    schema.accepts(right);
    for wrong in [
        "kmes: kme-a\n".to_owned(),
        right.replace("name: a, ", ""),
        right.replace("name: a, ", "name: A, "),
        right.replace("saes: gw1", "saes: []"),
        right.replace("saes: gw1", "saes: gw1, start_with: [{ fault: late }]"),
        format!("{right}keys: {{ size: 4 }}\n"),
        format!("{right}keys: {{ rate: some }}\n"),
    ] {
        schema.refuses(&wrong);
    }
}
