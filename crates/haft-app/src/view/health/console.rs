//! Where requests can be decided in a browser, and whether there are desktop notices.

use super::{HealthCheck, check};
use crate::app::App;
use crate::desktop::DesktopState;
use crate::running::RunningServer;

/// Returns a line for the console and one for the notices.
pub(super) async fn checks(app: &App) -> [HealthCheck; 2] {
    let wanted = app.wanted_console().clone();
    let found = tokio::task::spawn_blocking(move || wanted.find()).await;
    let console = match found {
        Ok(Ok(server)) => console(app, server.as_ref()),
        Ok(Err(problem)) => {
            let advice = problem.advice().unwrap_or_default().to_owned();
            check("console", false, problem.what(), &advice)
        }
        Err(_) => check("console", false, "the check failed", "see the log"),
    };
    [console, notices(&app.0.surroundings.console.desktop)]
}

fn console(app: &App, server: Option<&RunningServer>) -> HealthCheck {
    let detail = match server {
        Some(server) => {
            let record = &server.record;
            let place = match &record.workspace {
                Some(workspace) => format!("of `haft serve` in {workspace}"),
                None => "in the background".to_owned(),
            };
            format!("{}, {place}, haft {}", record.url, record.version)
        }
        None if app.wanted_console().starts() => {
            "none is running; haft starts one when it is needed (console.start = auto)".to_owned()
        }
        None => "none is running, and haft starts none (console.start = never)".to_owned(),
    };
    check("console", true, detail, "")
}

fn notices(state: &DesktopState) -> HealthCheck {
    let none = "none: ";
    match state {
        DesktopState::Shown(_, path, _) => {
            check("notices", true, format!("by {}", path.display()), "")
        }
        DesktopState::Off => check("notices", true, format!("{none}console.notify = never"), ""),
        DesktopState::NoDesktop => check(
            "notices",
            true,
            format!("{none}there is no desktop session here"),
            "",
        ),
        DesktopState::NoProgram(name) => check(
            "notices",
            false,
            format!("{none}there is no {name}"),
            "install it (Debian, Ubuntu: libnotify-bin), or allow notices in the console's page",
        ),
        DesktopState::Refused(why) => check(
            "notices",
            false,
            format!("{none}{why}"),
            "put the system's folders first on PATH, or install it there",
        ),
    }
}
