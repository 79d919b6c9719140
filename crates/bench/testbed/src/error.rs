//! The error of a lab.

/// The result of a lab's operation.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// An error of a lab. Its text says what failed, on which node, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The host cannot build this lab (privilege, kernel feature, tool): exit code 3.
    #[error("{what}\nhelp: {help}")]
    CannotBuild {
        /// The missing requirement.
        what: String,
        /// The command or setting that fixes it.
        help: String,
    },
    /// Another run holds the lab's name: exit code 3.
    #[error(
        "lab `{name}` is in use by process {pid}\nhelp: wait for it, or give this lab another name"
    )]
    Taken {
        /// The lab's name.
        name: String,
        /// Process id of the holder.
        pid: u32,
    },
    /// A station answered with an error, or stopped answering.
    #[error("{node}: {reason}")]
    Node {
        /// Which.
        node: &'static str,
        /// Its error, or what happened to it.
        reason: String,
    },
    /// The DUT did not come up or died.
    #[error("the device under test `{dut}` {reason}")]
    Dut {
        /// [`plan::Dut::name`].
        dut: String,
        /// What happened, with the end of its output.
        reason: String,
    },
    /// The run was interrupted (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// The host cannot build the lab: the missing requirement, and how to fix it.
    pub fn cannot_build(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::CannotBuild {
            what: what.into(),
            help: help.into(),
        }
    }

    /// The error for a peer's secret that the station cannot read.
    #[must_use]
    pub fn unread_secret(dut: &str, reason: &str) -> Self {
        Self::dut(
            dut,
            format!("cannot have the station as its peer: {reason}"),
        )
    }

    /// The DUT of that name did not come up or died.
    pub fn dut(dut: &str, reason: impl Into<String>) -> Self {
        Self::Dut {
            dut: dut.to_owned(),
            reason: reason.into(),
        }
    }

    /// Appends a help line to a station's or a DUT's error if its reason contains `words`.
    #[must_use]
    pub fn help_for(mut self, words: &str, help: &str) -> Self {
        // The other errors have their help already.
        if let Self::Node { reason, .. } | Self::Dut { reason, .. } = &mut self
            && reason.contains(words)
        {
            *reason += &format!("\nhelp: {help}");
        }
        self
    }

    /// Turns a station's error during the build of a lab into a cannot-build error. `whose` maps
    /// the station's name to the prefix of the reason; `help` is for a reason without help.
    #[must_use]
    pub fn into_cannot_build(self, whose: impl FnOnce(&str) -> String, help: &str) -> Self {
        match self {
            Self::Node { node, reason } => {
                // The station knows better than the caller what to do. Its reason is one text on
                // the way here, since replies of a station have no separate help.
                let (what, help) = reason.rsplit_once("\nhelp: ").unwrap_or((&reason, help));
                Self::cannot_build(format!("{}: {what}", whose(node)), help)
            }
            error => error,
        }
    }

    /// Turns a station's error into the DUT's; `reason` gets the station's name and its reason.
    #[must_use]
    pub fn into_dut(self, dut: &str, reason: impl FnOnce(&str, &str) -> String) -> Self {
        match self {
            Self::Node { node, reason: said } => Self::dut(dut, reason(node, &said)),
            // An interrupt ends the run, and what the host lacks is no fault of the DUT.
            error => error,
        }
    }
}
