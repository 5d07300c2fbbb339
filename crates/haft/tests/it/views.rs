//! Registry and views: clashes, live changes, names, bound arguments, descriptions, nested sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::approval::suspended::RepeatScope;
use haft::testing::TestTool;
use haft::toolset::registry::{BUILTIN, RegistryError};
use haft::toolset::view::{ToolSettings, ToolsetExt, merged};
use haft::{Executor, Exposure, Policy, Session, ToolCall, ToolRegistry, ToolSpec, Toolset};
use serde_json::json;

fn tool(name: &str, source: &str) -> Arc<dyn haft::Tool> {
    TestTool::of(ToolSpec {
        source: source.into(),
        ..TestTool::echo(name)
    })
    .arc()
}

fn registry(names: &[&str], source: &str) -> ToolRegistry {
    let registry = ToolRegistry::new();
    registry
        .add_all(names.iter().map(|name| tool(name, source)))
        .unwrap();
    registry
}

fn names(tools: &impl Toolset) -> Vec<String> {
    tools
        .snapshot()
        .entries()
        .iter()
        .map(|e| e.spec().name.to_string())
        .collect()
}

#[test]
fn a_clash_is_refused_and_names_both_sides() {
    let registry = registry(&["read_file"], BUILTIN);
    let refused = registry.upsert(tool("read_file", "mcp:evil")).unwrap_err();
    assert!(matches!(&refused, RegistryError::Clash { .. }));
    assert_eq!(
        refused.to_string(),
        "tool `read_file` of mcp:evil clashes with the one of builtin; rename or prefix one of them"
    );
}

#[test]
fn changes_return_the_difference_and_never_a_half_of_it() {
    let registry = registry(&["a", "b"], "host");
    let version = registry.snapshot().version();
    let difference = registry
        .replace_all("host", [tool("b", "host"), tool("c", "host")])
        .unwrap();
    assert_eq!(
        format!("{:?}", (&difference.added[0], &difference.removed[0])),
        r#"(ToolName("c"), ToolName("a"))"#
    );
    assert!(registry.snapshot().version() > version);
    registry.add_all([tool("x", BUILTIN)]).unwrap();
    assert!(
        registry
            .replace_all("host", [tool("d", "host"), tool("x", "host")])
            .is_err()
    );
    assert_eq!(names(&registry), ["b", "c", "x"]);
    assert!(registry.remove("nothing").is_empty());
}

#[test]
fn a_tool_put_again_is_a_change_only_if_it_is_another_one() {
    let registry = ToolRegistry::new();
    let same = tool("a", "host");
    registry.add_all([Arc::clone(&same)]).unwrap();
    let version = registry.snapshot().version();
    for (tool, changed) in [(same, 0), (tool("a", "host"), 1)] {
        let difference = registry.upsert(tool).unwrap();
        assert_eq!(difference.changed.len(), changed);
        assert!(difference.added.is_empty() && difference.removed.is_empty());
        let now = registry.snapshot().version();
        assert_eq!(now > version, changed > 0);
    }
}

#[tokio::test]
async fn a_change_between_two_waits_is_not_missed() {
    let registry = Arc::new(registry(&["a"], "host"));
    let view = Arc::clone(&registry).only(["a", "b"]);
    let mut changes = view.changes();
    registry.upsert(tool("b", "host")).unwrap();
    changes.changed().await;
    assert_eq!(names(&view), ["a", "b"]);
    registry.remove("a");
    changes.changed().await;
    assert_eq!(names(&view), ["b"]);
}

#[test]
fn views_narrow_rename_and_merge_in_a_fixed_order() {
    let all = || registry(&["b", "a", "c"], "host");
    assert_eq!(names(&all()), ["a", "b", "c"]);
    assert_eq!(names(&all().only(["c", "a", "none"])), ["a", "c"]);
    assert_eq!(names(&all().except(["a"])), ["b", "c"]);
    assert_eq!(
        names(&all().prefixed("srv").unwrap()),
        ["srv.a", "srv.b", "srv.c"]
    );
    assert_eq!(
        names(&all().renamed([("a", "z")]).unwrap()),
        ["b", "c", "z"]
    );
    assert!(all().prefixed("no blank").is_err());
    for (names, clash) in [
        (&[("a", "b")][..], "tool `b` of host clashes"),
        (&[("a", "z"), ("b", "z")], "tool `z` of host clashes"),
        (&[("a", "no blank")], "no blank"),
    ] {
        let refused = all().renamed(names.iter().copied()).unwrap_err();
        assert!(refused.to_string().contains(clash), "{refused}");
    }
    let evil = registry(&["a"], "mcp:evil");
    let both = merged([
        Arc::new(evil) as Arc<dyn Toolset>,
        Arc::new(registry(&["a"], BUILTIN)),
    ]);
    assert_eq!(both.snapshot().entry("a").unwrap().spec().source, BUILTIN);
}

#[test]
fn renamed_view_when_its_source_gets_a_tool_of_the_new_name_keeps_one_of_them() {
    for (source, kept) in [("mcp:evil", "host"), (BUILTIN, BUILTIN)] {
        let registry = Arc::new(registry(&["a"], "host"));
        let view = Arc::clone(&registry).renamed([("a", "z")]).unwrap();
        registry.add_all([tool("z", source)]).unwrap();
        assert_eq!(names(&view), ["z"]);
        let entry = view.snapshot();
        let entry = entry.entry("z").unwrap();
        assert_eq!(entry.spec().source, kept);
    }
}

#[tokio::test]
async fn bound_arguments_are_hidden_refused_and_filled_in() {
    let schema = json!({"type": "object", "properties": {"user": {"type": "string"}, "q": {"type": "string"}}, "required": ["user", "q"]});
    let spec = ToolSpec {
        input_schema: Arc::new(schema),
        ..TestTool::echo("find")
    };
    let registry = ToolRegistry::new();
    registry.add_all([TestTool::of(spec).arc()]).unwrap();
    let bind = json!({"user": "ann"}).as_object().unwrap().clone();
    let settings = BTreeMap::from([(
        "find".to_owned(),
        ToolSettings {
            bind,
            ..ToolSettings::default()
        },
    )]);
    let session = Session::new(registry.configured(settings, None).unwrap());
    let shown = session
        .tools()
        .entry("find")
        .unwrap()
        .spec()
        .input_schema
        .clone();
    assert_eq!(
        *shown,
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    );
    let executor = Executor::new(Policy::workspace());
    let outcome = executor
        .execute(&session, ToolCall::new("find", r#"{"q":"x"}"#))
        .await;
    assert_eq!(outcome.data.unwrap().get(), r#"{"q":"x","user":"ann"}"#);
    let outcome = executor
        .execute(&session, ToolCall::new("find", r#"{"q":"x","user":"eve"}"#))
        .await;
    assert_eq!(
        outcome.error.unwrap().kind,
        haft::ErrorKind::InvalidArguments
    );
}

#[test]
fn af10_a_call_is_known_by_what_its_client_wrote_however_it_wrote_it() {
    let schema = json!({"type": "object", "properties": {"user": {"type": "string"}, "n": {"type": "integer"}}, "required": ["user", "n"]});
    let key = |user: &str, arguments: &str| {
        let spec = ToolSpec {
            input_schema: Arc::new(schema.clone()),
            ..TestTool::echo("find")
        };
        let registry = ToolRegistry::new();
        registry.add_all([TestTool::of(spec).arc()]).unwrap();
        let bind = json!({"user": user}).as_object().unwrap().clone();
        let settings = ToolSettings {
            bind,
            ..ToolSettings::default()
        };
        let settings = BTreeMap::from([("find".to_owned(), settings)]);
        let session = Session::new(registry.configured(settings, None).unwrap());
        let tools = session.tools();
        let executor = Executor::new(Policy::workspace());
        let principal = haft::call::Principal::local("ada");
        let scope = RepeatScope {
            principal: &principal,
            workspace: "/w",
            group: None,
        };
        executor.key(tools.entry("find").unwrap(), scope, arguments)
    };
    let known = key("ann", r#"{"n":5}"#);
    assert!(known.is_some());
    assert_eq!(known, key("ann", r#" { "n" : "5" }"#));
    // Values that settings fill in are not part of the call that the client made.
    assert_eq!(known, key("eve", r#"{"n":5}"#));
    assert_ne!(known, key("ann", r#"{"n":6}"#));
}

#[test]
fn descriptions_follow_settings_and_locale_and_change_the_spec_hash() {
    let spec = ToolSpec {
        i18n: BTreeMap::from([("de".to_owned(), "liest".to_owned())]),
        ..TestTool::echo("read")
    };
    let made = || {
        let registry = ToolRegistry::new();
        registry
            .add_all([TestTool::of(spec.clone()).arc()])
            .unwrap();
        registry
    };
    let hash = made()
        .snapshot()
        .entry("read")
        .unwrap()
        .spec_hash()
        .to_owned();
    let german = made()
        .configured(BTreeMap::new(), Some("de-AT"))
        .unwrap()
        .snapshot();
    assert_eq!(german.entry("read").unwrap().spec().description, "liest");
    assert_ne!(german.entry("read").unwrap().spec_hash(), hash);
    let own = ToolSettings {
        description: Some("ours".into()),
        ..ToolSettings::default()
    };
    let replaced = made()
        .configured(BTreeMap::from([("read".to_owned(), own)]), Some("de"))
        .unwrap()
        .snapshot();
    assert_eq!(replaced.entry("read").unwrap().spec().description, "ours");
}

#[test]
fn the_list_is_made_once_a_snapshot() {
    let registry = registry(&["a", "b"], "host");
    let (one, two) = (
        registry.snapshot().mcp_list(),
        registry.snapshot().mcp_list(),
    );
    assert_eq!(one.as_ptr(), two.as_ptr());
    let list: serde_json::Value = serde_json::from_slice(&one).unwrap();
    assert_eq!(list[1]["name"], "b");
    assert!(list[0].get("annotations").is_none());
}

#[tokio::test]
async fn an_expanded_tool_is_listed_and_callable_in_its_session_alone() {
    let tools = ToolRegistry::new();
    let exposed = |name, exposure| {
        TestTool::of(ToolSpec {
            exposure,
            ..TestTool::echo(name)
        })
        .arc()
    };
    tools
        .add_all([
            exposed("far", Exposure::Deferred),
            exposed("farther", Exposure::Deferred),
            exposed("hidden", Exposure::Hidden),
            exposed("near", Exposure::Listed),
            exposed("unlisted", Exposure::Unlisted),
        ])
        .unwrap();
    let tools: Arc<dyn Toolset> = Arc::new(tools);
    let of = |tools| Session::builder(tools).build().unwrap();
    let (session, other) = (of(Arc::clone(&tools)), of(tools));
    let executor = Executor::new(Policy::workspace());
    let listed = |session: &Session| {
        let tools = session.tools();
        let names = tools.listed().map(|e| e.spec().name.to_string());
        names.collect::<Vec<_>>()
    };
    let refused = executor.execute(&session, ToolCall::new("far", "{}")).await;
    let error = refused.error.unwrap();
    assert_eq!(error.kind, haft::ErrorKind::Unavailable);
    assert!(error.advice.unwrap().contains("tool_expand_tools"));
    let before = session.tools();
    let mut changes = session.changes();

    let all = ["far", "far", "hidden", "near", "nowhere", "unlisted"];
    let expanded = session.expand(all);
    assert_eq!(
        expanded
            .iter()
            .map(haft::ToolName::as_str)
            .collect::<Vec<_>>(),
        ["far"]
    );
    changes.changed().await;
    assert!(session.expand(["far"]).is_empty());
    assert_eq!(listed(&session), ["far", "near"]);
    assert_eq!(listed(&other), ["near"]);
    assert!(session.tools().version() > before.version());
    assert!(Arc::ptr_eq(&session.tools(), &session.tools()));
    let call = || ToolCall::new("far", "{}");
    assert!(executor.execute(&session, call()).await.is_ok());
    assert!(!executor.execute(&other, call()).await.is_ok());
    session.expand(["farther"]);
    assert_eq!(listed(&session), ["far", "farther", "near"]);
}
