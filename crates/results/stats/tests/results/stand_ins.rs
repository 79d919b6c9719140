//! Verdicts where a station stands for the peer of a device.

use crate::frame_fixture::*;
use plan::*;
use stats::{Limit, Results};
use wire::Suite;

/// The rig's stations use AES-256-GCM: with ChaCha20-Poly1305 a station may itself be the limit.
#[test]
fn a_station_that_is_a_slower_peer_of_another_device_may_be_the_limit() {
    let bounds = [400, 402, 398].map(|kpps| (Some(kpps * 1_000), Some(kpps * 1_010)));
    let limit_of = |adapter: Adapter, direction| {
        let in_direction = |mut cell: Cell| {
            if let Measurement::Frames(test) = &mut cell.measurement {
                test.traffic.direction = direction;
            }
            cell
        };
        let mut device = in_direction(throughput("auto", 64));
        device.dut.adapter = adapter;
        let rig = in_direction(throughput("straight", 64));
        limit(&Results::of(&searched(&[(device, &bounds), (rig, &RIG)])).cells[0])
    };
    let wireguard = || {
        Adapter::WireGuard(WireGuard {
            program: WireGuardProgram::Go,
        })
    };
    let strongswan = |suite| {
        Adapter::StrongSwan(StrongSwan {
            data_path: DataPath::Libipsec,
            suite,
            auth: IkeAuth::Psk,
            ppk: false,
            ml_kem: false,
            tunnels: 1,
        })
    };
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        assert_eq!(limit_of(wireguard(), direction), Limit::Inconclusive);
        let slow = strongswan(Suite::ChaCha20Poly1305);
        assert_eq!(limit_of(slow, direction), Limit::Inconclusive);
        let same = strongswan(Suite::Aes256Gcm);
        assert_eq!(limit_of(same, direction), Limit::DutLimited);
    }
    assert_eq!(limit_of(wireguard(), Direction::Both), Limit::DutLimited);
}
