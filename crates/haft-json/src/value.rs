//! Builds a `Value` from a text that has passed the strict scan: in one walk, without repeating checks.

use serde_json::{Map, Number, Value};

use crate::lexer::{self, LexError, Lexer, Span};

/// Returns the value of a text that has passed the strict scan. For other texts it returns `Null`, or a value that the scan would
/// have refused, so it is not a validation.
///
/// ```
/// assert_eq!(haft_json::value::value(r#"{"n": [1, 2.5]}"#), serde_json::json!({"n": [1, 2.5]}));
/// ```
pub fn value(text: &str) -> Value {
    let mut lexer = Lexer::new(text);
    read(&mut lexer, 0).unwrap_or_default()
}

fn read(lexer: &mut Lexer<'_>, depth: usize) -> Result<Value, LexError> {
    Ok(match lexer.peek() {
        b'{' => Value::Object(object(lexer, depth)?),
        b'[' => Value::Array(array(lexer, depth)?),
        b'"' => {
            let span = lexer.string()?;
            Value::String(string(lexer, span))
        }
        b't' => lexer.literal("true").map(|()| Value::Bool(true))?,
        b'f' => lexer.literal("false").map(|()| Value::Bool(false))?,
        b'n' => lexer.literal("null").map(|()| Value::Null)?,
        _ => {
            let number = lexer.number()?;
            Value::Number(self::number(lexer, number))
        }
    })
}

fn object(lexer: &mut Lexer<'_>, depth: usize) -> Result<Map<String, Value>, LexError> {
    let depth = next_depth(lexer, depth)?;
    lexer.at += 1;
    let mut members = Map::new();
    while lexer.peek() != b'}' {
        let key = lexer.key()?;
        let key = string(lexer, key);
        members.insert(key, read(lexer, depth)?);
        if lexer.peek() == b',' {
            lexer.at += 1;
        }
    }
    lexer.at += 1;
    Ok(members)
}

fn array(lexer: &mut Lexer<'_>, depth: usize) -> Result<Vec<Value>, LexError> {
    let depth = next_depth(lexer, depth)?;
    lexer.at += 1;
    let mut items = Vec::new();
    while lexer.peek() != b']' {
        items.push(read(lexer, depth)?);
        if lexer.peek() == b',' {
            lexer.at += 1;
        }
    }
    lexer.at += 1;
    Ok(items)
}

fn next_depth(lexer: &Lexer<'_>, depth: usize) -> Result<usize, LexError> {
    if depth == lexer::MAX_DEPTH {
        return lexer.stop(lexer::Fault::TooDeep);
    }
    Ok(depth + 1)
}

fn string(lexer: &Lexer<'_>, span: Span) -> String {
    if span.escaped {
        return lexer.unescape(span);
    }
    lexer
        .text()
        .get(span.start..span.end)
        .unwrap_or_default()
        .to_owned()
}

/// Converts a number like `serde_json`: 64-bit integers exactly, all others to the nearest double.
pub(crate) fn number(lexer: &Lexer<'_>, number: lexer::Number) -> Number {
    if let Some(small) = number.small {
        return small.into();
    }
    let text = lexer
        .text()
        .get(number.start..number.end)
        .unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| 0.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::value;
    use crate::tests::any_value;

    fn check(text: &str) {
        assert_eq!(
            value(text),
            serde_json::from_str::<Value>(text).unwrap(),
            "{text}"
        );
    }

    #[test]
    fn a_scanned_text_has_the_value_that_every_reader_sees() {
        for text in [
            "{}",
            " [ ] ",
            r#"{"a":1,"b":-0,"c":-5,"d":0.1,"e":1e3,"f":18446744073709551615,"g":-9223372036854775808}"#,
            r#"{"h":12345678901234567890123,"i":"\u00e9\ud83d\ude00\n\"","\u0061":[true,false,null,[[]],{}]}"#,
            "123456789012345678",
            "1234567890123456789",
        ] {
            check(text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(wanted in any_value()) {
            check(&wanted.to_string());
            check(&serde_json::to_string_pretty(&wanted).unwrap());
        }
    }
}
