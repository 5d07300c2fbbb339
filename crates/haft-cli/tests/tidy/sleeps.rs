//! Tests wait for events, never for a fixed time: on a busy machine what takes longer would fail, and on an idle one the time would be
//! wasted every time.
//!
//! A sleep is between two checks of a `loop`, a `while` or a `for _`, or the line before says why it takes time:
//! `// slow on purpose: …`.

use crate::sources;

const REASON: &str = "// slow on purpose: ";

/// The calls that sleep.
const SLEEPS: [&str; 2] = ["thread::sleep(", "time::sleep("];

/// Returns whether a file contains tests: below a `tests` folder, or the tests next to a module.
fn is_test(name: &str) -> bool {
    let mut parts = name.split('/');
    parts.any(|part| matches!(part, "tests" | "tests.rs"))
}

/// Returns whether a line sleeps, by a path or by an imported name.
fn sleeps(line: &str, imported: bool) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let bare = |at: usize| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| c == ' ' || c == '(' || c == '|')
    };
    let by_path = SLEEPS.iter().any(|sleep| code.contains(sleep));
    let by_name = imported && code.match_indices("sleep(").any(|(at, _)| bare(at));
    (by_path || by_name) && !code.contains("fn sleep(")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns whether a line of a formatted file is, directly or further out, in a loop of its function.
fn is_in_a_loop(lines: &[&str], at: usize) -> bool {
    let mut inner = indent(lines[at]);
    let mut row = at;
    while row > 0 {
        row -= 1;
        let line = lines[row];
        if line.trim().is_empty() || indent(line) >= inner {
            continue;
        }
        inner = indent(line);
        // A head of several lines ends with a closing line: it starts at the same indent further up.
        while row > 0
            && (indent(lines[row]) != inner
                || lines[row].trim_start().starts_with([')', '}', ']', '{']))
        {
            row -= 1;
        }
        let head = lines[row].trim_start();
        let begins = |word: &str| {
            let bound = [format!("= {word}"), format!("=> {word}")];
            head.starts_with(word) || bound.iter().any(|bound| head.contains(bound))
        };
        if ["loop {", "while ", "for _ in "]
            .iter()
            .any(|word| begins(word))
        {
            return true;
        }
        if head.contains("fn ") {
            return false;
        }
    }
    false
}

/// Returns the lines, from 1, that sleep for a fixed time without giving a reason.
fn fixed(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let imported = lines
        .iter()
        .any(|line| line.starts_with("use ") && line.contains("sleep"));
    let explains = |at: usize| at > 0 && lines[at - 1].trim_start().starts_with(REASON);
    (0..lines.len())
        .filter(|at| sleeps(lines[*at], imported) && !explains(*at) && !is_in_a_loop(&lines, *at))
        .map(|at| at + 1)
        .collect()
}

#[test]
fn tests_wait_for_what_happens() {
    // This file quotes what a sleep looks like.
    let tests = |name: &str| is_test(name) && !name.ends_with("tidy/sleeps.rs");
    let faults: Vec<String> = sources()
        .iter()
        .filter(|(name, _)| tests(name))
        .map(|(name, text)| (name, fixed(text)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}: a fixed sleep, one of the lines {found:?}"))
        .collect();
    assert!(
        faults.is_empty(),
        "a test waits for an event, in a loop that looks for it, or says `{REASON}why`:\n{}",
        faults.join("\n")
    );
}

#[test]
fn a_fixed_sleep_is_found_and_a_poll_is_not() {
    let fixed_of = |body: &str| {
        fixed(&format!(
            "use tokio::time::sleep;\nfn test() {{\n{body}\n}}\n"
        ))
    };
    for body in [
        "    std::thread::sleep(SECOND);",
        "    tokio::spawn(async {\n        tokio::time::sleep(SECOND).await;\n    });",
        "    sleep(SECOND).await;",
        "    for n in 0..3 {\n        sleep(SECOND).await;\n    }",
        "    for n in 0..3 {\n        go(n);\n    }\n    sleep(SECOND).await;",
    ] {
        assert_eq!(fixed_of(body).len(), 1, "{body}");
    }
    for body in [
        "    while !done() {\n        thread::sleep(MOMENT);\n    }",
        "    let end = loop {\n        if done() {\n            break;\n        }\n        sleep(MOMENT).await;\n    };",
        "    while !done(\n        all,\n    ) {\n        if late() {\n            thread::sleep(MOMENT);\n        }\n    }",
        "    // slow on purpose: the clock is paused.\n    sleep(SECOND).await;",
        "    chain(\"tools.sleep(s=600)\");",
        "    // `sleep(1)` would do",
    ] {
        assert_eq!(fixed_of(body), Vec::<usize>::new(), "{body}");
    }
}
