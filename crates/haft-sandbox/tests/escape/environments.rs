//! The same attempts where a user's files are in other places: home folders below /srv and behind links,
//! interpreters in them, a virtual environment in the workspace.
//!
//! Each environment has its own host process, with its own `HOME` and `PATH`; as root, each one runs as root
//! and as an ordinary user.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
use haft_sandbox::{CommandSpec, Config, Mounts, Places, Sandbox, Strength};

use crate::runner::{NOBODY, Test, is_second_run};
use crate::runtime;
use crate::scripts::{ATTEMPTS, RUNTIME, run};

/// The argument of a host process; the environment's name and its folder follow.
pub(crate) const HOST: &str = "--environment";

pub(crate) const TESTS: &[Test] = &[
    ("j2_a_home_below_srv_stays_out_of_sight", || {
        each("plain");
    }),
    (
        "j1_a_virtual_environment_of_the_workspace_is_not_started",
        || {
            each("venv");
        },
    ),
    (
        "j2_a_virtual_environment_does_not_lead_into_the_home",
        || {
            each("venv into home");
        },
    ),
    ("j2_interpreters_in_the_home_show_their_own_parts", || {
        each("local");
    }),
    ("j2_a_home_behind_a_link_is_the_same_home", || {
        each("link");
    }),
    ("j11_a_home_is_no_workspace", || each("workspace")),
    (
        "aj1_what_lies_below_the_systems_folders_is_not_shown",
        || {
            each("system");
        },
    ),
];

/// Files that no jail may show, relative to the home folder.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".local/state/haft/operator-token",
    ".local/share/keyrings/login",
    ".config/haft/config.toml",
    "bin/notes",
    "lib/notes",
    "other/notes",
    "../../token",
];

/// The files of one environment, below a folder created for it.
struct Ground {
    base: PathBuf,
}

impl Ground {
    /// Returns the folder itself, not the path in `HOME`.
    fn home(&self) -> PathBuf {
        self.base.join("real/u")
    }

    fn work(&self) -> PathBuf {
        self.home().join("projects/w")
    }

    /// Returns the value of `HOME` in this environment.
    fn named_home(&self, name: &str) -> PathBuf {
        match name {
            "link" => self.base.join("link/u"),
            _ => self.home(),
        }
    }

    fn path(&self, name: &str) -> Vec<PathBuf> {
        let first = match name {
            "venv" | "venv into home" => Some(self.work().join(".venv/bin")),
            "local" => Some(self.home().join(".local/bin")),
            "link" => Some(self.named_home(name).join("bin")),
            _ => None,
        };
        let system = ["/usr/bin", "/bin"].map(PathBuf::from);
        first.into_iter().chain(system).collect()
    }

    fn build(&self, name: &str) -> io::Result<()> {
        fs::create_dir_all(self.work())?;
        for secret in SECRETS {
            let path = self.home().join(secret);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, "a-secret-of-the-home")?;
        }
        symlink("real", self.base.join("link"))?;
        match name {
            "local" => Self::install(&self.home().join(".local"))?,
            "link" => Self::install(&self.home())?,
            "venv" => self.environment(Path::new("/usr/bin/python3"))?,
            "venv into home" => {
                Self::install(&self.home().join(".local"))?;
                self.environment(&self.home().join(".local/bin/pip"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Installs this machine's Python and Node into a prefix.
    fn install(prefix: &Path) -> io::Result<()> {
        let python = fs::canonicalize("/usr/bin/python3")?;
        let version = python.file_name().unwrap().to_owned();
        for folder in ["bin", "lib", "include/node"] {
            fs::create_dir_all(prefix.join(folder))?;
        }
        copy(&python, &prefix.join("bin").join(&version))?;
        symlink(&version, prefix.join("bin/python3"))?;
        let library = Path::new("/usr/lib").join(&version);
        copy_tree(&library, &prefix.join("lib").join(&version))?;
        let pip = format!("#!{}/bin/python3\nprint('pip')\n", prefix.display());
        fs::write(prefix.join("bin/pip"), pip)?;
        executable(&prefix.join("bin/pip"))?;
        if let Ok(node) = fs::canonicalize("/usr/bin/node") {
            copy(&node, &prefix.join("bin/node"))?;
        }
        let npm = prefix.join("lib/node_modules/npm/bin");
        fs::create_dir_all(&npm)?;
        fs::write(
            npm.join("npm.js"),
            "#!/usr/bin/env node\nconsole.log('npm')\n",
        )?;
        executable(&npm.join("npm.js"))?;
        symlink("../lib/node_modules/npm/bin/npm.js", prefix.join("bin/npm"))
    }

    /// Creates a virtual environment in the workspace, with a package that reports when it is imported.
    fn environment(&self, python: &Path) -> io::Result<()> {
        let folder = self.work().join(".venv");
        let version = fs::canonicalize("/usr/bin/python3")?;
        let version = version.file_name().unwrap().to_str().unwrap().to_owned();
        let package = folder
            .join("lib")
            .join(version)
            .join("site-packages/pandas");
        fs::create_dir_all(&package)?;
        fs::write(package.join("__init__.py"), "evil = True\n")?;
        fs::create_dir_all(folder.join("bin"))?;
        fs::write(folder.join("pyvenv.cfg"), "home = /usr/bin\n")?;
        symlink(python, folder.join("bin/python3"))
    }
}

fn executable(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir()
            && !["test", "__pycache__", "dist-packages"]
                .map(Into::into)
                .contains(&entry.file_name())
        {
            copy_tree(&path, &to)?;
        } else if kind.is_file() {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Runs the environment once for each available user; its host process must succeed.
fn each(name: &str) {
    if is_second_run() {
        // Root's run has already covered both users.
        return;
    }
    let root = rustix::process::getuid().is_root();
    if name == "system" && !root {
        print!("(root alone makes folders there) ");
        return;
    }
    let parent = Path::new(match (name, root) {
        ("system", _) => "/usr/local",
        (_, true) => "/srv",
        (_, false) => "/var/tmp",
    });
    for user in [None, root.then_some(NOBODY)]
        .into_iter()
        .take(1 + usize::from(root))
    {
        let base = tempfile::Builder::new()
            .prefix("haft-escape-")
            .tempdir_in(parent)
            .unwrap();
        executable(base.path()).unwrap();
        let ground = Ground {
            base: base.path().to_owned(),
        };
        ground.build(name).unwrap();
        if let Some(user) = user {
            own(&ground.home(), user);
        }
        #[expect(clippy::disallowed_methods, reason = "a host with a home of its own")]
        let mut host = std::process::Command::new(crate::binary());
        host.args([HOST, name]).arg(base.path()).env_clear();
        host.env("HOME", ground.named_home(name));
        host.env("PATH", std::env::join_paths(ground.path(name)).unwrap());
        host.current_dir("/");
        if let Some(user) = user {
            host.uid(user).gid(user);
        }
        let done = host.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name} as {user:?}: {said}");
    }
}

/// Gives a folder and its content to a user; hard links to the system's own files stay root's.
fn own(path: &Path, user: u32) {
    let meta = fs::symlink_metadata(path).unwrap();
    let linked = meta.is_file() && std::os::unix::fs::MetadataExt::nlink(&meta) > 1;
    if !linked {
        std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    }
    if meta.is_dir() {
        fs::read_dir(path)
            .unwrap()
            .flatten()
            .for_each(|entry| own(&entry.path(), user));
    }
}

/// Runs a host process in its environment.
pub(crate) fn host(name: &str, base: &str) -> i32 {
    let ground = Ground { base: base.into() };
    let own = [
        ".local/state/haft",
        ".config/haft/config.toml",
        "../../token",
    ]
    .map(|path| ground.home().join(path));
    let places = Places::declared(own, [ground.work()]);
    if name == "workspace" {
        homes_are_refused(&places, &ground);
        return 0;
    }
    for strength in [Strength::Full, Strength::LandlockSeccomp] {
        let sandbox = Sandbox::new(Config {
            require: strength,
            at_most: Some(strength),
            places: places.clone(),
            detect_interpreters: true,
            ..Config::default()
        });
        runtime().block_on(async {
            commands(&sandbox, &ground, name).await;
            for force_fresh in [false, true] {
                scripts(&sandbox, &ground, name, force_fresh).await;
            }
        });
    }
    0
}

/// Commands read no secret; interpreters work, with the names next to them.
async fn commands(sandbox: &Sandbox, ground: &Ground, name: &str) {
    let homes = [ground.home(), ground.named_home(name)];
    let secrets = SECRETS
        .iter()
        .flat_map(|secret| homes.each_ref().map(|home| home.join(secret)));
    let secrets: Vec<_> = secrets.map(|path| path.display().to_string()).collect();
    let read = format!(
        "for path in {}; do ! cat $path || exit 1; done",
        secrets.join(" ")
    );
    let mut lines = vec![(read, "")];
    let listed = format!(
        "! grep -rl a-secret-of-the-home {} /usr/local",
        ground.base.display()
    );
    lines.push((listed, ""));
    lines.push(("python3 -c 'print(6 * 7)'".into(), "42"));
    if ["local", "link"].contains(&name) {
        lines.push((
            "python3 -c 'import sys, json; print(sys.prefix)'".into(),
            "/real/u",
        ));
        lines.push(("pip".into(), "pip"));
        if fs::canonicalize("/usr/bin/node").is_ok() {
            lines.push(("node -p '6 * 7'".into(), "42"));
            lines.push(("npm".into(), "npm"));
        }
    }
    for (line, expect) in lines {
        let spec = CommandSpec::line(&line, ground.work());
        let spec = spec.with_mounts(Mounts::workspace(ground.work()));
        let running = sandbox
            .start(spec)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let exit = running.wait().await;
        let out = running.stdout().text(0, 4096).text;
        let err = running.stderr().text(0, 4096).text;
        assert!(
            exit.success() && out.contains(expect),
            "{line}: {exit:?} {out}{err}"
        );
    }
}

/// Scripts read no secret either, and do not import from the workspace.
async fn scripts(sandbox: &Sandbox, ground: &Ground, name: &str, force_fresh: bool) {
    let config = CodeConfig {
        runtime: RUNTIME.into(),
        force_fresh,
        ..CodeConfig::default()
    };
    let code = CodeJail::new(sandbox, config);
    let probe = code.probe().await;
    let python = probe.python.clone().unwrap_or_else(|| panic!("{probe:?}"));
    assert!(!python.starts_with(ground.work()), "{probe:?}");
    assert_eq!(probe.zygote, !force_fresh, "{probe:?}");
    let at_home = python.starts_with(ground.home());
    assert_eq!(at_home, ["local", "link"].contains(&name), "{probe:?}");
    assert_eq!(
        probe.passed_over.is_empty(),
        !name.starts_with("venv"),
        "{probe:?}"
    );
    let mut source = ATTEMPTS.to_owned();
    for secret in SECRETS {
        for home in [ground.home(), ground.named_home(name)] {
            let _ = writeln!(source, "refused(open, '{}')", home.join(secret).display());
        }
    }
    for folder in [
        ground.home(),
        ground.home().join(".local"),
        ground.work(),
        ground.base.clone(),
    ] {
        if name == "system" && folder == ground.base {
            // The system folder that contains it is shown, and this user's folders in it are refused: see the rows before.
            continue;
        }
        let _ = writeln!(source, "refused(os.listdir, '{}')", folder.display());
    }
    source.push_str("try:\n  import pandas\nexcept ImportError: pandas = None\n");
    source.push_str("assert not hasattr(pandas, 'evil')\nrow_35_paths_are_not_ours()\n");
    for kind in [LibrarySet::Plain, LibrarySet::Data] {
        let script = code
            .take(kind)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(run(&script, &source).await, "done", "{name} {kind:?}");
    }
    code.shut_down().await;
}

/// The home, the folders that contain it, and links to either are refused.
fn homes_are_refused(places: &Places, ground: &Ground) {
    let (real, link) = (ground.home(), ground.base.join("link"));
    for folder in [
        &real,
        &link.join("u"),
        &link,
        &ground.base.join("real"),
        &ground.base,
    ] {
        assert_eq!(
            places.home_within(folder),
            Some(real.as_path()),
            "{}",
            folder.display()
        );
        let sandbox = Sandbox::new(Config {
            places: places.clone(),
            ..Config::default()
        });
        let spec = CommandSpec::line("touch ran", folder).with_mounts(Mounts::workspace(folder));
        let error = runtime().block_on(async { sandbox.start(spec).await.unwrap_err() });
        assert!(
            error.to_string().contains("home folder"),
            "{}: {error}",
            folder.display()
        );
    }
    assert_eq!(places.home_within(&ground.work()), None);
    assert!(!real.join("ran").exists());
}
