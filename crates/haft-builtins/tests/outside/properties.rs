//! Properties: a line passes only if each of its parts does, and a word that leads out never lowers the verdict.

use haft::permission::Verdict;
use proptest::prelude::*;

use crate::scene::Scene;

const RULES: &[&str] = &[
    "Bash(make *)",
    "Bash(npm test)",
    "Edit(/**)",
    "Read",
    "Bash(git commit *)",
];

const PARTS: &[&str] = &[
    "ls",
    "cat README.md",
    "cat src/*.rs",
    "cat .env",
    "cat ~/.ssh/id_rsa",
    "echo hi",
    "echo $x",
    "echo $(date)",
    "make all",
    "make /etc",
    "npm test",
    "npm publish",
    "rm README.md",
    "rm -rf notes",
    "cp README.md x",
    "cd src",
    "cd ..",
    "git log",
    "git commit -m x",
    "git push",
    "curl https://example.com/",
    "grep -rn text src",
    "grep -rn text",
    "for f in a b; do cat $f; done",
    "haft trust",
    "export A=1",
    "tee x",
];

const JOINS: &[&str] = &[" && ", " | ", "; ", " || ", "\n"];

const WORDS: &[&str] = &[
    "/etc/passwd",
    "~/x",
    "../other/file",
    "linked/away/file",
    "$HOME/x",
    "--file=/etc/passwd",
];

fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(PARTS), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_line_passes_only_where_each_part_does(parts in lines(), join in prop::sample::select(JOINS)) {
        let scene = Scene::new();
        if scene.line(&parts.join(join), RULES) == Verdict::Allow {
            for part in parts {
                // A part on its own starts in the same folder as the line.
                prop_assert_eq!(scene.line(part, RULES), Verdict::Allow, "{}", part);
            }
        }
    }

    #[test]
    fn a_word_that_leads_out_never_lowers_the_verdict(
        parts in lines(), join in prop::sample::select(JOINS), word in prop::sample::select(WORDS),
    ) {
        let scene = Scene::new();
        let line = parts.join(join);
        let more = format!("{line} {word}");
        prop_assert!(scene.line(&more, RULES) >= scene.line(&line, RULES), "{}", more);
        // Only a command that treats its words as data passes with one.
        if scene.line(&more, RULES) == Verdict::Allow {
            prop_assert!(parts.last().is_some_and(|part| part.starts_with("echo")), "{}", more);
        }
    }
}
