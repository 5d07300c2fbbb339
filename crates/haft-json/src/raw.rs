//! Serializes values to JSON once, for passing them on as text.

use std::iter;

use serde::de::value::MapDeserializer;
use serde::de::{Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

/// Maximum length of a text, in bytes, that is copied out of its buffer; longer ones keep the buffer.
const MAX_COPIED: usize = 1024;

/// Writes a value as JSON text. The result is that of [`serde_json::value::to_raw_value`], but a short text is copied to memory of the
/// right size, which costs less than shrinking its buffer.
///
/// ```
/// assert_eq!(haft_json::raw::write(&[1, 2])?.get(), "[1,2]");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// If the value cannot be represented in JSON.
pub fn write<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    if text.len() > MAX_COPIED {
        return Box::deserialize(Written(text));
    }
    Box::deserialize(Written(text.as_str()))
}

/// A text that a serializer has just written, so it need not be parsed again.
struct Written<T>(T);

impl<'t, T: IntoDeserializer<'t, serde_json::Error>> Deserializer<'t> for Written<T> {
    type Error = serde_json::Error;

    /// `RawValue` deserializes itself from a map with a single key, the type's name.
    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MapDeserializer::new(iter::once((name, self.0))))
    }

    fn deserialize_any<V: Visitor<'t>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("only raw JSON is read from its text"))
    }

    forward_to_deserialize_any! {
        <V: Visitor<'t>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::to_raw_value;

    use super::{MAX_COPIED, write};
    use crate::tests::any_value;

    #[test]
    fn short_and_long_texts_are_written_alike() {
        for length in [
            0,
            1,
            MAX_COPIED - 2,
            MAX_COPIED - 1,
            MAX_COPIED,
            10 * MAX_COPIED,
        ] {
            let text = "x".repeat(length);
            assert_eq!(write(&text).unwrap().get(), format!("\"{text}\""));
        }
        assert!(write(&f64::NAN).is_ok_and(|raw| raw.get() == "null"));
        let no_json = std::collections::HashMap::from([((1, 2), 3)]);
        assert!(write(&no_json).is_err());
    }

    proptest! {
        #[test]
        fn a_value_is_written_as_serde_json_writes_it(value in any_value()) {
            assert_eq!(write(&value).unwrap().get(), to_raw_value(&value).unwrap().get());
        }
    }
}
