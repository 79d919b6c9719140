//! Whether the machine worked for the trial alone.

use super::*;
use journal::record::MachineCpu;

#[test]
fn a_machine_that_works_for_others_is_reported() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    (fixture.cpu.foreign_ns, fixture.cpu.steal_ns) = (60 * MS, 40 * MS);
    let detail = fixture.detail("machine-was-ours");
    assert!(detail.ends_with("10 % of one core"), "{detail}");
    fixture.cpu.steal_ns = 50 * MS;
    let detail = fixture.detail("machine-was-ours");
    assert!(
        detail.ends_with("11 % of one core; the figure suffers"),
        "{detail}"
    );
}

#[test]
fn a_machine_that_others_kept_from_the_path_spoils_the_figure() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    (fixture.cpu.foreign_ns, fixture.cpu.idle_ns) = (920 * MS, Some(1500 * MS));
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("machine-was-ours");
    assert!(detail.contains("92 % of one core"), "{detail}");
    // Had the others not run, the path could have had more.
    fixture.cpu.idle_ns = Some(100 * MS);
    assert_eq!(fixture.failing(), ["machine-was-ours"]);
    let detail = fixture.detail("machine-was-ours");
    assert!(detail.contains("idle for 100 ms"), "{detail}");
    // Of two hosts each must have been the run's own.
    let of_b = fixture.cpu;
    fixture.cpu.foreign_ns = 0;
    fixture.cpu.machine_b = Some(MachineCpu {
        foreign_ns: of_b.foreign_ns,
        idle_ns: 100 * MS,
        ..MachineCpu::default()
    });
    assert_eq!(fixture.failing(), ["machine-was-ours"]);
    let detail = fixture.detail("machine-was-ours");
    assert!(detail.contains("on host b, other programs"), "{detail}");
    fixture.cpu = of_b;
    // Journals do not need to know it, and little is no reason.
    fixture.cpu.idle_ns = None;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    (fixture.cpu.foreign_ns, fixture.cpu.idle_ns) = (500 * MS, Some(0));
    assert_eq!(fixture.failing(), Vec::<String>::new());
}
