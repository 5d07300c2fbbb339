//! Fuzz targets of the library: each runs for a few seconds over its corpus, and longer with `make fuzz`.

use std::path::{Path, PathBuf};

use haft::audit::redact::Redactor;
use haft::permission::Verdict;
use haft::policy::{
    CommandLine, Policy, Profile, RuleSet, RuleText, RulesError, command_risk, join_words,
    line_risk, plain_words,
};
use haft::testing::line_verdict;
use haft_fuzz::{SHELL_WORDS, fuzz};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name)
}

#[test]
fn fuzz_redaction_never_panics_and_never_leaks_a_known_secret() {
    let redactor = Redactor::new(["hunter2-hunter2", "quo\"te\\d-secret"]);
    fuzz(
        &corpus("../../../haft-json/tests/corpus/json"),
        &[
            "hunter2-hunter2",
            "quo\\\"te\\\\d-secret",
            "Bearer abc.def.ghi",
            "ghp_",
        ],
        |input| {
            let text = String::from_utf8_lossy(input);
            let shown = redactor.redact(&text);
            assert!(!shown.contains("hunter2-hunter2"), "{shown}");
        },
    );
}

const RULE_WORDS: &[&str] = &[
    "Bash(",
    "Read(",
    "Edit(",
    "WebFetch(domain:",
    "mcp__",
    "**",
    "/*",
    ":*",
    " *",
    "\\*",
    ")",
    "[!",
    "]",
    "~/",
    "//",
    "..",
    "'",
    "\"",
];

/// A rule text builds a policy exactly if its own check passes, and the policy's check agrees with it.
#[test]
fn fuzz_a_rule_is_read_or_refused_with_a_form() {
    fuzz(&corpus("rules"), RULE_WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        let rule = RuleText {
            matches: vec!["src/a.rs".into()],
            ..RuleText::new(text)
        };
        for set in [
            RuleSet {
                deny: vec![rule.clone()],
                ..RuleSet::default()
            },
            RuleSet {
                allow: vec![rule.clone()],
                ..RuleSet::default()
            },
        ] {
            let report = set.check(&haft::policy::PolicyContext::default());
            match Policy::builder(Profile::Workspace).rules(set).build() {
                Ok(policy) => assert_eq!(policy.check(), report),
                Err(_) => assert!(!report.ok && !report.failures.is_empty()),
            }
        }
    });
}

fn policy(allow: &[&str], deny: &[&str]) -> Result<Policy, RulesError> {
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    let rules = RuleSet {
        allow: texts(allow),
        deny: texts(deny),
        ..RuleSet::default()
    };
    Policy::builder(Profile::Trusted).rules(rules).build()
}

/// Every line gets a verdict: `deny` for all commands denies it, and a denied command on a line appended to it is never overlooked.
#[test]
fn fuzz_a_command_line_is_judged() {
    let nothing = policy(&["*", "Edit"], &["Bash(*)"]).unwrap();
    let careful = policy(&["*", "Edit", "Bash(*)"], &["Bash(sudo *)"]).unwrap();
    let lines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-shell/tests/corpus/shell");
    fuzz(&lines, SHELL_WORDS, |input| {
        let line = String::from_utf8_lossy(input);
        assert_eq!(line_verdict(&nothing, &line), Verdict::Deny);
        let verdict = line_verdict(&careful, &line);
        // A backslash at the end joins the next line.
        if !line.ends_with('\\') {
            let more = line_verdict(&careful, &format!("{line}\nsudo zq9"));
            assert!(more > Verdict::Allow, "sudo is overlooked");
            let harmless = line_verdict(&careful, &format!("{line}\nls"));
            assert!(verdict < Verdict::Deny || harmless > Verdict::Allow);
        }
        if let Some(words) = plain_words(&line) {
            assert!(command_risk(&words) <= line_risk(&line));
            if let Some(again) = plain_words(&join_words(&words)) {
                assert_eq!(again, words);
            }
        }
        let read = CommandLine::new(&line);
        assert!(read.parts.iter().all(|part| part.risk <= line_risk(&line)));
    });
}
