//! The weight of a warning for a printed figure.

use super::WarningKind;

/// The effect of a condition on a figure that is printed elsewhere: in a data sheet, or a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The figure is misleading: it should be measured again, or not printed.
    Spoils,
    /// The figure is true under this condition only, which must be printed next to it.
    Qualifies,
    /// It is good to know, and changes no figure.
    Informs,
}

impl WarningKind {
    /// Returns the effect of the condition on a printed figure.
    #[must_use]
    pub const fn weight(self) -> Weight {
        self.in_print().0
    }

    /// The condition in a few words, for a list: `too few repeats`.
    #[must_use]
    pub const fn in_short(self) -> &'static str {
        self.in_print().1
    }

    const fn in_print(self) -> (Weight, &'static str) {
        use Weight::{Informs, Qualifies, Spoils};
        match self {
            Self::Insecure => (Spoils, "a device that does not protect data"),
            Self::NotEnded => (Spoils, "the run is not complete"),
            Self::Contradiction => (Spoils, "a record contradicts itself"),
            Self::EnvironmentChanged => (Spoils, "the machine or program changed during the run"),
            Self::FewRepeats => (Spoils, "too few repeats"),
            Self::LargeSpread => (Spoils, "repeats differ widely"),
            Self::TwoBands => (Spoils, "repeats fall in two bands"),
            Self::IntervalsApart => (Spoils, "the rate changed during a trial"),
            Self::NotProven => (Spoils, "nothing observed that the traffic was encrypted"),
            Self::OtherWorkers => (Spoils, "the device ran with other threads than configured"),
            Self::MachineTaken => (Spoils, "other programs used the machine"),
            Self::ClockStepped => (Spoils, "the clock was set during a trial"),
            Self::SenderStalled => (Spoils, "the sender stood still"),
            Self::ReceiverStalled => (Spoils, "the receiver stood still"),
            Self::GeneratorLimited => (Spoils, "the traffic tool is the limit"),
            Self::OfferedShortfall => (Spoils, "less was offered than intended"),
            Self::QueueDrained => (Spoils, "a queue carried part of the load"),
            Self::CarriedByQueue => (Spoils, "a queue carried part of the load"),
            Self::CountersDisagree => (Spoils, "counters disagree"),
            Self::LossyEvidence => (Spoils, "the trial with the evidence lost frames"),
            Self::DamagedFrames => (Spoils, "frames came out damaged or twice"),
            Self::HostileDelivered => (Spoils, "forged or replayed frames came through"),
            Self::FailsOpen => (Spoils, "a dead device lets clear traffic pass"),
            Self::ToolsDisagree => (Spoils, "two tools measure different figures"),
            Self::WrongResults => (Spoils, "a device gave wrong results"),
            Self::DeviceFailed => (Spoils, "a device failed under load"),
            Self::CardEqualsCpu => (Spoils, "the card seems to do no work"),
            Self::WorkNotShown => (Spoils, "it is not shown what did the work"),
            Self::FailedOperations => (Spoils, "operations failed"),
            Self::UncheckedResults => (Spoils, "no result was checked"),
            Self::NotTogether => (Spoils, "workers did not run in parallel"),
            Self::UnsteadySpeed => (Spoils, "the speed changed during a trial"),
            Self::HostileShortfall => (Spoils, "fewer hostile packets were sent than configured"),
            Self::UnexplainedRetransmissions => (Spoils, "TCP sent again more than was lost"),
            Self::SharedCores => (Spoils, "shared cores"),
            Self::SuperPackets => (Spoils, "packets longer than the MTU"),
            Self::NoChecksums => (Qualifies, "an old journal without checksums"),
            Self::Repeated => (Qualifies, "invalid trials were repeated"),
            Self::SittingsApart => (Qualifies, "repeats are from several sittings"),
            Self::OneApart => (Qualifies, "one repeat lies apart"),
            Self::LostPing => (Qualifies, "echo requests were lost"),
            Self::OneWayLoss => (Qualifies, "echo requests were lost in one direction"),
            Self::NoBaseline => (Qualifies, "no baseline"),
            Self::TesterLimited => (Qualifies, "the tester is the limit: at least this much"),
            Self::LostAt => (Qualifies, "packets were lost on the way"),
            Self::VirtualMachine => (Qualifies, "a virtual machine"),
            Self::Governor => (Qualifies, "the clock frequency may change"),
            Self::SiblingCores => (Qualifies, "two threads of one core stand for two cores"),
            Self::Irregular => (Qualifies, "irregular search results"),
            Self::SearchTimedOut => (Qualifies, "searches ran out of time"),
            Self::NarrowGoal => (Qualifies, "a goal is narrower than its loss"),
            Self::UnequalGoals => (Qualifies, "goals of unequal duration"),
            Self::HeldShortly => (Qualifies, "rates were held for less than 60 s"),
            Self::DirectionsApart => (Qualifies, "one direction lost more"),
            Self::NoCalibration => (Qualifies, "the tester's own limit is not known"),
            Self::NotRecovered => (Qualifies, "the device did not recover"),
            Self::QuietLoss => (Qualifies, "frames were lost without the disturbance too"),
            Self::OneTunnel => (Qualifies, "tools use one tunnel only"),
            Self::SilentCap => (Qualifies, "a device stops scaling though cores are idle"),
            Self::FewCheckedResults => (Qualifies, "few results were checked"),
            Self::Captured => (Qualifies, "frames were captured, which costs time"),
            Self::CaptureIncomplete => (Informs, "a capture is incomplete"),
            Self::UnfinishedLine => (Informs, "the journal's last line was unfinished"),
            Self::SecretsKept => (Informs, "keys are in the run's folder"),
        }
    }
}
