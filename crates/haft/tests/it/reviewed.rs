//! A reviewer says what it thinks of a request before a person is asked. It decides what its powers hold, once, and a person who is first
//! decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::approval::inbox::{RequestFilter, StoredApproval, WaitingCalls};
use haft::approval::memory::MemoryInbox;
use haft::approval::preview::FileChange;
use haft::approval::review::{ReviewAnswer, ReviewCost, ReviewPowers, ReviewVerdict, Reviewer};
use haft::approval::{ApprovalRequest, ApproverReply};
use haft::audit::EventKind;
use haft::error::ErrorKind;
use haft::future::BoxFuture;
use haft::permission::{PathClaim, Permission};
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::result::Outcome;
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::{Decision, Executor, Risk, Session, Status, ToolCall, ToolRegistry, ToolResult};
use tokio::sync::Semaphore;

/// Gives the same verdict about every request, once it has a permit.
struct Opinionated {
    verdict: ReviewVerdict,
    failed: bool,
    powers: ReviewPowers,
    limit: Duration,
    permits: Arc<Semaphore>,
    asked: AtomicUsize,
}

impl Opinionated {
    fn new(verdict: ReviewVerdict, may: &[&str]) -> Self {
        Self {
            verdict,
            failed: false,
            powers: ReviewPowers::parse(may.iter().copied()).unwrap(),
            limit: Duration::from_hours(1),
            permits: Arc::new(Semaphore::new(1000)),
            asked: AtomicUsize::new(0),
        }
    }
}

impl Reviewer for Opinionated {
    fn model(&self) -> &'static str {
        "test:model"
    }

    fn powers(&self) -> &ReviewPowers {
        &self.powers
    }

    fn time_limit(&self) -> Duration {
        self.limit
    }

    fn retire(&self) {}

    fn review<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ReviewAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            self.permits.acquire().await.unwrap().forget();
            ReviewAnswer {
                verdict: self.verdict,
                reason: "because".to_owned(),
                failed: self.failed,
                cost: ReviewCost {
                    input: 7,
                    ..ReviewCost::default()
                },
            }
        })
    }
}

/// Asks with a reviewer, then a person who denies; notes what was recorded.
struct Scene {
    inbox: Arc<MemoryInbox>,
    audit: Arc<MemoryAudit>,
    executor: Executor,
    session: Session,
    runs: Arc<AtomicUsize>,
    asked_person: Arc<parking_lot::Mutex<Vec<ApprovalRequest>>>,
}

fn tools(permission: Permission, runs: &Arc<AtomicUsize>) -> ToolRegistry {
    let counted = Arc::clone(runs);
    let tool = TestTool::with_body(TestTool::echo("edit"), move |_, context| {
        counted.fetch_add(1, Ordering::SeqCst);
        let seen = context.is_approved();
        Box::pin(async move { Ok(ToolResult::text(format!("a person saw it: {seen}"))) })
    });
    let path = permission.effect.path().map(|claim| claim.path.clone());
    let shown = path.map(|path| FileChange::new(&path, None, Some(b"text")));
    let tool = tool.showing(shown.into_iter().collect());
    let registry = ToolRegistry::new();
    registry
        .add_all([tool.wanting(vec![permission]).arc()])
        .unwrap();
    registry
}

fn write(path: &str) -> Permission {
    Permission::write(PathClaim::plain(path))
}

fn scene(policy: Policy, permission: Permission, reviewer: Arc<dyn Reviewer>) -> Scene {
    let inbox = Arc::new(MemoryInbox::new());
    let audit = Arc::new(MemoryAudit::default());
    let person = ScriptedApprover::new(
        (0..10).map(|_| ApproverReply::Decided(Decision::deny("ann", "terminal"))),
    );
    let asked_person = Arc::clone(&person.asked);
    let runs = Arc::new(AtomicUsize::new(0));
    let executor = Executor::new(policy)
        .with_approver(person)
        .with_reviewer(reviewer)
        .with_audit(Arc::clone(&audit) as _)
        .with_inbox(Arc::clone(&inbox) as _);
    let session = Session::new(tools(permission, &runs));
    Scene {
        inbox,
        audit,
        executor,
        session,
        runs,
        asked_person,
    }
}

impl Scene {
    async fn call(&self) -> Outcome {
        let call = ToolCall::new("edit", "{}");
        self.executor.execute(&self.session, call).await
    }

    async fn entries(&self) -> Vec<StoredApproval> {
        let filter = RequestFilter {
            tenant: "local".into(),
            limit: 100,
            ..RequestFilter::default()
        };
        self.inbox.list(&filter).await.unwrap()
    }

    /// Returns who decided, as recorded, and the recorded verdict.
    fn recorded(&self) -> (Option<String>, Option<ReviewVerdict>) {
        let events = self.audit.events();
        let ended = events.iter().find_map(|event| match &event.what {
            EventKind::CallEnded(call, _) => Some(call),
            _ => None,
        });
        let ended = ended.unwrap();
        let review = ended.review.as_ref();
        (ended.decided_by.clone(), review.and_then(|one| one.verdict))
    }
}

#[tokio::test]
async fn verdict_of_a_reviewer_decides_what_its_powers_hold_and_is_recorded() {
    use ReviewVerdict::{Allow, Deny, Pass};
    let rows: [(ReviewVerdict, &[&str], Status, bool); 8] = [
        (Allow, &["allow:Edit"], Status::Ok, false),
        (Allow, &["deny", "allow:Edit"], Status::Ok, false),
        (Allow, &["deny"], Status::Denied, true),
        (Allow, &["allow:Bash"], Status::Denied, true),
        (Allow, &["opinion"], Status::Denied, true),
        (Deny, &["deny"], Status::Denied, false),
        (Deny, &["allow:Edit"], Status::Denied, true),
        (Pass, &["deny", "allow:Edit"], Status::Denied, true),
    ];
    for (verdict, may, status, asks) in rows {
        let row = format!("{verdict:?} {may:?}");
        let reviewer = Arc::new(Opinionated::new(verdict, may));
        let scene = scene(Policy::workspace(), write("src/a.rs"), reviewer);
        let outcome = scene.call().await;
        assert_eq!(outcome.status, status, "{row}");
        let asked = scene.asked_person.lock().clone();
        assert_eq!(!asked.is_empty(), asks, "{row}");
        let expect = if asks { "ann" } else { "reviewer test:model" };
        let recorded = scene.recorded();
        assert_eq!(recorded, (Some(expect.to_owned()), Some(verdict)), "{row}");
        if let Some(request) = asked.first() {
            let review = request.review.as_ref().unwrap();
            assert_eq!(review.verdict, Some(verdict), "the person sees it: {row}");
        }
        let entry = scene.entries().await.remove(0);
        let stored = entry.request.review.unwrap();
        assert_eq!((stored.reason.as_str(), stored.cost.input), ("because", 7));
        if status == Status::Ok {
            assert_eq!(outcome.text(), "a person saw it: false", "{row}");
        } else if !asks {
            let said = outcome.to_model();
            assert!(
                !said.contains("because"),
                "a model's words are for people: {said}"
            );
        }
    }
}

#[tokio::test]
async fn request_that_only_a_person_decides_when_a_reviewer_allows_everything_is_asked_about() {
    let rule = |ask: &str| {
        let rules = RuleSet {
            ask: vec![RuleText::new(ask)],
            ..RuleSet::default()
        };
        Policy::workspace().with_rules(rules).unwrap()
    };
    let guarded = || Policy::builder(Profile::Workspace).build().unwrap();
    let critical = Permission {
        risk: Risk::Critical,
        ..write("src/a.rs")
    };
    let rows = [
        ("critical", Policy::workspace(), critical),
        ("guard", guarded(), write("AGENTS.md")),
        ("rule", rule("Edit(/src/**)"), write("src/a.rs")),
        ("rule that names the tool", rule("edit"), write("src/a.rs")),
        ("secret", guarded(), write(".env")),
    ];
    for (name, policy, permission) in rows {
        let may = ["deny", "allow:Edit", "allow:Bash"];
        let reviewer = Arc::new(Opinionated::new(ReviewVerdict::Allow, &may));
        let scene = scene(policy, permission, reviewer);
        let outcome = scene.call().await;
        assert_eq!(outcome.status, Status::Denied, "{name}");
        let asked = scene.asked_person.lock().clone();
        assert_eq!(asked.len(), 1, "{name}: {outcome:?}");
        let review = asked[0].review.as_ref().unwrap();
        assert!(review.opinion.is_some(), "{name}: {review:?}");
        assert_eq!(scene.runs.load(Ordering::SeqCst), 0, "{name}");
    }
}

#[tokio::test]
async fn review_that_fails_or_takes_too_long_leaves_the_request_to_the_person() {
    for late in [false, true] {
        let reviewer = Opinionated {
            failed: !late,
            limit: Duration::from_millis(if late { 1 } else { 3_600_000 }),
            permits: Arc::new(Semaphore::new(usize::from(!late))),
            ..Opinionated::new(ReviewVerdict::Allow, &["allow:Edit"])
        };
        let scene = scene(Policy::workspace(), write("a"), Arc::new(reviewer));
        assert_eq!(scene.call().await.status, Status::Denied);
        let asked = scene.asked_person.lock().clone();
        let review = asked[0].review.as_ref().unwrap();
        assert!(review.failed, "{review:?}");
        assert_eq!(late, review.reason.contains("did not answer within"));
    }
}

#[tokio::test]
async fn person_who_is_first_decides_and_ends_the_review() {
    let reviewer = Opinionated {
        permits: Arc::new(Semaphore::new(0)),
        ..Opinionated::new(ReviewVerdict::Deny, &["deny"])
    };
    let reviewer = Arc::new(reviewer);
    let scene = scene(Policy::workspace(), write("a"), Arc::clone(&reviewer) as _);
    let person = async {
        let mut changes = scene.inbox.changes();
        while reviewer.asked.load(Ordering::SeqCst) == 0 {
            let _ = tokio::time::timeout(Duration::from_millis(5), changes.recv()).await;
        }
        let id = scene.entries().await[0].request.id.clone();
        let decision = Decision::approve("ann", "console");
        scene.inbox.decide(&id, &decision).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(scene.call(), person);
    assert_eq!(outcome.text(), "a person saw it: true");
    let entry = scene.entries().await.remove(0);
    assert_eq!(entry.request.review.unwrap().verdict, None);
    assert_eq!(scene.recorded(), (Some("ann".to_owned()), None));
}

#[tokio::test]
async fn request_of_many_equal_calls_is_reviewed_once() {
    let reviewer = Arc::new(Opinionated::new(ReviewVerdict::Deny, &["deny"]));
    let scene = scene(Policy::workspace(), write("a"), Arc::clone(&reviewer) as _);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (executor, session) = (scene.executor.clone(), scene.session.clone());
        let call = ToolCall::new("edit", "{}");
        calls.spawn(async move { executor.execute(&session, call).await });
    }
    let outcomes = calls.join_all().await;
    assert!(outcomes.iter().all(|one| one.status == Status::Denied));
    let entries = scene.entries().await;
    assert_eq!(
        (entries.len(), reviewer.asked.load(Ordering::SeqCst)),
        (1, 1)
    );
}

#[tokio::test]
async fn run_that_is_denied_without_end_gets_a_bounded_number_of_reviews() {
    let reviewer = Arc::new(Opinionated::new(ReviewVerdict::Deny, &["deny"]));
    let scene = scene(Policy::workspace(), write("a"), Arc::clone(&reviewer) as _);
    for nth in 0..8 {
        let call = ToolCall::new("edit", format!("{{\"nth\":{nth}}}"));
        let outcome = scene.executor.execute(&scene.session, call).await;
        assert_eq!(outcome.status, Status::Denied);
    }
    assert_eq!(reviewer.asked.load(Ordering::SeqCst), 3);
    let asked = scene.asked_person.lock().clone();
    let review = asked[0].review.as_ref().unwrap();
    assert!(
        review.reason.contains("denied three requests"),
        "{review:?}"
    );
    assert_eq!(asked.len(), 5);
}

#[tokio::test]
async fn reviewer_that_allowed_a_call_when_a_rule_asks_about_it_by_now_no_longer_does() {
    let reviewer = Opinionated {
        permits: Arc::new(Semaphore::new(0)),
        ..Opinionated::new(ReviewVerdict::Allow, &["allow:Edit"])
    };
    let permits = Arc::clone(&reviewer.permits);
    let reviewer = Arc::new(reviewer);
    let scene = scene(
        Policy::workspace(),
        write("src/a"),
        Arc::clone(&reviewer) as _,
    );
    let changed = async {
        while reviewer.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let rules = RuleSet {
            ask: vec![RuleText::new("Edit(/src/**)")],
            ..RuleSet::default()
        };
        let policy = Policy::workspace().with_rules(rules).unwrap();
        scene.executor.replace_policy(policy);
        permits.add_permits(1);
    };
    let (outcome, ()) = tokio::join!(scene.call(), changed);
    assert_eq!(scene.runs.load(Ordering::SeqCst), 0, "{outcome:?}");
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict);
    let why = outcome.operator.unwrap();
    assert!(why.contains("your rule Edit(/src/**)"), "{why}");
}
