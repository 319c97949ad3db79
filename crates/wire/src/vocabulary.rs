//! Closed lists of string values: enums with the JSON text of each variant.

/// Declares an enum whose variants are string constants of the specification.
macro_rules! vocabulary {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant,)+ }

        impl $name {
            /// Every variant, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text of the variant in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::Rule;

            fn from_str(word: &str) -> Result<Self, $crate::Rule> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::Rule(concat!("is none of", $(" ", $word),+))),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.serialize_str(self.as_str())
            }
        }

        $crate::written::written_as_string!($name);
    )+};
}

pub(crate) use vocabulary;
