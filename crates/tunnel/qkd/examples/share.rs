//! Shares keys between two SAEs through their KMEs with our client, and prints the result of each
//! call: a check of a pair of KMEs.
//!
//! ```console
//! $ cargo run -p cipherbench-qkd --example share -- gw1@https://10.9.0.1:8443 gw2@https://10.9.0.2:8443
//! ```
//!
//! The working directory contains `ca.pem`, the KMEs' authority, and `NAME.pem` and `NAME.key` of
//! each SAE. A third argument is the size of keys in bits, a fourth their number in one request.

use qkd::types::KeyRequest;
use qkd::{Kme, KmeError, Setup};
use std::env;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [master, slave, rest @ ..] = arguments.as_slice() else {
        return Err("give the master SAE and the slave SAE, each as NAME@https://HOST:PORT".into());
    };
    let number = |place: usize| rest.get(place).map(|text| text.parse()).transpose();
    let (size, count) = (number(0)?, number(1)?);
    let (master, slave) = (client(master)?, client(slave)?);
    let request = KeyRequest {
        number: count,
        size,
        ..KeyRequest::default()
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(share(&master, &slave, &request))?;
    Ok(())
}

fn client(argument: &str) -> Result<Kme, Box<dyn Error>> {
    let (sae, url) = argument
        .split_once('@')
        .ok_or_else(|| format!("`{argument}` is not NAME@https://HOST:PORT"))?;
    Ok(Kme::new(&Setup {
        url: url.to_owned(),
        sae: sae.to_owned(),
        certificate: format!("{sae}.pem").into(),
        key: format!("{sae}.key").into(),
        ca: "ca.pem".into(),
        timeout: Duration::from_secs(10),
    })?)
}

async fn share(master: &Kme, slave: &Kme, request: &KeyRequest) -> Result<(), KmeError> {
    let status = master.status(slave.sae()).await?;
    println!(
        "status: {} to {}, {} of at most {} keys of {} bits",
        status.source_kme_id,
        status.target_kme_id,
        status.stored_key_count,
        status
            .max_key_count
            .map_or_else(|| "?".to_owned(), |most| most.to_string()),
        status.key_size
    );
    let sent = master.new_keys(slave.sae(), request).await?;
    println!("master: {sent:?}");
    let ids: Vec<_> = sent.iter().map(|key| key.id.clone()).collect();
    let found = slave.keys_by_id(master.sae(), &ids).await?;
    println!("slave:  {found:?}");
    let same = sent.iter().zip(&found).all(|(a, b)| *a.key == *b.key);
    assert!(same, "the two sides have different keys");
    println!("both have the same");
    Ok(())
}
