//! The GitHub Copilot CLI: hooks in a file of haft's own.

use std::path::Path;

use haft_hook::Agent;
use serde_json::{Map, Value, json};

use crate::program::{HookProgram, HooksOff, SettingsProgram, moved_by};
use crate::registration::{
    AgentFile, AgentFileContent, REPORT_SECONDS, RegistrationPlace, RegistrationScope, Setup,
    command_line,
};
use crate::site::SetupSite;

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram {
        since: |event| (event == "postToolUseFailure").then_some("1.0.15"),
        off,
        ..HookProgram::new(
            Agent::Copilot,
            &["copilot"],
            |env| moved_by(env, "COPILOT_HOME", ".copilot"),
            setup,
        )
    }),
    imports: None,
};

/// Where haft is registered: a file of its own.
fn setup(program: &str) -> Setup {
    let handler = |seconds: u64| {
        json!([{
            "type": "command",
            "bash": command_line(program, Agent::Copilot),
            "powershell": format!("& '{}' hook copilot", program.replace('\'', "''")),
            "timeoutSec": seconds,
        }])
    };
    let mut hooks = Map::new();
    hooks.insert(
        "preToolUse".to_owned(),
        handler(Agent::Copilot.limits().wait.as_secs()),
    );
    for event in [
        "postToolUse",
        "postToolUseFailure",
        "sessionStart",
        "sessionEnd",
    ] {
        hooks.insert(event.to_owned(), handler(REPORT_SECONDS));
    }
    let content = AgentFileContent::Own {
        text: format!(
            "{:#}\n",
            json!({"version": 1, "hooks": Value::Object(hooks)})
        ),
        executable: false,
    };
    let user = AgentFile::new(".copilot/hooks/haft.json", content.clone());
    Setup::new(
        vec![
            RegistrationPlace::new(
                RegistrationScope::User,
                vec![user.moved_by("COPILOT_HOME", ".copilot")],
            ),
            RegistrationPlace::new(
                RegistrationScope::Project,
                vec![AgentFile::new(".github/hooks/haft.json", content)],
            ),
        ],
        &["hooks of a project run after its folder is trusted"],
    )
}

fn off(folder: &Path, _: SetupSite<'_>) -> Vec<HooksOff> {
    let files = ["settings.json", "config.json"].map(|name| folder.join(name));
    HooksOff::by_member(files, "disableAllHooks")
}
