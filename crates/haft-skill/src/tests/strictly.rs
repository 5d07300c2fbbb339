//! Strict checking: rows with the verdicts of the reference validator (skills-ref 0.1.1).

use super::strictly;
use crate::check::{Rigour, check_text};

/// Checks whether front matter with these lines is valid in a folder `demo`; if not, that a problem contains `told`.
#[track_caller]
fn check(front: &str, told: &str) {
    check_whole(&format!("---\n{front}\n---\nbody\n"), told);
}

#[track_caller]
fn check_whole(text: &str, told: &str) {
    let report = strictly(text);
    let messages: Vec<&str> = report.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(report.ok, told.is_empty(), "{text:.200?}: {messages:?}");
    let all = messages.join("; ");
    assert!(
        all.contains(told),
        "{text:.200?}: {messages:?} without {told:?}"
    );
}

const PLAIN: &str = "name: demo\ndescription: D";

#[test]
fn a_text_begins_and_ends_its_front_matter() {
    let whole = format!("---\n{PLAIN}\n---\n");
    check_whole(&whole, "");
    check_whole(&whole.replace('\n', "\r\n"), "");
    check_whole(&whole.replace('\n', "\r"), "");
    check_whole(&format!("\u{feff}{whole}"), "must begin");
    check_whole(&format!("\n{whole}"), "must begin");
    check_whole(&format!(" {whole}"), "must begin");
    check_whole("", "must begin");
    check_whole("# Skill: demo", "must begin");
    check_whole("---\nname: demo\ndescription: D\n", "not closed");
    check_whole("---\nname: demo\ndescription: D\n--", "not closed");
    check_whole("--- \nname: demo\ndescription: D\n---", "");
    check_whole("---name: demo\ndescription: D\n---", "");
    check_whole("----\nname: demo\ndescription: D\n----", "not valid YAML");
}

#[test]
fn the_first_dashes_end_it_wherever_they_stand() {
    check("name: demo\ndescription: a --- b", "");
    check("name: demo\ndescription: a---b", "");
    check("name: demo\ndescription: --- b", "must not be empty");
    check("description: D --- \nname: demo", "`name` is missing");
}

#[test]
fn only_the_plain_part_of_yaml_is_taken() {
    check(
        &format!("{PLAIN}\nmetadata:\n  a: [b]"),
        "line 5: lists and mappings in brackets",
    );
    check(&format!("{PLAIN}\nmetadata: {{}}"), "brackets");
    check(&format!("{PLAIN}\nallowed-tools: [Read]"), "brackets");
    check(&format!("{PLAIN}\nmetadata:\n  a: &x b"), "anchors");
    check(
        &format!("{PLAIN}\nmetadata:\n  a: &x b\n  c: *x"),
        "aliases",
    );
    check(&format!("{PLAIN}\nlicense: !!str MIT"), "tags");
    check(
        &format!("{PLAIN}\nname: demo"),
        "line 4: `name` appears twice",
    );
    check(
        &format!("{PLAIN}\nmetadata:\n  a: 1\n  a: 2"),
        "`a` appears twice",
    );
    check(
        &format!("{PLAIN}\nmetadata:\n  a:\n    b: c\n  d:\n      e: f"),
        "indented unlike",
    );
    check("name: demo\ndescription: a\tb", "a tab outside quotes");
    check("name: demo\t\ndescription: b", "a tab outside quotes");
    check("name: demo\ndescription: b\n\t", "a tab outside quotes");
    check("name: demo\ndescription: 'a\tb'", "");
    check("name: demo\ndescription: \"a\\tb\"", "");
    check(
        &format!("{PLAIN}\nlicense: \u{7}"),
        "the character '\\u{7}'",
    );
    check(&format!("{PLAIN}\nlicense: \u{ffff}"), "the character");
    check("name: demo\ndescription: a: b", "not valid YAML");
    check("name: demo\ndescription: @a", "not valid YAML");
    check("name: demo\ndescription: - a", "not valid YAML");
    check("name: demo\ndescription: 'a", "not valid YAML");
    check("name: demo\ndescription: 'a\nb'", "");
    check("name: demo\ndescription: |\n  a\n  b", "");
    check("name: demo\ndescription: a\n  b", "");
    check("'name': demo\n\"description\": D", "");
    check("? name\n: demo\n? description\n: D", "");
    check("", "`key: value` lines");
    check("- a", "`key: value` lines");
    check("text", "`key: value` lines");
    check("# comment", "`key: value` lines");
}

#[test]
fn fields_are_those_of_the_format() {
    check(
        &format!("{PLAIN}\nlicense: yes\nallowed-tools: Bash(git:*) Read\nmetadata:\n  a: 1"),
        "",
    );
    check(&format!("{PLAIN}\nallowed-tools:\n  - Read"), "");
    check(
        &format!("{PLAIN}\nversion: 1\nauthor: me"),
        "unknown fields: author, version (the format has",
    );
    check("description: D", "`name` is missing");
    check("name: demo", "`description` is missing");
    check(
        "name: demo\ndescription:",
        "`description` must not be empty",
    );
    check(
        "name: demo\ndescription: '  '",
        "`description` must not be empty",
    );
    check("name: demo\ndescription: null", "");
    check(
        "name: demo\ndescription:\n  - a",
        "`description` must be a text",
    );
    check("name:\ndescription: D", "`name` must not be empty");
    check("name:\n  - a\ndescription: D", "`name` must be a text");
    check(
        &format!("{PLAIN}\ncompatibility:\n  - x"),
        "`compatibility` must be a text",
    );
    check(&format!("{PLAIN}\ncompatibility:"), "");
}

#[test]
fn lengths_count_characters() {
    for (count, ok) in [(1024, true), (1025, false)] {
        let told = if ok {
            ""
        } else {
            "1025 characters long; 1024 is"
        };
        check(
            &format!("name: demo\ndescription: {}", "é".repeat(count)),
            told,
        );
    }
    for (count, ok) in [(500, true), (501, false)] {
        let told = if ok {
            ""
        } else {
            "501 characters long; 500 is"
        };
        check(
            &format!("{PLAIN}\ncompatibility: {}", "é".repeat(count)),
            told,
        );
    }
}

#[test]
fn names_are_lower_case_letters_digits_and_single_hyphens() {
    let long = "a".repeat(64);
    let wide = "中".repeat(64);
    let fine = [
        "demo-1",
        "дема",
        "中文",
        "étude",
        "ﬁsh",
        "①",
        "ⓐ",
        "ß",
        "ς",
        "ı",
        "٣",
        "ª",
        "ｄｅｍｏ",
        "ⅷ",
        "한글",
        "ก",
        &long,
        &wide,
    ];
    let wrong = [
        "Demo",
        "-demo",
        "demo-",
        "de--mo",
        "de mo",
        "de_mo",
        "½",
        "de.mo",
        "Дема",
        "ẞ",
        "İ",
        "हिन्दी",
        "🅐",
        "🄰",
        "x\u{200d}y",
        "\u{301}a",
    ];
    let too_long = "a".repeat(65);
    let wrong = wrong
        .into_iter()
        .chain([too_long.as_str()])
        .map(|name| (name, false));
    for (name, ok) in fine.into_iter().map(|name| (name, true)).chain(wrong) {
        let text = format!("---\nname: {name}\ndescription: D\n---\n");
        let report = check_text(text.as_bytes(), None, name, Rigour::Strict);
        assert_eq!(report.ok, ok, "{name}: {:?}", report.problems);
    }
    check("name: ' demo '\ndescription: D", "");
    check(
        "name: other\ndescription: D",
        "the name \"other\" differs from its folder's, \"demo\"",
    );
}

#[test]
fn what_is_beside_the_format_stays_a_warning() {
    let long = format!("---\n{PLAIN}\n---\n{}", "line\n".repeat(501));
    let report = strictly(&long);
    assert!(
        report.ok && report.problems[0].message.contains("501 lines"),
        "{report:?}"
    );
    let over = check_text(
        format!("---\n{PLAIN}\n---\n").as_bytes(),
        Some(b"description: E"),
        "demo",
        Rigour::Strict,
    );
    assert!(
        over.ok && over.problems[0].message.contains("skill.yaml"),
        "{over:?}"
    );
    let bytes = check_text(
        b"---\nname: demo\ndescription: \xff\n---\n",
        None,
        "demo",
        Rigour::Strict,
    );
    assert!(!bytes.ok);
}
