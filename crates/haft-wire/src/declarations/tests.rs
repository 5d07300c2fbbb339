//! Changed tools: the result of copying earlier declarations equals that of a fresh declarer.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::declared::{Freeform, Function, ToolDeclaration};
use crate::declarer::{Declarer, VersionedTool};
use crate::dialect::Dialect;

/// The number of declared tools: more than one block.
const TOOLS: usize = 40;
/// The number of variants of a tool.
const VARIANTS: usize = 8;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Returns the tool at this position in one variant: its name stays the same, its declaration does not.
fn tool(dialect: Dialect, at: usize, variant: usize) -> ToolDeclaration {
    let name = format!("server.tool_{at}");
    let plain = Function {
        name: name.clone(),
        description: "does it".to_owned(),
        parameters: Arc::from(raw(
            r#"{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}"#,
        )),
        strict: false,
        deferred: false,
    };
    let function = |function| ToolDeclaration::Function(function);
    match variant {
        0 => function(plain),
        1 => function(Function {
            description: "does it in many more words than before".to_owned(),
            ..plain
        }),
        2 => function(Function {
            description: String::new(),
            ..plain
        }),
        3 => function(Function {
            strict: true,
            ..plain
        }),
        // A keyword that strict schemas do not support, and an optional argument.
        4 => function(Function {
            parameters: Arc::from(raw(
                r#"{"type":"object","properties":{"p":{"type":"string","format":"none-such"}}}"#,
            )),
            strict: true,
            ..plain
        }),
        5 => function(Function {
            deferred: true,
            ..plain
        }),
        6 => ToolDeclaration::Freeform(Freeform {
            name,
            description: "takes a text".to_owned(),
            grammar: None,
        }),
        // It has no name of its own, so it changes the names, too.
        _ => ToolDeclaration::Provider {
            dialect,
            spec: raw(r#"{"type":"web_search"}"#),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tools_that_change_are_declared_as_if_all_were_written_anew(
        steps in proptest::collection::vec(
            proptest::collection::vec((0..TOOLS, 0..VARIANTS), 1..24),
            1..6,
        ),
    ) {
        for dialect in Dialect::ALL {
            let mut kept = Declarer::new(dialect);
            let mut now = [0; TOOLS];
            for step in &steps {
                for (at, variant) in step {
                    now[*at] = *variant;
                }
                let tools: Vec<(String, ToolDeclaration)> = now
                    .iter()
                    .enumerate()
                    .map(|(at, variant)| (format!("{at} {variant}"), tool(dialect, at, *variant)))
                    .collect();
                let entries: Vec<VersionedTool<'_>> = tools
                    .iter()
                    .map(|(version, tool)| VersionedTool { version, tool })
                    .collect();
                let declared = kept.declare(&entries);
                let fresh = Declarer::new(dialect).declare(&entries);
                let text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
                prop_assert_eq!(text(declared.json()), text(fresh.json()));
                prop_assert_eq!(&declared.lost, &fresh.lost);
                prop_assert_eq!(declared.strict, fresh.strict);
                prop_assert_eq!(&declared.places, &fresh.places);
            }
        }
    }
}
