//! Properties: more rules and guards never weaken a verdict; patterns agree with naive matchers.

use std::path::PathBuf;

use proptest::prelude::*;

use haft_files::glob::Glob;
use haft_files::paths::{PathPattern, PathView};
use haft_shell::fragments;

use super::*;
use crate::guards::OwnFiles;
use haft_shell::join_words;
use haft_shell::plain_words;

const RULES: &[&str] = &[
    "*",
    "Read",
    "Edit",
    "Bash",
    "WebFetch",
    "write_file",
    "Edit(src/**)",
    "Edit(*.rs)",
    "Read(/src/a.rs)",
    "Bash(npm *)",
    "Bash(rm *)",
    "Bash(sh -c 'rm x')",
    "WebFetch(domain:*.example.com)",
    "a.*",
    "mcp__a__b",
    "a.b(x:1)",
    "run_command",
    "Edit(//etc/**)",
    "Bash(cat *)",
];

fn scenes() -> Vec<Scene> {
    vec![
        read("src/a.rs"),
        write("src/a.rs"),
        write("b"),
        write(".git/x"),
        run("npm test"),
        run("rm x"),
        run("ls; rm x"),
        run("sh -c 'rm x'"),
        run("cat src/a.rs"),
        fetch("a.example.com"),
        served("a.b", &json!({"x": 1})),
        tool(
            "write_file",
            Risk::High,
            &json!({}),
            vec![Permission::write(linked("src/a", "etc/b"))],
        ),
    ]
}

fn some_rules() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(RULES), 0..5)
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(vec![
        Profile::ReadOnly,
        Profile::Workspace,
        Profile::Trusted,
    ])
}

proptest! {
    #[test]
    fn more_denies_asks_and_guards_never_lower_a_verdict(
        profile in profile(), deny in some_rules(), ask in some_rules(), allow in some_rules(),
        more_deny in some_rules(), more_ask in some_rules(),
    ) {
        let fewer = policy(profile, Lists { deny: &deny, ask: &ask, allow: &allow });
        let (deny, ask) = ([deny, more_deny].concat(), [ask, more_ask].concat());
        let more = policy(profile, Lists { deny: &deny, ask: &ask, allow: &allow });
        let guarded = more.clone().with_guard(OwnFiles::new(vec![PathBuf::from("src")]));
        for scene in scenes() {
            let verdicts = [&fewer, &more, &guarded].map(|p| p.judge(&scene.call()).verdict);
            prop_assert!(verdicts.is_sorted(), "{scene:?} {verdicts:?}");
            prop_assert_eq!(verdicts[1], more.explain(&scene.call()).verdict);
        }
    }

    #[test]
    fn globs_agree_with_a_naive_matcher(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
        prop_assert_eq!(Glob::parse(&pattern).matches(&text), naive(pattern.as_bytes(), text.as_bytes()));
    }

    #[test]
    fn paths_agree_with_a_naive_matcher(
        pattern in prop::collection::vec("\\*\\*|[ab*?]{1,3}", 1..5), path in prop::collection::vec("[ab]{1,3}", 1..5),
    ) {
        let parts: Vec<&str> = pattern.iter().map(String::as_str).collect();
        let segments: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = format!("/{}", pattern.join("/"));
        let path = path.join("/");
        let view = PathView::new(&path, None);
        let compiled = PathPattern::parse(&text, None, true).unwrap();
        // A deny rule also covers what lies below, and the folder of a trailing `/**`.
        let end = parts.iter().rposition(|p| *p != "**").map_or(0, |at| at + 1);
        let expect = (0..=segments.len()).any(|n| naive_path(&parts[..end], &segments[..n]));
        prop_assert_eq!(compiled.forbids(&view), expect, "{} on {}", text, path);
        if compiled.allows(&view) {
            prop_assert!(expect);
        }
    }

    #[test]
    fn quoted_words_read_back(words in prop::collection::vec("[a-z '\"\\\\$*;~#=\t]{0,6}", 1..5)) {
        let line = join_words(&words);
        if let Some(read) = plain_words(&line) {
            prop_assert_eq!(read, words);
        }
    }

    #[test]
    fn any_text_is_taken_apart(text in "[a-c $'\"`(){}<>&|;\\\\\n#=-]{0,80}") {
        let found = fragments(&text);
        // A quoted brace or assignment is a word; the scan cannot tell and looks behind it, so it can only deny more.
        let odd = |word: &String| matches!(word.as_str(), "{" | "}" | "!") || word.contains('=');
        if let Some(words) = plain_words(&text)
            && !words.iter().any(odd)
        {
            prop_assert!(found.commands.contains(&words), "{:?}", found);
            // Quoted text runs where bash reads it a second time, so the scan looks into it, too.
            if !words.iter().any(|word| word.contains('`') || word.contains("$(")) {
                prop_assert_eq!(found.commands, vec![words]);
            }
        }
    }

    #[test]
    fn a_suggested_rule_allows_its_path(path in "[a-z*?\\[\\]!\\\\ ()~#.]{1,8}(/[a-z*?\\[\\]!]{1,4})?") {
        let path = haft_files::paths::clean(&path);
        let scene = write(&path);
        let found = policy(Profile::Workspace, Lists::default()).suggest(&scene.call());
        if !found.is_empty() {
            let texts: Vec<&str> = found.iter().map(String::as_str).collect();
            let lists = Lists { allow: &texts, ..Lists::default() };
            prop_assert_eq!(judge(lists, &scene).verdict, ALLOW, "{:?}", texts);
            prop_assert_eq!(judge(lists, &write("other/file")).verdict, ASK, "{:?}", texts);
        }
    }

    #[test]
    fn a_suggested_rule_allows_its_command(words in prop::collection::vec("[a-z*'\"\\\\ $;()~#=:]{0,5}", 1..4)) {
        let mut scene = run("make");
        scene.permissions[0].effect = Effect::Run { command: join_words(&words), argv: Some(words.clone()), jailed: true, on_copy: false };
        scene.permissions[0].risk = Risk::High;
        let found = policy(Profile::Workspace, Lists::default()).suggest(&scene.call());
        if !found.is_empty() {
            let texts: Vec<&str> = found.iter().map(String::as_str).collect();
            let lists = Lists { allow: &texts, ..Lists::default() };
            prop_assert_eq!(judge(lists, &scene).verdict, ALLOW, "{:?} {:?}", texts, words);
            prop_assert_eq!(judge(lists, &run("make other")).verdict, ASK, "{:?}", texts);
        }
    }
}

fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|at| naive(rest, &text[at..])),
        Some((b'?', rest)) => !text.is_empty() && naive(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && naive(rest, &text[1..]),
    }
}

fn naive_path(pattern: &[&str], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((&"**", rest)) => (0..=path.len()).any(|at| naive_path(rest, &path[at..])),
        Some((name, rest)) => path.split_first().is_some_and(|(part, more)| {
            naive(name.as_bytes(), part.as_bytes()) && naive_path(rest, more)
        }),
    }
}
