//! Values that are one of a few words.

/// An enum whose values are words: written, listed, stored by name.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident: $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of a listing.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// What one of them is called in a sentence.
            pub(crate) const WHAT: &'static str = $what;

            /// The word for it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one with that word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = String::deserialize(from)?;
                Self::named(&word).ok_or_else(|| {
                    serde::de::Error::custom(format!("unknown {} '{word}'", $what))
                })
            }
        }

        impl $crate::words::Word for $name {
            const WHAT: &'static str = Self::WHAT;

            fn all() -> &'static [Self] {
                Self::ALL
            }

            fn word(self) -> &'static str {
                self.name()
            }
        }
    };
}
pub(crate) use words;

/// What the reader of values needs to know of such an enum.
pub(crate) trait Word: Copy + 'static {
    /// What one of them is called in a sentence.
    const WHAT: &'static str;
    /// All of them.
    fn all() -> &'static [Self];
    /// The word for it.
    fn word(self) -> &'static str;
}

/// Serialises a type by its text.
macro_rules! by_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use by_text;
