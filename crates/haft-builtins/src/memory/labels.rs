//! Labels: a memory written by a run that had read untrusted content carries a label, which marks every run that reads it.

use haft::context::CallContext;
use haft::memory::record::{MAX_TAG, MAX_TAGS};
use haft::untrusted::UntrustedSource;

/// The prefix of a label. A tag with this prefix from a model is a label too, which can only lead to more approval requests.
const LABEL: &str = "untrusted:";

/// Returns the labels for what this run writes: the sources of what it has read.
pub(super) fn labels(context: &CallContext) -> Vec<String> {
    let sources = context.untrusted();
    let label = |source: &UntrustedSource| {
        let room = MAX_TAG - LABEL.len();
        let origin: String = source.origin().chars().take(room).collect();
        format!("{LABEL}{origin}")
    };
    // A memory has a limited number of tags, so labels that do not fit are left out.
    sources.iter().take(MAX_TAGS / 2).map(label).collect()
}

/// Marks the run with the sources in the labels among a memory's tags.
pub(super) fn note<'t>(tags: impl IntoIterator<Item = &'t String>, context: &CallContext) {
    let origins = tags.into_iter().filter_map(|tag| tag.strip_prefix(LABEL));
    let source = |origin| {
        UntrustedSource::recorded(&format!(
            "{origin}: a memory that was written after reading {origin}"
        ))
    };
    context.note_untrusted(origins.map(source).collect());
}
