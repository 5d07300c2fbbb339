//! `ListPage`: a page of a list, and the cursor of the next.

use crate::wire::RpcError;
use crate::wire::reply;

/// A page of a list, and the cursor of the next.
pub(crate) struct ListPage<'a, T> {
    pub(crate) items: &'a [T],
    next: Option<&'a str>,
}

impl<T> ListPage<'_, T> {
    /// Writes `nextCursor` if more items follow.
    pub(crate) fn write_next(&self, out: &mut Vec<u8>) {
        if let Some(next) = self.next {
            out.extend_from_slice(b",\"nextCursor\":");
            reply::json(out, next);
        }
    }
}

/// Returns at most `size` items after the one that the cursor names.
pub(crate) fn page<'a, T>(
    all: &'a [T],
    cursor: Option<&str>,
    size: usize,
    name: impl Fn(&'a T) -> &'a str,
) -> Result<ListPage<'a, T>, RpcError> {
    let first = match cursor {
        None => 0,
        Some(cursor) => {
            let found = all.iter().position(|item| name(item) == cursor);
            found.map(|at| at + 1).ok_or_else(|| {
                RpcError::invalid_params("the cursor is not of this list: begin again")
            })?
        }
    };
    let items = &all[first..all.len().min(first.saturating_add(size.max(1)))];
    let more = first + items.len() < all.len();
    let next = items.last().filter(|_| more).map(name);
    Ok(ListPage { items, next })
}
