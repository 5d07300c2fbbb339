//! Lenient reading: rows of texts and their results.

use super::{declared, declared_with};
use crate::Severity;

/// Checks name and description if the skill loads, otherwise `error`; then parts of the reported problems, in order.
#[track_caller]
fn check(text: &str, expect: &str, told: &[&str]) {
    let declared = declared(text);
    let got = if declared.loads() {
        format!("{}: {}", declared.name, declared.description)
    } else {
        "error".to_owned()
    };
    assert_eq!(got, expect, "{text:.200?}: {:?}", declared.problems);
    let problems: Vec<&str> = declared
        .problems
        .iter()
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(problems.len(), told.len(), "{text:.200?}: {problems:?}");
    for (problem, part) in problems.iter().zip(told) {
        assert!(
            problem.contains(part),
            "{text:.200?}: {problem:?} has no {part:?}"
        );
    }
}

#[test]
fn every_way_to_write_a_front_matter_loads() {
    check("---\nname: demo\ndescription: D\n---\nx", "demo: D", &[]);
    check(
        "\u{feff}---\nname: demo\ndescription: D\n---",
        "demo: D",
        &[],
    );
    check(
        "---\r\nname: demo\r\ndescription: D\r\n---\r\n",
        "demo: D",
        &[],
    );
    check("\n---\nname: demo\ndescription: D\n---\n", "demo: D", &[]);
    check(
        "---\nname: demo\ndescription: >\n  a\n  b\n---\n",
        "demo: a b",
        &[],
    );
    check(
        "---\nname: demo\ndescription: a --- b\n---\n",
        "demo: a --- b",
        &[],
    );
    check(
        "---\n'name': \"demo\"\ndescription: 'D'\nx: {y: [z]}\n---\n",
        "demo: D",
        &[],
    );
}

#[test]
fn names_that_break_the_format_are_warned_about() {
    check("---\ndescription: D\n---", "demo: D", &["no `name`"]);
    check("---\nname:\ndescription: D\n---", "demo: D", &["no `name`"]);
    check(
        "---\nname: other\ndescription: D\n---",
        "other: D",
        &["differs from its folder's"],
    );
    check(
        "---\nname: Excel Analysis\ndescription: D\n---",
        "Excel Analysis: D",
        &["lower case", "only letters", "differs"],
    );
    check(
        "---\nname: ../../etc\ndescription: D\n---",
        "demo: D",
        &["cannot be used as a name"],
    );
    check(
        "---\nname: \"a\\nb\"\ndescription: D\n---",
        "demo: D",
        &["cannot be used as a name"],
    );
    check(
        "---\nname: .hidden\ndescription: D\n---",
        "demo: D",
        &["cannot be used as a name"],
    );
    check(
        "---\nname: [a]\ndescription: D\n---",
        "demo: D",
        &["`name` is not a text", "no `name`"],
    );
    let long = "n".repeat(70);
    let text = format!("---\nname: {long}\ndescription: D\n---");
    check(&text, &format!("{long}: D"), &["70 characters", "differs"]);
    let text = format!("---\nname: {}\ndescription: D\n---", "n".repeat(4000));
    check(&text, "demo: D", &["cannot be used as a name"]);
}

#[test]
fn what_has_no_description_does_not_load() {
    check("---\nname: demo\n---\n", "error", &["no `description`"]);
    check(
        "---\nname: demo\ndescription: ''\n---\n",
        "error",
        &["no `description`"],
    );
    check(
        "---\nname: demo\ndescription:\n---\n",
        "error",
        &["no `description`"],
    );
    check(
        "---\nname: demo\ndescription: [a]\n---\n",
        "error",
        &["not a text", "no `description`"],
    );
    check(
        "---\n---\n",
        "error",
        &["is empty", "no `name`", "no `description`"],
    );
}

#[test]
fn bad_input_is_told_and_never_loads_as_something_else() {
    let none = ["first line must be `---`", "no `name`", "no `description`"];
    check("# Skill: demo\n\nNo front matter.", "error", &none);
    check("", "error", &none);
    let open = ["not closed", "no `name`", "no `description`"];
    check("---\nname: demo\ndescription: D\n", "error", &open);
    check(
        "---\n- name\n- description\n---",
        "error",
        &["is a list", "no `name`", "no `desc"],
    );
    check(
        "---\njust text\n---",
        "error",
        &["is a text", "no `name`", "no `desc"],
    );
    let nul = ["holds a NUL", "no `name`", "no `description`"];
    check("---\nname: demo\ndescription: a\0b\n---", "error", &nul);
    check(
        "---\nname: demo\ndescription: D\ndescription: E\n---",
        "demo: D",
        &["line 4: `description` appears twice"],
    );
    let lines: Vec<String> = (1..40)
        .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1))
        .collect();
    let bomb = lines.concat();
    check(
        &format!("---\nname: demo\ndescription: D\na0: &a0 x\n{bomb}---\n"),
        "demo: D",
        &["aliases (`*name`) are not supported; it was read with its values quoted"],
    );
    let text = format!(
        "---\nname: demo\ndescription: D\nx: {}\n---",
        "[".repeat(100)
    );
    check(&text, "demo: D", &["nested deeper than 16"]);
}

#[test]
fn a_long_description_is_cut() {
    let text = |count| format!("---\nname: demo\ndescription: {}\n---", "ü".repeat(count));
    assert!(declared(&text(1024)).problems.is_empty());
    let long = declared(&text(20_000));
    assert_eq!(long.description.chars().count(), 1024);
    assert!(
        long.problems[0].message.contains("20000 characters"),
        "{:?}",
        long.problems
    );
}

#[test]
fn control_characters_do_not_reach_a_screen() {
    let declared = declared("---\nname: demo\ndescription: \"a\\e[31mb\\u202e\"\n---");
    assert_eq!(declared.description, "a [31mb\u{202e}");
}

#[test]
fn values_that_yaml_stumbles_over_are_quoted() {
    let quoted = &["quoted"][..];
    check(
        "---\nname: demo\ndescription: Use when: it rains\n---",
        "demo: Use when: it rains",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: it's: so\n---",
        "demo: it's: so",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: @you there\n---",
        "demo: @you there",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: *bold* text\n---",
        "demo: *bold* text",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: Use when: it\n  rains: often\n---",
        "demo: Use when: it rains: often",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: D\nargument-hint: [a] [b]\n---",
        "demo: D",
        quoted,
    );
    check(
        "---\nname: demo\ndescription: a ---\nno key",
        "demo: a",
        &["not closed"][..0],
    );
}

/// What stands below the name → the description, and whether there is a warning.
const DESCRIPTIONS: &[(&str, &str, bool)] = &[
    (
        "description:\n  Use when reviewed. Pairs with\n  skill: grill first",
        "Use when reviewed. Pairs with skill: grill first",
        true,
    ),
    (
        "description:\n  Use when: reviewed.\n  Pairs with skills.",
        "Use when: reviewed. Pairs with skills.",
        true,
    ),
    (
        "description:\n  Use when: reviewed.",
        "Use when: reviewed.",
        true,
    ),
    (
        "description:\n  Use when: reviewed.\n  Pairs: with it.",
        "Use when: reviewed. Pairs: with it.",
        true,
    ),
    (
        "description: Use when\n  it rains.\n  Note: umbrella\ntags: [a, b]",
        "Use when it rains. Note: umbrella",
        true,
    ),
    (
        "description:\n  One.\n\n  Two: three.\n  four",
        "One.\nTwo: three. four",
        true,
    ),
    (
        "description:\n  One\n  # not said\n  two: three\n  four",
        "One two: three four",
        true,
    ),
    (
        "description:\n\tUse when: it\n\trains",
        "Use when: it rains",
        true,
    ),
    ("description:\tUse it", "Use it", true),
    (
        "description: Use: when a plan\nis reviewed.",
        "Use: when a plan is reviewed.",
        true,
    ),
    ("description: >\n  a: b\n  c\n\n  d", "a: b c\nd", false),
    ("description: >-\n  a: b\n  c", "a: b c", false),
    ("description: >+ # c\n  a\n  b\n\n", "a b", false),
    ("description: >2-\n  a\n   b", "a\n b", false),
    ("description: |\n  a: b\n  c", "a: b\nc", false),
    ("description: |-\n  a\n  b", "a\nb", false),
    ("description: |+\n  a\n\n", "a", false),
    ("description: |\n\ta: b\n\tc", "a: b\nc", true),
    ("description: >\nUse it\nwell", "Use it well", true),
    (
        "description: \"Use when: it\n  rains: often\"",
        "Use when: it rains: often",
        false,
    ),
    (
        "description: 'it''s: so\n  and: so'",
        "it's: so and: so",
        false,
    ),
    (
        "description: \"Plan\" reviews: do it",
        "\"Plan\" reviews: do it",
        true,
    ),
    ("description: 'it's fine'", "it's fine", true),
    ("description: a # c", "a", false),
    ("description: # c\n  a\n  b", "a b", false),
];

#[test]
fn descriptions_over_several_lines_load_however_they_are_written() {
    for (below, expect, warns) in DESCRIPTIONS {
        for ends in ["\n", "\r\n"] {
            let text = format!("\u{feff}---\nname: demo\n{below}\nmodel: x\n---\nbody\n");
            let read = declared(&text.replace('\n', ends));
            assert!(read.loads(), "{below:?}: {:?}", read.problems);
            assert_eq!(read.description, *expect, "{below:?}: {:?}", read.problems);
            assert_eq!(
                !read.problems.is_empty(),
                *warns,
                "{below:?}: {:?}",
                read.problems
            );
            assert_eq!(read.front.others["model"], "x", "{below:?}");
        }
    }
    // What narrows is never taken for a part of a text, nor a list for a text.
    let limited = "---\nname: demo\ndescription:\n  Use: it\n  now\nallowed_tools: [Read, Grep]\ndisallowed-tools:\n  - Bash\n---";
    let tools = declared(limited).tools;
    assert_eq!(tools.restricts_to.unwrap(), ["Read", "Grep"]);
    assert_eq!(tools.excludes, ["Bash"]);
    for hidden in [
        "description: a\nallowed_tools:Read",
        "description: a\n allowed_tools: Read",
        "description: >\nb\n disallowed-tools: Bash",
    ] {
        let read = declared(&format!("---\nname: demo\n{hidden}\n---"));
        assert!(!read.loads(), "{hidden:?}: {read:?}");
    }
}

#[test]
fn known_keys_are_taken_apart_and_others_kept() {
    let text = "---\nname: demo\ndescription: D\nlicense: MIT\ncompatibility: any\nmetadata:\n  version: 1.0\n  n: {a: b}\n\
        tags: [x, y]\naliases: d, e\ncategory: a/b\nwhen_to_use: W\nargument-hint: [file]\narguments: one two\n\
        disable-model-invocation: true\nuser-invocable: false\npaths: '*.rs, *.toml'\nmodel: big\ncontext: fork\n---";
    let declared = declared(text);
    assert_eq!(declared.problems, []);
    let front = declared.front;
    assert_eq!(front.license.as_deref(), Some("MIT"));
    assert_eq!(front.compatibility.as_deref(), Some("any"));
    assert_eq!(front.version.as_deref(), Some("1.0"));
    assert_eq!(front.metadata["n"], r#"{"a":"b"}"#);
    assert_eq!(front.tags, ["x", "y"]);
    assert_eq!(front.aliases, ["d", "e"]);
    assert_eq!(front.category.as_deref(), Some("a/b"));
    assert_eq!(front.when_to_use.as_deref(), Some("W"));
    assert_eq!(front.argument_hint.as_deref(), Some(r#"["file"]"#));
    assert_eq!(front.arguments, ["one", "two"]);
    assert_eq!(front.paths, ["*.rs", "*.toml"]);
    assert!(!front.model_invocable && !front.user_invocable);
    assert_eq!(front.others["model"], "big");
    assert_eq!(front.others["context"], "fork");
    assert_eq!(front.others.len(), 2);
}

#[test]
fn asking_and_limiting_stay_apart() {
    let of = |keys: &str| declared(&format!("---\nname: demo\ndescription: D\n{keys}\n---")).tools;
    let asked = of("allowed-tools: Bash(git:*), Read");
    assert_eq!(asked.requests, ["Bash(git:*)", "Read"]);
    assert_eq!((asked.restricts_to, asked.excludes), (None, vec![]));
    let limited = of("allowed_tools: [read_file, grep_files]\ndisallowed-tools: Bash");
    assert_eq!(limited.restricts_to.unwrap(), ["read_file", "grep_files"]);
    assert_eq!(
        (limited.requests, limited.excludes),
        (vec![], vec!["Bash".to_owned()])
    );
    assert_eq!(of("allowed_tools: []").restricts_to, Some(vec![]));
    assert_eq!(of("allowed_tools:").restricts_to, None);
}

#[test]
fn a_limit_that_cannot_be_read_keeps_the_skill_from_loading() {
    for keys in [
        "allowed_tools: {a: b}",
        "disallowed-tools: [{a: b}]",
        "allowed_tools: a\nallowed_tools: b",
    ] {
        let declared = declared(&format!("---\nname: demo\ndescription: D\n{keys}\n---"));
        assert!(!declared.loads(), "{keys}");
    }
    let asked = declared("---\nname: demo\ndescription: D\nallowed-tools: {a: b}\n---");
    assert!(asked.loads() && asked.tools.requests.is_empty());
    assert_eq!(asked.problems[0].level, Severity::Warning);
}

const PLAIN: &str = "---\nname: demo\ndescription: D\n---";

#[test]
fn an_overlay_fills_in_and_never_overrides() {
    let over = "id: x1\nname: other\ndescription: E\nversion: '2'\nactivation: [a, b]\nallowed_tools: Read";
    let both = declared_with(PLAIN, Some(over));
    assert_eq!(
        (both.name.as_str(), both.description.as_str()),
        ("demo", "D")
    );
    assert_eq!(both.front.version.as_deref(), Some("2"));
    assert_eq!(both.front.when_to_use.as_deref(), Some("a; b"));
    assert_eq!(both.front.others["id"], "x1");
    assert_eq!(
        both.tools.restricts_to.as_deref(),
        Some(&["Read".to_owned()][..])
    );
    let told: Vec<&str> = both.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("`name` differs") && told[1].starts_with("`description` differs"));

    let alone = declared_with("# Skill: demo", Some("name: demo\ndescription: E"));
    assert!(alone.loads(), "{:?}", alone.problems);
    assert_eq!(alone.description, "E");
    assert!(
        alone.problems[0]
            .message
            .contains("skill.yaml is used instead")
    );
    assert!(!declared_with("# Skill: demo", Some("name: demo")).loads());
}

#[test]
fn an_overlay_that_cannot_be_read_keeps_the_skill_from_loading() {
    for over in [
        "- a",
        "a: [",
        "a: &x b\nc: *x",
        "allowed_tools: {a: b}",
        "name: a\nname: b",
        "\0",
    ] {
        assert!(!declared_with(PLAIN, Some(over)).loads(), "{over:?}");
    }
    assert!(declared_with(PLAIN, Some("")).loads());
    assert!(
        declared_with(PLAIN, Some("\u{feff}name: demo\r\n"))
            .problems
            .is_empty()
    );
}
