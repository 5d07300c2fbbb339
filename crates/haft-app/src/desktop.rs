//! `Desktop`: desktop notices about pending requests, shown if there is a desktop and no console is being watched.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::{RequestStatus, WaitingCalls};
use haft::approval::{ApprovalId, ApprovalRequest};
use haft::audit::redact::Redactor;
use haft_sandbox::{HostProgram, Places};
use parking_lot::Mutex;

use crate::config::{Settings, typed};
use crate::environment::Environment;
use crate::fact::Fact;
use crate::running::watched::is_watched;
use crate::site::Site;

mod pace;
mod words;

use pace::NoticeTurn;
use words::{Notice, NoticeProgram};

/// Requests that arrive within this time share a notice; one that is decided within it gets none.
const GATHER_TIME: Duration = Duration::from_millis(300);
/// Maximum run time of the program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of requests queued for a notice; later ones are left out.
const MAX_QUEUED: usize = 1000;

/// The variables passed to the program so that it finds the desktop.
const VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "XDG_CURRENT_DESKTOP",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// Whether desktop notices are shown, and by which program.
#[derive(Debug, Clone)]
pub(crate) enum DesktopState {
    /// This program shows them; it finds nothing that tools may change.
    Shown(NoticeProgram, PathBuf, Places),
    /// The settings turn them off.
    Off,
    /// This machine has no desktop.
    NoDesktop,
    /// The program is not installed.
    NoProgram(&'static str),
    /// The program may not be started, for this reason.
    Refused(String),
}

impl DesktopState {
    /// Determines the state from the settings and this machine.
    pub(crate) fn of(at: &Site, settings: &Settings, places: &Places) -> Self {
        if settings.get(typed::CONSOLE_NOTIFY) != "auto" {
            return Self::Off;
        }
        let program = NoticeProgram::of_this_system();
        if !program.has_desktop(&at.environment) {
            return Self::NoDesktop;
        }
        let path = at.environment.get("PATH").unwrap_or_default();
        match places.program(program.name(), OsStr::new(path)) {
            Some(Ok(path)) => Self::Shown(program, path, places.clone()),
            Some(Err(refused)) => Self::Refused(refused.to_string()),
            None => Self::NoProgram(program.name()),
        }
    }
}

/// Shows notices; clones share the queue.
#[derive(Clone)]
pub(crate) struct Desktop(Arc<Inner>);

struct Inner {
    program: NoticeProgram,
    path: PathBuf,
    places: Places,
    site: Site,
    inbox: Arc<dyn WaitingCalls>,
    redactor: Redactor,
    state: Mutex<NoticeQueue>,
}

#[derive(Default)]
struct NoticeQueue {
    queued: Vec<QueuedNotice>,
    /// Whether a task is showing them.
    telling: bool,
}

/// A request queued for a notice.
struct QueuedNotice {
    id: ApprovalId,
    notice: Notice,
}

impl fmt::Debug for Desktop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desktop")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}

impl Desktop {
    /// Returns what shows notices about requests of this inbox, if this machine can show them.
    pub(crate) fn new(
        state: &DesktopState,
        site: &Site,
        inbox: &Arc<dyn WaitingCalls>,
        redactor: Redactor,
    ) -> Option<Self> {
        let DesktopState::Shown(program, path, places) = state else {
            return None;
        };
        Some(Self(Arc::new(Inner {
            program: *program,
            path: path.clone(),
            places: places.clone(),
            site: site.clone(),
            inbox: Arc::clone(inbox),
            redactor,
            state: Mutex::default(),
        })))
    }

    /// Schedules a notice, which is shown if the request is still pending then and no console is being watched. Returns at once.
    pub(crate) fn schedule_notice(&self, request: &ApprovalRequest) {
        let notice = Notice::of(request, &Fact::of(request, &self.0.redactor).sentence());
        let mut state = self.0.state.lock();
        if state.queued.len() < MAX_QUEUED {
            let id = request.id.clone();
            state.queued.push(QueuedNotice { id, notice });
        }
        if !std::mem::replace(&mut state.telling, true) {
            let desktop = self.clone();
            tokio::spawn(async move { desktop.show_notices().await });
        }
    }

    /// Shows notices about the queued requests, as the pace allows.
    async fn show_notices(&self) {
        tokio::time::sleep(GATHER_TIME).await;
        loop {
            let Some(turn) = self.wait_for_turn().await else {
                // No notice without a pace; the log has the reason.
                self.0.state.lock().queued.clear();
                if self.is_done() {
                    return;
                }
                continue;
            };
            let notices = self.pending().await;
            if !notices.is_empty() && !self.is_watched().await {
                turn.record_notice();
                self.show(notices).await;
            }
            if self.is_done() {
                return;
            }
        }
    }

    /// Returns whether the queue is still empty; if so, the next request starts a new task.
    fn is_done(&self) -> bool {
        let mut state = self.0.state.lock();
        state.telling = !state.queued.is_empty();
        !state.telling
    }

    /// Waits until this process may show a notice.
    async fn wait_for_turn(&self) -> Option<NoticeTurn> {
        loop {
            let home = self.0.site.home.clone();
            let tried = tokio::task::spawn_blocking(move || NoticeTurn::take(&home)).await;
            match tried {
                Ok(Ok(Ok(turn))) => return Some(turn),
                Ok(Ok(Err(wait))) => tokio::time::sleep(wait).await,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "keep the pace of notices");
                    return None;
                }
                Err(error) => {
                    tracing::error!(%error, "keep the pace of notices");
                    return None;
                }
            }
        }
    }

    /// Returns the notices of the requests that are still pending.
    async fn pending(&self) -> Vec<Notice> {
        let untold = std::mem::take(&mut self.0.state.lock().queued);
        let mut pending = Vec::new();
        for QueuedNotice { id, notice } in untold {
            let entry = self.0.inbox.get(&id).await;
            let waits = entry.is_ok_and(|entry| {
                entry.is_some_and(|entry| entry.status == RequestStatus::Pending && entry.is_open())
            });
            if waits {
                pending.push(notice);
            }
        }
        pending
    }

    async fn is_watched(&self) -> bool {
        let home = self.0.site.home.clone();
        let looked = tokio::task::spawn_blocking(move || is_watched(&home)).await;
        looked.unwrap_or(false)
    }

    async fn show(&self, notices: Vec<Notice>) {
        let inner = &self.0;
        let arguments = inner.program.arguments(&Notice::combine(notices));
        let variables = inner
            .places
            .own_variables(variables(&inner.site.environment));
        let program = HostProgram::new(&inner.path, inner.program.name())
            .with_arguments(arguments)
            .with_variables(variables.iter().map(|(name, value)| (&**name, &**value)));
        let shown = tokio::task::spawn_blocking(move || program.run(PROGRAM_TIMEOUT)).await;
        let why = match shown {
            Ok(Ok(status)) if status.success() => return,
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(program = %inner.path.display(), why, "show a notice");
    }
}

fn variables(environment: &Environment) -> impl Iterator<Item = (&str, &str)> {
    environment
        .iter()
        .filter(|(name, _)| VARIABLES.contains(name))
}
