//! How long frame tests are said to take.

use campaign::{HostFacts, LabFile, from_text};
use plan::{
    Cell, Goal, Measurement,
    estimate::{
        BRING_UP, EVIDENCE_RUN, FLOOD_RUN, FRAMES_AROUND, HANDSHAKE, KME_UP, NOISY_SEARCHES,
        TUNNEL_SET_UP, in_words, noisy_ns,
    },
};
use search::simulate::{Behaviour, Device, run};
use search::{Limits, Method};
use std::time::Duration;

const S: u64 = 1_000_000_000;

/// The cell of a trial of one point.
fn cell(trial: &str) -> Cell {
    let text = format!("campaign: c\nduts: [straight]\ntrials: [{trial}]\n");
    let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign
        .plan(&LabFile::built_in(), &HostFacts { cores: 1 })
        .unwrap();
    plan.cells[0].clone()
}

fn simulated(
    method: Method,
    goals: &[Goal],
    behaviour: Behaviour,
    seed: u64,
    overhead_ns: u64,
) -> Duration {
    let goals: Vec<_> = goals.iter().map(|goal| goal.criteria).collect();
    // Longer than any search needs: its end is to be measured, not its timeout.
    let limits = Limits::time(24 * 3600 * S);
    let mut search = method.start(&goals, 1_000, 1_488_095, limits).unwrap();
    run(&mut *search, &mut Device::new(behaviour, seed), overhead_ns);
    Duration::from_nanos(search.took_ns())
}

#[test]
fn the_time_of_a_search_is_right_within_a_factor_of_four() {
    for (profile, method) in [
        ("fast", Method::Mlr),
        ("rfc2544", Method::Mlr),
        ("tst009", Method::Tst009),
    ] {
        let cell = cell(&format!(
            "throughput: {{ frame: 64 B, profile: {profile} }}"
        ));
        let whole = Duration::from_nanos(cell.estimate_ns);
        let Measurement::Frames(test) = &cell.measurement else {
            panic!("{:?}", cell.measurement);
        };
        let search = test.procedure.search().unwrap();
        let overhead = search.drain_ns + u64::try_from(FRAMES_AROUND.as_nanos()).unwrap();
        // Of the whole, the search alone.
        let evidence = EVIDENCE_RUN + Duration::from_nanos(overhead);
        let flood = FLOOD_RUN + Duration::from_millis(100) + FRAMES_AROUND;
        let estimate = whole - BRING_UP - evidence - flood;
        for seed in 1..20 {
            // Other capacities need other numbers of steps: one alone could be a lucky one.
            let capacity = 700_000 + 10_007 * seed;
            let steady = simulated(
                method,
                &search.goals,
                Behaviour::Hard { capacity },
                seed,
                overhead,
            );
            let noisy = Behaviour::Noisy {
                capacity,
                band_ppm: 100_000,
            };
            let noisy = simulated(method, &search.goals, noisy, seed, overhead);
            for took in [steady, noisy] {
                let times = format!("{profile}: {estimate:?} estimated, {took:?} taken");
                assert!(took < estimate * 4 && estimate < took * 4, "{times}");
            }
            let timeout = Duration::from_nanos(search.timeout_ns);
            assert!(noisy < timeout, "{profile}: {noisy:?} of {timeout:?}");
        }
    }
}

#[test]
fn both_times_are_printed_if_noise_makes_searches_longer() {
    let planned = |trial: &str, cores: u16| {
        let text = format!(
            "campaign: c\nduts: [direct]\nmissing_cores: skip\nrepeats: 1\ntrials: [{trial}]\n"
        );
        let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let plan = campaign.plan(&LabFile::built_in(), &HostFacts { cores });
        plan.unwrap()
    };
    let search = planned("throughput: { frame: 64 B, timeout: 1 h }", 1);
    let once: u64 = search.cells.iter().map(search_ns).sum();
    assert!(once > 0);
    let more = u64::from(NOISY_SEARCHES - 1) * once;
    assert_eq!(noisy_ns(&search) - search.estimate_ns(), more);
    assert!(
        in_words(&search).contains(", with noisy searches about "),
        "{}",
        in_words(&search)
    );
    // No search is longer than its timeout, which is below the usual time here.
    let bounded = planned("throughput: { frame: 64 B, timeout: 1 s }", 1);
    assert_eq!(noisy_ns(&bounded), bounded.estimate_ns());
    let tool = planned("tcp: { mtu: 1500 B, cores: [1, 2] }", 2);
    assert_eq!(noisy_ns(&tool), tool.estimate_ns());
    let words = in_words(&tool);
    assert!(
        words.starts_with("about ") && !words.contains("noisy"),
        "{words}"
    );
    // The cell of two cores is skipped on a host with one.
    let skipping = planned("tcp: { mtu: 1500 B, cores: [1, 2] }", 1);
    assert_eq!(skipping.estimate_ns() * 2, tool.estimate_ns());
    assert_eq!(noisy_ns(&skipping), skipping.estimate_ns());
}

/// Estimated time of a cell's search alone.
fn search_ns(cell: &Cell) -> u64 {
    let around =
        [FLOOD_RUN, EVIDENCE_RUN].map(|it| it + Duration::from_millis(100) + FRAMES_AROUND);
    let around = around.iter().sum::<Duration>() + BRING_UP;
    cell.estimate_ns - u64::try_from(around.as_nanos()).unwrap()
}

#[test]
fn times_count_every_trial_of_a_procedure() {
    let time = |trial: &str| Duration::from_nanos(cell(trial).estimate_ns) - BRING_UP;
    let ms = Duration::from_millis;
    let drained = |trial: u64| ms(trial + 100) + FRAMES_AROUND;
    // Five short trials; then for both goals two loads, each with two trials of the final length.
    let search = drained(100) * 5 + (drained(500) * 2) * 2 * 2;
    // The trial at the highest load before, and that of the evidence after, which `trial` makes.
    let (flood, evidence) = (drained(250), drained(1000));
    let around = flood + evidence;
    assert_eq!(
        time("load: { frame: 64 B, duration: 3 s }"),
        drained(3000) + evidence
    );
    assert_eq!(time("throughput: { frame: 64 B }"), search + around);
    assert_eq!(
        time("throughput: { frame: 64 B, max_load: 1 M frames/s }"),
        search + around
    );
    assert_eq!(
        time("throughput: { frame: 64 B, timeout: 2 s }"),
        ms(2000) + around
    );
    assert_eq!(
        time("throughput: { frame: 64 B, drain: 1 s, timeout: 2 s }"),
        ms(2000) + flood + ms(2000) + FRAMES_AROUND
    );
    assert_eq!(
        time("loss-curve: { frame: 64 B, step: 30 % }"),
        drained(1000) * 4 + around
    );
    assert_eq!(
        time("mrr: { frame: 64 B, trials: 5, duration: 2 s }"),
        drained(2000) * 5 + around
    );
    assert_eq!(
        time("service: { frame: 64 B, cir: 10 kpps, eir: 1 kpps, duration: 2 s, policing: on }"),
        drained(2000) * 6 + evidence
    );
    assert_eq!(
        time("back-to-back: { frame: 64 B, burst: 1 s, bursts: 30 }"),
        drained(1000) * 50 + around
    );
    assert_eq!(
        time("latency: { frame: 64 B, loads: [10 %, 90 %], duration: 4 s }"),
        search + drained(4000) * 2 + around
    );
    assert_eq!(
        time("latency: { frame: 64 B, loads: [10 %, 90 %], duration: 4 s, trials: 20 }"),
        search + drained(4000) * 40 + around
    );
    assert_eq!(
        time("recovery: { frame: 64 B, overload_time: 5 s, relief_time: 3 s }"),
        search + drained(8000) + around
    );
}

#[test]
fn every_tunnel_of_a_key_exchange_takes_time_each_time_that_it_is_set_up() {
    let estimates = |trial: &str| {
        let text = format!(
            "campaign: c\nduts: [{{ strongswan: {{ data_path: libipsec, tunnels: [1, 101] }} }}]\ntrials: [{trial}]\n"
        );
        let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let plan = campaign
            .plan(&LabFile::built_in(), &HostFacts { cores: 1 })
            .unwrap();
        let times = plan.cells.iter().map(|cell| cell.estimate_ns);
        <[u64; 2]>::try_from(times.collect::<Vec<_>>()).unwrap()
    };
    let further = u64::try_from((TUNNEL_SET_UP * 100).as_nanos()).unwrap();
    for (trial, set_ups) in [
        ("ping: { mtu: 1400 B }", 1),
        // Once for the trial, once to learn its duration, and then as often as configured.
        ("setup: { frame: 512 B, load: 2 kpps, times: 5 }", 7),
    ] {
        let [one, many] = estimates(trial);
        assert_eq!(many - one, set_ups * further, "{trial}");
    }
}

#[test]
fn keys_that_are_agreed_on_take_a_handshake_a_tunnel_and_qkd_its_kmes() {
    let estimate = |settings: &str, trial: &str| {
        let text =
            format!("campaign: c\nduts: [cipherbench: {{ {settings} }}]\ntrials: [{trial}]\n");
        let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let plan = campaign
            .plan(&LabFile::built_in(), &HostFacts { cores: 1 })
            .unwrap();
        let cells = plan.cells.iter().filter(|cell| !cell.calibration);
        let times: Vec<_> = cells.map(|cell| cell.estimate_ns).collect();
        assert_eq!(times.len(), 1);
        Duration::from_nanos(times[0])
    };
    let ping = "ping: { mtu: 1400 B }";
    let is_static = estimate("tunnels: 100", ping);
    // Static keys of any number of tunnels are in force when the process starts.
    assert_eq!(estimate("tunnels: 1", ping), is_static);
    for (keys, kmes) in [("pqc", 0), ("ppk", 0), ("qkd", 1), ("both", 1)] {
        let took = estimate(&format!("tunnels: 100, keys: {keys}"), ping);
        assert_eq!(took - is_static, HANDSHAKE * 100 + KME_UP * kmes, "{keys}");
    }
    // Once for the trial, once to learn its duration, and then as often as configured.
    let setup = "setup: { frame: 64 B, load: 100 frames/s, times: 2 }";
    let took = estimate("keys: pqc", setup) - estimate("keys: static", setup);
    assert_eq!(took, HANDSHAKE * (1 + 1 + 2));
}
