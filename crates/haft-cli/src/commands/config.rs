//! `haft config`: shows all settings, explains one, prints the schema, writes a first file.

use std::fmt::Write as _;
use std::io::ErrorKind;

use serde_json::{Value, json};

use crate::args::ConfigAction;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{BOLD, DIM, styled, visible};
use haft_app::config::keys::{KeyLookup, SettingKey, find, nearest};
use haft_app::config::{
    FILE_NAME, SettingEntry, Settings, ValueOrigin, document, first_file, schema, value,
};
use haft_app::problem::{Problem, SourceLocation};

/// Runs the action; `show` if none is given.
pub(crate) fn run(at: &Invocation, action: Option<&ConfigAction>) -> ExitResult {
    match action {
        None | Some(ConfigAction::Show) => show(at),
        Some(ConfigAction::Explain { key }) => explain(at, key),
        Some(ConfigAction::Schema) => {
            let text = serde_json::to_string_pretty(&schema::schema())
                .map_err(|e| Problem::failed(format!("cannot print the schema: {e}")))?;
            at.screen.raw(format!("{text}\n").as_bytes())?;
            Ok(Exit::Done)
        }
        Some(ConfigAction::Init) => init(at),
    }
}

fn show(at: &Invocation) -> ExitResult {
    let settings = at.settings()?;
    if at.screen.json {
        let all: Vec<Value> = settings
            .iter()
            .map(|(path, entry)| described(path, entry))
            .collect();
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    let mut list = TextTable::new(&[
        ("KEY", Truncation::Never),
        ("VALUE", Truncation::End),
        ("FROM", Truncation::Middle),
    ]);
    for (path, entry) in settings.iter() {
        list.row([&dotted(path), &entry.written.to_string(), &from(entry)]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

fn explain(at: &Invocation, text: &str) -> ExitResult {
    let settings = at.settings()?;
    let path = document::dotted(text).unwrap_or_default();
    let key = match find(&path) {
        KeyLookup::Key(key) => key,
        KeyLookup::Section => return section(at, &settings, &path),
        KeyLookup::Unknown => {
            let problem = Problem::usage(format!("unknown setting `{text}`"));
            return Err(match nearest(&path) {
                Some(near) => problem.advise(format!("did you mean `{near}`?")),
                None => problem.advise("`haft config show` lists all settings"),
            });
        }
    };
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let entry = settings.entry(&parts);
    if at.screen.json {
        at.screen.document(&explained(&path, key, entry))?;
    } else {
        at.screen.out(&render(&path, key, entry))?;
    }
    Ok(Exit::Done)
}

fn section(at: &Invocation, settings: &Settings, path: &[String]) -> ExitResult {
    let inside = settings.iter().filter(|(key, _)| key.starts_with(path));
    if at.screen.json {
        let all: Vec<Value> = inside.map(|(path, entry)| described(path, entry)).collect();
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    for (path, entry) in inside {
        at.screen.out(&render(path, entry.key, Some(entry)))?;
    }
    Ok(Exit::Done)
}

fn init(at: &Invocation) -> ExitResult {
    let path = at.site.workspace.join(FILE_NAME);
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    let written = made
        .and_then(|mut file| std::io::Write::write_all(&mut file, first_file::text().as_bytes()));
    match written {
        Ok(()) => {
            at.screen.say(&format!(
                "wrote {}; to use it: `{}`",
                visible::line(&path.display().to_string()),
                at.trust_command()
            ));
            Ok(Exit::Done)
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            Err(Problem::usage(format!("{FILE_NAME} already exists"))
                .at(SourceLocation::file(&path))
                .advise("edit it, or move it away first"))
        }
        Err(e) => Err(Problem::failed(format!("cannot write {FILE_NAME}: {e}"))
            .at(SourceLocation::file(&path))),
    }
}

/// Formats a path as in haft.toml.
fn dotted(path: &[String]) -> String {
    let bare = |part: &String| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    };
    let parts = path.iter().map(|part| {
        if bare(part) {
            part.clone()
        } else {
            format!("{part:?}")
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

fn origin(source: &ValueOrigin) -> String {
    match &source.place {
        Some(place) if *source.layer.as_str() == *place.source => place.to_string(),
        Some(place) if place.spot.is_none() => place.to_string(),
        Some(place) => format!("{} {place}", source.layer),
        None => source.layer.to_string(),
    }
}

fn from(entry: &SettingEntry) -> String {
    let mut origins: Vec<String> = entry.sources.iter().map(origin).collect();
    origins.dedup();
    origins.join(", ")
}

fn sourced(source: &ValueOrigin) -> Value {
    match &source.place {
        Some(place) => json!({"layer": source.layer.as_str(), "place": place.to_string()}),
        None => json!({"layer": source.layer.as_str()}),
    }
}

fn described(path: &[String], entry: &SettingEntry) -> Value {
    json!({
        "key": dotted(path),
        "value": entry.written,
        "layer": entry.layer().as_str(),
        "sources": entry.sources.iter().map(sourced).collect::<Vec<_>>(),
    })
}

fn explained(path: &[String], key: &SettingKey, entry: Option<&SettingEntry>) -> Value {
    let mut shown = match entry {
        Some(entry) => described(path, entry),
        None => json!({"key": dotted(path)}),
    };
    let beaten: Vec<Value> = entry.map_or_else(Vec::new, |entry| {
        let beaten = entry.beaten.iter();
        beaten
            .map(|(source, value)| json!({"value": value, "source": sourced(source)}))
            .collect()
    });
    if let Value::Object(map) = &mut shown {
        map.insert("doc".into(), json!(key.doc));
        map.insert("takes".into(), json!(value::expected(key.kind)));
        map.insert("beaten".into(), json!(beaten));
    }
    shown
}

fn render(path: &[String], key: &SettingKey, entry: Option<&SettingEntry>) -> String {
    let written = entry.map_or("(not set)".to_owned(), |entry| entry.written.to_string());
    let mut out = format!(
        "{} = {}\n",
        styled(BOLD, &dotted(path)),
        visible::line(&written)
    );
    let _ = writeln!(out, "  {}; takes {}", key.doc, value::expected(key.kind));
    let Some(entry) = entry else {
        return out;
    };
    if let (Some(items), true) = (entry.written.as_array(), entry.sources.len() > 1) {
        for (item, source) in items.iter().zip(&entry.sources) {
            let _ = writeln!(
                out,
                "  {}  {}",
                visible::line(&item.to_string()),
                styled(DIM, &origin(source))
            );
        }
    } else {
        let _ = writeln!(out, "  from {}", visible::line(&from(entry)));
    }
    for (source, value) in &entry.beaten {
        let line = format!(
            "  over {} from {}",
            visible::line(&value.to_string()),
            origin(source)
        );
        let _ = writeln!(out, "{}", styled(DIM, &line));
    }
    out
}
