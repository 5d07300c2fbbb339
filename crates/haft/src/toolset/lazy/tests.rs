//! Which tools stay listed, and how the others are described.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::testing::TestTool;
use crate::toolset::view::ToolsetExt as _;

fn tool(name: &str, source: &str, category: &str, exposure: Exposure) -> Arc<dyn crate::Tool> {
    TestTool::of(ToolSpec {
        source: source.to_owned(),
        category: Some(category.to_owned()),
        exposure,
        ..TestTool::echo(name)
    })
    .arc()
}

fn lazy(listed: &[&str]) -> LazyListing {
    LazyListing {
        finder: "find".to_owned(),
        finder_description: Some("Finds tools.".to_owned()),
        listed: listed.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn few_are_listed_the_others_are_found_and_what_is_hidden_stays_so() {
    let tools = ToolRegistry::new();
    let of = |name, exposure| tool(name, "host", "files", exposure);
    tools
        .add_all([
            of("find", Exposure::Listed),
            of("pinned", Exposure::Listed),
            of("pinned_deferred", Exposure::Deferred),
            of("listed", Exposure::Listed),
            of("deferred", Exposure::Deferred),
            of("unlisted", Exposure::Unlisted),
            of("hidden", Exposure::Hidden),
            tool("docs.a", "mcp:docs", "docs", Exposure::Listed),
            tool("docs.b", "mcp:docs", "docs", Exposure::Listed),
        ])
        .unwrap();
    let pinned = ["find", "pinned", "pinned_deferred"];
    let tools = tools.lazily(lazy(&pinned)).unwrap();
    let snapshot = tools.snapshot();
    let of = |exposure| {
        let entries = snapshot.entries().iter();
        let fits = entries.filter(|entry| entry.spec().exposure == exposure);
        fits.map(|entry| entry.spec().name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(Exposure::Listed),
        ["call_tool", "find", "pinned", "pinned_deferred"]
    );
    assert_eq!(
        of(Exposure::Searchable),
        ["deferred", "docs.a", "docs.b", "listed"]
    );
    assert_eq!(of(Exposure::Unlisted), ["unlisted"]);
    assert_eq!(of(Exposure::Hidden), ["hidden"]);
    assert_eq!(
        snapshot.entry("find").unwrap().spec().description,
        "Finds tools. 4 tools are behind it. By category: files 2. By server: docs 2."
    );
    assert_eq!(snapshot.nearest("docs_a"), ["docs.a", "docs.b"]);
}

#[test]
fn what_is_behind_is_said_in_few_words_however_much_there_is() {
    let tools = ToolRegistry::new();
    tools
        .add_all([tool("find", "host", "c", Exposure::Listed)])
        .unwrap();
    let names: Vec<String> = (0..300).map(|n| format!("server-{n:03}")).collect();
    for server in &names {
        let source = format!("mcp:{server}");
        let own = tool(&format!("{server}.t"), &source, server, Exposure::Listed);
        tools.add_all([own]).unwrap();
    }
    let tools = tools.lazily(lazy(&["find"])).unwrap();
    let said = tools
        .snapshot()
        .entry("find")
        .unwrap()
        .spec()
        .description
        .clone();
    assert!(said.contains("300 tools are behind it. By server: server-000 1, server-001 1,"));
    assert!(said.ends_with(" and 276 more."), "{said}");
    assert!(said.len() < 700, "{}", said.len());
}

#[test]
fn a_tool_of_the_same_name_is_a_clash() {
    let tools = ToolRegistry::new();
    tools
        .add_all([tool(CALL_TOOL, "host", "c", Exposure::Listed)])
        .unwrap();
    let clash = tools.lazily(LazyListing::default()).unwrap_err();
    assert!(matches!(clash, RegistryError::Clash { .. }), "{clash}");
    let schema = spec().unwrap().input_schema;
    assert_eq!(schema["required"], json!(["tool"]));
}
