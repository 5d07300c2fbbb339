//! `haft run`: one task of six turns in every dialect, with everything that an agent encounters, and the record that it leaves.

use haft_scripted::{Scenario, scenarios, serve};
use serde_json::Value;

use crate::agent_run::{of_type, run_json};
use crate::harness::Lab;
use crate::signals::jailed;

const PROVIDERS: [(&str, &str); 4] = [
    ("openai", "OPENAI_API_KEY"),
    ("openai-chat", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GEMINI_API_KEY"),
];

/// Creates a workspace with what the task needs: a README, a skill, settings.
fn stage(variable: &'static str) -> Lab {
    let mut lab = Lab::new();
    lab.set(variable, "k-0123456789abcdef");
    lab.file("README.md", "# Demo\nA small project.\n");
    let folder = lab.home().parent().unwrap().join("skills/release-notes");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: release-notes\ndescription: Write the notes of a release.\n---\nKeep them short.\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    let dirs = folder.parent().unwrap().display().to_string();
    lab.user_settings(&format!(
        "skills.dirs = [\"{dirs}\"]\nagent.suggest = false\nagent.provided = [\"apply_patch\"]\n"
    ));
    lab
}

/// Returns how often a tool ran and how often it was denied, according to the records of all runs.
fn recorded(lab: &Lab, tool: &str) -> [usize; 2] {
    let runs = std::fs::read_dir(lab.home().join("runs")).unwrap();
    let text: String = runs
        .map(|run| std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap())
        .collect();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<Value> = lines.filter(|line| line["tool"] == tool).collect();
    let count = |is: &dyn Fn(&&Value) -> bool| lines.iter().filter(is).count();
    [
        count(&|line| line["type"] == "call_started"),
        count(&|line| line["type"] == "call_ended" && line["status"] == "denied"),
    ]
}

#[test]
fn a_task_of_six_turns_is_done_in_every_dialect_with_two_approvals_on_the_way() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (provider, variable) in PROVIDERS {
        let lab = stage(variable);
        if !jailed(&lab) {
            return;
        }
        let scenario = Scenario::from_toml(scenarios::SIX_TURNS).unwrap();
        let server = runtime.block_on(serve(scenario)).unwrap();
        let (model, url) = (format!("{provider}:m"), server.url());
        let of_model = ["--model", &model, "--base-url", &url];
        let prompt: &[&str] = &["write the release notes"];
        let (mut ran, mut lines) = run_json(&lab, &[prompt, &of_model].concat());
        let mut approvals = 0;
        while ran.code == 4 {
            approvals += 1;
            let asked = of_type(&lines, "approval");
            let id = asked[0]["approval"].as_str().unwrap();
            let approved = lab.run(&["approvals", "approve", id]);
            assert_eq!(approved.code, 0, "{provider}: {}", approved.stderr);
            let run = lines[0]["run"].as_str().unwrap().to_owned();
            let resume: &[&str] = &["--resume", &run];
            (ran, lines) = run_json(&lab, &[resume, &of_model].concat());
            assert_eq!(lines[0]["run"], run, "{provider}");
        }
        assert_eq!(ran.code, 0, "{provider}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(approvals, 2, "{provider}");
        assert_eq!(server.problems(), [""; 0], "{provider}");
        let read = |name: &str| std::fs::read_to_string(lab.work().join(name)).unwrap();
        assert!(read("README.md").contains("see NOTES.md"), "{provider}");
        assert!(read("NOTES.md").starts_with("# Notes"), "{provider}");
        assert!(!lab.work().join(".git/hooks/post-commit").exists());
        for (tool, times) in [
            ("write_file", [1, 1]),
            ("apply_patch", [1, 0]),
            ("tool_chain", [1, 0]),
            ("load_skill", [1, 0]),
        ] {
            assert_eq!(recorded(&lab, tool), times, "{provider}: {tool}");
        }
    }
}
