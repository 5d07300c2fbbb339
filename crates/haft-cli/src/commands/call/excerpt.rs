//! The lines of a rendered outcome that stand below a call: all of them, or the first and the last.

use haft::result::{PartMark, RenderedOutcome, RenderedPart};

use crate::commands::call::data;
use crate::screen::visible;

/// Number of lines shown from the beginning of a part, and again from its end, if the call failed.
const OF_FAILURE: usize = 30;
/// The same if it succeeded.
const OF_SUCCESS: usize = 3;
/// Maximum number of columns of a line.
const WIDTH: usize = 1_000;

/// Returns the lines of the parts that `is_wanted` selects, each with its part's mark. Of a long part the first and the last lines;
/// `whole` names the command that shows all.
pub(crate) fn lines(
    rendered: &RenderedOutcome<'_>,
    is_wanted: impl Fn(PartMark) -> bool,
    whole: &str,
) -> Vec<(PartMark, String)> {
    let most = if rendered.has(PartMark::Status) {
        OF_FAILURE
    } else {
        OF_SUCCESS
    };
    let wanted = rendered.parts.iter().filter(|part| is_wanted(part.mark));
    wanted.flat_map(|part| of_part(part, most, whole)).collect()
}

fn of_part(part: &RenderedPart<'_>, most: usize, whole: &str) -> Vec<(PartMark, String)> {
    let text = match part.mark {
        PartMark::Note => format!("note: {}", visible::block(&part.text)),
        PartMark::Data => data::render(&part.text),
        PartMark::Details => data::details(&part.text),
        _ => visible::block(&part.text),
    };
    let all: Vec<&str> = text.lines().collect();
    let marked = |line: &str| (part.mark, visible::clipped(line, WIDTH));
    if all.len() <= 2 * most {
        return all.into_iter().map(marked).collect();
    }
    let (head, rest) = all.split_at(most);
    let (middle, tail) = rest.split_at(rest.len() - most);
    let cut = format!("… {} more lines: {whole} …", middle.len());
    let head = head.iter().map(|line| marked(line));
    head.chain([(part.mark, cut)])
        .chain(tail.iter().map(|line| marked(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use haft::result::{PartMark, RenderedOutcome, RenderedPart};

    use super::lines;

    #[test]
    fn a_long_part_shows_its_beginning_and_its_end() {
        let long: Vec<String> = (1..=100).map(|nth| format!("line {nth}")).collect();
        let part = |mark, text: &str| RenderedPart {
            mark,
            text: text.to_owned().into(),
        };
        let rendered = RenderedOutcome {
            parts: vec![
                part(PartMark::Stdout, &long.join("\n")),
                part(PartMark::Note, "n"),
            ],
        };
        let shown = lines(&rendered, |_| true, "haft runs show r c");
        let shown: Vec<&str> = shown.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(shown.len(), 8);
        assert_eq!((shown[0], shown[6]), ("line 1", "line 100"));
        assert_eq!(shown[3], "… 94 more lines: haft runs show r c …");
        assert_eq!(shown[7], "note: n");
    }
}
