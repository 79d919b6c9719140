//! No check that is to prove something passes on a trial in which nothing came.

use super::*;
use plan::{Carrier, External, ExternalBox, Form, GatewayPeer, IkePeer, IkeSecrets};

/// Checks of the tester and of the settings, which hold with and without frames, and that no
/// counter of a box fell.
const OTHERS: [&str; 12] = [
    "sealed-as-sent",
    "offered-as-intended",
    "receiver-kept-up",
    "offloads-as-asked",
    "path-unchanged",
    "cores-of-stations",
    "machine-was-ours",
    "links-lossless",
    "dut-as-asked",
    "dut-counters-rose",
    "losses-attributed",
    "machine-in-trials",
];

/// One gateway outside alone, by IKE.
fn gateway() -> Adapter {
    Adapter::External(External {
        boxes: vec![ExternalBox::default()],
        carrier: Some(Carrier {
            form: Form::Esp,
            suite: Suite::Aes256Gcm,
            udp: true,
        }),
        format: None,
        ports: vec![4500],
        bump: false,
        gateway: Some(Box::new(GatewayPeer::Ike(IkePeer {
            auth: IkeSecrets::Psk("psk".into()),
            ppk: None,
            own_id: None,
            box_id: None,
            proposal: None,
            ml_kem: false,
            any_address: false,
            box_initiates: false,
        }))),
        tunnels: 1,
        suite_word: None,
        limit_ns: 1000 * MS,
        ready_ns: 1000 * MS,
    })
}

impl Fixture {
    /// The device went away before the first frame: all are sent, and nothing comes, crosses or is
    /// counted.
    fn nothing_comes(mut self) -> Self {
        for trial in &mut self.result.trials {
            for own in &mut trial.directions {
                (own.received, own.received_bytes) = (0, 0);
            }
            (trial.received, trial.received_bytes) = (0, 0);
            if let Some(readings) = &mut trial.readings {
                readings.cipher = readings.cipher.map(|_| LinkTraffic::default());
                for end in readings.links.values_mut() {
                    *end = EndTraffic::default();
                }
                readings.watch = readings.watch.take().map(|_| CipherWatch::default());
                readings.dut = readings.dut.map(|work| DutWork {
                    taken_in_bytes: work.taken_in_bytes.map(|_| 0),
                    put_out_bytes: work.put_out_bytes.map(|_| 0),
                    ..work
                });
            }
        }
        for counters in self.counters.values_mut() {
            counters.rx_packets = 0;
        }
        self.dut_counters.values_mut().for_each(|count| *count = 0);
        (self.link, self.watch) = (CipherLink::default(), CipherWatch::default());
        self
    }
}

#[test]
fn no_proof_passes_where_nothing_came() {
    let adapters = [
        Adapter::Direct,
        Adapter::STRAIGHT,
        Adapter::Router { nat: false },
        encrypting("auto"),
        encrypting("null"),
        gateway(),
    ];
    for adapter in adapters.into_iter().chain(tunnels()) {
        for &direction in adapter.profile().directions {
            let fixture = Fixture::new(adapter.clone(), direction, false).nothing_comes();
            let checks = fixture.checks().into_iter();
            let proofs = checks.filter(|check| !OTHERS.contains(&check.name.as_str()));
            let passed: Vec<_> = proofs.filter(|check| check.passed).collect();
            // The sender's own link has carried what it sent.
            let passed: Vec<_> = passed
                .iter()
                .map(|check| check.name.as_str())
                .filter(|name| *name != "interfaces-agree")
                .collect();
            assert_eq!(passed, [""; 0], "{adapter:?} {direction:?}");
        }
    }
}

/// Of one gateway alone, that the station opened nothing, or that nothing of what it sealed came
/// out.
#[test]
fn a_station_that_opened_no_frame_was_nobodys_peer() {
    for (direction, words) in [
        (
            Direction::Encrypt,
            "no frame of 100000 sent was opened by the station",
        ),
        (
            Direction::Decrypt,
            "no frame of 100000 that the station sealed came out of the device",
        ),
    ] {
        let mut fixture = Fixture::new(gateway(), direction, false);
        let port = match direction {
            Direction::Encrypt => &mut fixture.result.receiver,
            _ => &mut fixture.result.sender,
        };
        port.engine = Some("openssl".to_owned());
        assert!(fixture.detail("station-is-peer").contains("100000 frames"));
        let fixture = fixture.nothing_comes();
        let failing = fixture.failing();
        assert!(
            failing.contains(&"station-is-peer".to_owned()),
            "{failing:?}"
        );
        assert!(
            failing.contains(&"frames-arrived".to_owned()),
            "{failing:?}"
        );
        let found = fixture.explanation("station-is-peer").difference;
        assert!(found.starts_with(words), "{found}");
    }
}
