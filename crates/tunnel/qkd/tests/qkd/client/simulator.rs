//! Master and slave at the two KMEs of the simulator.

use crate::client::setup::{Authority, Files, run, url};
use qkd::kme::{self, Armed, Config, Fault, Keys, KmeConfig, Simulator};
use qkd::types::KeyRequest;
use qkd::{Failure, Kme, Pool, PoolSettings, QkdKey};
use std::time::Duration;

/// Two KMEs with an SAE each, and a client for each SAE.
struct Network {
    simulator: Simulator,
    master: Kme,
    slave: Kme,
    _files: [Files; 4],
}

fn network(keys: Keys) -> Network {
    let authority = Authority::new("CA");
    let files = ["127.0.0.1", "127.0.0.1", "gw1", "gw2"]
        .map(|name| Files::new(&authority.issue(&[name]), &authority.pem()));
    let kme = |at: usize, name: &str, sae: &str| KmeConfig {
        name: name.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        certificate: files[at].path("sae.pem"),
        key: files[at].path("sae.key"),
        ca: files[at].path("ca.pem"),
        saes: vec![sae.to_owned()],
        start_with: Vec::new(),
    };
    let config = Config {
        kmes: vec![kme(0, "kme-a", "gw1"), kme(1, "kme-b", "gw2")],
        keys,
        faults: None,
    };
    let simulator = kme::start(&config).unwrap();
    let client = |at: usize, sae: &str| {
        let mut setup = files[at + 2].setup(&url(simulator.kmes()[at].1));
        setup.sae = sae.to_owned();
        Kme::new(&setup).unwrap()
    };
    Network {
        master: client(0, "gw1"),
        slave: client(1, "gw2"),
        simulator,
        _files: files,
    }
}

fn ids(keys: &[QkdKey]) -> Vec<String> {
    keys.iter().map(|key| key.id.clone()).collect()
}

#[test]
fn the_slave_gets_what_the_master_got() {
    let network = network(Keys::default());
    let (master, slave) = (&network.master, &network.slave);
    run(async {
        let status = master.status("gw2").await.unwrap();
        assert_eq!(
            (status.slave_sae_id.as_str(), status.key_size),
            ("gw2", 256)
        );
        for (number, size) in [(1, 256), (3, 512)] {
            let request = KeyRequest::new(number, size);
            let new = master.new_keys("gw2", &request).await.unwrap();
            let mut asked = ids(&new);
            asked.reverse();
            let same = slave.keys_by_id("gw1", &asked).await.unwrap();
            assert_eq!(same.len(), number as usize);
            for (new, same) in new.iter().rev().zip(&same) {
                assert_eq!((&new.id, &new.key), (&same.id, &same.key));
                assert_eq!(new.key.len() * 8, size as usize);
            }
        }
    });
}

#[test]
fn the_slaves_path_contains_the_masters_id() {
    let network = network(Keys::default());
    run(async {
        let new = network
            .master
            .new_keys("gw2", &KeyRequest::default())
            .await
            .unwrap();
        let ids = ids(&new);
        let wrong = network.slave.keys_by_id("gw2", &ids).await.unwrap_err();
        assert!(
            matches!(
                wrong.failure,
                Failure::BadRequest { .. } | Failure::Unauthorized { .. }
            ),
            "{wrong}"
        );
        network.slave.keys_by_id("gw1", &ids).await.unwrap();
    });
}

#[test]
fn refusals_of_the_kme_are_reported() {
    let network = network(Keys::default());
    let (master, slave) = (&network.master, &network.slave);
    run(async {
        let id = ["00000000-0000-4000-8000-000000000000".to_owned()];
        let error = slave.keys_by_id("gw1", &id).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("status 400: \"one or more keys specified are not found on KME\""),
            "{error}"
        );
        let request = KeyRequest {
            extension_mandatory: vec![[("abc".to_owned(), 1.into())].into_iter().collect()],
            ..KeyRequest::default()
        };
        let error = master.new_keys("gw2", &request).await.unwrap_err();
        assert!(
            error.to_string().contains("not all extension_mandatory"),
            "{error}"
        );
        let error = master.status("gw7").await.unwrap_err();
        assert!(
            matches!(
                error.failure,
                Failure::BadRequest { .. } | Failure::Unauthorized { .. }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_pool_lives_through_faults() {
    let network = network(Keys::default());
    run(async {
        let settings = PoolSettings {
            retry_min: Duration::from_millis(5),
            retry_max: Duration::from_millis(20),
            ..PoolSettings::new("gw2")
        };
        network.simulator.arm(None, Armed::new(Fault::Unavailable));
        let pool = Pool::start(network.master.clone(), settings);
        let error = pool.take(1).await.unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unavailable { .. }),
            "{error}"
        );
        network.simulator.clear(None);
        let taken = loop {
            // The failure of the last request is returned until one succeeds.
            match pool.take(2).await {
                Ok(keys) => break keys,
                Err(error) => assert!(matches!(error.failure, Failure::Unavailable { .. })),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let same = network.slave.keys_by_id("gw1", &ids(&taken)).await.unwrap();
        assert_eq!(taken[1].key, same[1].key);
    });
}

#[test]
fn a_key_delivered_twice_is_returned_once() {
    let network = network(Keys::default());
    let double = Armed::new(Fault::DoubleDelivery);
    run(async {
        let pool = Pool::start(network.master.clone(), PoolSettings::new("gw2"));
        let mut taken = pool.take(8).await.unwrap();
        network.simulator.arm(None, double);
        let error = loop {
            match pool.take(1).await {
                Ok(keys) => taken.extend(keys),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(
                error.failure,
                Failure::SameId { .. } | Failure::SameKey { .. }
            ),
            "{error}"
        );
        let distinct: std::collections::HashSet<_> = taken.iter().map(|key| &*key.key).collect();
        assert_eq!(distinct.len(), taken.len());
        // This KME gives them to the slave as often as it asks; it asks once.
        let first = ids(&taken[..1]);
        network.slave.keys_by_id("gw1", &first).await.unwrap();
        let error = network.slave.keys_by_id("gw1", &first).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Used { .. }), "{error}");
    });
}

#[test]
fn faults_of_one_kme_are_reported() {
    let network = network(Keys::default());
    let (master, slave) = (&network.master, &network.slave);
    let one = KeyRequest::new(1, 256);
    run(async {
        for (fault, expected) in [
            (Fault::Garbage, "not understood"),
            (Fault::Depleted, "status 503"),
            (Fault::Unavailable, "status 503"),
        ] {
            network.simulator.arm(Some("kme-a"), Armed::new(fault));
            let error = master.new_keys("gw2", &one).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{fault:?}: {error}");
            network.simulator.clear(Some("kme-a"));
        }
        let new = master.new_keys("gw2", &one).await.unwrap();
        network
            .simulator
            .arm(Some("kme-b"), Armed::new(Fault::LostKey));
        let error = slave.keys_by_id("gw1", &ids(&new)).await.unwrap_err();
        assert!(
            matches!(error.failure, Failure::BadRequest { .. }),
            "{error}"
        );
    });
}
