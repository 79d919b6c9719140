//! The keys at the top of a campaign, in the order of `docs/campaign.md`.

use crate::lab::LabFile;
use crate::{capture, claim, dut, expect, impairment, trial};
use plan::Plan;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Absent, Key, Value};

/// Keys at the top of a campaign file.
#[rustfmt::skip]
pub const CAMPAIGN_KEYS: &[Key] = &[
    Key::new("campaign", Value::Identifier(Plan::NAME_CHARS_MAX), Required,
        "Name of the campaign, part of the name of its runs' folders"),
    Key::new("title", Value::Text, Depends("empty"), "Heading of the report")
        .range("one line, 200 characters"),
    REPEATS,
    Key::new("order", Value::Name(|| Value::names(&ORDERS)), Default("random"),
        "Order of the cells within a repeat, see [Axes and cells](#axes-and-cells)"),
    Key::new("lab", Value::Name(|| LabFile::built_in_names().to_vec()),
        Depends("`device` for `devices`, else `namespaces`"),
        "Built-in [lab](lab.md) for the measurement if `--lab` names none; a \
         [fleet](fleet.md#jobs) takes the lab of that name"),
    Key::new("seed", Value::Integer(0, u32::MAX as u64), Depends("drawn"),
        "Seed of the random order; the journal records it")
        .range("0 to 4294967295, not with `order: file`"),
    Key::new("missing_cores", Value::Name(|| Value::names(&MISSING_CORES)), Default("refuse"),
        "Handling of cells that need more cores than this host has: the campaign is refused, or \
         they are left out: the journal has the reason, the report one line, and the other trials \
         determine the exit code"),
    Key::new("calibrate", Value::Switch, Default("on"),
        "Measure the tester itself in every group of frame tests, see [Calibration](#calibration)"),
    duts(Depends("*required*, but with `devices`")),
    DEVICES,
    Key::new("impairments", impairment::VALUE, Depends("none"),
        "Profiles of impaired paths by name, see [Impairments](#impairments)")
        .range("at most 100").apart(),
    trials(Required),
    Key::new("claims", Value::List(&Value::Map(claim::KEYS)), Depends("none"),
        "Figures that data sheets claim for the DUTs, see [Claims](#claims)")
        .range("at most 100, not with `devices`").excludes(&["devices"]).apart(),
    Key::new("expect", expect::VALUE, Depends("none"),
        "Limits that the figures must keep, each met, violated or undecided, see \
         [Limits](#limits)").words("list of gates").range("at most 100").apart(),
    Key::new("capture", capture::VALUE, Depends("none"),
        "Frames of each trial that are kept in the run's folder, see [Captures](#captures)")
        .words("place, list or map").range("not with `devices`").apart(),
    // Any text: files can be named too, relative to the campaign.
    Key::new("published", Value::OneOrMany(&Value::Text), Depends("none"),
        "Published reports: their figures are printed next to the figures of matching cells, see \
         [Published reports](#published-reports)")
        .words("name or list")
        .range("`vut-fekt-100g`, `baikal-gost`, `vipnet-scaling`, `crypto-card`, `lancom-lcos`, \
                or a file `.toml`, `.csv` or `.md`"),
    Key::new("quick", Value::Map(QUICK), Depends("none"),
        "Keys that replace the campaign's with `run --quick` and `plan --quick`: a short form")
        .range("`repeats`, `duts` or `devices`, `trials`").apart(),
];

/// Keys of `quick`.
pub(crate) const QUICK: &[Key] = &[REPEATS, duts(IN_FULL), DEVICES, trials(IN_FULL)];
const IN_FULL: Absent = Depends("the campaign's");

#[rustfmt::skip]
const REPEATS: Key = Key::new("repeats", Value::Integer(1, Plan::REPEATS_MAX as u64), Default("3"),
    "Times that each cell is measured");
#[rustfmt::skip]
const DEVICES: Key = Key::new("devices", dut::DEVICES, Depends("none"),
    "Crypto devices; they and their trials are described in [devices](devices.md)")
    .range("instead of `duts`").excludes(&["duts"]).apart();

const fn duts(absent: Absent) -> Key {
    let meaning = "The devices under test, see below";
    Key::new("duts", dut::DUTS, absent, meaning)
        .range("at least one")
        .apart()
}

const TRIALS: Value = Value::List(&Value::Kinds(trial::kinds));
const fn trials(absent: Absent) -> Key {
    Key::new("trials", TRIALS, absent, "The measurements, see below")
        .range("at least one")
        .apart()
}

pub(crate) const ORDERS: [(&str, bool); 2] = [("random", true), ("file", false)];
pub(crate) const MISSING_CORES: [(&str, bool); 2] = [("refuse", false), ("skip", true)];
