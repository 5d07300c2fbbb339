//! `View`: reads a value in place in a text, for readers that want a few of its members and no tree.

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::lexer::{Lexer, Span};
use crate::value;

/// A value in a text that has passed the strict scan. It builds nothing; each access walks the text from the value's start, so to read
/// most of a large value, use [`value`](Self::value) instead. For other texts the results are arbitrary: it is not a
/// validation.
///
/// ```
/// use haft_json::view::View;
///
/// let call = View::of(r#"{"path": "src/lib.rs", "lines": [10, 20]}"#);
/// assert_eq!(call.get("path").and_then(|path| path.as_str()).as_deref(), Some("src/lib.rs"));
/// let lines = call.get("lines").into_iter().flat_map(|lines| lines.items());
/// assert_eq!(lines.filter_map(|line| line.as_u64()).collect::<Vec<_>>(), [10, 20]);
/// assert!(call.get("limit").is_none());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct View<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> View<'t> {
    /// Creates a view of the value of a text.
    pub fn of(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        lexer.peek();
        Self { text, at: lexer.at }
    }

    /// Returns the text of the value, as written.
    pub fn text(&self) -> &'t str {
        let range = self.lexer().skip().unwrap_or_default();
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the value as a tree.
    pub fn value(&self) -> Value {
        value::value(self.text())
    }

    /// Returns the member with this name, if the value is an object that has one.
    pub fn get(&self, name: &str) -> Option<Self> {
        let mut parts = self.parts(b'{');
        while let Some((lexer, key)) = parts.next_member() {
            let is_it = if key.escaped {
                lexer.unescape(key) == name
            } else {
                lexer.raw(key) == name.as_bytes()
            };
            if is_it {
                return Some(parts.next_view());
            }
            parts.skip();
        }
        None
    }

    /// Returns the members of an object in the order of the text; empty if the value is not an object.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'t, str>, Self)> + use<'t> {
        let mut parts = self.parts(b'{');
        std::iter::from_fn(move || {
            let (lexer, key) = parts.next_member()?;
            let member = (text_of(lexer, key), parts.next_view());
            parts.skip();
            Some(member)
        })
    }

    /// Returns the items of an array; empty if the value is not an array.
    pub fn items(&self) -> impl Iterator<Item = Self> + use<'t> {
        let mut parts = self.parts(b'[');
        std::iter::from_fn(move || {
            parts.next()?;
            let item = parts.next_view();
            parts.skip();
            Some(item)
        })
    }

    /// Returns the content of a string, unescaped.
    pub fn as_str(&self) -> Option<Cow<'t, str>> {
        let mut lexer = self.lexer();
        if lexer.peek() != b'"' {
            return None;
        }
        let span = lexer.string().ok()?;
        Some(text_of(&lexer, span))
    }

    /// Returns the value if it is an integer of at least 0.
    pub fn as_u64(&self) -> Option<u64> {
        self.number()?.as_u64()
    }

    /// Returns the value if it is an integer.
    pub fn as_i64(&self) -> Option<i64> {
        self.number()?.as_i64()
    }

    /// Returns a number as the nearest double.
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.as_f64()
    }

    /// Returns the value if it is `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        let mut lexer = self.lexer();
        match lexer.peek() {
            b't' => Some(true),
            b'f' => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.lexer().peek() == b'n'
    }

    fn number(&self) -> Option<Number> {
        let mut lexer = self.lexer();
        if !matches!(lexer.peek(), b'-' | b'0'..=b'9') {
            return None;
        }
        let number = lexer.number().ok()?;
        Some(value::number(&lexer, number))
    }

    fn lexer(&self) -> Lexer<'t> {
        let mut lexer = Lexer::new(self.text);
        lexer.at = self.at;
        lexer
    }

    fn parts(&self, bracket: u8) -> Parts<'t> {
        let mut lexer = self.lexer();
        let open = lexer.peek() == bracket;
        lexer.at += 1;
        Parts { lexer, open }
    }
}

fn text_of<'t>(lexer: &Lexer<'t>, span: Span) -> Cow<'t, str> {
    if span.escaped {
        return Cow::Owned(lexer.unescape(span));
    }
    Cow::Borrowed(lexer.text().get(span.start..span.end).unwrap_or_default())
}

/// A walk over the members or items of an object or array.
struct Parts<'t> {
    lexer: Lexer<'t>,
    /// Whether the end has not been reached.
    open: bool,
}

impl<'t> Parts<'t> {
    /// Moves to the next part; `None` at the end.
    fn next(&mut self) -> Option<()> {
        let open = self.open && !matches!(self.lexer.peek(), b']' | b'}' | 0);
        self.open = open;
        open.then_some(())
    }

    /// Moves to the value of the next member.
    fn next_member(&mut self) -> Option<(&Lexer<'t>, Span)> {
        self.next()?;
        let key = self.lexer.key();
        self.open = key.is_ok();
        Some((&self.lexer, key.ok()?))
    }

    fn next_view(&self) -> View<'t> {
        View {
            text: self.lexer.text(),
            at: self.lexer.at,
        }
    }

    /// Moves past the next value and the comma after it.
    fn skip(&mut self) {
        self.open = self.lexer.skip().is_ok();
        if self.lexer.peek() == b',' {
            self.lexer.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::View;
    use crate::tests::any_value;

    /// Checks that a view returns the same as a value's tree.
    fn check(view: View<'_>, tree: &Value) {
        assert_eq!(&view.value(), tree);
        assert_eq!(view.as_str().as_deref(), tree.as_str());
        assert_eq!(view.as_u64(), tree.as_u64());
        assert_eq!(view.as_i64(), tree.as_i64());
        assert_eq!(view.as_f64(), tree.as_f64());
        assert_eq!(view.as_bool(), tree.as_bool());
        assert_eq!(view.is_null(), tree.is_null());
        let members: Vec<_> = view.members().collect();
        let items: Vec<_> = view.items().collect();
        assert_eq!(members.len(), tree.as_object().map_or(0, Map::len));
        assert_eq!(items.len(), tree.as_array().map_or(0, Vec::len));
        for (name, member) in members {
            check(member, &tree[&*name]);
            check(view.get(&name).unwrap(), &tree[&*name]);
        }
        for (at, item) in items.into_iter().enumerate() {
            check(item, &tree[at]);
        }
        assert!(view.get("no such member").is_none());
    }

    #[test]
    fn what_is_no_json_is_walked_to_an_end() {
        for text in [
            "", "[", "{", r#"{"a""#, r#"{"a":"#, "[1", "[,", "{,", "x", "\"a", "[1 2 ]",
        ] {
            let view = View::of(text);
            let _ = (view.value(), view.get("a").map(|a| a.value()), view.text());
            let _ = (view.items().count(), view.members().count(), view.as_u64());
        }
    }

    #[test]
    fn escapes_and_space_are_read_as_everywhere() {
        let text = " { \"caf\\u00e9\" : \"\\n\" , \"b\" : [ 1 , -2.5e1 ] } ";
        let tree: Value = serde_json::from_str(text).unwrap();
        check(View::of(text), &tree);
        assert_eq!(View::of(text).get("b").unwrap().text(), "[ 1 , -2.5e1 ]");
    }

    proptest! {
        #[test]
        fn a_view_says_what_the_tree_says(tree in any_value()) {
            check(View::of(&tree.to_string()), &tree);
            check(View::of(&serde_json::to_string_pretty(&tree).unwrap()), &tree);
        }
    }
}
