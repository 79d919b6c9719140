//! Series: members with one key, which is all that they share.

/// Members with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series<K, M> {
    /// What they share.
    pub key: K,
    /// In the order of the plan.
    pub members: Vec<M>,
}

impl<K: PartialEq, M> Series<K, M> {
    /// Groups members by key, in the order of each key's first member.
    pub fn all(members: impl IntoIterator<Item = (K, M)>) -> Vec<Self> {
        Self::unless(members, |_, _| false)
    }

    /// The same; members that `collide` are in separate series with one key.
    pub fn unless(
        members: impl IntoIterator<Item = (K, M)>,
        collide: impl Fn(&M, &M) -> bool,
    ) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for (key, member) in members {
            let is_of = |series: &&mut Self| {
                let mut known = series.members.iter();
                series.key == key && !known.any(|known| collide(known, &member))
            };
            match found.iter_mut().find(is_of) {
                Some(series) => series.members.push(member),
                None => found.push(Self {
                    key,
                    members: vec![member],
                }),
            }
        }
        found
    }
}
