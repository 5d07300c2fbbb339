//! The page of shell rules matches the code: each row of its tables is judged.

use std::fs;

use super::*;
use crate::rules::view::CommandView;

/// Returns the first table under a heading: example and result of each row. With fewer than `minimum` rows, the page was not read.
fn table(heading: &str, minimum: usize) -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/shell-rules.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows
        .map(|line| {
            let line = line.replace("\\|", "\u{1}");
            let cells: Vec<String> = line
                .split('|')
                .map(|cell| cell.trim().replace('\u{1}', "|"))
                .collect();
            (code(&cells[2]), cells[3].clone())
        })
        .collect();
    assert!(rows.len() >= minimum, "{heading}: {} rows", rows.len());
    rows
}

/// Returns the text of `` `code` ``; `⏎` means a line break.
fn code(cell: &str) -> String {
    let fence = if cell.starts_with("``") { "`` " } else { "`" };
    let inner = cell.strip_prefix(fence.trim_end()).unwrap();
    let inner = inner.strip_suffix(fence.trim_end()).unwrap();
    let inner = if fence.len() > 1 {
        inner.trim_end()
    } else {
        inner
    };
    inner.replace('⏎', "\n")
}

fn verdict(profile: Profile, lists: Lists<'_>, line: &str) -> Verdict {
    policy(profile, lists).judge(&run(line).call()).verdict
}

#[test]
fn the_language_is_the_one_of_the_page() {
    // Under this profile, only what cannot be parsed needs approval.
    let lists = Lists {
        allow: &["Read", "Edit"],
        ..Lists::default()
    };
    for (line, result) in table("The language that is read", 55) {
        let expect = if result == "read" { ALLOW } else { ASK };
        assert_eq!(verdict(Profile::Trusted, lists, &line), expect, "{line}");
        let unread = CommandView::new(&line, None).unread.is_some();
        assert_eq!(unread, result == "asked", "{line}");
    }
}

#[test]
fn what_only_reads_is_what_the_page_says() {
    for (line, result) in table("Commands that only read", 20) {
        let expect = if result == "runs" { ALLOW } else { DENY };
        let reading = verdict(Profile::ReadOnly, Lists::default(), &line);
        assert_eq!(reading, expect, "{line}");
    }
}

#[test]
fn an_allow_needs_what_the_page_says() {
    for (line, result) in table("What an allow needs", 18) {
        let names = [
            "make", "printf", "set", "test", "[", "find", "sh", "eval", "flock", "git", "cd",
        ];
        let more = ["export", "trap", "shopt", "xargs"];
        let patterns: Vec<String> = names
            .iter()
            .chain(&more)
            .map(|name| format!("Bash({name} *)"))
            .collect();
        let mut allow: Vec<&str> = patterns.iter().map(String::as_str).collect();
        allow.push("Bash");
        let by_pattern = Lists {
            allow: &allow,
            ..Lists::default()
        };
        let expect = if result == "any rule" { ALLOW } else { ASK };
        assert_eq!(
            verdict(Profile::Workspace, by_pattern, &line),
            expect,
            "{line}"
        );
        let exact = format!("Bash({})", line.replace('\\', "\\\\"));
        if result == "the exact rule" {
            let exactly = Lists {
                allow: &[&exact],
                ..Lists::default()
            };
            assert_eq!(verdict(Profile::Workspace, exactly, &line), ALLOW, "{line}");
        }
    }
}

#[test]
fn wrappers_are_looked_through_as_the_page_says() {
    let denying = Lists {
        deny: &["Bash(touch *)"],
        allow: &["Bash", "Bash(*)"],
        ..Lists::default()
    };
    let allowing = Lists {
        allow: &["Bash(touch *)"],
        ..Lists::default()
    };
    for (line, result) in table("Wrappers", 16) {
        let (allowed, denied) = match result.as_str() {
            "every rule" => (ALLOW, DENY),
            "deny and ask" => (ASK, DENY),
            _ => (ASK, ALLOW),
        };
        assert_eq!(
            verdict(Profile::Workspace, allowing, &line),
            allowed,
            "{line}"
        );
        assert_eq!(verdict(Profile::Trusted, denying, &line), denied, "{line}");
    }
}

#[test]
fn removals_are_critical_as_the_page_says() {
    let lists = Lists {
        allow: &["Bash(rm *)"],
        ..Lists::default()
    };
    for (line, result) in table("Critical removals", 18) {
        let expect = if result == "critical" { ASK } else { ALLOW };
        assert_eq!(verdict(Profile::Workspace, lists, &line), expect, "{line}");
    }
}
