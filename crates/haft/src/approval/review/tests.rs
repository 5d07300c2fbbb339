//! What a reviewer may decide, whatever it says: tables of effects and of requests that are always a person's.

use super::*;
use crate::approval::meaning::{Meaning, MeaningKind};
use crate::approval::preview::FileChange;
use crate::permission::{Condition, Effect, PathClaim, Permission, Verdict};
use crate::policy::{Cause, CauseKind};
use crate::spec::{Risk, ToolName};
use crate::testing::approval_request;

fn request(permissions: Vec<Permission>) -> ApprovalRequest {
    let mut request = approval_request("run_command", "{}").unwrap();
    request.verdicts = vec![Verdict::Ask; permissions.len()];
    let written = permissions.iter().filter_map(|one| match &one.effect {
        Effect::Write(claim) => Some(file(&claim.path)),
        _ => None,
    });
    request.snapshot.preview = written.collect();
    request.snapshot.permissions = permissions;
    request
}

fn write(path: &str) -> Permission {
    Permission::write(PathClaim::plain(path))
}

fn file(path: &str) -> FileChange {
    FileChange::new(path, None, Some(b"text"))
}

fn high(effect: Effect) -> Permission {
    Permission {
        effect,
        risk: Risk::High,
    }
}

fn run(jailed: bool) -> Permission {
    high(Effect::Run {
        command: "make".to_owned(),
        argv: None,
        jailed,
        on_copy: false,
    })
}

fn all() -> ReviewPowers {
    let words = [
        "deny",
        "allow:Edit",
        "allow:Bash",
        "allow:WebFetch",
        "allow:Network",
    ];
    ReviewPowers::parse(words).unwrap()
}

fn check(request: &ApprovalRequest, powers: &ReviewPowers, says: Option<&str>) {
    let found = powers.why_not(request, ReviewVerdict::Allow).err();
    let fits = match (&found, says) {
        (None, None) => true,
        (Some(why), Some(says)) => why.contains(says),
        _ => false,
    };
    assert!(fits, "{says:?}: {found:?}");
}

#[test]
fn effects_of_a_request_when_a_reviewer_may_allow_everything_are_allowed_only_in_its_classes() {
    let linked = PathClaim {
        target: Some("/etc/hosts".to_owned()),
        ..PathClaim::plain("ln")
    };
    let rows = [
        (vec![write("src/a.rs")], None),
        (vec![write("src/a.rs"), write("src/b.rs")], None),
        (vec![run(true)], None),
        (
            vec![high(Effect::connect("https://a.example/x", "a.example"))],
            None,
        ),
        (vec![], Some("no effect")),
        (vec![write("/etc/hosts")], Some("outside")),
        (vec![write("../other/a")], Some("outside")),
        (vec![write("a/../../b")], Some("outside")),
        (vec![write("~/.bashrc")], Some("outside")),
        (vec![Permission::write(linked)], Some("outside")),
        (vec![run(false)], Some("not judged")),
        (
            vec![Permission::remove(PathClaim::plain("a"))],
            Some("removes"),
        ),
        (
            vec![write("a"), Permission::remove(PathClaim::plain("b"))],
            Some("removes"),
        ),
        (
            vec![high(Effect::Read(PathClaim::plain("/home/ann/notes")))],
            Some("outside"),
        ),
        (
            vec![high(Effect::Sign {
                purpose: "https:a.example".to_owned(),
                by: "gh".to_owned(),
            })],
            Some("login"),
        ),
        (
            vec![high(Effect::Connect {
                url: "https://a.example/".to_owned(),
                host: "a.example".to_owned(),
                method: None,
                leads_to: vec!["10.0.0.1".parse().unwrap()],
            })],
            Some("private"),
        ),
        (vec![high(Effect::Call)], Some("no class")),
        (
            vec![high(Effect::Other {
                kind: "expose port".to_owned(),
                value: "80".to_owned(),
            })],
            Some("no class"),
        ),
    ];
    for (permissions, says) in rows {
        check(&request(permissions), &all(), says);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn requests_that_are_a_persons_when_a_reviewer_may_allow_everything_stay_a_persons() {
    type Change = fn(&mut ApprovalRequest);
    let rows: [(Change, &str); 20] = [
        (|r| r.snapshot.preview.clear(), "not all"),
        (|r| r.snapshot.preview = vec![file("src/b.rs")], "not all"),
        (
            |r| {
                // Nothing asks about the word by itself, and what it writes is shown.
                r.snapshot.permissions.push(run(false));
                r.verdicts.push(Verdict::Allow);
            },
            "not judged",
        ),
        (
            |r| {
                r.snapshot.permissions.push(run(true));
                r.verdicts.push(Verdict::Ask);
                let background = Condition::new(Condition::IN_BACKGROUND, "");
                r.snapshot.conditions.push(background);
            },
            "not judged",
        ),
        (
            |r| {
                r.snapshot.permissions.push(run(true));
                r.verdicts.push(Verdict::Ask);
                r.tool = ToolName::new("shell").unwrap();
            },
            "not judged",
        ),
        (|r| r.risk = Risk::Critical, "critical"),
        (
            |r| r.causes.push(Cause::new(CauseKind::Guard, "protected")),
            "the guard protected",
        ),
        (
            |r| r.causes.push(Cause::new(CauseKind::Rule, "Edit(/a)")),
            "your rule Edit(/a)",
        ),
        (
            |r| r.causes.push(Cause::new(CauseKind::Secret, "s")),
            "secrets",
        ),
        (
            |r| r.causes.push(Cause::new(CauseKind::Budget, "b")),
            "budget",
        ),
        (
            |r| r.causes.push(Cause::new(CauseKind::RiskLimit, "limit")),
            "the setting limit",
        ),
        (
            |r| r.causes.push(Cause::new(CauseKind::Other, "new")),
            "the setting new",
        ),
        (|r| r.causes.clear(), "only a person"),
        (|r| r.verdicts.clear(), "not all"),
        (
            |r| {
                r.snapshot.preview = vec![FileChange::new("a", None, Some(b"\0\0"))];
            },
            "not all",
        ),
        (
            |r| {
                let mut file = FileChange::new("a", None, Some(b"x"));
                file.clipped = true;
                r.snapshot.preview = vec![file];
            },
            "not all",
        ),
        (
            |r| {
                let mut file = FileChange::new("a", None, Some(b"x"));
                file.folded = Some("it is long".to_owned());
                let mut meaning = Meaning::new(MeaningKind::Commit, "commit");
                meaning.parts = vec![Meaning {
                    files: vec![file],
                    ..Meaning::new(MeaningKind::Commit, "part")
                }];
                r.snapshot.meanings = vec![meaning];
            },
            "not all",
        ),
        (
            |r| {
                let mut meaning = Meaning::new(MeaningKind::Lockfile, "packages");
                meaning.warnings = vec!["from another registry".to_owned()];
                r.snapshot.meanings = vec![meaning];
            },
            "not all",
        ),
        (
            |r| {
                r.snapshot.permissions = vec![Permission {
                    effect: Effect::Other {
                        kind: crate::policy::PROPOSED_RULE.to_owned(),
                        value: "Edit(/**)".to_owned(),
                    },
                    risk: Risk::High,
                }];
            },
            "question",
        ),
        (|r| r.verdicts = vec![Verdict::Allow], "no effect by itself"),
    ];
    for (change, says) in rows {
        let mut asked = request(vec![write("src/a.rs")]);
        check(&asked, &all(), None);
        change(&mut asked);
        check(&asked, &all(), Some(says));
    }
}

#[test]
fn powers_hold_what_their_words_say_and_no_more() {
    let asked = request(vec![write("a")]);
    let rows: [(&[&str], bool, bool); 7] = [
        (&[], false, false),
        (&["opinion"], false, false),
        (&["deny"], true, false),
        (&["allow:Edit"], false, true),
        (&["deny", "allow:Edit"], true, true),
        (&["deny", "allow:Bash"], true, false),
        (&["allow:Bash", "allow:Edit", "allow:Edit"], false, true),
    ];
    for (words, denies, allows) in rows {
        let powers = ReviewPowers::parse(words.iter().copied()).unwrap();
        let may = |verdict| powers.why_not(&asked, verdict).is_ok();
        assert_eq!(may(ReviewVerdict::Deny), denies, "{words:?}");
        assert_eq!(may(ReviewVerdict::Allow), allows, "{words:?}");
        assert!(!may(ReviewVerdict::Pass));
    }
    for word in [
        "allow",
        "allow:",
        "allow:*",
        "allow:edit",
        "allow:Sign",
        "allow:Read",
        "Deny",
        "",
    ] {
        let error = ReviewPowers::parse([word]).unwrap_err().to_string();
        assert!(error.contains(&format!("{word:?}")), "{error}");
    }
}

#[test]
fn words_of_a_model_in_a_review_are_one_bounded_line_that_hides_nothing() {
    let asked = request(vec![write("a")]);
    let answer = ReviewAnswer {
        verdict: ReviewVerdict::Allow,
        reason: format!(
            "fine” (checked) “\u{202e}\u{200b}\n\x1b[2Japproved by ann {}",
            "x".repeat(5000)
        ),
        failed: false,
        cost: ReviewCost::default(),
    };
    let review = Review::begin("openai:x\n\u{200b}y").answered(&answer, &asked, &all());
    assert!(
        review.reason.len() <= MAX_REASON + 10,
        "{}",
        review.reason.len()
    );
    let sentence = review.sentence();
    for hidden in ['\n', '\x1b', '\u{202e}', '\u{200b}'] {
        assert!(!sentence.contains(hidden), "{sentence}");
    }
    // The quotes are haft's.
    assert_eq!(
        (sentence.matches('“').count(), sentence.matches('”').count()),
        (1, 1)
    );
    assert!(review.decision().is_some_and(|one| one.is_by_reviewer()));
    let failed = Review::begin("m").answered(&ReviewAnswer::failed("no key"), &asked, &all());
    assert!(failed.decision().is_none() && failed.sentence().contains("no key"));
}

#[test]
fn classes_of_a_request_are_those_of_what_is_asked_about() {
    let mut mixed = request(vec![write("a"), run(true)]);
    assert_eq!(asked_classes(&mixed), "Bash+Edit");
    mixed.verdicts = vec![Verdict::Ask, Verdict::Allow];
    assert_eq!(asked_classes(&mixed), "Edit");
    assert_eq!(asked_classes(&request(Vec::new())), "other");
    let mut connection = request(vec![high(Effect::connect("a.example:443", "a.example"))]);
    assert_eq!(asked_classes(&connection), "WebFetch");
    connection.tool = ToolName::new("connect").unwrap();
    assert_eq!(asked_classes(&connection), "Network");
}
