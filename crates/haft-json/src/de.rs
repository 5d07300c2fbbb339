//! Deserializes types with serde from a text that has passed the strict scan: in one walk, without repeating checks.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use crate::lexer::{LexError, Lexer, MAX_DEPTH, Span};

/// Deserializes a type from a text that has passed the strict scan. The value and the error are those of `serde_json`, which is the
/// fallback where this reader cannot read the text. For other texts it may return a value that `serde_json` would refuse, so it is
/// not a validation.
///
/// ```
/// use serde::Deserialize;
///
/// #[derive(Debug, PartialEq, Deserialize)]
/// struct Range {
///     start: u64,
///     end: Option<u64>,
/// }
///
/// let range: Range = haft_json::de::from_scanned(r#"{"start": 3, "end": null}"#)?;
/// assert_eq!(range, Range { start: 3, end: None });
/// assert!(haft_json::de::from_scanned::<Range>(r#"{"start": "3"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// The type cannot be read from the text.
pub fn from_scanned<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, serde_json::Error> {
    direct(text).or_else(|_| serde_json::from_str(text))
}

/// Reads with this reader only.
pub(crate) fn direct<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, Refusal> {
    let mut reader = Reader {
        lexer: Lexer::new(text),
        depth: 0,
    };
    let value = T::deserialize(&mut reader)?;
    reader.lexer.finish()?;
    Ok(value)
}

/// The type cannot be read from the text, or this reader cannot tell. `serde_json` gives the reason.
#[derive(Debug)]
pub(crate) struct Refusal;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type does not take the text")
    }
}

impl std::error::Error for Refusal {}

impl serde::de::Error for Refusal {
    #[cold]
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl From<LexError> for Refusal {
    #[cold]
    fn from(_: LexError) -> Self {
        Self
    }
}

struct Reader<'t> {
    lexer: Lexer<'t>,
    /// Number of open objects and arrays.
    depth: usize,
}

impl<'t> Reader<'t> {
    /// Consumes a byte that must be next.
    #[inline]
    fn take(&mut self, byte: u8) -> Result<(), Refusal> {
        if self.lexer.peek() != byte {
            return Err(Refusal);
        }
        self.lexer.at += 1;
        Ok(())
    }

    /// Moves to the next item, past the comma unless it is the first. Returns false at the end, which is consumed.
    #[inline]
    fn next(&mut self, first: &mut bool, end: u8) -> Result<bool, Refusal> {
        let byte = self.lexer.peek();
        if byte == end {
            self.lexer.at += 1;
            return Ok(false);
        }
        if !std::mem::take(first) {
            self.take(b',')?;
        }
        Ok(true)
    }

    /// Consumes the bracket that opens an object or array.
    #[inline]
    fn open(&mut self, bracket: u8) -> Result<(), Refusal> {
        self.take(bracket)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Refusal);
        }
        Ok(())
    }

    /// Reads an object or array with a visitor, which must read all of it.
    #[inline]
    fn nested<T>(
        &mut self,
        bracket: u8,
        visit: impl FnOnce(Items<'_, 't>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.open(bracket)?;
        let mut ended = false;
        let value = visit(Items {
            reader: self,
            first: true,
            ended: &mut ended,
        })?;
        if !ended {
            // A visitor that knows the number of items does not ask for another one. `]` is `[` + 2 and `}` is `{` + 2.
            self.take(bracket + 2)?;
        }
        self.depth -= 1;
        Ok(value)
    }

    #[inline]
    fn visit_text<V: Visitor<'t>>(&self, span: Span, visitor: V) -> Result<V::Value, Refusal> {
        if span.escaped {
            return visitor.visit_string(self.lexer.unescape(span));
        }
        let text = self.lexer.text().get(span.start..span.end);
        visitor.visit_borrowed_str(text.ok_or(Refusal)?)
    }

    #[inline]
    fn number<V: Visitor<'t>>(&mut self, visitor: V) -> Result<V::Value, Refusal> {
        if !matches!(self.lexer.peek(), b'-' | b'0'..=b'9') {
            return Err(Refusal);
        }
        let number = self.lexer.number()?;
        if let Some(small) = number.small {
            return match u64::try_from(small) {
                Ok(positive) => visitor.visit_u64(positive),
                Err(_) => visitor.visit_i64(small),
            };
        }
        let text = self.lexer.text().get(number.start..number.end);
        let mut whole = serde_json::Deserializer::from_str(text.ok_or(Refusal)?);
        let value = (&mut whole).deserialize_any(visitor);
        value.map_err(Refusal::custom)
    }
}

/// Defines methods that all do the same as the first one.
macro_rules! alike {
    ($to:ident: $($name:ident)*) => {$(
        #[inline]
        fn $name<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
            self.$to(visitor)
        }
    )*};
}

/// Defines methods for types that are left to `serde_json`.
macro_rules! refused {
    ($($name:ident)*) => {$(
        #[cold]
        fn $name<V: Visitor<'t>>(self, _: V) -> Result<V::Value, Refusal> {
            Err(Refusal)
        }
    )*};
}

impl<'t> Deserializer<'t> for &mut Reader<'t> {
    type Error = Refusal;

    alike! { number: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }
    alike! { number: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    alike! { number: deserialize_f64 }
    alike! { deserialize_str: deserialize_string deserialize_char deserialize_identifier }
    // `f32` must be rounded once, directly from the text.
    refused! { deserialize_bytes deserialize_byte_buf deserialize_f32 }

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.lexer.peek() {
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b'"' => self.deserialize_str(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => self.deserialize_unit(visitor),
            _ => self.number(visitor),
        }
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let value = self.lexer.peek() == b't';
        self.lexer.literal(if value { "true" } else { "false" })?;
        visitor.visit_bool(value)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.lexer.peek() != b'"' {
            return Err(Refusal);
        }
        let span = self.lexer.string()?;
        self.visit_text(span, visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.lexer.peek() != b'n' {
            return visitor.visit_some(self);
        }
        self.lexer.literal("null")?;
        visitor.visit_none()
    }

    fn deserialize_unit<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.lexer.peek();
        self.lexer.literal("null")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'t>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if name.starts_with('$') {
            // A name that `serde_json` uses to mark its own types.
            return Err(Refusal);
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.nested(b'[', |items| visitor.visit_seq(items))
    }

    fn deserialize_tuple<V: Visitor<'t>>(self, _: usize, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'t>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.nested(b'{', |members| visitor.visit_map(members))
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'t>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_map(visitor)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'t>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if self.lexer.peek() == b'"' {
            return visitor.visit_enum(Named(self));
        }
        self.open(b'{')?;
        let value = visitor.visit_enum(Tagged(&mut *self))?;
        self.take(b'}')?;
        self.depth -= 1;
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.lexer.skip()?;
        visitor.visit_unit()
    }
}

/// The items of an array or the members of an object.
struct Items<'r, 't> {
    reader: &'r mut Reader<'t>,
    first: bool,
    ended: &'r mut bool,
}

impl Items<'_, '_> {
    /// Whether another item follows before the closing byte.
    #[inline]
    fn has_next(&mut self, close: u8) -> Result<bool, Refusal> {
        *self.ended = *self.ended || !self.reader.next(&mut self.first, close)?;
        Ok(!*self.ended)
    }
}

impl<'t> SeqAccess<'t> for Items<'_, 't> {
    type Error = Refusal;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'t>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refusal> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'t> MapAccess<'t> for Items<'_, 't> {
    type Error = Refusal;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'t>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refusal> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let key = self.reader.lexer.key()?;
        let reader = &*self.reader;
        seed.deserialize(Key { reader, key }).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'t>>(&mut self, seed: V) -> Result<V::Value, Refusal> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A member's name. A name that stands for a number or a word is left to `serde_json`.
struct Key<'r, 't> {
    reader: &'r Reader<'t>,
    key: Span,
}

impl<'t> Deserializer<'t> for Key<'_, 't> {
    type Error = Refusal;

    #[inline]
    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.reader.visit_text(self.key, visitor)
    }

    fn deserialize_option<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if name.starts_with('$') {
            return Err(Refusal);
        }
        visitor.visit_newtype_struct(self)
    }

    refused! {
        deserialize_bool deserialize_bytes deserialize_byte_buf deserialize_f32 deserialize_f64
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_enum<V: Visitor<'t>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refusal> {
        Err(Refusal)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'t>>
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant without a value, written as its name.
struct Named<'r, 't>(&'r mut Reader<'t>);

impl<'t> EnumAccess<'t> for Named<'_, 't> {
    type Error = Refusal;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'t>>(self, seed: V) -> Result<(V::Value, Self), Refusal> {
        Ok((seed.deserialize(&mut *self.0)?, self))
    }
}

impl<'t> VariantAccess<'t> for Named<'_, 't> {
    type Error = Refusal;

    #[inline]
    fn unit_variant(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'t>>(self, _: T) -> Result<T::Value, Refusal> {
        Err(Refusal)
    }

    fn tuple_variant<V: Visitor<'t>>(self, _: usize, _: V) -> Result<V::Value, Refusal> {
        Err(Refusal)
    }

    fn struct_variant<V: Visitor<'t>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refusal> {
        Err(Refusal)
    }
}

/// A variant with a value, written as an object with one member.
struct Tagged<'r, 't>(&'r mut Reader<'t>);

impl<'t> EnumAccess<'t> for Tagged<'_, 't> {
    type Error = Refusal;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'t>>(self, seed: V) -> Result<(V::Value, Self), Refusal> {
        let key = self.0.lexer.key()?;
        let reader = &*self.0;
        Ok((seed.deserialize(Key { reader, key })?, self))
    }
}

impl<'t> VariantAccess<'t> for Tagged<'_, 't> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        self.0.deserialize_unit(serde::de::IgnoredAny).map(drop)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'t>>(self, seed: T) -> Result<T::Value, Refusal> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'t>>(self, _: usize, visitor: V) -> Result<V::Value, Refusal> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'t>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.0.deserialize_map(visitor)
    }
}
