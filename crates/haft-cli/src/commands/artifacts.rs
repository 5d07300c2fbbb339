//! `haft artifacts`: lists and reads stored large results.

use std::ops::Range;

use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactOwner, ArtifactRef};

use crate::args::ArtifactsAction;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{DIM, styled};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::view::{prefix, when};

/// The size of the pieces that are read and written, in bytes.
const PIECE: u64 = 1024 * 1024;

/// Lists or reads.
pub(crate) async fn run(
    at: &Invocation,
    app: &App,
    action: Option<&ArtifactsAction>,
) -> ExitResult {
    match action {
        None | Some(ArtifactsAction::List) => list(at, app).await,
        Some(ArtifactsAction::Get { reference, range }) => {
            get(at, app, reference, range.as_deref()).await
        }
    }
}

async fn all(app: &App) -> Result<Vec<ArtifactInfo>, Problem> {
    let all = app.artifacts().list(app.principal(), None).await;
    all.map_err(|e| to_problem(&e))
}

async fn list(at: &Invocation, app: &App) -> ExitResult {
    let all = all(app).await?;
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    let columns = [
        ("REF", Truncation::Middle),
        ("SIZE", Truncation::Never),
        ("TYPE", Truncation::Never),
        ("RUN", Truncation::Never),
        ("MADE", Truncation::Never),
    ];
    let mut list = TextTable::new(&columns);
    for info in &all {
        let (size, made) = (when::size(info.bytes), when::ago(&info.created));
        list.row([
            info.reference.as_str(),
            &size,
            &info.media_type,
            info.run.as_str(),
            &made,
        ]);
    }
    at.screen.out(&list.render())?;
    if all.is_empty() {
        at.screen.say(&styled(DIM, "there are no artifacts"));
    }
    Ok(Exit::Done)
}

async fn get(at: &Invocation, app: &App, reference: &str, range: Option<&str>) -> ExitResult {
    let wrong = || {
        Problem::usage(format!("no artifact `{reference}`"))
            .advise("`haft artifacts list` shows them")
    };
    let all = all(app).await?;
    let refs = all.iter().map(|info| info.reference.as_str().to_owned());
    let reference = &prefix::find("artifacts", reference, refs)?;
    let parsed = ArtifactRef::parse(reference).ok_or_else(wrong)?;
    let wanted = range.map(parse_range).transpose()?;
    // The user at the command line may read all of their own runs.
    let found = all
        .into_iter()
        .find(|info| info.reference == parsed)
        .ok_or_else(wrong)?;
    let range = wanted.map_or(0..found.bytes, |range| range.of(found.bytes));
    print(at, app, &found, range).await?;
    Ok(Exit::Done)
}

/// Writes a range of an artifact to stdout.
async fn print(
    at: &Invocation,
    app: &App,
    found: &ArtifactInfo,
    range: Range<u64>,
) -> Result<(), Problem> {
    let owner = ArtifactOwner {
        principal: app.principal().clone(),
        run: found.run.clone(),
    };
    let Range {
        start: mut from,
        end,
    } = range;
    while from < end {
        let to = end.min(from + PIECE);
        let read = app.artifacts().read(&owner, &found.reference, from..to);
        let bytes = read.await.map_err(|e| to_problem(&e))?;
        if bytes.is_empty() {
            break;
        }
        at.screen.raw(&bytes)?;
        from += bytes.len() as u64;
    }
    Ok(())
}

fn to_problem(error: &ArtifactError) -> Problem {
    Problem::failed(format!("cannot read artifacts: {error}"))
}

/// A requested byte range, as in HTTP: both ends are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteSpan {
    /// From the first to the last byte.
    Span(u64, u64),
    /// The last bytes, by count.
    Last(u64),
}

impl ByteSpan {
    /// Returns the range within an artifact of this size.
    fn of(self, size: u64) -> Range<u64> {
        match self {
            Self::Span(first, last) => first.min(size)..last.saturating_add(1).min(size),
            Self::Last(count) => size.saturating_sub(count)..size,
        }
    }
}

/// Parses `A-B`, `A-` or `-N`.
fn parse_range(text: &str) -> Result<ByteSpan, Problem> {
    let wrong = || {
        Problem::usage(format!(
            "invalid --range `{text}`: expected START-END, for example 0-4095"
        ))
        .advise("START- reads from START to the end, -COUNT the last COUNT bytes")
    };
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| wrong());
    match (first, last) {
        ("", count) => Ok(ByteSpan::Last(number(count)?)),
        (first, "") => Ok(ByteSpan::Span(number(first)?, u64::MAX)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if first <= last {
                Ok(ByteSpan::Span(first, last))
            } else {
                Err(wrong())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn a_range_counts_as_http_counts() {
        let rows = [
            ("0-9", 0..10),
            ("5-", 5..20),
            ("-7", 13..20),
            ("3-3", 3..4),
            ("18-99", 18..20),
            ("50-60", 20..20),
            ("-50", 0..20),
        ];
        for (text, range) in rows {
            assert_eq!(parse_range(text).unwrap().of(20), range, "{text}");
        }
        for wrong in ["", "-", "5", "a-b", "9-3", "-1-2"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
}
