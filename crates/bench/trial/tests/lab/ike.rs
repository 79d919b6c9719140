//! Trials of IKEv2: simulated peers and strongSwan's daemon.

use crate::frames::passes;
use crate::one_gateway::{is_missing, strongswan};
use crate::trials::{TestLab, cell};
use journal::record::IkeResult;
use plan::{Adapter, IkeAuth, IkeTest, Measurement};
use port::Stop;
use std::io::{self, BufReader};
use std::process::ExitCode;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "strongswan_serves_peers_with_keys_and_with_certificates",
        strongswan_serves_peers_with_keys_and_with_certificates,
    ),
    (
        "the_highest_rate_is_searched_and_confirmed",
        the_highest_rate_is_searched_and_confirmed,
    ),
];

/// The program beside gw2.
pub(crate) fn play(stop: &Stop) -> ExitCode {
    match ike_peers::play(BufReader::new(io::stdin()), io::stdout(), stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measured(lab: &mut TestLab, adapter: Adapter, test: IkeTest) -> IkeResult {
    let measured = lab.measured(&cell(adapter, 1, true, Measurement::Ike(test)));
    for check in [
        "schedule-kept",
        "setups-succeeded",
        "gateway-agrees",
        "gateway-forgot",
    ] {
        let checks = &measured.evidence.checks;
        assert!(passes(&measured, check), "{check}: {checks:?}");
    }
    measured.ike().unwrap().clone()
}

fn strongswan_serves_peers_with_keys_and_with_certificates() {
    if is_missing(strongswan("aes-256-gcm", IkeAuth::Psk, 1)) {
        return;
    }
    let mut lab = TestLab::build();
    for auth in [IkeAuth::Psk, IkeAuth::Certificates] {
        let test = IkeTest {
            setups_per_s: Some(10),
            up_to_per_s: 10,
            within_ns: 5_000_000_000,
            duration_ns: 2_000_000_000,
        };
        let found = measured(&mut lab, strongswan("aes-256-gcm", auth, 1), test);
        let trial = found.figures().unwrap();
        assert_eq!((trial.intended, trial.completed), (20, 20), "{trial:?}");
        assert!(trial.gateway_cpu_ns > Some(0));
        assert_eq!(found.search, None);
    }
}

fn the_highest_rate_is_searched_and_confirmed() {
    if is_missing(strongswan("aes-256-gcm", IkeAuth::Psk, 1)) {
        return;
    }
    let mut lab = TestLab::build();
    let test = IkeTest {
        setups_per_s: None,
        up_to_per_s: 4,
        within_ns: 5_000_000_000,
        duration_ns: 1_000_000_000,
    };
    let found = measured(&mut lab, strongswan("aes-256-gcm", IkeAuth::Psk, 1), test);
    // A daemon carries so few in any case: the search ends at its highest rate.
    let search = found.search.unwrap();
    assert_eq!((search.lower_per_s, search.upper_per_s), (Some(4), None));
    assert_eq!(found.figures().unwrap().per_s, 4);
    // A load is offered again if the generator was late.
    assert!(found.trials.len() >= 2, "{:?}", found.trials);
    assert!(found.trials.iter().all(|trial| trial.per_s == 4));
}
