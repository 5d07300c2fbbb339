//! `haft runs export`: prints a run's record, one JSON text a line.

use haft::audit::runs as archive;
use haft_app::app::App;
use haft_app::view::ocsf;

use crate::args::ExportFormat;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;

/// Prints the lines, as they are read.
pub(super) fn run(at: &Invocation, app: &App, run: &str, format: ExportFormat) -> ExitResult {
    match format {
        ExportFormat::Record => {
            for line in archive::events(app.home(), run)? {
                at.screen.raw(format!("{}\n", line?).as_bytes())?;
            }
        }
        ExportFormat::Ocsf => {
            for event in ocsf::export(app, run)? {
                at.screen.raw(format!("{}\n", event?).as_bytes())?;
            }
        }
    }
    Ok(Exit::Done)
}
