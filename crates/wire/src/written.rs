//! Types that are written as one string: both JSON readers take them from it.

/// Lets types with `FromStr<Err = Rule>` be read as a JSON string, by our own reader and by serde.
macro_rules! written_as_string {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::FromJson<'_> for $type {
            fn from_json(value: &serde_json::value::RawValue) -> Result<Self, $crate::Error> {
                Ok(<String as $crate::FromJson>::from_json(value)?.parse::<Self>()?)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(reader)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

pub(crate) use written_as_string;
