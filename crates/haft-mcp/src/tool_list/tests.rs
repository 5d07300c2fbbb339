//! Pages, cursors, and how specs are spelled.

use haft::spec::ToolName;

use super::*;

fn specs(names: &[&str]) -> Arc<[Arc<ToolSpec>]> {
    let spec = |name: &&str| ToolSpec::new(ToolName::new(name).unwrap(), "d", json!({}));
    names.iter().map(|name| Arc::new(spec(name))).collect()
}

fn page(list: &ToolList, cursor: Option<&str>, size: usize) -> (Vec<String>, Option<String>) {
    let mut out = b"{".to_vec();
    list.write_page(&mut out, cursor, size).unwrap();
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
        let list = ToolLists::default().of(&specs(&names));
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
    let empty = ToolLists::default().of(&specs(&[]));
    assert_eq!(page(&empty, None, 5), (vec![], None));
}

#[test]
fn a_cursor_outlives_changes_elsewhere_and_is_refused_when_its_tool_is_gone() {
    let lists = ToolLists::default();
    let (_, cursor) = page(&lists.of(&specs(&["a", "b", "c"])), None, 2);
    let cursor = cursor.as_deref();
    let changed = lists.of(&specs(&["_", "a", "b", "bb", "c"]));
    assert_eq!(page(&changed, cursor, 9).0, ["bb", "c"]);
    let gone = lists.of(&specs(&["a", "c"]));
    for bad in [cursor.unwrap(), "", "!", "AAAA"] {
        let error = gone.write_page(&mut Vec::new(), Some(bad), 2).unwrap_err();
        assert_eq!(error.code, RpcError::INVALID_PARAMS, "{bad:?}");
    }
}

#[test]
fn a_list_is_rendered_once_and_few_are_kept() {
    let lists = ToolLists::default();
    let one = specs(&["a"]);
    assert!(Arc::ptr_eq(&lists.of(&one), &lists.of(&one)));
    for _ in 0..KEPT {
        lists.of(&specs(&["b"]));
    }
    assert_eq!(lists.0.lock().unwrap().len(), KEPT);
}

#[test]
fn a_schema_of_no_object_stands_under_result_with_its_definitions_at_the_root() {
    for (schema, expect) in [
        (
            json!({"type": "object", "x": 1}),
            json!({"type": "object", "x": 1}),
        ),
        (
            json!({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {}}}),
            json!({
                "type": "object",
                "$defs": {"A": {}},
                "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
                "required": ["result"]
            }),
        ),
        (
            json!(true),
            json!({"type": "object", "properties": {"result": true}, "required": ["result"]}),
        ),
    ] {
        assert_eq!(output_schema(&schema), expect, "{schema}");
    }
}

#[test]
fn every_part_of_a_spec_is_listed() {
    let mut spec = ToolSpec::new(
        ToolName::new("t").unwrap(),
        "Does",
        json!({"properties": {}}),
    );
    spec.title = Some("T".into());
    spec.output_schema = Some(Arc::new(json!({"type": "object"})));
    spec.annotations.destructive_hint = Some(false);
    spec.ui = Some(ToolUi {
        resource_uri: "ui://t".into(),
        csp: Some(json!({"connectDomains": []})),
        permissions: Some(json!({"camera": {}})),
        prefers_border: true,
    });
    insta::assert_json_snapshot!(serde_json::to_value(ToolJson::from(&spec)).unwrap());
}
