//! Lists of runs, newest first: from the index, plus archives that it does not contain.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use haft::audit::index::{RunEntry, RunFilter};
use haft::audit::runs as archive;
use haft::call::RunId;
use jiff::Timestamp;

use super::RunListItem;
use crate::app::App;
use crate::problem::Problem;

/// Maximum number of runs in a list.
pub const MOST: u32 = 10_000;
/// Maximum number of folders per page that are looked up in the index.
const MAX_LOOKUPS: usize = 1_000;

/// Returns all runs, newest first: those in the archives, with what the index knows better.
///
/// # Errors
/// A [`Problem`] if the runs cannot be listed.
pub async fn list(app: &App) -> Result<Vec<RunListItem>, Problem> {
    app.flush().await?;
    let home = app.home().to_owned();
    let most = usize::try_from(MOST).unwrap_or(usize::MAX);
    let archived = blocking(move || archive::list(&home, most)).await?;
    let archived = archived?;
    let indexed = indexed(app, &RunFilter::newest(MOST)).await?;
    let mut all: HashMap<String, RunListItem> = archived
        .into_iter()
        .map(|entry| (entry.run.to_string(), RunListItem::from(entry)))
        .collect();
    for entry in indexed {
        match all.get_mut(entry.run.as_str()) {
            Some(known) => known.learn(entry),
            None => drop(all.insert(entry.run.to_string(), RunListItem::from(entry))),
        }
    }
    let mut all: Vec<RunListItem> = all.into_values().collect();
    all.sort_by(|a, b| (&b.started, &b.run).cmp(&(&a.started, &a.run)));
    Ok(all)
}

/// Returns a page of the runs that match the filter, newest first. It includes archives that the index does not contain, unless the filter
/// is about calls, states or principals.
///
/// # Errors
/// A [`Problem`] if the runs cannot be listed.
pub async fn page(app: &App, mut filter: RunFilter) -> Result<Vec<RunListItem>, Problem> {
    app.flush().await?;
    let after = filter.after.clone();
    if let Some(after) = &after
        && look_up(app, after).await?.is_none()
    {
        filter.after = None;
        filter.until = began(app, after).await?.or(filter.until);
    }
    let entries = indexed(app, &filter).await?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let mut all: Vec<RunListItem> = entries.into_iter().map(RunListItem::from).collect();
    all.extend(unknown_to_index(app, &filter, after.as_ref(), &all).await?);
    all.sort_by(|a, b| (&b.started, &b.run).cmp(&(&a.started, &a.run)));
    all.truncate(limit);
    complete(app, all).await
}

/// Reads from the archives what the index does not hold.
async fn complete(app: &App, mut all: Vec<RunListItem>) -> Result<Vec<RunListItem>, Problem> {
    let (home, app) = (app.home().to_owned(), app.clone());
    blocking(move || {
        for listed in &mut all {
            listed.read_missing(&home, app.redactor());
        }
        all
    })
    .await
}

/// Returns only these runs, newest first, without reading others; all runs if `None`.
///
/// # Errors
/// A [`Problem`] if a run's record cannot be read.
pub async fn list_of(app: &App, only: Option<Vec<RunId>>) -> Result<Vec<RunListItem>, Problem> {
    let Some(only) = only else {
        return list(app).await;
    };
    app.flush().await?;
    let mut found = Vec::with_capacity(only.len());
    for run in only {
        let Some(mut listed) = archived(app, &run).await?.map(RunListItem::from) else {
            continue;
        };
        if let Some(entry) = look_up(app, &run).await? {
            listed.learn(entry);
        }
        found.push(listed);
    }
    found.sort_by(|a, b| (&b.started, &b.run).cmp(&(&a.started, &a.run)));
    complete(app, found).await
}

/// Returns archives that belong on a page but are not in the index: copied here, or older than the database. Ids sort by time.
async fn unknown_to_index(
    app: &App,
    filter: &RunFilter,
    after: Option<&RunId>,
    page: &[RunListItem],
) -> Result<Vec<RunListItem>, Problem> {
    let is_about_calls = filter.tool.is_some() || filter.status.is_some() || filter.failed;
    let is_narrow = filter.state.is_some() || filter.principal.is_some();
    if is_about_calls || is_narrow || filter.noted_since.is_some() {
        return Ok(Vec::new());
    }
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let oldest = page.iter().map(|listed| &listed.run).min().cloned();
    let oldest = oldest.filter(|_| page.len() >= limit).unwrap_or_default();
    let newest = after.map(ToString::to_string);
    let home = app.home().to_owned();
    let known: HashSet<String> = page.iter().map(|listed| listed.run.clone()).collect();
    let names = blocking(move || {
        let names = names_between(&home, &oldest, newest.as_deref());
        names
            .filter(|name| !known.contains(name))
            .take(MAX_LOOKUPS)
            .collect::<Vec<_>>()
    });
    let names = names.await?;
    let mut found = Vec::new();
    for name in names {
        let run = RunId::new(name);
        if look_up(app, &run).await?.is_some() {
            continue;
        }
        let Some(entry) = archived(app, &run).await? else {
            continue;
        };
        if fits(filter, &entry) {
            found.push(RunListItem::from(entry));
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Returns the names of runs' folders from `oldest` up to but excluding `newest`, newest first.
fn names_between(
    home: &Path,
    oldest: &str,
    newest: Option<&str>,
) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(home.join("runs")).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_wanted = |name: &String| {
        name.as_str() >= oldest && newest.is_none_or(|newest| name.as_str() < newest)
    };
    let mut names: Vec<String> = names.filter(is_wanted).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter()
}

/// Returns whether a run matches the filter's time and folder.
fn fits(filter: &RunFilter, entry: &RunEntry) -> bool {
    let started = nanoseconds(&entry.started);
    let is_late = filter.since.is_none_or(|since| started >= Some(since));
    let is_early = filter.until.is_none_or(|until| started < Some(until));
    let workspace = filter.workspace.as_ref();
    let is_here = workspace.is_none_or(|wanted| entry.start.workspace.as_ref() == Some(wanted));
    is_late && is_early && is_here
}

async fn indexed(app: &App, filter: &RunFilter) -> Result<Vec<RunEntry>, Problem> {
    let listed = app.index().list(filter).await;
    listed.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))
}

async fn look_up(app: &App, run: &RunId) -> Result<Option<RunEntry>, Problem> {
    let found = app.index().get(run).await;
    found.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))
}

/// Returns a run as archived; `None` if it has no archive, or its id could lead elsewhere.
async fn archived(app: &App, run: &RunId) -> Result<Option<RunEntry>, Problem> {
    let (home, run) = (app.home().to_owned(), run.clone());
    let read = blocking(move || archive::entry(&home, run.as_str())).await?;
    match read {
        // No run has such an id.
        Err(archive::RunsError::BadId(_)) => Ok(None),
        read => read.map_err(Problem::from),
    }
}

/// Returns when a run started that is not in the index.
async fn began(app: &App, run: &RunId) -> Result<Option<i128>, Problem> {
    let entry = archived(app, run).await?;
    Ok(entry.and_then(|entry| nanoseconds(&entry.started)))
}

fn nanoseconds(time: &str) -> Option<i128> {
    Some(time.parse::<Timestamp>().ok()?.as_nanosecond())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))
}
