//! Shared parts of the standard tools' specs.

use std::sync::Arc;

use haft::spec::{Annotations, Risk, ToolClass, ToolSpec};
use haft::toolset::registry::BUILTIN;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::keywords;

/// The standard tools with a class; the others have none.
const CLASSES: [(&str, ToolClass); 17] = [
    ("read_file", ToolClass::Read),
    ("list_files", ToolClass::Read),
    ("glob_files", ToolClass::Read),
    ("grep_files", ToolClass::Read),
    ("view_image", ToolClass::Read),
    ("write_file", ToolClass::Edit),
    ("edit_file", ToolClass::Edit),
    ("apply_patch", ToolClass::Edit),
    ("move_file", ToolClass::Edit),
    ("delete_file", ToolClass::Edit),
    ("run_command", ToolClass::Bash),
    ("await_command", ToolClass::Bash),
    ("command_input", ToolClass::Bash),
    ("kill_command", ToolClass::Bash),
    ("fetch_url", ToolClass::WebFetch),
    ("connect", ToolClass::Network),
    ("sign", ToolClass::Sign),
];

/// Standard tools that touch only the state of the run, except the skill tools, whose names may come from skills.
const STAY_IN_RUN: [&str; 6] = [
    "tool_search",
    "describe_tools",
    "tool_expand_tools",
    "read_artifact",
    "todo_write",
    "todo_read",
];

/// Returns the standard tools with their classes, for a policy that is built before the tools
/// ([`PolicyBuilder::classes`](haft::policy::PolicyBuilder::classes)).
pub fn classes() -> impl Iterator<Item = (&'static str, ToolClass)> {
    CLASSES.into_iter()
}

/// Completes the spec of a standard tool of this category whose `data` is a `T`.
pub(crate) fn builtin<T: JsonSchema>(spec: ToolSpec, category: &str) -> ToolSpec {
    let name = spec.name.as_str();
    let declared = CLASSES.iter().find(|(tool, _)| *tool == name);
    ToolSpec {
        class: declared.map(|(_, class)| *class),
        stays_in_run: STAY_IN_RUN.contains(&name),
        output_schema: Some(Arc::new(output_schema::<T>())),
        category: Some(category.to_owned()),
        tags: keywords::of(name)
            .iter()
            .map(|phrase| (*phrase).to_owned())
            .collect(),
        source: BUILTIN.to_owned(),
        annotations: Annotations {
            open_world_hint: Some(false),
            ..spec.annotations
        },
        ..spec
    }
}

/// Returns the schema for serialization, in which a field that may be left out is not required.
fn output_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Declares that a tool touches only the state of the run.
pub(crate) fn stays_in_run(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        stays_in_run: true,
        ..spec
    }
}

/// Declares that a tool changes nothing: it may run in parallel and be repeated.
pub(crate) fn read_only(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        risk: Risk::Safe,
        concurrency_safe: true,
        annotations: Annotations {
            read_only_hint: Some(true),
            ..spec.annotations
        },
        ..idempotent(spec)
    }
}

/// Declares a tool idempotent.
pub(crate) fn idempotent(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        idempotent: true,
        annotations: Annotations {
            idempotent_hint: Some(true),
            ..spec.annotations
        },
        ..spec
    }
}

/// Declares that a tool reads from the web: it changes nothing there, and its content is untrusted.
#[cfg(feature = "web")]
pub(crate) fn reads_from_web(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        risk: Risk::High,
        open_world: true,
        concurrency_safe: true,
        annotations: Annotations {
            read_only_hint: Some(true),
            open_world_hint: Some(true),
            ..spec.annotations
        },
        ..idempotent(spec)
    }
}

/// Declares that a tool changes files.
pub(crate) fn writes(spec: ToolSpec, risk: Risk) -> ToolSpec {
    ToolSpec {
        risk,
        annotations: Annotations {
            read_only_hint: Some(false),
            destructive_hint: Some(true),
            ..spec.annotations
        },
        ..spec
    }
}

/// Adds other names that a search may use for the tool.
pub(crate) fn known_as(spec: ToolSpec, names: &[&str]) -> ToolSpec {
    ToolSpec {
        aliases: names.iter().map(|name| (*name).to_owned()).collect(),
        ..spec
    }
}
