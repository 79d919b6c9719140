//! Series on machines of known size.

use super::*;
use crate::figures::estimate::{Estimate, Sample};

fn estimate(values: &[f64]) -> Estimate {
    let samples = (1..)
        .zip(values)
        .map(|(repeat, &value)| Sample { repeat, value });
    Estimate::of(samples.collect()).unwrap()
}

/// A number, the repeats in Gbit/s, and idle cores.
fn point(n: u32, gbit_per_s: &[f64], idle_cores: Option<f64>) -> ScalingPoint {
    let values: Vec<f64> = gbit_per_s.iter().map(|rate| 1e9 * rate).collect();
    ScalingPoint {
        n,
        cell: format!("tcp/w{n}"),
        figure: (!values.is_empty()).then(|| estimate(&values)),
        speedup: None,
        efficiency: None,
        dut_cores: Some(f64::from(n.min(14))),
        idle_cores,
        limited_by: None,
    }
}

fn analysed(axis: ScalingAxis, points: Vec<ScalingPoint>) -> Scaling {
    let level = Level::of(p_values(&curve(&points)).flatten());
    Scaling::of_points(axis, points, ScalingUnit::PayloadBps, level).unwrap()
}

/// Published figures of a software VPN on two servers of 20 cores (habr.com, 2016, "ViPNet Client /
/// Coordinator"): one thread 262.5 Mbit/s; with 20 threads 3.24 and 3.36 Gbit/s by two tools, both
/// ends loaded to 68 to 76 %; with 14 the same rate. Its authors: the product does not scale past
/// 14 threads.
fn published() -> Vec<ScalingPoint> {
    vec![
        point(1, &[0.2625, 0.2625], Some(19.0)),
        point(14, &[3.24, 3.36], Some(6.0)),
        point(20, &[3.24, 3.36], Some(20.0 * (1.0 - 0.72))),
    ]
}

#[test]
fn the_published_product_stops_scaling_at_14() {
    let found = analysed(ScalingAxis::Workers, published());
    assert_eq!(found.stop_n, Some(14));
    assert_eq!(found.verdict, "stops scaling at 14 workers");
    assert_eq!(found.falls_from_n, None);
    let at_14 = &found.points[1];
    let (speedup, efficiency) = (at_14.speedup.unwrap(), at_14.efficiency.unwrap());
    // The geometric mean over two repeats.
    let middle = (3.24_f64 * 3.36).sqrt() / 0.2625;
    assert!((speedup.ratio - middle).abs() < 1e-9);
    assert!((efficiency.ratio - middle / 14.0).abs() < 1e-9);
    // Two tools: 12.7 times the standard error of their logarithms.
    let reach = (12.7062 * (3.36_f64 / 3.24).ln() / 2.0).exp();
    assert!((speedup.low.unwrap() / (middle / reach) - 1.0).abs() < 1e-5);
    assert!((speedup.high.unwrap() / (middle * reach) - 1.0).abs() < 1e-5);
}

#[test]
fn its_three_points_are_not_fitted_and_the_reason_is_reported() {
    let found = analysed(ScalingAxis::Workers, published());
    assert_eq!(found.fits, []);
    assert!(found.no_fit.unwrap().ends_with("there are 3"));
}

#[test]
fn its_limit_is_a_silent_cap_as_cores_were_idle() {
    let cap = analysed(ScalingAxis::Workers, published()).cap.unwrap();
    assert_eq!((cap.from_n, cap.at_n), (14, 20));
    assert!((cap.idle_cores - 5.6).abs() < 1e-9);
}

#[test]
fn a_stop_is_no_cap_where_something_else_explains_it() {
    // Each series has one other explanation: no idle core, a known limit at the stop or past it, a
    // fall, and idle cores or device cores that are unknown.
    let mut busy = published();
    busy[2].idle_cores = Some(0.4);
    let mut by_tester = published();
    by_tester[1].limited_by = Some("tester".into());
    let mut by_machine = published();
    by_machine[2].limited_by = Some("machine".into());
    let mut falls = published();
    falls[2].figure = Some(estimate(&[2.5e9, 2.59e9]));
    let mut unknown = published();
    unknown[2].idle_cores = None;
    let mut elsewhere = published();
    elsewhere[2].dut_cores = None;
    for points in [busy, by_tester, by_machine, falls, unknown, elsewhere] {
        assert_eq!(analysed(ScalingAxis::Workers, points).cap, None);
    }
}

#[test]
fn the_limit_at_the_stop_is_reported_with_it() {
    let mut points = published();
    points[2].limited_by = Some("tester".into());
    assert_eq!(
        analysed(ScalingAxis::Workers, points).verdict,
        "stops scaling at 14 workers; tester-limited at 20: the device may do more"
    );
    let mut points = published();
    points[2].limited_by = Some("machine".into());
    assert_eq!(
        analysed(ScalingAxis::Workers, points).verdict,
        "stops scaling at 14 workers; machine-limited at 20: stations and device share cores, or a station \
         has no idle time"
    );
}

#[test]
fn a_fall_is_reported_with_the_remaining_share() {
    let points = [(1, 1.0), (2, 2.0), (4, 3.6), (8, 3.0), (16, 2.7)];
    let points = points.map(|(n, rate)| point(n, &[rate, rate * 1.01], None));
    let found = analysed(ScalingAxis::Workers, points.to_vec());
    assert_eq!(
        found.verdict,
        "stops scaling at 4 workers; falls from 8 on: 16 carry 75 % of the peak at 4"
    );
    let usl = found.fits.iter().find(|fit| fit.law == Law::Usl).unwrap();
    assert!(
        usl.peak_n.is_some_and(|peak| (4.0..9.0).contains(&peak)),
        "{usl:?}"
    );
}

#[test]
fn a_curve_that_rises_to_the_end_does_not_stop() {
    let points = [1, 2, 4, 8].map(|n| point(n, &[f64::from(n), f64::from(n)], Some(8.0)));
    let found = analysed(ScalingAxis::Workers, points.to_vec());
    assert_eq!(found.verdict, "rises to 8 workers, the largest measured");
    assert_eq!((found.stop_n, found.cap), (None, None));
    assert!(
        found
            .points
            .iter()
            .all(|point| (point.efficiency.unwrap().ratio - 1.0).abs() < 1e-9)
    );
    assert!(
        found
            .fits
            .iter()
            .all(|fit| fit.alpha < 1e-9 && fit.describes)
    );
}

#[test]
fn tunnels_hold_or_fall_and_have_no_efficiency() {
    let rates = [(1, 3.0), (10, 3.01), (100, 2.9), (1000, 1.5)];
    let points = rates.map(|(n, rate)| point(n, &[rate, rate], Some(4.0)));
    let found = analysed(ScalingAxis::Tunnels, points.to_vec());
    assert_eq!(
        found.verdict,
        "falls from 100 on: 1000 carry 50 % of the peak at 10"
    );
    assert!(
        found
            .points
            .iter()
            .all(|point| point.efficiency.is_none() && point.speedup.is_some())
    );
    assert!(found.fits.is_empty() && found.no_fit.is_some() && found.cap.is_none());
    let found = analysed(ScalingAxis::Tunnels, points[..2].to_vec());
    assert_eq!(found.verdict, "holds to 10 tunnels, the largest measured");
}

#[test]
fn a_number_without_a_figure_is_left_out_of_the_analysis_and_stays_in_the_series() {
    let mut points = published();
    points.insert(1, point(4, &[], None));
    let found = analysed(ScalingAxis::Workers, points);
    assert_eq!((found.points.len(), found.stop_n), (4, Some(14)));
    assert_eq!(found.points[1].speedup, None);
    let alone = vec![point(1, &[1.0], None), point(2, &[], None)];
    assert_eq!(
        Scaling::of_points(
            ScalingAxis::Cores,
            alone,
            ScalingUnit::PayloadBps,
            Level::default()
        ),
        None
    );
}

#[test]
fn without_one_the_smallest_number_is_the_base() {
    // The efficiency is relative to the base of 2, so it does not show a loss below that.
    let points = [2, 4, 8].map(|n| point(n, &[f64::from(n) * 0.9], None));
    let found = analysed(ScalingAxis::Cores, points.to_vec());
    assert_eq!(found.base_n, 2);
    let last = &found.points[2];
    assert!((last.speedup.unwrap().ratio - 4.0).abs() < 1e-9);
    assert!((last.efficiency.unwrap().ratio - 1.0).abs() < 1e-9);
}

/// Before, `up to 97164438590491920 % more is possible`.
#[test]
fn a_gain_that_the_repeats_do_not_limit_has_no_number() {
    let points = [(1, [1.0, 1.3]), (2, [1.5, 1.1]), (4, [1.0, 1.6])];
    let points = points.map(|(n, figures)| point(n, &figures, None));
    let found = analysed(ScalingAxis::Workers, points.to_vec());
    assert_eq!(
        found.verdict,
        "no certain gain past 1 worker: any amount more is possible"
    );
    let texts = [12.4, 100.0, 100.6, 9.7e16, f64::INFINITY].map(shape::up_to);
    assert_eq!(
        texts,
        [
            "up to 12 %",
            "up to 100 %",
            "any amount",
            "any amount",
            "any amount"
        ]
    );
}

#[test]
fn single_repeats_show_no_stop_and_no_cap() {
    let points = [1, 2, 4].map(|n| point(n, &[1.0], Some(8.0)));
    let found = analysed(ScalingAxis::Workers, points.to_vec());
    assert_eq!(
        found.verdict,
        "no certain gain past 1 worker: any amount more is possible"
    );
    assert_eq!((found.stop_n, found.no_sure_gain_past_n), (None, Some(1)));
    assert_eq!(found.cap, None);
    // Equal repeats have an interval of no width, which excludes any gain.
    let points = [1, 2, 4].map(|n| point(n, &[1.0, 1.0], Some(8.0)));
    assert!(
        analysed(ScalingAxis::Workers, points.to_vec())
            .cap
            .is_some()
    );
    let points = [1, 10].map(|n| point(n, &[1.0], Some(8.0)));
    assert_eq!(
        analysed(ScalingAxis::Tunnels, points.to_vec()).verdict,
        "no certain fall to 10, the largest measured: any amount less is possible"
    );
}

#[test]
fn a_large_spread_shows_no_stop_and_hides_a_cap() {
    let repeats = [[0.93, 1.0, 1.07], [1.07, 0.93, 1.0], [1.0, 1.07, 0.93]];
    let points = [1, 2, 4].into_iter().zip(repeats);
    let points: Vec<ScalingPoint> = points.map(|(n, all)| point(n, &all, Some(8.0))).collect();
    let found = analysed(ScalingAxis::Workers, points);
    assert!(
        found
            .verdict
            .starts_with("no certain gain past 1 worker: up to "),
        "{}",
        found.verdict
    );
    assert_eq!((found.stop_n, found.cap), (None, None));
}
