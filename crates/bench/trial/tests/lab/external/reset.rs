//! A box that restarts by its own command.

use super::*;

/// The second box is killed and started by a command; one that does nothing is found out.
pub(super) fn reset() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let procedure = || {
        Procedure::Disturbed(Disturbed {
            load: BaseLoad::Given { frames_per_s: 1000 },
            event: Event::Reset {
                kind: Reset::Command,
                times: 2,
                watch_ns: 1_500_000_000,
            },
        })
    };
    let cell = frames(adapter(sealing(&rack)), short(Direction::Both), procedure());
    let measured = lab.measured(&cell);
    assert_sealed(&measured);
    assert!(passes(&measured, "device-restarted") && passes(&measured, "carries-afterwards"));
    let result = measured.frames().unwrap();
    let events = &result.disturbances()[0].events;
    assert_eq!(events.len(), 2);
    for event in events {
        assert!(event.lost > 0 && event.outage_ns.is_some(), "{event:?}");
    }
    let mut idle = sealing(&rack);
    idle.boxes[1].reset = Some("true".to_owned());
    match lab
        .record(&frames(adapter(idle), short(Direction::Both), procedure()))
        .outcome
    {
        Outcome::Invalid { reasons, .. } => {
            let found = reasons
                .iter()
                .any(|reason| reason.starts_with("device-restarted"));
            assert!(found, "{reasons:#?}");
        }
        other => panic!("{other:#?}"),
    }
    drop(lab);
    assert!(rack.has_all_back());
}
