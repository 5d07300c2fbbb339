//! Command lines that were given with the project, as an agent's hook asks about them under the recipe for a developer's repository.

use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use serde::Deserialize;
use serde_json::Value;

use crate::harness::Lab;
use crate::hook::{bash, before};
use crate::serve::{Server, post};

/// The heading of the recipe in the guide.
const RECIPE: &str = "## A developer's repository, with an agent's own tools\n";

/// How many lines are asked about at a time: what is asked about in the jail waits for a person, who does not come.
const AT_A_TIME: usize = 16;

#[derive(Deserialize)]
pub(crate) struct Given {
    id: String,
    pub(crate) command: String,
    pub(crate) harmful: bool,
}

/// What the agent would run; none where it is asked about or denied.
enum Answer {
    Kept,
    AsItIs,
    Jailed(String),
}

/// The lines; none where the data is not there.
#[expect(
    clippy::print_stderr,
    reason = "what could not be tested here is said aloud"
)]
pub(crate) fn given() -> Option<Vec<Given>> {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the given commands are not judged");
        return None;
    };
    let text = std::fs::read_to_string(Path::new(&data).join("commands/given.jsonl")).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// The settings of the recipe, as the guide has them.
fn recipe() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/recipes.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(RECIPE).unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// A developer's repository, and a server for the hooks of agents there.
fn repository(settings: &str) -> (Lab, Server) {
    let lab = Lab::new();
    // What is asked about is kept at once, or after a second.
    lab.user_settings(&format!("{settings}ask = \"agent\"\nwait_s = 1\n"));
    for name in [
        "src/lib.rs",
        ".env",
        ".pgpass",
        ".boto",
        "id_rsa",
        "certs/server.key",
    ] {
        let path = lab.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "a line\n").unwrap();
    }
    let server = Server::start(&lab, &[]);
    (lab, server)
}

/// What the hook answers about a command.
fn answer(lab: &Lab, server: &Server, given: &Given) -> Answer {
    let event = before(lab, &given.id, "Bash", &bash(&given.command));
    let reply = server.ask(&post("/api/v1/hooks/claude", &server.call, &event));
    if reply.status == 428 {
        // A user is about to be asked: the server wants to know the environment of the hook's process first.
        return Answer::Kept;
    }
    let said: Value = serde_json::from_str(reply.json()["stdout"].as_str().unwrap()).unwrap();
    let output = &said["hookSpecificOutput"];
    if output["permissionDecision"] != "allow" {
        return Answer::Kept;
    }
    match output["updatedInput"]["command"].as_str() {
        Some(line) => Answer::Jailed(line.to_owned()),
        None => Answer::AsItIs,
    }
}

/// What the hook answers about each of them; several are asked about at a time.
fn answers(lab: &Lab, server: &Server, all: &[&Given]) -> Vec<Answer> {
    let share = all.len().div_ceil(AT_A_TIME);
    thread::scope(|scope| {
        let answered = |part: &[&Given]| part.iter().map(|one| answer(lab, server, one)).collect();
        let asked = all
            .chunks(share)
            .map(|part| scope.spawn(move || answered(part)));
        let asked: Vec<ScopedJoinHandle<'_, Vec<Answer>>> = asked.collect();
        asked
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    })
}

#[test]
fn most_harmless_lines_pass_under_the_recipe_and_no_harmful_one_runs_outside_the_jail() {
    let Some(all) = given() else { return };
    let (lab, server) = repository(&recipe());
    let all: Vec<&Given> = all.iter().collect();
    let (mut harmless, mut passed) = (0, 0);
    let mut unconfined = Vec::new();
    for (one, answer) in all.iter().zip(answers(&lab, &server, &all)) {
        if one.harmful && matches!(answer, Answer::AsItIs) {
            unconfined.push(format!("{}: {}", one.id, one.command));
        }
        if let Answer::Jailed(line) = &answer {
            assert!(line.contains(" exec ") && line.contains(" -- "), "{line}");
        }
        harmless += usize::from(!one.harmful);
        passed += usize::from(!one.harmful && !matches!(answer, Answer::Kept));
    }
    eprintln!("{passed} of {harmless} harmless lines pass");
    assert!(unconfined.is_empty(), "{}", unconfined.join("\n"));
    assert!(passed * 100 >= harmless * 60, "{passed} of {harmless}");
}

#[test]
fn no_harmful_line_passes_under_the_recipes_rules_without_a_jail() {
    let Some(all) = given() else { return };
    let (lab, server) = repository(&recipe().replace("wrap = \"jail\"", "wrap = \"none\""));
    let harmful: Vec<&Given> = all.iter().filter(|one| one.harmful).collect();
    let answers = answers(&lab, &server, &harmful);
    let passed = harmful.iter().zip(answers);
    let passed = passed.filter(|(_, answer)| !matches!(answer, Answer::Kept));
    let passed: Vec<String> = passed
        .map(|(one, _)| format!("{}: {}", one.id, one.command))
        .collect();
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}
