//! `ListCursor`: the place in a server's list, page by page. A list that does not end is bounded, and what was listed is kept.

use std::collections::HashSet;

use haft::json::members::members;
use haft::text::clip;
use serde_json::value::RawValue;

use crate::wire::params::text;
use crate::wire::reply;

/// Maximum number of pages to read of a list.
const MAX_PAGES: usize = 1000;
/// Maximum number of pages in a row with nothing new.
const MAX_EMPTY_PAGES: usize = 10;

/// The place in a list.
#[derive(Debug, Default)]
pub(crate) struct ListCursor {
    seen: HashSet<String>,
    next: Option<String>,
    pages: usize,
    empty_pages: usize,
}

/// What follows a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageEnd {
    /// Another page.
    More,
    /// Nothing.
    End,
    /// What the server says is no further page; why.
    Odd(String),
}

impl ListCursor {
    /// Returns the members of the next page's `params`.
    pub(crate) fn params(&self) -> String {
        let Some(cursor) = &self.next else {
            return String::new();
        };
        let mut out = b"\"cursor\":".to_vec();
        reply::json(&mut out, cursor);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Moves on after a page with this number of new entries. An empty cursor is the end, as an absent one.
    pub(crate) fn follow(&mut self, page: &RawValue, new: usize) -> PageEnd {
        self.pages += 1;
        self.empty_pages = if new == 0 { self.empty_pages + 1 } else { 0 };
        let all = members(page.get()).unwrap_or_default();
        let Some(next) = all.iter().find(|member| member.is("nextCursor")) else {
            return PageEnd::End;
        };
        let Some(cursor) = text(next.value()) else {
            let shown = clip(next.value().get(), 100).into_owned();
            return PageEnd::Odd(format!("its next cursor {shown} is not a text"));
        };
        if cursor.is_empty() {
            return PageEnd::End;
        }
        if !self.seen.insert(cursor.clone().into_owned()) {
            let shown = clip(&cursor, 100).into_owned();
            return PageEnd::Odd(format!("the cursor {shown:?} came twice"));
        }
        if self.pages >= MAX_PAGES {
            return PageEnd::Odd(format!("it is over {MAX_PAGES} pages"));
        }
        if self.empty_pages >= MAX_EMPTY_PAGES {
            return PageEnd::Odd(format!("{MAX_EMPTY_PAGES} pages in a row had nothing new"));
        }
        self.next = Some(cursor.into_owned());
        PageEnd::More
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::{ListCursor, PageEnd};

    /// Follows these cursors; returns the number of pages read and why it ended.
    fn follow(cursors: &[serde_json::Value], new: usize) -> (usize, String) {
        let mut cursor = ListCursor::default();
        for (nth, next) in cursors.iter().enumerate() {
            let page = json!({"nextCursor": next}).to_string();
            match cursor.follow(&RawValue::from_string(page).unwrap(), new) {
                PageEnd::More => assert_eq!(cursor.params(), format!("\"cursor\":{next}")),
                PageEnd::End => return (nth + 1, String::new()),
                PageEnd::Odd(why) => return (nth + 1, why),
            }
        }
        (cursors.len(), "more".to_owned())
    }

    #[test]
    fn lists_end_whatever_their_cursors_are() {
        let many: Vec<_> = (0..3000).map(|nth| json!(format!("c{nth}"))).collect();
        let rows = [
            (vec![json!("a"), json!("")], 1, (2, "")),
            (
                vec![json!("a"), json!("a")],
                1,
                (2, "the cursor \"a\" came twice"),
            ),
            (
                vec![json!("a"), json!("b"), json!("a"), json!("b")],
                1,
                (3, "the cursor \"a\" came twice"),
            ),
            (vec![json!(2)], 1, (1, "its next cursor 2 is not a text")),
            (many.clone(), 1, (1000, "it is over 1000 pages")),
            (many, 0, (10, "10 pages in a row had nothing new")),
        ];
        for (cursors, new, (pages, why)) in rows {
            assert_eq!(follow(&cursors, new), (pages, why.to_owned()));
        }
        let nothing = RawValue::from_string("{}".to_owned()).unwrap();
        assert_eq!(ListCursor::default().follow(&nothing, 1), PageEnd::End);
        let none = RawValue::from_string("7".to_owned()).unwrap();
        assert_eq!(ListCursor::default().follow(&none, 1), PageEnd::End);
    }
}
