//! `haft mcp import`: shows the servers of other clients and plugins, and adds them to haft's settings if the user agrees.

use std::collections::BTreeMap;

use haft::plural::counted;
use haft_app::imports::{self, ImportCandidate, ImportOptions, Imports};
use haft_app::problem::Problem;
use haft_app::servers::edit::{self, NewServer, SettingsEdit, SettingsScope};
use serde_json::{Value, json};

use crate::args::ImportServers;
use crate::commands::mcp::add;
use crate::commands::{ExitResult, consent};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, YELLOW, styled, visible};

/// Imports servers.
pub(crate) fn run(at: &Invocation, typed: &ImportServers) -> ExitResult {
    let settings = at.settings()?;
    let wishes = wishes(typed)?;
    let mut found = imports::look(&at.site, &settings, typed.from.as_deref(), &wishes)?;
    refuse_wrong(at, &mut found);
    let servers = to_add(&found);
    if !at.screen.json {
        say_found(at, &found)?;
    }
    let edit = written(at, typed, &servers)?;
    if at.screen.json {
        at.screen.document(&document(&found, edit.as_ref()))?;
        return Ok(Exit::Done);
    }
    if let Some(edit) = &edit {
        let file = visible::line(&edit.file.display().to_string());
        at.screen.say(&format!(
            "added {} to {file}",
            counted(servers.len(), "server")
        ));
        add::say_scope(at, &typed.file)?;
        let name = servers
            .first()
            .map_or("NAME", |server| server.name.as_str());
        at.screen.say(&format!(
            "nothing was started; their tools are offered once you have reviewed and pinned them: haft mcp pin {name}"
        ));
    } else if servers.is_empty() {
        at.screen.say("no server to add");
    }
    Ok(Exit::Done)
}

/// Refuses invalid servers. Checks all of them together, and each one separately if one is invalid.
fn refuse_wrong(at: &Invocation, found: &mut Imports) {
    if add::check(at, &to_add(found)).is_ok() {
        return;
    }
    for candidate in &mut found.servers {
        let checked = candidate.server.as_ref().filter(|_| candidate.is_taken());
        let checked = checked.map(|server| add::check(at, std::slice::from_ref(server)));
        if let Some(Err(problem)) = checked {
            candidate.refuse(problem.to_string());
        }
    }
}

/// Returns the servers to add.
fn to_add(found: &Imports) -> Vec<NewServer> {
    let added = found
        .servers
        .iter()
        .filter(|candidate| candidate.is_taken());
    added
        .filter_map(|candidate| candidate.server.clone())
        .collect()
}

/// Writes them, if there are any and the user agrees.
fn written(
    at: &Invocation,
    typed: &ImportServers,
    servers: &[NewServer],
) -> Result<Option<SettingsEdit>, Problem> {
    if servers.is_empty() || typed.file.dry_run {
        return Ok(None);
    }
    let scope: SettingsScope = add::scope(&typed.file);
    let file = edit::file(&at.site, scope)?;
    if !typed.yes {
        let shown = visible::line(&file.display().to_string());
        let question = format!("add {} to {shown}?", counted(servers.len(), "server"));
        if !consent::agree(at, &question, "an import")? {
            return Err(Problem::usage("not imported").advise("nothing was changed"));
        }
    }
    edit::add(&file, servers, false).map(Some)
}

fn wishes(typed: &ImportServers) -> Result<ImportOptions, Problem> {
    let mut rename = BTreeMap::new();
    for pair in &typed.rename {
        let Some((old, new)) = pair.rsplit_once('=').filter(|(old, _)| !old.is_empty()) else {
            return Err(Problem::usage(format!("`--rename {pair}` is not OLD=NEW")));
        };
        rename.insert(old.to_owned(), new.to_owned());
    }
    Ok(ImportOptions {
        rename,
        copy_secrets: typed.copy_secrets,
        network: typed.network.as_deref() == Some("host"),
    })
}

fn say_found(at: &Invocation, found: &Imports) -> Result<(), Problem> {
    for candidate in &found.servers {
        at.screen.out(&described(candidate))?;
    }
    for note in &found.notes {
        at.screen.say(&visible::line(note));
    }
    let rules = &found.rules;
    if !rules.is_empty() {
        at.screen
            .say("rules about tools of servers, to be put into haft's settings by hand:");
        let lines = rules.text();
        let lines = lines
            .lines()
            .map(|line| format!("  {}\n", visible::line(line)));
        at.screen.out(&lines.collect::<String>())?;
    }
    for note in &rules.not_carried {
        at.screen
            .say(&visible::line(&format!("not carried over: {note}")));
    }
    Ok(())
}

/// Describes a server as found and as it would be added.
fn described(candidate: &ImportCandidate) -> String {
    let name = visible::line(&candidate.original);
    let file = visible::line(&candidate.file.display().to_string());
    let mut out = format!(
        "{} {}\n",
        styled(BOLD, &name),
        styled(DIM, &format!("{} · {file}", candidate.client))
    );
    match (&candidate.server, &candidate.refused) {
        (_, Some(why)) => {
            let why = format!("  not added: {}", visible::line(why));
            out.push_str(&styled(YELLOW, &why));
            out.push('\n');
        }
        (Some(server), None) => {
            for line in add::added_lines(server).lines() {
                out.extend(["  ", line, "\n"]);
            }
        }
        (None, None) => {}
    }
    for note in &candidate.notes {
        out.extend(["  ", &styled(DIM, &visible::line(note)), "\n"]);
    }
    out
}

fn document(found: &Imports, edit: Option<&SettingsEdit>) -> Value {
    let one = |candidate: &ImportCandidate| {
        let server = candidate.server.as_ref().filter(|_| candidate.is_taken());
        let mut shown = json!({
            "name": candidate.server.as_ref().map_or(&candidate.original, |server| &server.name),
            "original": candidate.original,
            "client": candidate.client,
            "file": candidate.file,
            "added": server.is_some() && edit.is_some(),
            "notes": candidate.notes,
        });
        if let Value::Object(map) = &mut shown {
            if let Some(server) = server {
                map.insert("text".into(), json!(server.shown_text()));
            }
            if let Some(why) = &candidate.refused {
                map.insert("refused".into(), json!(why));
            }
        }
        shown
    };
    let servers: Vec<Value> = found.servers.iter().map(one).collect();
    json!({
        "file": edit.map(|edit| &edit.file),
        "read": found.files,
        "servers": servers,
        "rules": found.rules,
        "notes": found.notes,
    })
}
