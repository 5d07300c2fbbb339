//! The lines of a rendered outcome that stand below a call: all of them, or the first and the last.

use haft::result::{Mark, Part, Rendered};

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
    rendered: &Rendered<'_>,
    is_wanted: impl Fn(Mark) -> bool,
    whole: &str,
) -> Vec<(Mark, String)> {
    let most = if rendered.has(Mark::Status) {
        OF_FAILURE
    } else {
        OF_SUCCESS
    };
    let wanted = rendered.parts.iter().filter(|part| is_wanted(part.mark));
    wanted.flat_map(|part| of_part(part, most, whole)).collect()
}

fn of_part(part: &Part<'_>, most: usize, whole: &str) -> Vec<(Mark, String)> {
    let text = match part.mark {
        Mark::Note => format!("note: {}", visible::block(&part.text)),
        Mark::Data => data::render(&part.text),
        Mark::Details => data::details(&part.text),
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
    use haft::result::{Mark, Part, Rendered};

    use super::lines;

    #[test]
    fn a_long_part_shows_its_beginning_and_its_end() {
        let long: Vec<String> = (1..=100).map(|nth| format!("line {nth}")).collect();
        let part = |mark, text: &str| Part {
            mark,
            text: text.to_owned().into(),
        };
        let rendered = Rendered {
            parts: vec![part(Mark::Stdout, &long.join("\n")), part(Mark::Note, "n")],
        };
        let shown = lines(&rendered, |_| true, "haft runs show r c");
        let shown: Vec<&str> = shown.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(shown.len(), 8);
        assert_eq!((shown[0], shown[6]), ("line 1", "line 100"));
        assert_eq!(shown[3], "… 94 more lines: haft runs show r c …");
        assert_eq!(shown[7], "note: n");
    }
}
