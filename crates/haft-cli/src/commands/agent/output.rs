//! What a call prints while it runs, as whole lines below the call that they belong to.

/// Most bytes of a line that is not at its end.
const LONGEST: usize = 4096;

/// The end of a call's output that is not a whole line yet.
#[derive(Debug, Default)]
pub(super) struct Partial(String);

impl Partial {
    /// Takes a piece in; the lines that are whole now. Of a line that was written over, as progress bars are, the last state is given.
    pub(super) fn take(&mut self, text: &str) -> Vec<String> {
        self.0.push_str(text);
        let mut lines = Vec::new();
        while let Some(at) = self.0.find('\n') {
            let rest = self.0.split_off(at + 1);
            lines.push(last_state(&self.0));
            self.0 = rest;
        }
        if self.0.len() > LONGEST {
            lines.extend(self.rest());
        }
        lines
    }

    /// What is left at the end.
    pub(super) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        (!rest.is_empty()).then(|| last_state(&rest))
    }
}

fn last_state(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    line.rsplit('\r').next().unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_as_whole_lines_however_it_was_cut() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["a\nb\n"], &["a", "b"]),
            (&["a", "b\nc", ""], &["ab", "c"]),
            (&["10 %\r50 %", "\r100 %\r\n"], &["100 %"]),
            (&["\n\n"], &["", ""]),
            (&[], &[]),
        ];
        for (pieces, expect) in rows {
            let mut partial = Partial::default();
            let mut lines: Vec<String> = pieces
                .iter()
                .flat_map(|piece| partial.take(piece))
                .collect();
            lines.extend(partial.rest());
            assert_eq!(lines, expect, "{pieces:?}");
        }
        let mut partial = Partial::default();
        assert_eq!(partial.take(&"x".repeat(LONGEST + 1)).len(), 1);
    }
}
