//! The dispatch case: one schema, one text of arguments, many tools under distinct names.

use crate::random::Random;

/// Number of names drawn before measuring.
pub const DRAWS: usize = 4096;
/// Numbers of tools.
pub const SIZES: [usize; 3] = [10, 1_000, 10_000];

/// Seven properties: two bounded strings, an enum, a bounded integer, a boolean, a string array, a nested object.
pub const SCHEMA: &str = r#"{"type":"object","properties":{
"query":{"type":"string","description":"What to look for, literally or as a regular expression","minLength":1,"maxLength":200},
"path":{"type":"string","description":"Where to look, relative to the workspace","minLength":1,"maxLength":256},
"mode":{"type":"string","description":"How to read the query","enum":["literal","regex","word"]},
"limit":{"type":"integer","description":"Most matches to return","minimum":1,"maximum":1000},
"ignore_case":{"type":"boolean","description":"Upper and lower case are the same"},
"globs":{"type":"array","description":"Which files","items":{"type":"string","maxLength":64},"maxItems":16},
"range":{"type":"object","description":"Lines to look at","properties":{"start":{"type":"integer","minimum":0},"end":{"type":"integer","minimum":0}},"required":["start","end"],"additionalProperties":false}},
"required":["query","path"],"additionalProperties":false}"#;

/// Valid arguments: 173 bytes.
pub const ARGUMENTS: &str = r#"{"query":"fn handle_request","path":"crates/server/src/router.rs","mode":"regex","limit":50,"ignore_case":true,"globs":["*.rs","!target/**"],"range":{"start":10,"end":2000}}"#;

/// The description of a tool.
pub const DESCRIPTION: &str =
    "Searches the files of the workspace and returns the lines that match.";

/// Returns the name of the nth tool.
pub fn name(n: usize) -> String {
    format!("search_source_{n:05}")
}

/// Returns the names that a measurement calls, in order.
pub fn draws(tools: usize) -> Vec<String> {
    let mut random = Random::new(7);
    (0..DRAWS).map(|_| name(random.below(tools))).collect()
}
