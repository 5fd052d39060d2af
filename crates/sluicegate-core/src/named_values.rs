//! Names of enum values in rules, requests and answers.

use core::fmt;

/// A text that names no value of an enum. Displays as `must be one of a, b, c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName {
    allowed: &'static [&'static str],
}

impl UnknownName {
    /// The error of an enum whose values have these names.
    #[must_use]
    pub const fn new(allowed: &'static [&'static str]) -> Self {
        Self { allowed }
    }

    /// Names that are allowed, in the order of the documentation.
    #[must_use]
    pub const fn allowed(self) -> &'static [&'static str] {
        self.allowed
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be one of ")?;
        for (position, name) in self.allowed.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownName {}

/// Implements `ALL`, `NAMES`, `name`, `Display` and `FromStr` for an enum without fields, from one list of variants
/// and names. Names are case-sensitive.
#[doc(hidden)]
#[macro_export]
macro_rules! named_values {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Every value, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Names of [`ALL`](Self::ALL), in the same order.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name),+];

            /// Name in rules, requests and answers.
            #[inline]
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::core::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> ::core::result::Result<Self, $crate::UnknownName> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownName::new(&Self::NAMES)),
                }
            }
        }
    };
}
