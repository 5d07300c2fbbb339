//! `haft mcp add` and `remove`: adds servers to haft's own settings and removes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_app::clients::text_of;
use haft_app::config::Settings;
use haft_app::problem::Problem;
use haft_app::server_check;
use haft_app::servers::edit::{self, NewServer, ServerTarget, SettingsEdit, SettingsScope};
use haft_app::servers::forget_pins;
use haft_app::servers::literal::is_secret;
use serde_json::json;

use crate::args::{AddServer, SettingsFileArgs};
use crate::commands::{ExitResult, consent};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive};
use crate::screen::{GREEN, styled, visible};

/// Adds a server to the settings; returns whether the user wants to see and pin its tools at once.
pub(crate) fn add(at: &Invocation, typed: &AddServer) -> Result<bool, Problem> {
    let server = server(typed)?;
    edit::check_name(&server.name)?;
    let settings = at.settings()?;
    refuse_taken(&settings, &server.name)?;
    check(at, std::slice::from_ref(&server))?;
    let file = edit::file(&at.site, scope(&typed.file))?;
    let edit = edit::add(&file, std::slice::from_ref(&server), typed.file.dry_run)?;
    let secrets = literal_secrets(&server);
    if at.screen.json {
        at.screen.document(&json!({
            "name": server.name,
            "file": edit.file,
            "text": server.shown_text(),
            "added": !typed.file.dry_run,
            "literal_secrets": secrets,
        }))?;
    } else {
        say_added(at, &edit, std::slice::from_ref(&server), typed.file.dry_run)?;
    }
    for name in &secrets {
        at.screen.warn(&format!(
            "`{name}` is in the settings in plain text: put it into a variable and write ${{env:{0}}}, or into a file and write ${{file:PATH}}",
            variable_of(name)
        ));
    }
    if typed.file.dry_run {
        return Ok(false);
    }
    say_scope(at, &typed.file)?;
    if !at.screen.json && is_interactive() {
        return consent::agree(at, "review its tools now, to pin them?", "pinning a server");
    }
    at.screen.say(&format!(
        "its tools are offered once you have reviewed and pinned them: haft mcp pin {}",
        server.name
    ));
    Ok(false)
}

/// Removes a server from the settings.
pub(crate) fn remove(at: &Invocation, name: &str, typed: &SettingsFileArgs) -> ExitResult {
    // Settings that cannot be loaded, perhaps because of this very server, must not prevent its removal.
    let settings = at.settings_with(&[]).ok();
    let files = files(at, typed)?;
    // Either all of them can be edited, or none is.
    for file in &files {
        edit::remove(file, name, true)?;
    }
    let mut edits = Vec::new();
    for file in &files {
        edits.extend(edit::remove(file, name, typed.dry_run)?);
    }
    if edits.is_empty() {
        return Err(not_there(settings.as_ref(), name, &files));
    }
    let is_gone = at
        .settings_with(&[])
        .is_ok_and(|now| !edit::has(&now, name));
    let forgotten = if is_gone && !typed.dry_run {
        forget_pins(&at.site.home, name)?
    } else {
        0
    };
    if at.screen.json {
        let files: Vec<&PathBuf> = edits.iter().map(|edit| &edit.file).collect();
        at.screen.document(&json!({
            "name": name,
            "files": files,
            "removed": !typed.dry_run,
            "forgotten": forgotten > 0,
        }))?;
        return Ok(Exit::Done);
    }
    for edit in &edits {
        let file = visible::line(&edit.file.display().to_string());
        let word = if typed.dry_run {
            "would remove"
        } else {
            "removed"
        };
        at.screen.say(&format!("{word} {name} from {file}"));
    }
    if forgotten > 0 {
        at.screen.say("its pins are deleted");
    }
    Ok(Exit::Done)
}

/// Returns the named file; otherwise the user's, and the workspace's if the folder is trusted.
fn files(at: &Invocation, typed: &SettingsFileArgs) -> Result<Vec<PathBuf>, Problem> {
    if typed.global || typed.here {
        return Ok(vec![edit::file(&at.site, scope(typed))?]);
    }
    let trusts = at.options.trust || at.site.trust()?.trusts(&at.site.workspace);
    let workspace = trusts.then(|| edit::file(&at.site, SettingsScope::Workspace));
    let user = edit::file(&at.site, SettingsScope::User).ok();
    Ok(user.into_iter().chain(workspace.transpose()?).collect())
}

fn not_there(settings: Option<&Settings>, name: &str, files: &[PathBuf]) -> Problem {
    let shown: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let problem = Problem::usage(format!(
        "there is no MCP server `{name}` in {}",
        shown.join(" or ")
    ));
    if settings.is_some_and(|settings| edit::has(settings, name)) {
        return problem.advise(format!(
            "it is defined elsewhere: haft config explain mcp.servers.{name} shows where"
        ));
    }
    problem.advise("`haft mcp list` lists the servers")
}

/// Returns which file is meant.
pub(crate) fn scope(typed: &SettingsFileArgs) -> SettingsScope {
    if typed.here {
        SettingsScope::Workspace
    } else {
        SettingsScope::User
    }
}

/// Refuses a name that the settings already contain.
pub(crate) fn refuse_taken(settings: &Settings, name: &str) -> Result<(), Problem> {
    if !edit::has(settings, name) {
        return Ok(());
    }
    let problem = Problem::usage(format!("an MCP server `{name}` already exists"));
    Err(problem.advise(format!(
        "choose another name, or remove that one first: haft mcp remove {name}"
    )))
}

/// Refuses invalid servers before anything is written.
pub(crate) fn check(at: &Invocation, servers: &[NewServer]) -> Result<(), Problem> {
    let options: Vec<String> = servers.iter().flat_map(NewServer::options).collect();
    let settings = at.settings_with(&options)?;
    let checked = server_check::check(&at.site, &settings);
    checked.map_err(|problem| problem.redacted(&settings.redactor))
}

/// Says what was written, and where.
pub(crate) fn say_added(
    at: &Invocation,
    edit: &SettingsEdit,
    servers: &[NewServer],
    dry_run: bool,
) -> Result<(), Problem> {
    let file = visible::line(&edit.file.display().to_string());
    let word = if dry_run { "would add" } else { "added" };
    at.screen.say(&format!("{word} to {file}"));
    for server in servers {
        at.screen.out(&added_lines(server))?;
    }
    Ok(())
}

/// Returns a server's table as added lines, without its secrets.
pub(crate) fn added_lines(server: &NewServer) -> String {
    let text = server.shown_text();
    let lines = text.lines().map(|line| {
        let line = format!("+{}", visible::line(line));
        styled(GREEN, &line) + "\n"
    });
    lines.collect()
}

/// Warns if the folder's file does not apply.
pub(crate) fn say_scope(at: &Invocation, typed: &SettingsFileArgs) -> Result<(), Problem> {
    let trusts = at.options.trust || at.site.trust()?.trusts(&at.site.workspace);
    if typed.here && !trusts {
        at.screen.warn(&format!(
            "this folder is not trusted, so its haft.toml is not used: {}",
            at.trust_command()
        ));
    }
    Ok(())
}

/// Returns the variables and headers that contain a literal secret.
fn literal_secrets(server: &NewServer) -> Vec<String> {
    let pairs = match &server.reach {
        ServerTarget::Command { env, .. } => env,
        ServerTarget::Address { headers, .. } => headers,
    };
    let literal = pairs.iter().filter(|(name, value)| is_secret(name, value));
    literal.map(|(name, _)| name.clone()).collect()
}

/// Returns a variable name for the value of a header or variable.
pub(crate) fn variable_of(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

fn server(typed: &AddServer) -> Result<NewServer, Problem> {
    let reach = match (&typed.url, typed.command.split_first()) {
        (Some(url), _) => ServerTarget::Address {
            url: url.clone(),
            headers: pairs("--header", &typed.header)?,
        },
        (None, Some((program, args))) => ServerTarget::Command {
            program: absolute_program(program)?,
            args: args.to_vec(),
            env: pairs("--env", &typed.env)?,
            cwd: typed.cwd.as_deref().map(absolute).transpose()?,
        },
        (None, None) => {
            return Err(Problem::usage("neither a URL nor a command is named")
                .advise("write it after `--`: haft mcp add NAME -- COMMAND ARGS"));
        }
    };
    let all = |folders: &[PathBuf]| -> Result<Vec<String>, Problem> {
        folders.iter().map(|folder| absolute(folder)).collect()
    };
    Ok(NewServer {
        trusted: typed.trusted,
        network: typed.network.as_deref() == Some("host"),
        read: all(&typed.read)?,
        write: all(&typed.write)?,
        ..NewServer::new(&typed.name, reach)
    })
}

/// Returns a program by its name, or by its absolute path.
fn absolute_program(program: &str) -> Result<String, Problem> {
    if program.contains('/') {
        absolute(Path::new(program))
    } else {
        Ok(program.to_owned())
    }
}

/// Returns an absolute path; `~/` is kept, because the settings support it.
fn absolute(path: &Path) -> Result<String, Problem> {
    if path.starts_with("~") {
        return text_of(path);
    }
    let absolute = std::path::absolute(path);
    text_of(&absolute.map_err(|e| Problem::failed(format!("cannot find {}: {e}", path.display())))?)
}

fn pairs(option: &str, typed: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut pairs = BTreeMap::new();
    for pair in typed {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Problem::usage(format!(
                "`{option} {pair}` is not KEY=VALUE"
            )));
        };
        if pairs.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Problem::usage(format!("`{option}` names `{name}` twice")));
        }
    }
    Ok(pairs)
}
