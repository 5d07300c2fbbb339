//! `ChainScript`: the first message to an interpreter: the script, the tools it may call, and what differs each time.

use std::collections::BTreeMap;

use haft::context::ChildRun;
use haft::error::ToolError;
use haft::spec::{Exposure, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::run::record::ChainRecord;

/// The script to run.
#[derive(Debug)]
pub(crate) struct ChainScript<'a> {
    /// The source code.
    pub(crate) code: &'a str,
    /// The seed of its random numbers.
    pub(crate) seed: u64,
}

#[derive(Serialize)]
struct StartMessage<'a> {
    code: &'a str,
    names: Vec<&'a str>,
    signatures: BTreeMap<&'a str, Signature<'a>>,
    seed: u64,
    record: bool,
    looks: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    noise: Vec<Box<RawValue>>,
}

/// The arguments of a tool.
#[derive(Serialize)]
struct Signature<'a> {
    /// Required arguments.
    r: Vec<&'a str>,
    /// Known arguments.
    p: Vec<&'a str>,
    /// Whether others are allowed.
    o: bool,
}

impl ChainScript<'_> {
    /// Returns the message that starts the script.
    pub(super) fn message(
        &self,
        scope: &ChildRun,
        record: &ChainRecord,
        looks: u32,
    ) -> Result<Vec<u8>, ToolError> {
        let tools = scope.session().tools();
        let callable = |exposure| {
            matches!(
                exposure,
                Exposure::Listed | Exposure::Searchable | Exposure::Unlisted
            )
        };
        let entries = tools.entries().iter();
        let entries = entries.filter(|e| callable(e.spec().exposure) && e.is_local());
        let mut start = StartMessage {
            code: self.code,
            names: Vec::new(),
            signatures: BTreeMap::new(),
            seed: self.seed,
            record: record.is_kept(),
            looks,
            noise: record.noise(),
        };
        for entry in entries {
            let name = entry.spec().name.as_str();
            start.names.push(name);
            // Each part of a dotted name is a name of its own in the script.
            let last = name.rsplit('.').next().unwrap_or(name);
            if memchr::memmem::find(self.code.as_bytes(), last.as_bytes()).is_some() {
                start.signatures.insert(name, signature(entry.spec()));
            }
        }
        serde_json::to_vec(&start)
            .map_err(|e| ToolError::failed("the script cannot be sent").with_source(e))
    }
}

fn signature(spec: &ToolSpec) -> Signature<'_> {
    let schema = &spec.input_schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let required = schema.get("required").and_then(Value::as_array);
    Signature {
        r: required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect(),
        p: properties
            .into_iter()
            .flat_map(|known| known.keys())
            .map(String::as_str)
            .collect(),
        o: !closed || properties.is_none() || schema.get("patternProperties").is_some(),
    }
}
