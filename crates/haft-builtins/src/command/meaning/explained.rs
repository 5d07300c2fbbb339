//! `Explained`: what the change of one file means, and whether that is all of it.

use haft::approval::meaning::Meaning;

/// What a file's change means, and whether that is all of it.
#[derive(Debug)]
pub(super) struct Explained {
    pub(super) meaning: Meaning,
    /// True if the file needs not be shown beside it.
    pub(super) wholly: bool,
}

impl Explained {
    /// The meaning says everything.
    pub(super) fn wholly(meaning: Meaning) -> Self {
        let wholly = true;
        Self { meaning, wholly }
    }

    /// The file is to be shown, too.
    pub(super) fn partly(meaning: Meaning) -> Self {
        let wholly = false;
        Self { meaning, wholly }
    }
}
