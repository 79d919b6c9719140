//! Algorithms and operations by name, or by their class.

use catalog::{ALGORITHMS, Algorithm, Cipher, Family, Hash, Mode, Operation};
use yaml::{Node, Reported};

/// A class's name, as campaigns have it, and the test whether a family belongs to it.
type Class = (&'static str, fn(Family) -> bool);

const CLASSES: [Class; 13] = [
    ("all", |_| true),
    ("digests", |family| matches!(family, Family::Digest(_))),
    ("macs", |family| {
        matches!(family, Family::Hmac(_) | Family::Mac(_))
    }),
    ("ciphers", |family| matches!(family, Family::Cipher(..))),
    ("aeads", |family| {
        matches!(
            family,
            Family::Gcm(_) | Family::ChaCha20Poly1305 | Family::Mgm(_)
        )
    }),
    ("aes", is_aes),
    ("gost", is_gost),
    ("rsa", |family| matches!(family, Family::Rsa(..))),
    ("ecdsa", |family| matches!(family, Family::Ecdsa(_))),
    ("eddsa", |family| matches!(family, Family::Ed25519)),
    ("ml-dsa", |family| matches!(family, Family::MlDsa(_))),
    ("ml-kem", |family| matches!(family, Family::MlKem(_))),
    ("signatures", |family| {
        matches!(
            family,
            Family::Ecdsa(_) | Family::Ed25519 | Family::MlDsa(_)
        )
    }),
];

const fn cipher(family: Family) -> Option<Cipher> {
    match family {
        Family::Mac(cipher)
        | Family::Cipher(cipher, _)
        | Family::Gcm(cipher)
        | Family::Mgm(cipher) => Some(cipher),
        _ => None,
    }
}

const fn is_aes(family: Family) -> bool {
    matches!(
        cipher(family),
        Some(Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256)
    )
}

const fn is_gost(family: Family) -> bool {
    match family {
        Family::Digest(hash) | Family::Hmac(hash) => {
            matches!(hash, Hash::Streebog256 | Hash::Streebog512)
        }
        family => matches!(
            cipher(family),
            Some(Cipher::Magma | Cipher::Kuznyechik | Cipher::Gost28147)
        ),
    }
}

/// Returns the block size in bytes: the length of an input must be a multiple of it.
pub(super) const fn block_bytes(operation: Operation) -> u32 {
    match operation.algorithm.family() {
        Family::Cipher(cipher, Mode::Ecb | Mode::Cbc) => match cipher {
            Cipher::Aes128 | Cipher::Aes192 | Cipher::Aes256 | Cipher::Kuznyechik => 16,
            Cipher::Des | Cipher::TripleDes | Cipher::Magma | Cipher::Gost28147 => 8,
        },
        _ => 1,
    }
}

/// Reads one or many names of algorithms or classes; each algorithm once, in the order of the list
/// of all.
pub(super) fn read_algorithms(node: Node<'_>) -> Result<Vec<Algorithm>, Reported> {
    let chosen = node.one_or_many(|item| {
        let text = item.text()?;
        match of_class(text) {
            Some(class) => Ok(class),
            None => match Algorithm::parse(text) {
                Ok(algorithm) => Ok(vec![algorithm]),
                Err(error) => Err(unknown(item, &error.to_string())),
            },
        }
    })?;
    // In the order of the catalogue, so that reports of two campaigns have the same rows in the
    // same order.
    Ok(in_order(&chosen.concat()))
}

/// Reads one or many operations, algorithms (all their operations), or classes of algorithms; each
/// operation once, in the order given.
pub(super) fn read_operations(node: Node<'_>) -> Result<Vec<Operation>, Reported> {
    let chosen = node.one_or_many(|item| {
        let text = item.text()?;
        // Classes first: `aes` and `gost` are names of no algorithm.
        if let Some(class) = of_class(text) {
            return Ok(operations(class));
        }
        // A name alone selects all its actions.
        if let Ok(algorithm) = Algorithm::parse(text.trim()) {
            return Ok(operations(vec![algorithm]));
        }
        match Operation::parse(text) {
            Ok(operation) => Ok(vec![operation]),
            Err(error) => Err(unknown(item, &error.to_string())),
        }
    })?;
    let mut once: Vec<Operation> = Vec::new();
    for operation in chosen.concat() {
        if !once.contains(&operation) {
            once.push(operation);
        }
    }
    Ok(once)
}

fn of_class(text: &str) -> Option<Vec<Algorithm>> {
    let (_, is_of) = CLASSES.iter().find(|(name, _)| *name == text)?;
    let members = ALGORITHMS
        .iter()
        .filter(|algorithm| is_of(algorithm.family()));
    Some(members.copied().collect())
}

fn operations(algorithms: Vec<Algorithm>) -> Vec<Operation> {
    let each = algorithms.into_iter();
    each.flat_map(Algorithm::operations).collect()
}

fn in_order(chosen: &[Algorithm]) -> Vec<Algorithm> {
    let all = ALGORITHMS.iter().copied();
    all.filter(|algorithm| chosen.contains(algorithm)).collect()
}

fn unknown(item: Node<'_>, error: &str) -> Reported {
    let classes: Vec<_> = CLASSES.iter().map(|(name, _)| *name).collect();
    let help = format!(
        "write an algorithm as `sha-256`, an operation as `aes-128-cbc encrypt`, or a class: {}",
        classes.join(", ")
    );
    item.mistake(error, help)
}
