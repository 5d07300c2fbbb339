//! Tools and requests: recorded, or generated.

use std::fs;
use std::path::Path;

use measure::random::Random;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Numbers of generated tools and requests, equal to the recorded ones.
const TOOLS: usize = 1_287;
const REQUESTS: usize = 1_175;
/// Number of distinct generated words.
const WORDS: usize = 4_000;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) query: String,
    pub(crate) tools: Vec<String>,
}

pub(crate) struct Data {
    pub(crate) tools: Vec<Tool>,
    pub(crate) requests: Vec<Request>,
    pub(crate) source: &'static str,
}

impl Data {
    pub(crate) fn load() -> Self {
        let Some(folder) = std::env::var_os("HAFT_DATA") else {
            return Self::made_up();
        };
        let folder = Path::new(&folder).join("tool-search");
        Self {
            tools: lines(&folder.join("tools.jsonl")),
            requests: lines(&folder.join("queries.jsonl")),
            source: "recorded ones",
        }
    }

    fn made_up() -> Self {
        let mut random = Random::new(11);
        let tools: Vec<Tool> = (0..TOOLS).map(|n| tool(&mut random, n)).collect();
        let requests = (0..REQUESTS).map(|_| {
            let tool = random.pick(&tools).clone();
            let mut known: Vec<&str> = tool.description.split(' ').take(4).collect();
            let more = text(&mut random, 6);
            known.extend(more.split(' '));
            Request {
                query: known.join(" "),
                tools: vec![tool.name],
            }
        });
        let requests = requests.collect();
        Self {
            tools,
            requests,
            source: "a generator (HAFT_DATA is not set)",
        }
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).expect("HAFT_DATA holds tool-search");
    let read = |line| serde_json::from_str(line).expect("a line of JSON");
    text.lines().map(read).collect()
}

fn tool(random: &mut Random, n: usize) -> Tool {
    let property = |random: &mut Random| {
        let name = text(random, 1);
        let about = text(random, 6);
        (name, json!({"type": "string", "description": about}))
    };
    let properties: serde_json::Map<String, Value> = (0..3).map(|_| property(random)).collect();
    Tool {
        name: format!("{}_{n}", text(random, 2).replace(' ', "_")),
        description: text(random, 12),
        parameters: json!({"type": "object", "properties": properties}),
    }
}

/// Returns words, a few of them far more often than the others.
fn text(random: &mut Random, words: usize) -> String {
    let word = |random: &mut Random| {
        let bound = random.below(WORDS) + 1;
        format!("w{}q", random.below(bound))
    };
    let words: Vec<String> = (0..words).map(|_| word(random)).collect();
    words.join(" ")
}
