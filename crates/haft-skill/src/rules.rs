//! Lists in front matter: tool rules and plain words, written as one text or as a sequence.

use crate::yaml::YamlNode;

/// Returns the rules in a text or a sequence of texts: `Bash(git:*), Read` are two. `None` if it is neither.
pub(super) fn rules(node: &YamlNode) -> Option<Vec<String>> {
    texts(node).map(|texts| texts.into_iter().flat_map(split_rules).collect())
}

/// Returns the words in a text (separated by commas, or also by spaces with `spaces`) or a sequence of texts.
pub(super) fn words(node: &YamlNode, spaces: bool) -> Option<Vec<String>> {
    let separates = |c: char| c == ',' || (spaces && c.is_whitespace());
    match node {
        YamlNode::Text(text, _) => Some(non_empty(text.split(separates))),
        YamlNode::List(_) => Some(non_empty(texts(node)?.into_iter())),
        YamlNode::Map(_) => None,
    }
}

fn non_empty<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words = words.map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn texts(node: &YamlNode) -> Option<Vec<&str>> {
    match node {
        YamlNode::Text(text, _) => Some(vec![text]),
        YamlNode::List(items) => items
            .iter()
            .map(|item| match item {
                YamlNode::Text(text, _) => Some(text.as_str()),
                YamlNode::List(_) | YamlNode::Map(_) => None,
            })
            .collect(),
        YamlNode::Map(_) => None,
    }
}

/// Splits at commas and white space outside parentheses; an unclosed one takes the rest.
fn split_rules(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    non_empty(parts)
}

#[cfg(test)]
mod tests {
    use super::{rules, words};
    use crate::yaml::read;

    #[test]
    fn rules_stay_whole_in_their_parentheses() {
        let rows = [
            ("Bash(git:*) Read", "Bash(git:*)|Read"),
            ("ask_user, sql, fetch", "ask_user|sql|fetch"),
            (
                "Bash(git add *, x) ,Edit(src/**)",
                "Bash(git add *, x)|Edit(src/**)",
            ),
            (
                "\n- Read\n- Bash(npm run *), Glob\n",
                "Read|Bash(npm run *)|Glob",
            ),
            ("Bash(a (b) c) Read", "Bash(a (b) c)|Read"),
            ("Bash(open Read", "Bash(open Read"),
            ("') Read'", ")|Read"),
            ("''", ""),
        ];
        for (yaml, expect) in rows {
            let node = read(&format!("k: {yaml}"), 0).unwrap().node;
            let got = rules(node.get("k").unwrap()).unwrap();
            assert_eq!(got.join("|"), expect, "{yaml}");
        }
    }

    #[test]
    fn words_are_between_commas_and_where_meant_spaces() {
        let node = read("k: a b, c\nl: [d e, f]\nm: {x: y}", 0).unwrap().node;
        let of = |key, spaces| words(node.get(key).unwrap(), spaces);
        assert_eq!(of("k", true).unwrap(), ["a", "b", "c"]);
        assert_eq!(of("k", false).unwrap(), ["a b", "c"]);
        assert_eq!(of("l", true).unwrap(), ["d e", "f"]);
        assert_eq!(of("m", true), None);
        assert_eq!(rules(node.get("m").unwrap()), None);
    }
}
