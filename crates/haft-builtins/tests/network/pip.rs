//! A real installer: pip installs a package from the test's own registries, and the workspace's commands then use it.

use std::fs;

use haft_builtins::command::{CommandNetwork, REGISTRIES};
use haft_sandbox::Sandbox;

use crate::town::{Town, answer, page};
use crate::{Scene, allow, pem};

const WHEEL: &str = "mine_pkg-1.0-py3-none-any.whl";

/// Writes a wheel.
const MAKE: &str = r"
import zipfile
with zipfile.ZipFile('wheel.whl', 'w') as wheel:
    info = 'mine_pkg-1.0.dist-info/'
    wheel.writestr('mine_pkg.py', 'word = 42\n')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: mine-pkg\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD', 'mine_pkg.py,,\n')
";

pub(crate) async fn all(sandbox: &Sandbox) {
    let scene = Scene::new(sandbox, CommandNetwork::default());
    if !scene.line("python3 -m pip --version").await.ok {
        eprintln!("SKIPPED: no pip in the jail");
        return;
    }
    assert!(scene.script(MAKE).await.ok);
    let wheel = fs::read(scene.root().join("wheel.whl")).unwrap();
    let town = Town::new(move |asked| match asked.path.as_str() {
        "/simple/mine-pkg/" => {
            let link = format!("https://files.pythonhosted.org/packages/{WHEEL}");
            page(
                "text/html",
                format!("<!DOCTYPE html><a href=\"{link}\">{WHEEL}</a>"),
            )
        }
        path if path.ends_with(WHEEL) => page("application/octet-stream", &wheel),
        _ => answer("404 Not Found", "", ""),
    })
    .await;
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().canonicalize().unwrap().join("packages");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("ca.crt"), pem(&town)).unwrap();
    let installer = CommandNetwork::install(allow(REGISTRIES, &town), folder.clone());
    let installing = Scene::new(sandbox, installer);
    let seen = installing
        .line("python3 -m pip install -q --cert ca.crt mine-pkg")
        .await;
    assert!(seen.ok, "{}", seen.shown);
    assert!(folder.join("python/mine_pkg.py").is_file());
    let using = Scene::new(sandbox, CommandNetwork::default().with_packages(folder));
    let seen = using
        .line("python3 -c 'import mine_pkg; print(mine_pkg.word)'")
        .await;
    assert_eq!(seen.data["stdout"], "42\n", "{}", seen.shown);
    let seen = using.line("python3 -m pip install -q other-pkg").await;
    assert!(!seen.ok, "{}", seen.shown);
}
