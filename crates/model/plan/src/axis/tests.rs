use super::*;
use std::time::Duration;

#[test]
fn each_axis_is_declared_at_its_place_under_its_own_key() {
    for (place, declared) in DECLARATIONS.iter().enumerate() {
        assert_eq!(declared.axis as usize, place, "{}", declared.key);
        let same = DECLARATIONS
            .iter()
            .filter(|other| other.key == declared.key);
        assert_eq!(same.count(), 1, "{}", declared.key);
    }
}

#[test]
fn coordinates_print_as_ids_have_them() {
    let printed = |coordinate: Coordinate| coordinate.to_string();
    assert_eq!(printed(Axis::Mtu.at(1500_u16)), "mtu=1500");
    assert_eq!(printed(Axis::Window.at(4_u64 << 20)), "window=4MiB");
    assert_eq!(printed(Axis::Rate.at(1_500_000_000_u64)), "rate=1.5Gbps");
    assert_eq!(printed(Axis::Rate.at(Value::Open)), "rate=max");
    assert_eq!(printed(Axis::Streams.at(None::<u16>)), "streams=auto");
    let time = Duration::from_millis(1500);
    assert_eq!(printed(Axis::Duration.at(time)), "duration=1.5s");
    assert_eq!(printed(Axis::Tune.at(true)), "tune=on");
}

#[test]
fn coordinates_of_old_journals_print_as_they_did() {
    let group = "tcp/mtu=1500/cores=2/streams=auto/window=4MiB/duration=1.5s/tune=on";
    let parts: Vec<_> = Coordinate::all_in(group)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(format!("tcp/{}", parts.join("/")), group);
}
