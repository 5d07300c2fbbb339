//! All texts that a request shows of a file: a new field does not compile until it is named here.

use crate::preview::{FileChange, Hunk};

/// Changes a text in place.
pub type TextVisitor<'a> = dyn FnMut(&mut String) + 'a;

impl FileChange {
    /// Visits every text that it shows; hashes and numbers are not texts.
    pub fn visit_texts(&mut self, visit: &mut TextVisitor<'_>) {
        let Self {
            path,
            target,
            action: _,
            aspect: _,
            to,
            before,
            after,
            before_sha256: _,
            binary: _,
            clipped: _,
            hunks,
            folded,
            before_bytes: _,
            after_bytes: _,
            after_sha256: _,
            escaped: _,
            added: _,
            removed: _,
            files: _,
            stored: _,
        } = self;
        visit(path);
        [target, to, before, after, folded]
            .into_iter()
            .flatten()
            .for_each(&mut *visit);
        for hunk in hunks {
            let Hunk {
                before_line: _,
                after_line: _,
                before,
                after,
            } = hunk;
            visit(before);
            visit(after);
        }
    }

    /// Shows nothing of its content if that does not fit into `room` bytes, which is what is left then.
    pub fn fit(&mut self, room: &mut usize) {
        if self.text_bytes() > *room {
            self.fold("a request shows 1 MiB of text at most");
        }
        *room -= self.text_bytes();
    }
}
