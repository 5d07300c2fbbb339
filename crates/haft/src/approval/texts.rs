//! All texts of what a request shows, so that whoever redacts them forgets none: a new field does not compile until it is named here.

use crate::approval::meaning::{Meaning, Picture, Pictures};
pub use crate::approval::preview::TextVisitor;
use crate::approval::snapshot::CallSnapshot;

impl CallSnapshot {
    /// Visits every text of the files and of what they amount to.
    pub fn visit_texts(&mut self, visit: &mut TextVisitor<'_>) {
        for file in &mut self.preview {
            file.visit_texts(visit);
        }
        for meaning in &mut self.meanings {
            meaning.visit_texts(visit);
        }
    }
}

impl Meaning {
    /// Visits every text that it shows, those of its files and parts too.
    pub fn visit_texts(&mut self, visit: &mut TextVisitor<'_>) {
        let Self {
            kind: _,
            title,
            warnings,
            lines,
            files,
            parts,
            pictures,
            covers,
        } = self;
        visit(title);
        let texts = warnings.iter_mut().chain(lines).chain(covers);
        texts.for_each(&mut *visit);
        for file in files {
            file.visit_texts(visit);
        }
        for part in parts {
            part.visit_texts(visit);
        }
        if let Some(Pictures { before, after }) = pictures {
            for picture in [before, after].into_iter().flatten() {
                // What the thumbnail shows are pixels.
                let Picture {
                    media_type,
                    width: _,
                    height: _,
                    bytes: _,
                    thumbnail: _,
                } = picture;
                visit(media_type);
            }
        }
    }

    /// Returns the length of all that it shows, in bytes.
    pub fn text_bytes(&self) -> usize {
        let pictures = self
            .pictures
            .iter()
            .flat_map(|both| [&both.before, &both.after]);
        let pictures = pictures
            .flatten()
            .filter_map(|picture| picture.thumbnail.as_ref());
        let lines = self.warnings.iter().chain(&self.lines).chain(&self.covers);
        let texts = lines.chain(pictures).map(String::len);
        let files = self
            .files
            .iter()
            .map(|file| file.path.len() + file.text_bytes());
        let parts = self.parts.iter().map(Self::text_bytes);
        self.title.len() + texts.chain(files).chain(parts).sum::<usize>()
    }

    /// Shows no more of the content of its files than fits into `room` bytes, which is what is left then.
    pub(crate) fn fit(&mut self, room: &mut usize) {
        for file in &mut self.files {
            file.fit(room);
        }
        for part in &mut self.parts {
            part.fit(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::approval::meaning::{Meaning, MeaningKind};
    use crate::approval::preview::{FileChange, Hunk};

    fn commit() -> Meaning {
        let mut meaning = Meaning::new(MeaningKind::Commit, "title");
        meaning.warnings = vec!["warning".to_owned()];
        meaning.lines = vec!["line".to_owned()];
        meaning.covers = vec!["covered".to_owned()];
        let mut file = FileChange::new("path", Some(b"before"), Some(b"after"));
        file.hunks = vec![Hunk {
            before_line: 1,
            after_line: 1,
            before: "hunk before".to_owned(),
            after: "hunk after".to_owned(),
        }];
        meaning.files = vec![file];
        meaning
    }

    #[test]
    fn texts_of_a_meaning_when_visited_are_all_reached() {
        let mut meaning = commit();
        meaning.parts = vec![commit()];
        meaning.visit_texts(&mut |text| *text = "***".to_owned());
        let json = serde_json::to_string(&meaning).unwrap();
        for text in [
            "title", "warning", "line", "covered", "path", "before", "after",
        ] {
            assert!(!json.contains(&format!(":\"{text}")), "{text}: {json}");
        }
        assert_eq!(json.matches("***").count(), 2 * 9);
    }

    #[test]
    fn files_of_a_meaning_beyond_the_budget_are_folded() {
        let mut meaning = commit();
        let mut room = 30;
        meaning.parts = vec![commit()];
        meaning.fit(&mut room);
        let shown = |meaning: &Meaning| meaning.files[0].folded.is_none();
        assert!(shown(&meaning) != shown(&meaning.parts[0]) || meaning.text_bytes() < 100);
    }
}
