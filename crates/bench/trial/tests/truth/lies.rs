//! Lies of devices, and packets of others, with the check that finds each.

use crate::bench::plan_of;
use crate::evidence::WARNING;
use crate::watched::{Lie, Stretch};
use plan::Plan;

/// A lie with its expected outcome.
pub(crate) struct LieCase {
    pub(crate) name: &'static str,
    pub(crate) dut: &'static str,
    pub(crate) contents: &'static str,
    pub(crate) lie: Lie,
    /// What finds it; `None`: nothing does.
    pub(crate) found_by: Option<&'static str>,
}

/// The lies.
pub(crate) fn cases() -> Vec<LieCase> {
    let case = |name, dut, contents, lie, found_by| LieCase {
        name,
        dut,
        contents,
        lie,
        found_by,
    };
    let (ours, others) = ("cipherbench", "xfrm");
    let (watched, amount) = (Some("trials-watched"), Some("cipher-link-amount"));
    let sealed = Some("trials-sealed");
    let links = Some("links-carried-the-load");
    let past = |one_in| Lie::PastTheLinkOneIn(one_in);
    let with = |on| Lie::Foreign {
        on,
        against: false,
        one_in: 100.0,
    };
    let against = |on, one_in| Lie::Foreign {
        on,
        against: true,
        one_in,
    };
    vec![
        case("none", ours, "fixed", Lie::None, None),
        case("none", others, "random", Lie::None, None),
        case(
            "one frame in 100 in clear",
            ours,
            "fixed",
            Lie::ClearOneIn(100.0),
            watched,
        ),
        case(
            "one frame in 100 000 in clear",
            ours,
            "fixed",
            Lie::ClearOneIn(100_000.0),
            watched,
        ),
        case(
            "one frame in 100 000 in clear",
            others,
            "fixed",
            Lie::ClearOneIn(100_000.0),
            watched,
        ),
        case(
            "one flow of eight in clear",
            ours,
            "fixed",
            Lie::ClearFlowOf(8.0),
            watched,
        ),
        case(
            "one frame in 50 past the link",
            ours,
            "fixed",
            past(50.0),
            amount,
        ),
        case(
            "one frame in 50 past the link",
            others,
            "fixed",
            past(50.0),
            amount,
        ),
        case(
            "one frame in 10 000 past the link, and not counted",
            ours,
            "fixed",
            Lie::PastTheLinkUncountedOneIn(10_000.0),
            sealed,
        ),
        case(
            "one frame in 10 000 past the link",
            ours,
            "fixed",
            past(10_000.0),
            amount,
        ),
        case(
            "one frame in 10 000 past the link",
            others,
            "fixed",
            past(10_000.0),
            amount,
        ),
        case(
            "compresses by a third",
            ours,
            "fixed",
            Lie::Compresses(1.0 / 3.0),
            amount,
        ),
        case(
            "compresses by 2 %",
            others,
            "fixed",
            Lie::Compresses(0.02),
            amount,
        ),
        case(
            "compresses by a third",
            ours,
            "random",
            Lie::Compresses(1.0 / 3.0),
            None,
        ),
        case(
            "remembers payload, pads it to its length",
            ours,
            "fixed",
            Lie::Remembers(1.0 / 3.0),
            None,
        ),
        case(
            "remembers payload, pads it to its length",
            ours,
            "random",
            Lie::Remembers(1.0 / 3.0),
            None,
        ),
        case(
            "counts 10 % more than was sent",
            ours,
            "fixed",
            Lie::CountsMore(10.0),
            sealed,
        ),
        case(
            "counts 1 % less than it carries",
            ours,
            "fixed",
            Lie::CountsLess(1.0),
            sealed,
        ),
        case(
            "counts what it lost as put out",
            ours,
            "fixed",
            Lie::CountsTheLost,
            Some(WARNING),
        ),
        case(
            "one frame of others for 100 of the load",
            ours,
            "fixed",
            with(Stretch::Path),
            Some("only-test-frames"),
        ),
        case(
            "one frame of others for 100 of the load",
            others,
            "random",
            with(Stretch::Path),
            Some("only-test-frames"),
        ),
        case(
            "one ARP broadcast on the sending station's link for 100 of the load",
            ours,
            "fixed",
            with(Stretch::SourceLink),
            links,
        ),
        case(
            "one ARP broadcast between the gateways for 100 of the load",
            ours,
            "fixed",
            with(Stretch::CipherLink),
            links,
        ),
        case(
            "one ARP broadcast on the receiving station's link for 100 of the load",
            ours,
            "fixed",
            with(Stretch::SinkLink),
            Some("only-test-frames"),
        ),
        case(
            "one packet of others against the load for 100 of it, through the device",
            ours,
            "fixed",
            against(Stretch::Path, 100.0),
            links,
        ),
        case(
            "one packet of others against the load for 100 of it, through the device",
            others,
            "random",
            against(Stretch::Path, 100.0),
            links,
        ),
        case(
            "one packet of others against the load for 1000 of it, through the device",
            ours,
            "fixed",
            against(Stretch::Path, 1000.0),
            links,
        ),
        case(
            "one packet of others against the load for 10 000 of it, through the device",
            ours,
            "fixed",
            against(Stretch::Path, 10_000.0),
            None,
        ),
        case(
            "one ARP broadcast against the load for 100 of it, on the sending station's link",
            ours,
            "fixed",
            against(Stretch::SourceLink, 100.0),
            links,
        ),
        case(
            "one ARP broadcast against the load for 100 of it, between the gateways",
            others,
            "random",
            against(Stretch::CipherLink, 100.0),
            links,
        ),
        case(
            "one ARP broadcast against the load for 100 of it, between the gateways",
            ours,
            "fixed",
            against(Stretch::CipherLink, 100.0),
            links,
        ),
        case(
            "one ARP broadcast against the load for 100 of it, on the receiving station's link",
            ours,
            "fixed",
            against(Stretch::SinkLink, 100.0),
            links,
        ),
        case(
            "counts one packet against the load for 100 of it that nobody sent",
            ours,
            "fixed",
            Lie::CountsAgainstOneIn(100.0),
            Some("sealed-as-sent"),
        ),
    ]
}

/// The campaign of a lie. Packets of 491 B have the most padding, in which something could hide.
pub(crate) fn lie_plan(case: &LieCase) -> Plan {
    plan_of(
        case.dut,
        &format!(
            "throughput: {{ frame: 509 B, profile: fast, contents: {} }}",
            case.contents
        ),
    )
}
