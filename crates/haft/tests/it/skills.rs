//! Active skills: how they restrict a run, what evicts them, and who is notified.

use std::sync::Arc;

use haft::session::{Activation, ActivationResult};
use haft::skill::set::{SkillFilter, SkillRoot, SkillSet};
use haft::testing::{MemoryAudit, TestTool};
use haft::{Executor, Outcome, Policy, Session, Status, ToolCall, ToolRegistry, ToolResult};
use serde_json::json;

/// Returns the tools `a`, `b`, `c`, one that makes nested calls and one that loads a skill from within a call.
fn registry() -> ToolRegistry {
    let call = TestTool::with_body(TestTool::echo("nest"), |value, context| {
        Box::pin(async move {
            let outcome = context.call(value["tool"].as_str().unwrap(), "{}").await;
            ToolResult::data(&json!({"status": outcome.status.as_str()}))
        })
    });
    let load = TestTool::with_body(TestTool::echo("load"), |value, context| {
        Box::pin(async move {
            let only = [value["only"].as_str().unwrap().to_owned()];
            let skill = Activation {
                name: "inner",
                restricts_to: Some(&only),
                ..Activation::default()
            };
            ToolResult::data(&json!({"already": context.activate(&skill).already}))
        })
    });
    let tools = ToolRegistry::new();
    let plain = ["a", "b", "c"].map(|name| TestTool::of(TestTool::echo(name)).arc());
    tools.add_all(plain).unwrap();
    tools.add_all([call.arc(), load.arc()]).unwrap();
    tools
}

struct Scene {
    executor: Executor,
    session: Session,
    audit: Arc<MemoryAudit>,
}

impl Scene {
    fn new(max_tokens: usize) -> Self {
        let audit = Arc::new(MemoryAudit::new());
        let executor = Executor::new(Policy::trusted())
            .with_audit(Arc::clone(&audit) as _)
            .with_tokenizer(Arc::new(haft::tokens::Bytes));
        let session = Session::builder(Arc::new(registry()))
            .with_skill_tokens(max_tokens)
            .build()
            .unwrap();
        Self {
            executor,
            session,
            audit,
        }
    }

    fn load(
        &self,
        name: &str,
        body: &str,
        only: Option<&[&str]>,
        not: &[&str],
    ) -> ActivationResult {
        let texts = |rules: &[&str]| rules.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>();
        let (only, excludes) = (only.map(texts), texts(not));
        let skill = Activation {
            name,
            body,
            restricts_to: only.as_deref(),
            excludes: &excludes,
            ..Activation::default()
        };
        self.executor.activate(&self.session, &skill)
    }

    fn listed(&self) -> String {
        let tools = self.session.tools();
        let names: Vec<&str> = tools.listed().map(|e| e.spec().name.as_str()).collect();
        names.join(" ")
    }

    fn active(&self) -> String {
        let active = self.session.active_skills();
        let names: Vec<&str> = active.iter().map(|skill| skill.name()).collect();
        names.join(" ")
    }

    async fn call(&self, tool: &str, arguments: &str) -> Outcome {
        let call = ToolCall::new(tool, arguments);
        self.executor.execute(&self.session, call).await
    }
}

#[tokio::test]
async fn a_tool_outside_is_not_listed_and_calling_it_is_denied_by_the_skill() {
    let scene = Scene::new(1_000);
    assert_eq!(scene.listed(), "a b c load nest");
    scene.load("pdf", "text", Some(&["a", "nest"]), &[]);
    assert_eq!(scene.listed(), "a nest");
    assert_eq!(scene.call("a", "{}").await.status, Status::Ok);
    let denied = scene.call("b", "{}").await;
    assert_eq!(denied.status, Status::Denied);
    let error = denied.error.unwrap();
    assert_eq!(
        error.message,
        "the active skill pdf limits this run to a, nest, which excludes calls of b"
    );
    assert!(error.advice.unwrap().contains("the skill pdf"));
    let events = scene.audit.events();
    let rule = events.iter().rev().find_map(|event| match &event.what {
        haft::audit::EventKind::CallEnded(call, _) => call.rule.clone(),
        _ => None,
    });
    assert_eq!(rule.as_deref(), Some("skill pdf"));
    // Unknown names stay unknown, and no hint offers a name outside the restriction.
    let unknown = scene.call("bb", "{}").await;
    assert_eq!(unknown.status, Status::Error);
    // The restriction also holds for a nested call.
    let nested = scene.call("nest", r#"{"tool":"b"}"#).await;
    assert!(nested.data.unwrap().get().contains("denied"));
}

#[tokio::test]
async fn a_skill_loaded_within_a_call_narrows_the_whole_run() {
    let scene = Scene::new(1_000);
    let loaded = scene.call("load", r#"{"only":"b"}"#).await;
    assert_eq!(loaded.status, Status::Ok);
    assert_eq!(scene.active(), "inner");
    assert_eq!(scene.listed(), "b");
    assert_eq!(scene.call("a", "{}").await.status, Status::Denied);
}

#[tokio::test]
async fn a_call_must_fit_every_active_skill() {
    let scene = Scene::new(1_000);
    scene.load("one", "", Some(&["a", "b"]), &[]);
    scene.load("two", "", Some(&["b", "c"]), &[]);
    scene.load("three", "", None, &["c"]);
    assert_eq!(scene.listed(), "b");
    for (tool, expect) in [
        ("a", Status::Denied),
        ("b", Status::Ok),
        ("c", Status::Denied),
    ] {
        assert_eq!(scene.call(tool, "{}").await.status, expect, "{tool}");
    }
    assert!(scene.session.deactivate("two"));
    assert!(!scene.session.deactivate("two"));
    assert_eq!(scene.listed(), "a b");
    assert_eq!(scene.call("a", "{}").await.status, Status::Ok);
}

#[test]
fn the_oldest_go_over_the_budget_with_their_limits_and_one_always_stays() {
    let scene = Scene::new(10);
    assert_eq!(scene.load("one", "12345", Some(&["a"]), &[]).tokens, 5);
    assert!(scene.load("two", "12345", None, &[]).evicted.is_empty());
    assert_eq!(scene.listed(), "a");
    let third = scene.load("three", "1", None, &[]);
    assert_eq!(third.evicted, ["one"]);
    assert_eq!(
        (scene.active(), scene.listed()),
        ("two three".into(), "a b c load nest".into())
    );
    let large = scene.load("large", "this is over the budget alone", Some(&["b"]), &[]);
    assert_eq!(large.evicted, ["two", "three"]);
    assert_eq!(
        (scene.active(), scene.listed()),
        ("large".into(), "b".into())
    );
}

#[test]
fn loading_twice_changes_nothing_and_a_changed_skill_takes_the_old_one_s_place() {
    let scene = Scene::new(1_000);
    assert!(!scene.load("one", "text", Some(&["a"]), &[]).already);
    scene.load("two", "", None, &[]);
    assert!(scene.load("one", "text", Some(&["a"]), &[]).already);
    assert_eq!(scene.active(), "one two");
    let changed = scene.load("one", "text", Some(&["b"]), &[]);
    assert_eq!((changed.already, changed.evicted.len()), (false, 0));
    assert_eq!(
        (scene.active(), scene.listed()),
        ("two one".into(), "b".into())
    );
    assert!(!scene.load("one", "other", Some(&["b"]), &[]).already);
    assert_eq!(scene.load("bad", "", Some(&["a b"]), &[]).unread, ["a b"]);
    assert_eq!(scene.listed(), "");
}

#[tokio::test]
async fn whoever_waits_for_changes_hears_of_a_narrowing_and_versions_only_rise() {
    let scene = Scene::new(1_000);
    let mut changes = scene.session.changes();
    let mut versions = vec![scene.session.tools().version()];
    scene.load("plain", "text", None, &[]);
    versions.push(scene.session.tools().version());
    scene.load("one", "", Some(&["a"]), &[]);
    changes.changed().await;
    versions.push(scene.session.tools().version());
    assert!(Arc::ptr_eq(&scene.session.tools(), &scene.session.tools()));
    scene.session.deactivate("one");
    changes.changed().await;
    versions.push(scene.session.tools().version());
    assert!(versions.is_sorted(), "{versions:?}");
    // A skill that restricts nothing does not change the list; one that does, changes it.
    assert_eq!(versions[0], versions[1]);
    assert!(
        versions[1] < versions[2] && versions[2] < versions[3],
        "{versions:?}"
    );
    assert_eq!(scene.listed(), "a b c load nest");
}

#[test]
fn a_copied_skill_is_refreshed_but_for_what_a_person_changed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let head = "---\nname: pdf\ndescription: x\n---\n";
    put("skills/pdf/SKILL.md", &format!("{head}one"));
    put("skills/pdf/scripts/a.py", "a1");
    put("skills/pdf/scripts/b.py", "b1");
    put("ws/.haft/skills/pdf/scripts/b.py", "mine, from before");
    let workspace = haft::workspace::Workspace::open(&root.join("ws")).unwrap();
    let project = || {
        let set = SkillSet::new(
            vec![SkillRoot::user(root.join("skills"))],
            SkillFilter::default(),
        );
        let skill = set.current().skills()[0].clone();
        skill.project_into(&workspace).unwrap()
    };
    let first = project();
    assert_eq!(first.folder, ".haft/skills/pdf");
    assert_eq!(first.written, ["SKILL.md", "scripts/a.py"]);
    assert_eq!(first.kept, ["scripts/b.py"]);

    put("ws/.haft/skills/pdf/SKILL.md", "edited by a person");
    put("skills/pdf/SKILL.md", &format!("{head}two, longer"));
    put("skills/pdf/scripts/a.py", "a2");
    let second = project();
    assert_eq!(second.written, ["scripts/a.py"]);
    assert_eq!(second.kept, ["SKILL.md", "scripts/b.py"]);
    assert_eq!(read("ws/.haft/skills/pdf/SKILL.md"), "edited by a person");
    assert_eq!(read("ws/.haft/skills/pdf/scripts/a.py"), "a2");
    assert_eq!(
        read("ws/.haft/skills/pdf/scripts/b.py"),
        "mine, from before"
    );
    assert_eq!(project().written.len(), 0);
}
