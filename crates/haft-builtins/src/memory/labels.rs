//! Labels: a memory that was written by a run which had read untrusted content says so, and marks the run that reads it.

use haft::context::CallContext;
use haft::memory::record::{MAX_TAG, MAX_TAGS};
use haft::untrusted::UntrustedSource;

/// What a label begins with. A tag that a model writes itself and that begins so is a label, too: it can only add to what is asked about.
const LABEL: &str = "untrusted:";

/// The labels of what this run writes: where what it has read comes from.
pub(super) fn labels(context: &CallContext) -> Vec<String> {
    let sources = context.untrusted();
    let label = |source: &UntrustedSource| {
        let room = MAX_TAG - LABEL.len();
        let origin: String = source.origin().chars().take(room).collect();
        format!("{LABEL}{origin}")
    };
    // A memory has a bounded number of tags: the last label stands for those that do not fit.
    sources.iter().take(MAX_TAGS / 2).map(label).collect()
}

/// Marks the run with what the labels among a memory's tags say.
pub(super) fn note<'t>(tags: impl IntoIterator<Item = &'t String>, context: &CallContext) {
    let origins = tags.into_iter().filter_map(|tag| tag.strip_prefix(LABEL));
    let source = |origin| {
        UntrustedSource::recorded(&format!(
            "{origin}: a memory that was written after reading {origin}"
        ))
    };
    context.note_untrusted(origins.map(source).collect());
}
