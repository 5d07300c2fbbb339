//! Budgets of effects and of money, with real processes: shared over a day, restored by a run, approved in `haft run`.

use serde_json::{Value, json};

use crate::agent_run::{calls, of_type, run_json, says, script};
use crate::harness::{Lab, Ran, ended};
use crate::hook::{bash, before, decision, hook};

/// Creates a lab whose rules allow deleting any file, with files `f0` to `f9`.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.user_settings(
        "tools.enable = [\"delete_file\"]\npolicy.allow = [\"delete_file\", \"Edit(**)\"]\n",
    );
    for n in 0..10 {
        lab.file(&format!("f{n}"), "x\n");
    }
    lab
}

fn delete(n: usize) -> String {
    json!({"path": format!("f{n}")}).to_string()
}

/// Returns the arguments of `haft call` that delete a file under a daily budget.
fn deleting(arguments: &str) -> Vec<String> {
    let budget = "budgets.day.deletions=3";
    let all = [
        "call",
        "delete_file",
        "--args",
        arguments,
        "-c",
        budget,
        "--json",
    ];
    all.map(str::to_owned).to_vec()
}

fn left(lab: &Lab) -> usize {
    let files = std::fs::read_dir(lab.work()).unwrap();
    files.count()
}

fn approval(ran: &Ran) -> String {
    let outcome: Value = serde_json::from_str(&ran.stdout).unwrap();
    outcome["approval"]
        .as_str()
        .unwrap_or_else(|| panic!("{outcome}"))
        .to_owned()
}

/// Checks that no rule is kept or offered for the call, and that the explanation has the counts.
fn refuses_a_rule(lab: &Lab, id: &str) {
    let rule = ["--scope", "always", "--rule", "delete_file", "--yes"];
    let always = lab.run(&[&["approvals", "approve", id][..], &rule].concat());
    assert_ne!(always.code, 0, "{}", always.stdout);
    assert!(
        always.stderr.contains("approve it once") && !always.stderr.contains("keeps for this"),
        "{}",
        always.stderr
    );
    says_what_is_used(lab);
}

/// Checks that the explanation of a call within the budget has the counts.
fn says_what_is_used(lab: &Lab) {
    let wide = ["-c", "budgets.day.deletions=20"];
    let explain = [
        "policy",
        "explain",
        "delete_file",
        "--args",
        "{\"path\":\"f9\"}",
    ];
    let explained = lab.run(&[&explain[..], &wide].concat());
    assert!(
        explained
            .stdout
            .contains("guard budgets deletions a day: 3 of 20 used"),
        "{}",
        explained.stdout
    );
}

#[test]
fn processes_share_the_budget_of_a_day_and_the_request_says_what_is_used_up() {
    let lab = lab();
    let children: Vec<_> = (0..6)
        .map(|n| {
            let arguments = deleting(&delete(n));
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            lab.command(&arguments).spawn().unwrap()
        })
        .collect();
    let ran: Vec<Ran> = children.into_iter().map(ended).collect();
    let mut codes: Vec<i32> = ran.iter().map(|ran| ran.code).collect();
    codes.sort_unstable();
    let said: Vec<&str> = ran.iter().map(|ran| ran.stderr.as_str()).collect();
    assert_eq!(codes, [0, 0, 0, 4, 4, 4], "{said:?}");
    assert_eq!(left(&lab), 7);

    let waits = ran.iter().find(|ran| ran.code == 4).unwrap();
    let id = approval(waits);
    let shown = lab.run(&["approvals", "show", &id]);
    assert!(
        shown
            .stdout
            .contains("the budget of 3 deletions a day is used up: 3 of 3"),
        "{}",
        shown.stdout
    );
    let always = lab.run(&["approvals", "approve", &id, "--scope", "session", "--yes"]);
    assert_ne!(always.code, 0, "{}", always.stdout);
    assert!(
        always.stderr.contains("approve it once"),
        "{}",
        always.stderr
    );
    refuses_a_rule(&lab, &id);
    let budget = ["-c", "budgets.day.deletions=3"];
    let approved = lab.run(&[&["approvals", "approve", &id, "--yes"][..], &budget].concat());
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert_eq!(left(&lab), 6);
    // It allowed only that one call.
    let next = deleting(&delete(9));
    let next: Vec<&str> = next.iter().map(String::as_str).collect();
    let next = lab.run(&next);
    assert_eq!(next.code, 4, "{}", next.stderr);

    let explain = [
        "policy",
        "explain",
        "delete_file",
        "--args",
        "{\"path\":\"f9\"}",
        "--json",
    ];
    let explained = lab.run(&[&explain[..], &budget].concat());
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    let layers = explained["layers"].as_array().unwrap();
    let layer = layers
        .iter()
        .find(|layer| layer["rule"] == "guard budgets")
        .unwrap();
    assert_eq!(layer["verdict"], "ask", "{layer}");
    assert_eq!(
        layer["reason"],
        "the budget of 3 deletions a day is used up: 4 of 3"
    );
}

#[test]
fn a_command_that_works_directly_is_asked_about_where_deletions_have_a_budget() {
    let lab = lab();
    let said = "haft cannot count the deletions of a command";
    let background = json!({"command": "rm f0 f1 f2", "background": true});
    let detached = json!({"command": "rm f0 f1 f2", "on_timeout": "detach"});
    let plain = json!({"command": "rm f0 f1 f2"});
    let direct = "sandbox.changes=direct";
    let copied = "sandbox.changes=copy";
    let rows = [
        (&background, copied, "budgets.day.deletions=9"),
        (&background, copied, "budgets.run.deletions=9"),
        (&detached, copied, "budgets.day.deletions=9"),
        (&plain, direct, "budgets.day.deletions=9"),
    ];
    for (arguments, changes, budget) in rows {
        let arguments = arguments.to_string();
        let call = ["call", "run_command", "--args", &arguments, "--json"];
        let under = ["--profile", "trusted", "-c", changes, "-c", budget];
        let ran = lab.run(&[&call[..], &under].concat());
        assert_eq!(ran.code, 4, "{arguments} {budget}: {}", ran.stderr);
        let shown = lab.run(&["approvals", "show", &approval(&ran)]);
        assert!(shown.stdout.contains(said), "{arguments}: {}", shown.stdout);
        assert_eq!(left(&lab), 10, "{arguments}");
    }
}

#[test]
fn commands_that_an_agent_runs_by_itself_are_asked_about_where_deletions_have_a_budget() {
    let mut lab = lab();
    lab.set("CI", "1");
    let allows = "policy.allow = [\"Bash(*)\", \"Bash\", \"Edit(**)\"]\nhook.ask = \"agent\"\n";
    let rows = [
        ("budgets.run.commands = 9\n", "rm -r sub", "allow"),
        ("budgets.run.deletions = 9\n", "rm -r sub", "ask"),
        ("budgets.day.deletions = 9\n", "bash -lc 'rm f0'", "ask"),
        ("budgets.day.deletions = 9\n", "make clean", "ask"),
        ("budgets.day.deletions = 9\n", "cat f0", "allow"),
    ];
    std::fs::create_dir(lab.work().join("sub")).unwrap();
    for (budget, command, expected) in rows {
        lab.user_settings(&format!("{allows}{budget}"));
        let event = before(&lab, "t-1", "Bash", &bash(command));
        let (verdict, why) = decision(&hook(&lab, &event));
        assert_eq!(verdict, expected, "{budget} {command}: {why}");
    }
}

#[test]
fn a_ledger_that_cannot_be_read_has_calls_asked_about() {
    let lab = lab();
    std::fs::create_dir(lab.home().join("budgets")).unwrap();
    let file = lab.home().join("budgets/day.json");
    std::fs::write(&file, "{").unwrap();
    let arguments = deleting(&delete(0));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = lab.run(&arguments);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let shown = lab.run(&["approvals", "show", &approval(&ran)]);
    assert!(shown.stdout.contains("day.json"), "{}", shown.stdout);
    std::fs::remove_file(&file).unwrap();
    let other = deleting(&delete(1));
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    assert_eq!(lab.run(&other).code, 0);
}

#[test]
fn a_run_that_goes_on_has_used_what_it_used_before() {
    let lab = lab();
    let delete = |id: &str, file: &str| {
        format!("{{ id = \"{id}\", tool = \"delete_file\", arguments = {{ path = \"{file}\" }} }}")
    };
    let turns: Vec<String> = [("a", "f0"), ("b", "f1"), ("c", "f2")]
        .iter()
        .map(|(id, file)| calls(&[&delete(id, file)]))
        .collect();
    let model = script(&lab, &format!("{}{}", turns.concat(), says("Done.")));
    let budget = [
        "--model",
        &model,
        "-c",
        "budgets.run.deletions=1",
        "-c",
        "agent.suggest=false",
    ];
    let (ran, lines) = run_json(&lab, &[&["tidy up"][..], &budget].concat());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let done = lines.last().unwrap();
    assert_eq!(left(&lab), 9);
    let (run, id) = (
        done["run"].as_str().unwrap(),
        done["approvals"][0].as_str().unwrap(),
    );
    let denied = lab.run(&["approvals", "deny", id]);
    assert!(matches!(denied.code, 0 | 3), "{}", denied.stderr);
    let (again, lines) = run_json(&lab, &[&["--resume", run][..], &budget].concat());
    assert_eq!(again.code, 4, "{}{}", again.stdout, again.stderr);
    let id = lines.last().unwrap()["approvals"][0].as_str().unwrap();
    let shown = lab.run(&["approvals", "show", id]);
    let reason = "the budget of 1 deletion a run is used up: 1 of 1";
    assert!(shown.stdout.contains(reason), "{}", shown.stdout);
    assert_eq!(left(&lab), 9);
}

#[test]
fn a_run_asks_before_it_costs_more_than_a_day_may() {
    let lab = lab();
    let look = r#"{ id = "r", tool = "read_file", arguments = { path = "f0" } }"#;
    let turns = format!("{}{}", calls(&[look]), says("It says x."));
    let model = script(&lab, &turns);
    let price = format!("models.\"{model}\".input_price=1000000");
    let day = ["--model", &model, "-c", "budgets.day.money=0.5"];
    let unpriced = lab.run(&[&["run", "go"][..], &day].concat());
    assert_ne!(unpriced.code, 0, "{}", unpriced.stdout);
    assert!(
        unpriced
            .stderr
            .contains("`budgets.day.money` needs the prices"),
        "{}",
        unpriced.stderr
    );

    let day = [&day[..], &["-c", &price]].concat();
    let (ran, lines) = run_json(&lab, &[&["go"][..], &day].concat());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let done = lines.last().unwrap();
    assert_eq!(done["total"]["turns"], 1, "{done}");
    let (run, id) = (
        done["run"].as_str().unwrap(),
        done["approvals"][0].as_str().unwrap(),
    );
    assert_eq!(of_type(&lines, "approval")[0]["tool"], "spend_more");
    let shown = lab.run(&["approvals", "show", id]);
    let reason =
        "the budget of 0.5 of money a day is used up; an approval lets the run cost 0.5 more";
    assert!(shown.stdout.contains(reason), "{}", shown.stdout);
    // Another run on the same day is asked before its first reply, and ends if there is no decision.
    let (other, lines) = run_json(
        &lab,
        &[&["go", "-c", "approval.mode=deny"][..], &day].concat(),
    );
    assert_eq!(other.code, 1, "{}", other.stderr);
    let done = lines.last().unwrap();
    assert_eq!(
        (&done["end"], &done["total"]["turns"]),
        (&json!("budget"), &json!(0)),
        "{done}"
    );
    assert!(
        done["message"]
            .as_str()
            .unwrap()
            .contains("0.5 of money a day"),
        "{done}"
    );

    let approve = [
        &["approvals", "approve", id, "--yes", "-c", &price][..],
        &day[2..4],
    ]
    .concat();
    let approved = lab.run(&approve);
    assert_eq!(approved.code, 0, "{}{}", approved.stdout, approved.stderr);
    let (again, lines) = run_json(&lab, &[&["--resume", run][..], &day].concat());
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    assert_eq!(lines.last().unwrap()["total"]["turns"], 2);
}
