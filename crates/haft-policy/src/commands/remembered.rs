//! Lines already parsed within one judgement: guards, rules and folders look at the same few lines.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use haft_shell::{Line, MOST_PARTS, ParseError, parse};

/// Maximum number of cached lines: a line and each of its parts.
const MAX_LINES: usize = MOST_PARTS + 1;

type LineParseResult = Result<Rc<Line>, ParseError>;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static READINGS: RefCell<Vec<(String, LineParseResult)>> = const { RefCell::new(Vec::new()) };
}

/// Guard of the cache: while it lives, this thread caches the lines that it parses. Dropping the last one clears the cache.
#[derive(Debug)]
pub(crate) struct ParseCacheGuard(());

/// Starts a judgement, or a nested one.
pub(crate) fn remember() -> ParseCacheGuard {
    DEPTH.set(DEPTH.get() + 1);
    ParseCacheGuard(())
}

impl Drop for ParseCacheGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            READINGS.with_borrow_mut(Vec::clear);
        }
    }
}

/// Parses a line, once per judgement.
pub(crate) fn parse_line(line: &str) -> LineParseResult {
    parse_once(line, || parse(line))
}

/// Returns the parsed line, parsed now or earlier in this judgement.
fn parse_once(line: &str, read: impl FnOnce() -> Result<Line, ParseError>) -> LineParseResult {
    if DEPTH.get() == 0 {
        return read().map(Rc::new);
    }
    let known = READINGS.with_borrow(|all| {
        let found = all.iter().find(|(text, _)| text == line);
        found.map(|(_, reading)| reading.clone())
    });
    known.unwrap_or_else(|| {
        let reading = read().map(Rc::new);
        READINGS.with_borrow_mut(|all| {
            if all.len() < MAX_LINES {
                all.push((line.to_owned(), reading.clone()));
            }
        });
        reading
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use haft_shell::Line;

    use super::{parse_once, remember};

    #[test]
    fn a_line_is_read_once_a_judgement_and_nothing_is_kept_after_it() {
        let read = Cell::new(0);
        let look = |line: &str| {
            let reading = parse_once(line, || {
                read.set(read.get() + 1);
                Ok(Line::default())
            });
            reading.unwrap();
            read.get()
        };
        assert_eq!([look("a"), look("a")], [1, 2]);
        {
            let _judgement = remember();
            assert_eq!([look("a"), look("b"), look("a")], [3, 4, 4]);
            drop(remember());
            assert_eq!(look("b"), 4);
        }
        assert_eq!([look("a"), look("a")], [5, 6]);
    }
}
