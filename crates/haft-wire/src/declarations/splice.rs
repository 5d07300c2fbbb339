//! Replaces a few declarations: the text before, between and after them is copied unchanged.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{Declarations, EncodedDeclaration};
use crate::fragment::DialectFragment;
use crate::strict::budget::StrictBudget;

/// Maximum number of tools that are replaced individually: each moves the offsets of those after it.
const MOST: usize = 16;

/// A range of the old list, and its replacement in the new one.
struct ListSplice<'w> {
    from: usize,
    to: usize,
    json: &'w [u8],
}

impl Declarations {
    /// Returns a copy with these tools at these positions; `None` if more than their own declarations would change.
    pub(crate) fn replaced(&self, others: &[(usize, Arc<EncodedDeclaration>)]) -> Option<Self> {
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
            cuts.push(ListSplice {
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

    /// Returns whether one tool's declaration can replace another's without changing anything else in the request.
    fn is_alone(&self, old: &DialectFragment, new: &DialectFragment) -> bool {
        let strict = [&old.strict, &new.strict].map(Option::is_some);
        // If strict tools share a limit, one that needs more may leave less for those after it.
        let shares = strict.contains(&true) && !StrictBudget::is_boundless(self.dialect);
        !shares
            && strict[0] == strict[1]
            && old.is_function == new.is_function
            && old.lost == new.lost
            && !new.json.is_empty()
    }
}

/// Returns the text with the cuts applied.
fn spliced(old: &[u8], cuts: &[ListSplice<'_>]) -> Option<Vec<u8>> {
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

/// Returns the offsets of all tools after the cuts; the cuts are in text order.
fn moved(
    places: &Arc<[Option<NonZeroUsize>]>,
    cuts: &[ListSplice<'_>],
) -> Arc<[Option<NonZeroUsize>]> {
    if cuts.iter().all(|cut| cut.to - cut.from == cut.json.len()) {
        return Arc::clone(places);
    }
    let mut moved = places.to_vec();
    // From the last to the first, so that offsets before a cut have not moved yet.
    for cut in cuts.iter().rev() {
        let grown = cut.json.len();
        let shrunk = cut.to - cut.from;
        for place in moved.iter_mut().flatten() {
            if place.get() > cut.from {
                // The old piece is before it, so the difference is not negative.
                let place_now = place.get() + grown - shrunk;
                *place = NonZeroUsize::new(place_now).unwrap_or(*place);
            }
        }
    }
    moved.into()
}
