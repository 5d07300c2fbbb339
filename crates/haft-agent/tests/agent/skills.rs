//! Skills: listed to the model, activated by `load_skill`, and reactivated when a run is resumed elsewhere.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::result::ToolResult;
use haft::session::Activation;
use haft::skill::set::{SkillFilter, SkillRoot};
use haft::testing::TestTool;
use haft::{CallContext, Executor, Policy, Session, SkillSet, ToolRegistry};
use haft_agent::conversation::MemoryConversation;
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentError, AgentOptions, Conversation};
use serde_json::Value;

use crate::support::{Log, last_answers, noting, text};

/// Returns a skill that restricts the run to `safe`.
fn skills(home: &std::path::Path) -> Arc<SkillSet> {
    let folder = home.join("careful");
    std::fs::create_dir_all(&folder).unwrap();
    let body = "---\nname: careful\ndescription: Work with care.\nallowed_tools: [safe]\n---\nBe careful.\n";
    std::fs::write(folder.join("SKILL.md"), body).unwrap();
    Arc::new(SkillSet::new(
        vec![SkillRoot::configured(home)],
        SkillFilter::default(),
    ))
}

/// Returns a session with `safe`, `plain`, and a `load_skill` that works like haft's own.
fn session(log: &Log) -> Session {
    let registry = ToolRegistry::new();
    let load = |arguments: Value, context: CallContext| {
        let only = ["safe".to_owned()];
        context.activate(&Activation {
            name: arguments["skill"].as_str().unwrap(),
            body: "Be careful.",
            restricts_to: Some(&only),
            ..Activation::default()
        });
        Box::pin(async { Ok(ToolResult::text("<skill>Be careful.</skill>")) })
            as BoxFuture<'static, _>
    };
    let spec = haft::ToolSpec {
        stays_in_run: true,
        ..TestTool::echo("load_skill")
    };
    registry
        .add_all([TestTool::with_body(spec, load).arc()])
        .unwrap();
    for name in ["safe", "plain"] {
        registry
            .add_all([noting(TestTool::echo(name), log)])
            .unwrap();
    }
    Session::new(registry)
}

fn agent(model: &ScriptedModel, log: &Log, skills: &Arc<SkillSet>) -> Agent {
    Agent::new(
        model.clone(),
        Executor::new(Policy::workspace()),
        session(log),
    )
    .with_options(AgentOptions {
        system: "You help.".to_owned(),
        ..AgentOptions::default()
    })
    .with_skills(Arc::clone(skills))
}

#[tokio::test]
async fn skills_are_named_in_the_instructions_and_what_one_narrows_holds_in_the_next_process() {
    let home = tempfile::tempdir().unwrap();
    let set = skills(home.path());
    let log = Log::default();
    let model = ScriptedModel::new()
        .calls([("a", "load_skill", r#"{"skill":"careful"}"#)])
        .calls([("b", "plain", "{}"), ("c", "safe", "{}")])
        .says("ok");
    let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::new());
    let mut first = agent(&model, &log, &set)
        .keep_in(Arc::clone(&kept))
        .await
        .unwrap();
    first.run("go").await.unwrap();
    let system = &model.requests()[0].system;
    assert!(system.starts_with("You help.\n\nSkills are"), "{system}");
    assert!(system.contains("- careful: Work with care.\n"), "{system}");
    assert_eq!(log.words(), ["safe {}"]);
    assert!(text(&last_answers(&model)[0]).starts_with("denied: the active skill careful"));

    let model = ScriptedModel::new()
        .calls([("d", "plain", "{}"), ("e", "safe", "{}")])
        .says("ok");
    let mut second = agent(&model, &log, &set)
        .keep_in(Arc::clone(&kept))
        .await
        .unwrap();
    second.run("go on").await.unwrap();
    assert_eq!(log.words(), ["safe {}", "safe {}"]);
    assert!(text(&last_answers(&model)[0]).starts_with("denied: the active skill careful"));

    // Without the skill its restrictions are unknown: nothing runs.
    std::fs::remove_dir_all(home.path().join("careful")).unwrap();
    let model = ScriptedModel::new().calls([("f", "plain", "{}")]);
    let mut third = agent(&model, &log, &set).keep_in(kept).await.unwrap();
    let error = third.run("go on").await.unwrap_err();
    assert!(matches!(error, AgentError::Skill { .. }), "{error}");
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn a_skill_that_the_user_chooses_is_in_force_before_the_model_is_asked() {
    let home = tempfile::tempdir().unwrap();
    let set = skills(home.path());
    let log = Log::default();
    let model = ScriptedModel::new()
        .calls([("a", "plain", "{}")])
        .says("ok");
    let mut agent = agent(&model, &log, &set);
    agent.load_skill("careful").await.unwrap();
    agent.run("go").await.unwrap();
    assert!(log.words().is_empty());
    let first = format!("{:?}", model.requests()[0].messages[0]);
    assert!(first.contains("Be careful."), "{first}");
}
