//! The features of an interface, as `ethtool -k` prints them.

/// A feature of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on.
    pub on: bool,
    /// Whether it should be on: some are off as long as another one is.
    pub wanted: bool,
    /// Whether the driver does not allow a change.
    pub is_fixed: bool,
}

/// Returns all features by their printed names.
pub fn features(text: &str) -> impl Iterator<Item = (&str, Feature)> {
    // Features that belong to another one are indented, and have different names.
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter_map(|(name, state)| {
        let mut words = state.split_ascii_whitespace();
        let on = match words.next()? {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        let wanted = match (words.next(), words.next()) {
            (Some("[requested"), Some(value)) => value == "on]",
            _ => on,
        };
        let feature = Feature {
            on,
            wanted,
            is_fixed: state.contains("[fixed]"),
        };
        Some((name.trim(), feature))
    })
}

/// Returns the members of groups that can be changed and differ from what their group is set to: a
/// group sets all of its members, so these have to be set after it. Each with the printed name of
/// its group.
pub fn uneven_members(text: &str) -> Vec<(&str, &str, Feature)> {
    let mut group = None;
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((name, feature)) = features(line).next() else {
            continue;
        };
        if !line.starts_with('\t') {
            group = Some((name, feature.wanted));
        } else if let Some((group, wanted)) = group
            && !feature.is_fixed
            && feature.wanted != wanted
        {
            found.push((group, name, feature));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn members_that_differ_from_their_group_are_set_after_it() {
        let text = "Features for r0:\n\
                    scatter-gather: on\n\
                    \ttx-scatter-gather: on\n\
                    tcp-segmentation-offload: on\n\
                    \ttx-tcp-segmentation: on\n\
                    \ttx-tcp-ecn-segmentation: off [fixed]\n\
                    \ttx-tcp-mangleid-segmentation: off\n\
                    \ttx-tcp6-segmentation: off [requested on]\n\
                    generic-receive-offload: off\n";
        let found = uneven_members(text);
        let names = found
            .iter()
            .map(|(group, name, it)| (*group, *name, it.wanted));
        assert!(names.eq([(
            "tcp-segmentation-offload",
            "tx-tcp-mangleid-segmentation",
            false
        )]));
    }

    #[test]
    fn reads_what_ethtool_prints() {
        let text = "Features for w0:\n\
                    rx-checksumming: on\n\
                    \ttx-checksum-ipv4: off [fixed]\n\
                    rx-gro-hw: off [fixed]\n\
                    generic-receive-offload: off [requested on]\n";
        let printed: BTreeMap<_, _> = features(text).collect();
        let of = |on, wanted, is_fixed| {
            Some(Feature {
                on,
                wanted,
                is_fixed,
            })
        };
        let get = |name| printed.get(name).copied();
        assert_eq!(get("rx-checksumming"), of(true, true, false));
        assert_eq!(get("tx-checksum-ipv4"), of(false, false, true));
        assert_eq!(get("rx-gro-hw"), of(false, false, true));
        assert_eq!(get("generic-receive-offload"), of(false, true, false));
        assert_eq!(get("Features for w0"), None);
    }
}
