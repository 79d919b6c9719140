//! Schemas of the bodies of ETSI GS QKD 014 v1.1.1, clause 6, written from the standard's tables,
//! not from our types.

use serde_json::{Value, json};

/// Clause 6.1.
pub(crate) fn status() -> Value {
    let names = [
        "source_KME_ID",
        "target_KME_ID",
        "master_SAE_ID",
        "slave_SAE_ID",
    ];
    let numbers = [
        "key_size",
        "stored_key_count",
        "max_key_count",
        "max_key_per_request",
        "max_key_size",
        "min_key_size",
        "max_SAE_ID_count",
    ];
    let mut properties = serde_json::Map::new();
    for name in names {
        properties.insert(name.to_owned(), json!({"type": "string", "minLength": 1}));
    }
    for name in numbers {
        properties.insert(name.to_owned(), json!({"type": "integer", "minimum": 0}));
    }
    let required: Vec<_> = properties.keys().cloned().collect();
    properties.insert("status_extension".to_owned(), json!({"type": "object"}));
    object(Value::Object(properties), &json!(required))
}

/// Clause 6.3.
pub(crate) fn key_container() -> Value {
    let uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    let base64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";
    let key = object(
        json!({
            "key_ID": {"type": "string", "pattern": uuid},
            "key_ID_extension": {"type": "object"},
            "key": {"type": "string", "pattern": base64},
            "key_extension": {"type": "object"},
        }),
        &json!(["key_ID", "key"]),
    );
    object(
        json!({
            "keys": {"type": "array", "items": key, "minItems": 1},
            "key_container_extension": {"type": "object"},
        }),
        &json!(["keys"]),
    )
}

/// Clause 6.5.
pub(crate) fn error() -> Value {
    let details = json!({"type": "array", "items": {"type": "object", "minProperties": 1}});
    object(
        json!({"message": {"type": "string", "minLength": 1}, "details": details}),
        &json!(["message"]),
    )
}

fn object(properties: Value, required: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Checks a body against the standard's schema.
#[track_caller]
pub(crate) fn check(schema: &Value, body: &Value) {
    let validator = jsonschema::validator_for(schema).expect("the schema is one");
    if let Err(error) = validator.validate(body) {
        panic!("{error}: {body:#}");
    }
}

#[test]
fn the_schemas_accept_the_standards_examples_only() {
    let good = json!({
        "source_KME_ID": "AAAABBBBCCCCDDDD", "target_KME_ID": "EEEEFFFFGGGGHHHH",
        "master_SAE_ID": "IIIIJJJJKKKKLLLL", "slave_SAE_ID": "MMMMNNNNOOOOPPPP",
        "key_size": 352, "stored_key_count": 25000, "max_key_count": 100_000,
        "max_key_per_request": 128, "max_key_size": 1024, "min_key_size": 64, "max_SAE_ID_count": 0,
    });
    check(&status(), &good);
    let key = json!({
        "key_ID": "bc490419-7d60-487f-adc1-4ddcc177c139",
        "key": "wHHVxRwDJs3/bXd38GHP3oe4svTuRpZS0yCC7x4Ly+s=",
    });
    check(&key_container(), &json!({"keys": [key]}));
    check(
        &error(),
        &json!({
            "message": "not all extension_mandatory parameters are supported",
            "details": [{"extension_mandatory_unsupported": "abc_route_type is not supported"}],
        }),
    );
    let refuses = |schema: &Value, body: &Value| {
        let validator = jsonschema::validator_for(schema).unwrap();
        assert!(!validator.is_valid(body), "{body:#}");
    };
    let mut bad = good;
    bad["key_size"] = json!("352");
    refuses(&status(), &bad);
    refuses(&key_container(), &json!({"keys": []}));
    refuses(&error(), &json!({"details": []}));
}
