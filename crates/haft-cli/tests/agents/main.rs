//! Real coding agents with haft in their hooks, started as users start them, with a scripted model and without an account: the agents
//! read the settings that an install writes, call the hook before a tool runs, and obey its answer.
//!
//! The agents are large (together over two gigabytes), so `make needs` installs them only if `HAFT_AGENTS=1` is set; they are found below
//! `HAFT_NEEDS`, and missing ones are skipped with a message.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

mod amp;
mod codex;
mod day;
mod dialog;
mod hosts;
mod lab;
#[path = "../it/recorded_day/projects.rs"]
mod projects;
mod rows;
mod settings;
mod steps;
mod workers;
mod working_day;

use lab::{Answer, Lab, need};
use rows::{ROWS, Row};

#[test]
fn a_real_agent_asks_the_hook_that_was_installed_and_does_what_it_answers() {
    for row in &ROWS {
        let Some(program) = need(row.program) else {
            continue;
        };
        for answer in Answer::ALL {
            if answer == Answer::Ask && row.waits_for_its_user {
                continue;
            }
            let lab = Lab::new(answer);
            let model = lab.model(row.tool, row.arguments);
            let (name, text) = row.settings;
            lab.write(name, &text.replace("@URL@", &model.url()));
            let installed = lab.haft(&["hook", "install", row.agent, "--yes"]);
            let errors = lab::text(&installed.stderr);
            assert!(installed.status.success(), "{errors}");
            let mut command = lab.command(&program, row.args);
            for (name, value) in row.variables {
                command.env(name, value.replace("@URL@", &model.url()));
            }
            let ran = lab::ended(command);
            let (output, errors) = (lab::text(&ran.stdout), lab::text(&ran.stderr));
            let context = format!("{}, {answer:?}: {output}\n{errors}", row.agent);
            assert_eq!(model.problems(), Vec::<String>::new(), "{context}");
            asked_once(row, &lab, &context);
            assert_eq!(lab.made(), answer == Answer::Allow, "{context}");
            let requests = model.requests();
            let mut bodies = requests.iter().map(|request| lab::text(&request.body));
            let reads_the_rule = bodies.any(|body| body.contains(lab::REASON));
            let denied = answer == Answer::Deny;
            assert_eq!(reads_the_rule, denied && !row.stops, "{context}");
            let goes_on = answer == Answer::Allow || !row.stops;
            assert_eq!(output.contains("all done"), goes_on, "{context}");
            recorded(row, &lab, &context);
            uninstalled(row, &lab);
        }
    }
}

/// The hook was called once before the call.
fn asked_once(row: &Row, lab: &Lab, context: &str) {
    if row.event.is_empty() {
        return;
    }
    let seen = lab.events();
    // The event after the call repeats the content of the one before.
    let is_before = |event: &str| !event.contains("\"toolResult\"");
    let is_it =
        |event: &&String| is_before(event) && row.event.iter().all(|part| event.contains(part));
    assert_eq!(seen.iter().filter(is_it).count(), 1, "{context}\n{seen:#?}");
}

/// The record contains one call, and names the agent and its tool.
fn recorded(row: &Row, lab: &Lab, context: &str) {
    let runs = lab.runs();
    let [run] = runs.as_slice() else {
        panic!("{context}\n{runs:#?}");
    };
    let tool = format!("{}.{}", row.agent, row.tool);
    let client = run["client"].as_str().unwrap_or_default();
    assert!(client.starts_with(row.title), "{context}\n{run:#?}");
    assert_eq!(run["first"]["tool"], tool.as_str(), "{context}\n{run:#?}");
    assert_eq!(run["calls"], 1, "{context}\n{run:#?}");
    let id = run["run"].as_str().unwrap();
    let shown = lab::text(&lab.haft(&["runs", "show", id]).stdout);
    assert!(
        shown.contains(row.title) && shown.contains(&tool),
        "{shown}"
    );
}

/// Nothing of haft remains in the settings.
fn uninstalled(row: &Row, lab: &Lab) {
    let gone = lab.haft(&["hook", "uninstall", row.agent, "--yes"]);
    assert!(gone.status.success(), "{}", lab::text(&gone.stderr));
    let now = std::fs::read_to_string(lab.path("home").join(row.settings.0)).unwrap();
    assert!(!now.contains("haft hook"), "{now}");
}
