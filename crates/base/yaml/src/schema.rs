//! JSON Schemas of files, with which editors complete and check them.

use crate::document::Document;
use crate::key::{Absent, Key, Value, flat, without_links};
use crate::tree::{Kind, NodeId, Step, Tree};
use serde_json::{Map, Value as Json, json};

/// Sizes, rates and times: a number and a unit.
const QUANTITY: &str = "^[0-9]+(\\.[0-9]+)? ?[A-Za-zµμ/]+$";
const RATIO: &str = "^[0-9]+(\\.[0-9]+)? ?(%|ppm)$";

/// The JSON Schema (draft 7) of a file with these keys. It knows types, ranges and names; rules
/// between keys remain with `cipherbench check`.
#[must_use]
pub fn schema(title: &str, keys: &[Key]) -> Json {
    let mut schema = of_map(keys);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(title);
    schema
}

fn of_map(keys: &[Key]) -> Json {
    let keys = flat(keys);
    let properties: Map<_, _> = keys
        .iter()
        .map(|key| (key.name.to_owned(), of_key(key)))
        .collect();
    let required = keys
        .iter()
        .filter(|key| matches!(key.absent, Absent::Required));
    let required: Vec<_> = required.map(|key| key.name).collect();
    let together = keys
        .iter()
        .flat_map(|key| key.excludes.iter().map(|other| [key.name, other]));
    // Draft 7 has no word for keys that exclude each other: neither object with both of them
    // passes.
    let refused: Vec<_> = together
        .map(|pair| json!({ "not": { "required": pair } }))
        .collect();
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !refused.is_empty() {
        schema["allOf"] = json!(refused);
    }
    schema
}

fn of_key(key: &Key) -> Json {
    let mut schema = of_value(&key.value);
    schema["description"] = json!(without_links(key.meaning));
    if let Absent::Default(text) = key.absent
        && let Ok(default) = crate::parse("default", text)
    {
        schema["default"] = default.json();
    }
    schema
}

fn of_value(value: &Value) -> Json {
    let quantity = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    // Text without quotes may look like a number.
    let text = || json!({ "type": ["string", "number"] });
    match *value {
        // An editor reads YAML 1.2, in which `on` and `yes` are text.
        Value::Switch => json!({ "enum": [true, false, "on", "off", "yes", "no"] }),
        Value::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Value::Time(..) | Value::Size(..) | Value::BitRate(..) => quantity(QUANTITY),
        Value::Ratio(..) | Value::Percent(..) => quantity(RATIO),
        Value::Name(names) => names_of(&names()),
        Value::Identifier(most) => {
            let mut schema = text();
            schema["pattern"] = json!("^[a-z0-9-]+$");
            schema["maxLength"] = json!(most);
            schema
        }
        Value::Notation(pattern) => {
            let mut schema = text();
            schema["pattern"] = json!(pattern);
            schema
        }
        Value::Text | Value::Path => text(),
        Value::Ip | Value::Prefix => quantity("^[0-9A-Fa-f.:]+(/[0-9]+)?$"),
        Value::Ipv4 => quantity("^[0-9]+(\\.[0-9]+){3}$"),
        Value::SocketAddress => quantity("^.+:[0-9]+$"),
        Value::Or(word, other) => json!({ "anyOf": [{ "const": word }, of_value(other)] }),
        Value::List(item) => json!({ "type": "array", "items": of_value(item) }),
        Value::OneOrMany(item) | Value::Axis(item) => {
            let item = of_value(item);
            let list = json!({ "type": "array", "items": item, "minItems": 1 });
            json!({ "anyOf": [item, list] })
        }
        Value::Map(keys) | Value::Group(keys) => of_map(keys),
        Value::Kinds(kinds) => of_kinds(&kinds()),
        Value::Entries(entry) => {
            json!({ "type": "object", "additionalProperties": of_value(entry) })
        }
        Value::Any(forms) => json!({ "anyOf": forms.iter().map(of_value).collect::<Vec<_>>() }),
    }
}

/// Names; those that an editor reads as numbers are accepted as such too.
fn names_of(names: &[&str]) -> Json {
    let number = |name: &&str| match name.parse::<u64>() {
        Ok(whole) => Some(json!(whole)),
        Err(_) => name.parse::<f64>().ok().map(Json::from),
    };
    let numbers = names.iter().filter_map(number);
    let texts = names.iter().map(|name| json!(name));
    let all: Vec<_> = texts.chain(numbers).collect();
    json!({ "enum": all })
}

/// A name alone has no settings, so only of a kind without required keys.
fn of_kinds(kinds: &[(&str, &[Key])]) -> Json {
    let is_required = |key: &&Key| matches!(key.absent, Absent::Required);
    let alone = kinds
        .iter()
        .filter(|(_, keys)| !flat(keys).iter().any(is_required));
    let alone: Vec<_> = alone.map(|(name, _)| *name).collect();
    let settings: Map<_, _> = kinds
        .iter()
        .map(|(name, keys)| ((*name).to_owned(), of_map(keys)))
        .collect();
    json!({ "anyOf": [
        { "enum": alone },
        {
            "type": "object",
            "additionalProperties": false,
            "properties": settings,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ] })
}

impl Document {
    /// The file as an editor checks it against a [`schema`]: scalars have the types of YAML 1.2.
    #[must_use]
    pub fn json(&self) -> Json {
        json_of(&self.tree, Tree::ROOT)
    }
}

fn json_of(tree: &Tree, id: NodeId) -> Json {
    match &tree.item(id).kind {
        Kind::Scalar { text, quoted: true } => json!(text),
        Kind::Scalar { text, .. } => match text.as_str() {
            "" | "~" | "null" => Json::Null,
            "true" => json!(true),
            "false" => json!(false),
            text => text
                .parse::<u64>()
                .map(Json::from)
                // `1500 B` fails both, and is text as the schema has it.
                .or_else(|_| text.parse::<f64>().map(Json::from))
                .unwrap_or_else(|_| json!(text)),
        },
        Kind::List(items) => items.iter().map(|item| json_of(tree, *item)).collect(),
        Kind::Map(entries) => {
            let entry = |id: &NodeId| match &tree.item(*id).parent {
                Some((_, Step::Key(name, _))) => Some((name.to_string(), json_of(tree, *id))),
                _ => None,
            };
            entries
                .iter()
                .filter_map(entry)
                .collect::<Map<_, _>>()
                .into()
        }
        Kind::Refused => Json::Null,
    }
}
