//! Finds out whether commands can work on views here, by mounting one.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use haft::call::{CallId, RunId};
use haft::policy::Denials;
use haft::workspace::OutsideRepository;
use haft_sandbox::{CommandSpec, HomeFolder, Mounts, RepositoryMount};

use crate::command::changes::Views;
use crate::command::changes::folder::remove;
use crate::command::changes::owner::ViewOwner;
use crate::command::changes::view::OpenView;

/// The table of this process's mounts.
const MOUNT_INFO: &str = "/proc/self/mountinfo";

/// Fails if there is a mount point below the root, because an overlay would not show it.
pub(super) fn check_mounts(root: &Path) -> Result<(), String> {
    let table = fs::read(MOUNT_INFO).map_err(|error| format!("{MOUNT_INFO}: {error}"))?;
    let below = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(decode_octal)
        .find(|point| point.starts_with(root) && point != root);
    match below {
        Some(point) => Err(format!("{} is a mount point", point.display())),
        None => Ok(()),
    }
}

/// Decodes a path of the mount table, which writes blanks and similar characters as three octal digits.
fn decode_octal(written: &[u8]) -> PathBuf {
    let (mut path, mut at) = (Vec::with_capacity(written.len()), 0);
    while let Some(byte) = written.get(at) {
        let digits = (*byte == b'\\')
            .then(|| written.get(at + 1..at + 4))
            .flatten();
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(number.unwrap_or(*byte));
        at += if number.is_some() { 4 } else { 1 };
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&path))
}

/// What commands can see here besides the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visibility {
    /// True if they can see the user's caches.
    pub(super) caches: bool,
    /// True if they can change a copy of the repository outside of the workspace.
    pub(super) repository: bool,
}

/// Returns what an earlier process of this program has found, or tries.
pub(super) fn probe(views: &Views) -> Result<Visibility, String> {
    let options = &views.options;
    let repository = views.workspace.repository().map(OutsideRepository::folder);
    let about = format!(
        "views {} {} {repository:?} {:?}",
        views.workspace.root().display(),
        options.log.home().display(),
        options.home
    );
    let findings = views.sandbox.config().findings.as_ref();
    let whole = Visibility {
        caches: true,
        repository: repository.is_some(),
    };
    if findings.is_some_and(|findings| findings.get(&about).is_some()) {
        return Ok(whole);
    }
    let found = try_a_view(views);
    if let (Some(findings), true) = (findings, found == Ok(whole)) {
        findings.put(&about, "whole");
    }
    found
}

/// Runs a command that does nothing on a view: only an actual mount shows whether views work.
fn try_a_view(views: &Views) -> Result<Visibility, String> {
    let (run, call) = (RunId::generate(), CallId::new("probe"));
    let log = &views.options.log;
    let folder = log.views_folder(&run).map_err(|e| e.to_string())?;
    // The folder belongs to a run that does not exist.
    let made = folder.ancestors().nth(2).map(Path::to_path_buf);
    let view = views.make(&run, &call, "").map_err(|e| e.to_string());
    let tried = view.and_then(|view| try_view(views, &view, &run));
    if let Some(made) = made {
        remove(&made);
    }
    tried
}

fn try_view(views: &Views, view: &OpenView, run: &RunId) -> Result<Visibility, String> {
    let repository = repository(views, view);
    let owner = ViewOwner {
        run: run.clone(),
        call: CallId::new("probe"),
        group: None,
    };
    let caches = views.caches(&owner, &view.folder, &Denials::default());
    let caches = match caches {
        Ok(caches) => caches.folders(),
        Err(error) => {
            tracing::warn!(%error, "commands do not see the user's caches");
            Vec::new()
        }
    };
    let (has_caches, has_repository) = (!caches.is_empty(), repository.is_some());
    let shown = Visibility {
        caches: has_caches,
        repository: has_repository,
    };
    if (has_caches || has_repository)
        && start(views, view, caches.clone(), repository.clone()).is_ok()
    {
        return Ok(shown);
    }
    if has_caches && has_repository {
        if start(views, view, Vec::new(), repository).is_ok() {
            tracing::warn!("commands do not see the user's caches: they cannot be mounted here");
            return Ok(Visibility {
                caches: false,
                ..shown
            });
        }
        if start(views, view, caches, None).is_ok() {
            tracing::warn!("commands do not see the git repository: it cannot be mounted here");
            return Ok(Visibility {
                repository: false,
                ..shown
            });
        }
    }
    if has_caches || has_repository {
        tracing::warn!(
            "commands see neither the user's caches nor a repository outside: they cannot be mounted here"
        );
    }
    start(views, view, Vec::new(), None).map(|()| Visibility {
        caches: false,
        repository: false,
    })
}

/// Returns the mount of the repository outside of the workspace; `None` if there is none, or something is mounted in it.
fn repository(views: &Views, view: &OpenView) -> Option<RepositoryMount> {
    let folder = views.workspace.repository()?.folder().to_owned();
    if let Err(why) = check_mounts(&folder) {
        tracing::warn!(why, "commands do not see the git repository");
        return None;
    }
    Some(RepositoryMount {
        folder,
        layer: None,
        pointer: None,
        view: view.repository(),
    })
}

fn start(
    views: &Views,
    view: &OpenView,
    caches: Vec<HomeFolder>,
    repository: Option<RepositoryMount>,
) -> Result<(), String> {
    let root = views.workspace.root();
    let mut mounts = Mounts::workspace(root);
    mounts.view = Some(view.layers());
    mounts.home = caches;
    mounts.repository = repository;
    let spec = CommandSpec::argv(["true"], root).with_mounts(mounts);
    let sandbox = views.sandbox.for_other_runtime();
    // Uses its own thread, because the caller's thread may not be allowed to block.
    let tried = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let running = sandbox.start(spec).await;
            let exit = running.map_err(|error| error.to_string())?.wait().await;
            let code = exit.code.unwrap_or(-1);
            if exit.success() {
                Ok(())
            } else {
                Err(format!("a command on a view ended with {code}"))
            }
        })
    });
    tried
        .join()
        .unwrap_or_else(|_| Err("the try failed".to_owned()))
}
