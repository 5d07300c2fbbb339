//! Checks of toolchains: those that commands see, those refused, and configured paths that do not exist.

use std::fmt::Write as _;
use std::path::Path;

use super::{HealthCheck, check};
use crate::app::App;

/// Maximum number of refused paths that are listed.
const MAX_NAMED: usize = 8;

/// Programs of languages and builds that are named if the system has them.
const PROGRAMS: [&str; 11] = [
    "node", "npm", "python3", "cargo", "go", "gcc", "clang", "make", "java", "ruby", "php",
];

/// Returns which of these programs commands find in the system's folders.
fn system_programs() -> Vec<&'static str> {
    let folders = ["/usr/local/bin", "/usr/bin"].map(Path::new);
    let exists = |name: &&&str| folders.iter().any(|folder| folder.join(name).exists());
    PROGRAMS.iter().filter(exists).copied().collect()
}

/// Returns a line for the toolchains found, and one for each path that is hidden from commands.
pub(super) fn checks(app: &App) -> Vec<HealthCheck> {
    let around = app.surroundings();
    let found = around
        .toolchains
        .all()
        .iter()
        .map(|one| match &one.version {
            Some(version) => format!("{} {version}", one.name),
            None => one.name.to_owned(),
        });
    let found: Vec<_> = found.collect();
    let mut detail = match &*found.join(", ") {
        "" => "none of a version manager".to_owned(),
        all => all.to_owned(),
    };
    let system = system_programs();
    if !system.is_empty() {
        let _ = write!(detail, "; of the system: {}", system.join(", "));
    }
    for (key, paths) in [
        ("read", &*around.read),
        ("write", &*around.write),
        ("sockets", around.sockets.paths()),
    ] {
        if !paths.is_empty() {
            let paths: Vec<_> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            let _ = write!(detail, "; sandbox.{key}: {}", paths.join(", "));
        }
    }
    let mut checks = vec![check("toolchains", true, detail, "")];
    let refused = around.toolchains.refused().iter().take(MAX_NAMED);
    checks.extend(refused.map(|refused| {
        let detail = format!("not shown to commands: {refused}");
        let advice = "name the exact folder in `sandbox.read`, and its programs in `sandbox.path`";
        check("toolchains", false, detail, advice)
    }));
    checks.extend(app.absent_surroundings().iter().map(|path| {
        let detail = format!("`{}` in sandbox settings does not exist", path.display());
        check(
            "toolchains",
            false,
            detail,
            "create it, or remove it from the settings",
        )
    }));
    checks
}
