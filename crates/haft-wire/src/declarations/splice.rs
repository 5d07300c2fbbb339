//! Declarations of which a few change: what stands before, between and after them is copied as it was written.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Declarations, Written};
use crate::declared::Fragment;
use crate::strict::budget::Budget;

/// Most tools that are replaced one by one: each moves the places of those behind it.
const MOST: usize = 16;

/// A piece of the old list, and what stands there in the new one.
struct Cut<'w> {
    from: usize,
    to: usize,
    json: &'w [u8],
}

impl Declarations {
    /// The same with these tools in these places; `None` where more than their own words would change by that.
    pub(crate) fn replaced(&self, others: &[(usize, Arc<Written>)]) -> Option<Self> {
        if others.len() > MOST {
            return None;
        }
        let mut cuts = Vec::with_capacity(others.len());
        for (at, other) in others {
            let old = self.written.get(*at)?.fragment.as_ref()?;
            let new = other.fragment.as_ref()?;
            if !self.is_alone(old, new) {
                return None;
            }
            let from = self.places.get(*at).copied()??.get();
            cuts.push(Cut {
                from,
                to: from + old.json.len(),
                json: &new.json,
            });
        }
        cuts.sort_unstable_by_key(|cut| cut.from);
        let json = spliced(&self.json, &cuts)?;
        Some(Self {
            dialect: self.dialect,
            names: Arc::clone(&self.names),
            lost: Arc::clone(&self.lost),
            strict: self.strict,
            json: json.into(),
            places: moved(&self.places, &cuts),
            written: self.written.with(others),
        })
    }

    /// Whether one tool's words can stand for another's and nothing else of the request changes.
    fn is_alone(&self, old: &Fragment, new: &Fragment) -> bool {
        let strict = [&old.strict, &new.strict].map(Option::is_some);
        // Where strict tools share a limit, one that needs more may leave less for those behind it.
        let shares = strict.contains(&true) && !Budget::is_boundless(self.dialect);
        !shares
            && strict[0] == strict[1]
            && old.is_function == new.is_function
            && old.lost == new.lost
            && !new.json.is_empty()
    }
}

/// The text with what the cuts say in the places of what was there.
fn spliced(old: &[u8], cuts: &[Cut<'_>]) -> Option<Vec<u8>> {
    let taken: usize = cuts.iter().map(|cut| cut.to - cut.from).sum();
    let added: usize = cuts.iter().map(|cut| cut.json.len()).sum();
    let mut json = Vec::with_capacity(old.len().checked_sub(taken)? + added);
    let mut from = 0;
    for cut in cuts {
        json.extend_from_slice(old.get(from..cut.from)?);
        json.extend_from_slice(cut.json);
        from = cut.to;
    }
    json.extend_from_slice(old.get(from..)?);
    Some(json)
}

/// The places of all tools once the cuts are made; the cuts are in the order of the text.
fn moved(places: &Arc<[Option<NonZeroUsize>]>, cuts: &[Cut<'_>]) -> Arc<[Option<NonZeroUsize>]> {
    if cuts.iter().all(|cut| cut.to - cut.from == cut.json.len()) {
        return Arc::clone(places);
    }
    let mut moved = places.to_vec();
    // The last one first: what stands before it has not moved yet.
    for cut in cuts.iter().rev() {
        let grown = cut.json.len();
        let shrunk = cut.to - cut.from;
        for place in moved.iter_mut().flatten() {
            if place.get() > cut.from {
                // The old piece stands before it: the difference is not below zero.
                let place_now = place.get() + grown - shrunk;
                *place = NonZeroUsize::new(place_now).unwrap_or(*place);
            }
        }
    }
    moved.into()
}
