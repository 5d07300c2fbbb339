//! The recorded day with the real Claude Code: it reads the failing assertion of a project's test, through the hook and through MCP.

use haft_scripted::serve;

use crate::lab::{self, Answer, Lab, need};
use crate::projects::{PROJECTS, Project, scenario};
use crate::rows::ROWS;

/// How the agent reaches the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Hook,
    Mcp,
}

impl Way {
    /// Returns variables with which the model is offered a server's tools with its first request.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Hook => &[],
            Self::Mcp => &[
                ("ENABLE_TOOL_SEARCH", "false"),
                ("MCP_CONNECTION_NONBLOCKING", "false"),
            ],
        }
    }
}

#[test]
fn the_real_claude_code_reads_the_failing_assertion_and_fixes_it() {
    let row = &ROWS[0];
    let Some(program) = need(row.program) else {
        return;
    };
    for project in &PROJECTS {
        let found = std::process::Command::new("sh")
            .args(["-c", &format!("command -v {}", project.needs)])
            .output();
        if !found.is_ok_and(|found| found.status.success()) {
            eprintln!("SKIPPED: {} is not on this machine", project.needs);
            continue;
        }
        for way in [Way::Hook, Way::Mcp] {
            work(&program, project, way);
        }
    }
}

/// Tells the agent's commands where the user's toolchain lies: in the real home.
fn put_toolchain(command: &mut std::process::Command) {
    for (variable, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = std::path::PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let known = std::env::var_os(variable).map_or_else(|| home.join(below), Into::into);
        command.env(variable, known);
    }
}

/// Returns a folder with the project, in which the agent's commands run in the jail.
fn lab_with(project: &Project) -> Lab {
    let lab = Lab::new(Answer::Allow);
    lab.write(
        ".config/haft/config.toml",
        "console.start = \"never\"\n[policy]\nprofile = \"trusted\"\n[hook]\nwrap = \"jail\"\n",
    );
    let folder = lab.path("work");
    for (name, text) in project.files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    lab
}

fn work(program: &std::path::Path, project: &Project, way: Way) {
    let row = &ROWS[0];
    let lab = lab_with(project);
    let folder = lab.path("work");
    let tool = match way {
        Way::Hook => "Bash",
        Way::Mcp => "mcp__haft__run_command",
    };
    let (file, find, replace) = project.fault;
    let line = format!("sed -i 's/{find}/{replace}/' {file}");
    let fix = format!("{{ tool = \"{tool}\", arguments = {{ command = {line:?} }} }}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime
        .block_on(serve(scenario(project, tool, &fix)))
        .unwrap();
    let (name, text) = row.settings;
    lab.write(name, text);
    let mut args = vec![
        "-p",
        "make the test pass",
        "--allowedTools",
        tool,
        "--model",
        "claude-sonnet-4-5",
    ];
    let servers = serde_json::json!({"mcpServers": {"haft": {
        "command": lab::HAFT, "args": ["serve", "--stdio", "--workspace", folder],
    }}})
    .to_string();
    if way == Way::Mcp {
        args.extend(["--strict-mcp-config", "--mcp-config", &servers]);
    } else {
        let installed = lab.haft(&["hook", "install", row.agent, "--yes"]);
        assert!(
            installed.status.success(),
            "{}",
            lab::text(&installed.stderr)
        );
    }
    let mut command = lab.command(program, &args);
    for (name, value) in row.variables {
        command.env(name, value.replace("@URL@", &model.url()));
    }
    command.envs(way.variables().iter().copied());
    put_toolchain(&mut command);
    let ran = lab::ended(command);
    let output = format!("{}{}", lab::text(&ran.stdout), lab::text(&ran.stderr));
    let context = format!("{}, {way:?}: {output}", project.name);
    assert_eq!(model.problems(), Vec::<String>::new(), "{context}");
    let requests = model.requests();
    let bodies: String = requests
        .iter()
        .map(|request| lab::text(&request.body))
        .collect();
    for part in project.assertion {
        assert!(bodies.contains(part), "no {part:?}; {context}");
    }
    let fixed = std::fs::read_to_string(folder.join(file)).unwrap();
    assert!(fixed.contains(replace), "{context}");
}
