//! Skills as MCP resources: `skill://NAME/SKILL.md`, and every other file of a skill below `skill://NAME/`.
//!
//! Reading one is not a call: no tool runs and nothing is activated, so it is not recorded, as with artifacts.

use haft::skill::{Skill, SkillError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::json;

use crate::offer::OfferEntry;
use crate::offered;
use crate::own::SKILLS as SCHEME;
use crate::resource_entry::{ResourceEntry, missing};
use crate::run::ClientRun;
use crate::wire::RpcError;

/// The characters of a name that are not encoded.
const NAME_ENCODE_SET: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The main file of a skill, under the name that all skills share.
const MAIN_FILE: &str = "SKILL.md";

fn address(skill: &Skill) -> String {
    let name = utf8_percent_encode(skill.name(), &NAME_ENCODE_SET);
    format!("{SCHEME}{name}/{MAIN_FILE}")
}

/// Returns the name and path in a URI.
fn parts(uri: &str) -> Option<(String, String)> {
    let (name, path) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let plain = |text| percent_decode_str(text).decode_utf8().ok().map(Into::into);
    Some((plain(name)?, plain(path)?))
}

/// Returns the skills whose files a client may read: those that models may load, and those that a user has activated. It is
/// usually a model that reads a resource.
async fn readable(run: &ClientRun) -> Result<Vec<Skill>, RpcError> {
    let mut skills = run.skills().await?;
    let active = run.session.active_skills();
    skills.retain(|skill| {
        let chosen = || active.iter().any(|one| one.name() == skill.name());
        skill.front().model_invocable || chosen()
    });
    Ok(skills)
}

/// Returns a run's skills as items of a list.
pub(crate) async fn listed(run: &ClientRun) -> Result<Vec<ResourceEntry>, RpcError> {
    let item = |skill: &Skill| ResourceEntry {
        uri: address(skill),
        name: skill.name().to_owned(),
        description: Some(skill.description().to_owned()),
        mime_type: "text/markdown".to_owned(),
        size: None,
    };
    Ok(readable(run).await?.iter().map(item).collect())
}

/// Returns the template of skill files, if there is a skill.
pub(crate) async fn template(run: &ClientRun) -> Result<Option<OfferEntry>, RpcError> {
    const URI_TEMPLATE: &str = "skill://{name}/{+path}";
    let template = json!({
        "uriTemplate": URI_TEMPLATE,
        "name": "skill file",
        "description": "A file of a skill, as the skill's own text names it.",
    });
    let any = !readable(run).await?.is_empty();
    Ok(any.then(|| offered::entry(URI_TEMPLATE, &template)))
}

/// Reads a skill's file: its media type and its bytes, at most `limit`.
pub(crate) async fn read(
    run: &ClientRun,
    uri: &str,
    limit: u64,
) -> Result<(String, Vec<u8>), RpcError> {
    let (name, path) = parts(uri).ok_or_else(|| missing(run, uri))?;
    let skills = readable(run).await?;
    let skill = skills.into_iter().find(|skill| skill.name() == name);
    let skill = skill.ok_or_else(|| missing(run, uri))?;
    let media_type = media_type(&path).to_owned();
    let read = tokio::task::spawn_blocking(move || whole(&skill, &path, limit)).await;
    let read = read.map_err(|error| {
        tracing::error!(%error, "read a skill's file");
        RpcError::new(RpcError::INTERNAL, "the skill's file could not be read")
    })?;
    match read {
        Ok(Some(bytes)) => Ok((media_type, bytes)),
        Ok(None) => Err(RpcError::invalid_params(format!(
            "the resource has over {limit} bytes: read it with a command"
        ))),
        Err(SkillError::Io { .. }) => Err(RpcError::new(
            RpcError::INTERNAL,
            "the skill's file could not be read",
        )),
        // A file outside does not exist, as far as this server is concerned.
        Err(_) => Err(missing(run, uri)),
    }
}

/// Reads a whole file in slices; `None` if it exceeds the limit.
fn whole(skill: &Skill, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SkillError> {
    let path = if path == MAIN_FILE {
        skill.file_name()
    } else {
        path
    };
    let mut bytes = Vec::new();
    loop {
        let from = bytes.len() as u64;
        let slice = skill.read_resource(path, from..limit.saturating_add(1))?;
        if slice.total > limit {
            return Ok(None);
        }
        let more = !slice.bytes.is_empty();
        bytes.extend_from_slice(&slice.bytes);
        if !more || bytes.len() as u64 >= slice.total {
            return Ok(Some(bytes));
        }
    }
}

/// Returns the media type for a file's extension; unknown ones count as text, if the bytes turn out to be text.
fn media_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "ttf" | "otf" | "woff" | "woff2" | "bin" | "gz" => "application/octet-stream",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn an_address_is_a_name_and_a_path() {
        let both = |name: &str, path: &str| Some((name.to_owned(), path.to_owned()));
        for (uri, expect) in [
            ("skill://pdf/SKILL.md", both("pdf", "SKILL.md")),
            ("skill://Excel%20Work/a/b.md", both("Excel Work", "a/b.md")),
            ("skill://pdf/..%2fx", both("pdf", "../x")),
            ("skill://pdf", None),
            ("skill://%ff/SKILL.md", None),
            ("artifact://run/x", None),
        ] {
            assert_eq!(parts(uri), expect, "{uri}");
        }
    }
}
