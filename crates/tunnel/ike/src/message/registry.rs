//! Numbers assigned by IANA, with names and sources.

/// An assigned number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// The number.
    pub number: u16,
    /// Its name in the registry.
    pub name: &'static str,
    /// The specification, such as `RFC 7296 section 3.3`.
    pub source: &'static str,
    /// Its meaning in a few words.
    pub meaning: &'static str,
}

/// Declares a number of the protocol as a type with a constant for each assigned value. Values
/// without a name are kept: a peer may use a later assignment.
macro_rules! registry {
    (
        $(#[$doc:meta])*
        $name:ident($int:ty);
        $($constant:ident = $value:literal, $source:literal, $meaning:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
            $(
                #[doc = concat!($meaning, " (", $source, ").")]
                pub const $constant: Self = Self($value);
            )*

            /// The assigned values.
            pub const ASSIGNED: &'static [$crate::message::Assigned] = &[
                $($crate::message::Assigned {
                    number: $value,
                    name: stringify!($constant),
                    source: $source,
                    meaning: $meaning,
                },)*
            ];

            /// The assignment of this value, if known.
            #[must_use]
            pub fn assigned(self) -> Option<&'static $crate::message::Assigned> {
                let number = u16::from(self.0);
                Self::ASSIGNED.iter().find(|it| it.number == number)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.assigned() {
                    Some(assigned) => f.write_str(assigned.name),
                    None => write!(f, "{} {}", stringify!($name), self.0),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use registry;
