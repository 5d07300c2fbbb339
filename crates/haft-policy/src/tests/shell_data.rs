//! The recorded shell cases: each has the expected verdict.

use serde::Deserialize;

use super::*;
use crate::rules::RuleText;

/// Minimum number of lines in the file.
const CASES: usize = 186;

#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    rules: Given,
    command: String,
    expect: Verdict,
    #[serde(default)]
    also_ok: Vec<Verdict>,
    why: String,
}

#[derive(Debug, Deserialize)]
struct Given {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

#[test]
fn recorded_lines_come_out_as_expected() {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the shell cases are not run");
        return;
    };
    let file = Path::new(&folder).join("shell-policy/given.jsonl");
    let text = std::fs::read_to_string(&file).expect("HAFT_DATA holds shell-policy/given.jsonl");
    let cases: Vec<Case> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(cases.len() >= CASES, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let texts = |rules: &[String]| {
            rules
                .iter()
                .map(|rule| RuleText::new(rule.as_str()))
                .collect()
        };
        let set = RuleSet {
            allow: texts(&case.rules.allow),
            ask: texts(&case.rules.ask),
            deny: texts(&case.rules.deny),
        };
        let policy = builder(Profile::Workspace, set)
            .build()
            .expect("the rules are fine");
        let verdict = policy.judge(&run(&case.command).call()).verdict;
        let right = verdict == case.expect || case.also_ok.contains(&verdict);
        if !right {
            wrong.push(format!(
                "{} {:?}: {verdict}, not {}: {}",
                case.id, case.command, case.expect, case.why
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
