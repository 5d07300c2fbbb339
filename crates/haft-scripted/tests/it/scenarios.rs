//! Scenario files: the built-in ones, the one in the guide, invalid ones, and the order of turns.

use haft_scripted::{Dialect, Scenario, scenarios, serve};

use crate::client::{ask, go_on, post};
use crate::readers::read;

/// Invalid scenarios with their errors; one that begins with `say` or `expect` is a turn.
const WRONG: [(&str, &str); 19] = [
    ("say = []\nsays = 1", "unknown field `says`"),
    ("say = [{ txt = 'a' }]", "unknown variant `txt`"),
    ("expect = {}", "missing field `say`"),
    ("turns = []", "missing field `title`"),
    (
        "title = 't'\nturns = []",
        "turns: there must be 1 to 1000 turns",
    ),
    (
        "say = [{ call = { tool = 'a', raw = '{', input = 'b' } }]",
        "turn 1, piece 1: a call has one of `arguments`, `raw` and `input`",
    ),
    (
        "say = [{ call = { id = 'a b', tool = 'a' } }]",
        "turn 1, piece 1: the id `a b` must have",
    ),
    (
        "say = [{ call = { tool = 'a', arguments = { at = 2026-01-02 } } }]",
        "`2026-01-02` is a date of TOML",
    ),
    (
        "say = [{ patch = { action = 'update', path = 'a' } }]",
        "`diff` is missing",
    ),
    (
        "say = [{ patch = { action = 'delete', path = 'a', diff = '+a' } }]",
        "has no `diff`",
    ),
    (
        "say = [{ shell = { commands = [] } }]",
        "`commands` is empty",
    ),
    (
        "say = [{ item = { openai = {} } }]",
        "\"openai\" is not a dialect",
    ),
    (
        "say = [{ item = { gemini = 1 } }]",
        "an item must be an object",
    ),
    (
        "say = []\nfaults = [{ status = { code = 200 } }]",
        "turn 1, fault 1: the status 200 is not an error",
    ),
    (
        "say = []\nfaults = ['unterminate']",
        "unknown variant `unterminate`",
    ),
    (
        "say = []\nheaders = { 'a b' = 'c' }",
        "`a b: c` is not a header",
    ),
    (
        "say = []\ndelay_ms = 600001",
        "a pause of 600001 ms is too long",
    ),
    (
        "say = []\nexpect.results = [{ call = 'x' }]",
        "names the call `x`, which no earlier turn makes",
    ),
    (
        "say = []\n[[asides]]\nsay = []",
        "aside 1: an aside needs `expect.user` or `expect.system`",
    ),
];

#[test]
fn a_wrong_scenario_is_named_with_its_place() {
    for (text, expect) in WRONG {
        let is_turn = text.starts_with("say") || text.starts_with("expect");
        let head = if is_turn {
            "title = 't'\n[[turns]]\n"
        } else {
            ""
        };
        let error = Scenario::from_toml(&format!("{head}{text}"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expect), "{text}\n{error}");
    }
    let error = Scenario::from_toml("title = 1\nturns = []")
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 1, column 9"), "{error}");
    let error = Scenario::from_json("{\"title\": \"t\", \"turn\": []}")
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `turn`"), "{error}");
}

#[test]
fn a_file_is_toml_or_json_and_one_that_is_too_large_is_refused() {
    let folder = std::env::temp_dir().join(format!("haft-scripted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rows = [
        (
            "a.json",
            "{\"title\": \"t\", \"turns\": [{\"say\": [{\"text\": \"a\"}]}]}".to_owned(),
            Ok(()),
        ),
        ("a.toml", scenarios::FIRST_TRY.to_owned(), Ok(())),
        (
            "b.toml",
            "#".repeat(1 << 21),
            Err("at most 1048576 are read"),
        ),
        (
            "c.toml",
            "title = ".to_owned(),
            Err("the scenario is not valid"),
        ),
    ];
    for (name, text, expect) in rows {
        std::fs::write(folder.join(name), text).unwrap();
        let loaded = Scenario::load(folder.join(name));
        match (loaded, expect) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (loaded, expect) => panic!("{name}: {loaded:?}, expected {expect:?}"),
        }
    }
    assert!(
        Scenario::load(folder.join("d.toml"))
            .unwrap_err()
            .to_string()
            .contains("d.toml")
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// Plays a scenario to its end: every call gets the result that the next turn expects, or `ok`.
async fn play(source: &str, user: &str, tools: &[&str], result: fn(&str) -> &'static str) {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let server = serve(Scenario::from_toml(source).unwrap()).await.unwrap();
            let mut body = ask(dialect, stream, user, tools);
            if dialect == Dialect::OpenAiChat && stream {
                body["stream_options"] = serde_json::json!({"include_usage": true});
            }
            while !server.is_over() {
                let answer = post(server.address(), dialect, stream, &body).await;
                let turn = read(dialect, stream, &answer);
                let results: Vec<&str> = turn.calls.iter().map(|call| result(&call.id)).collect();
                go_on(dialect, &mut body, &turn, &results);
            }
            assert_eq!(server.problems(), [""; 0], "{dialect} {stream}");
        }
    }
}

#[tokio::test]
async fn the_scenarios_that_come_along_are_played_to_their_end() {
    play(
        scenarios::FIRST_TRY,
        "What is here?",
        &["list_files", "read_file"],
        |_| "ok",
    )
    .await;
    let tools = [
        "list_files",
        "read_file",
        "load_skill",
        "tool_chain",
        "write_file",
        "apply_patch",
    ];
    let result = |id: &str| match id {
        "list" => "README.md",
        "read" => "# X\n\nA small project.\n",
        "chain" => "{\"counted\": true}",
        "denied" => "error: denied",
        _ => "ok",
    };
    play(
        scenarios::SIX_TURNS,
        "Write the release notes.",
        &tools,
        result,
    )
    .await;
}

#[tokio::test]
async fn the_scenario_of_the_guide_is_played_to_its_end() {
    let page = include_str!("../../../../docs/guide/scripted-models.md");
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"));
    let scenarios: Vec<&str> = blocks
        .map(|(block, _)| block)
        .filter(|block| block.contains("title ="))
        .collect();
    assert_eq!(scenarios.len(), 1);
    // Its fault comes first, then the client sends the request again.
    let source = scenarios[0].replace("faults = ", "#faults = ");
    play(
        &source,
        "What does the README say?",
        &["read_file", "docs__search", "grep_files"],
        |_| "A small project.",
    )
    .await;
}

const COUNT: &str = r#"
title = "t"
end = "over"
[[turns]]
say = [{ text = "one" }]
[[turns]]
say = [{ text = "two" }]
[[asides]]
expect.user = "Summarise"
say = [{ text = "short" }]
"#;

#[tokio::test]
async fn the_next_turn_is_known_by_the_history_or_by_the_number_of_the_request() {
    // Whether each request contains the history, or only the user's text.
    let rows = [
        (
            "history",
            [false, false, true, true],
            ["one", "one", "two", "over"],
        ),
        (
            "requests",
            [false, false, false, true],
            ["one", "two", "over", "over"],
        ),
    ];
    for (follow, holds, expect) in rows {
        for dialect in Dialect::ALL {
            let source = format!("follow = \"{follow}\"\n{COUNT}");
            let server = serve(Scenario::from_toml(&source).unwrap()).await.unwrap();
            let mut body = ask(dialect, false, "hello", &[]);
            let mut last = None;
            let mut texts = Vec::new();
            for holds in holds {
                if let (true, Some(turn)) = (holds, &last) {
                    go_on(dialect, &mut body, turn, &[]);
                    let more = ask(dialect, false, "go on", &[]);
                    let key = ["messages", "input", "contents"]
                        .into_iter()
                        .find(|key| more.get(key).is_some())
                        .unwrap();
                    let list = body[key].as_array_mut().unwrap();
                    // Results of no calls are not a message.
                    list.retain(|item| {
                        !["content", "parts"]
                            .iter()
                            .any(|key| item[key] == serde_json::json!([]))
                    });
                    list.push(more[key][0].clone());
                }
                let aside = ask(dialect, false, "Summarise this.", &[]);
                let aside = read(
                    dialect,
                    false,
                    &post(server.address(), dialect, false, &aside).await,
                );
                assert_eq!(aside.text, "short");
                let turn = read(
                    dialect,
                    false,
                    &post(server.address(), dialect, false, &body).await,
                );
                texts.push(turn.text.clone());
                last = Some(turn);
            }
            assert_eq!(texts, expect, "{follow} {dialect}");
        }
    }
}

#[tokio::test]
async fn a_request_after_the_last_turn_is_a_problem_unless_there_is_an_end() {
    let server = serve(
        Scenario::from_toml(
            "title = \"t\"\nfollow = \"requests\"\n[[turns]]\nsay = [{ text = \"a\" }]",
        )
        .unwrap(),
    )
    .await
    .unwrap();
    let body = ask(Dialect::Gemini, false, "hello", &[]);
    assert_eq!(
        post(server.address(), Dialect::Gemini, false, &body)
            .await
            .status,
        200
    );
    assert_eq!(
        post(server.address(), Dialect::Gemini, false, &body)
            .await
            .status,
        400
    );
    assert!(
        server.problems()[0]
            .contains("it has 1 turns, and this request is for turn 2; add a turn, or `end`")
    );
}
