//! Pages and cursors of the tool list.

use haft::spec::{ToolName, ToolSpec};
use haft::testing::TestTool;
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use serde_json::Value;

use super::*;
use crate::era::Revision;

const OPTIONS: ListOptions<'static> = ListOptions {
    era: Era::Modern,
    is_only_task: &|name| name == "long",
};

fn registry(names: &[&str]) -> ToolRegistry {
    let registry = ToolRegistry::new();
    let tools = names
        .iter()
        .map(|name| TestTool::of(TestTool::echo(name)).arc());
    registry.add_all(tools).unwrap();
    registry
}

fn page(
    registry: &ToolRegistry,
    cursor: Option<&str>,
    size: usize,
) -> (Vec<String>, Option<String>) {
    let mut out = b"{".to_vec();
    write_page(&mut out, &registry.snapshot(), cursor, size, &OPTIONS).unwrap();
    out.push(b'}');
    let value: Value = serde_json::from_slice(&out).unwrap();
    let names = value["tools"].as_array().unwrap().iter();
    let names = names.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (
        names.collect(),
        value["nextCursor"].as_str().map(str::to_owned),
    )
}

#[test]
fn pages_hold_each_tool_once_in_order() {
    let names = ["a", "b", "c", "d", "e"];
    for size in 1..7 {
        let list = registry(&names);
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (more, next) = page(&list, cursor.as_deref(), size);
            assert!(more.len() <= size);
            seen.extend(more);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, names, "pages of {size}");
    }
    assert_eq!(page(&registry(&[]), None, 5), (vec![], None));
}

#[test]
fn a_cursor_outlives_every_change_and_one_of_others_is_refused() {
    let (_, cursor) = page(&registry(&["a", "b", "c"]), None, 2);
    let cursor = cursor.as_deref();
    for (now, expect) in [
        (&["_", "a", "b", "bb", "c"][..], &["bb", "c"][..]),
        (&["a", "c"], &["c"]),
        (&["a"], &[]),
    ] {
        assert_eq!(page(&registry(now), cursor, 9).0, expect);
    }
    for bad in ["!", "a b", "_w"] {
        let snapshot = registry(&["a"]).snapshot();
        let error = write_page(&mut Vec::new(), &snapshot, Some(bad), 2, &OPTIONS).unwrap_err();
        assert_eq!(error.code, RpcError::INVALID_PARAMS, "{bad:?}");
    }
}

#[test]
fn only_listed_tools_that_can_be_called_are_shown() {
    let list = registry(&["shown"]);
    for (name, exposure) in [
        ("deferred", Exposure::Deferred),
        ("unlisted", Exposure::Unlisted),
        ("hidden", Exposure::Hidden),
    ] {
        let spec = ToolSpec {
            exposure,
            ..TestTool::echo(name)
        };
        list.add_all([TestTool::of(spec).arc()]).unwrap();
    }
    let name = ToolName::new("hosted").unwrap();
    let mut hosted = ToolSpec::new(name, "d", serde_json::json!({"type": "object"}));
    hosted.declaration = Declaration::Provider {
        specs: [("p".to_owned(), Value::Null)].into(),
        call_types: Vec::new(),
    };
    list.add_hosted(hosted).unwrap();
    assert_eq!(page(&list, None, 1), (vec!["shown".to_owned()], None));
}

#[test]
fn a_tool_whose_calls_are_tasks_alone_says_so_to_clients_that_can_have_them() {
    let list = registry(&["long", "short"]).snapshot();
    for (era, expect) in [
        (Era::Modern, [Some("required"), None]),
        (Era::Legacy(Revision::LATEST), [None, None]),
    ] {
        let mut out = b"{".to_vec();
        let options = ListOptions { era, ..OPTIONS };
        write_page(&mut out, &list, None, 9, &options).unwrap();
        out.push(b'}');
        let value: Value = serde_json::from_slice(&out).unwrap();
        let said = [0, 1].map(|nth| value["tools"][nth]["execution"]["taskSupport"].as_str());
        assert_eq!(said, expect, "{era:?}");
    }
}
