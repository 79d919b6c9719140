//! `cipherbench schema KIND`: the keys of a kind of file as a JSON Schema, for editors.

use crate::cli::{FileKind, Schema};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn schema(arguments: &Schema) -> Result<Exit, Failure> {
    let schema = match arguments.kind {
        FileKind::Campaign => yaml::schema("Campaign of Cipherbench", campaign::CAMPAIGN_KEYS),
        FileKind::Lab => yaml::schema("Lab of Cipherbench", campaign::LAB_KEYS),
        FileKind::Encryptor => yaml::schema(
            "Configuration of `cipherbench encrypt`",
            encryptor::config::KEYS,
        ),
        FileKind::Kme => yaml::schema("Configuration of `cipherbench kme`", qkd::kme::KEYS),
    };
    output::done(&format!("{schema:#}\n"))
}
