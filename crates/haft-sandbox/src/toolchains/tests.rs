//! Which toolchains are found in test home folders, and what is refused there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{FoundToolchain, ToolchainSearch, Toolchains};
use crate::places::Places;

/// A home folder with these programs, empty folders (`…/`) and files (`name=text`).
struct Home(tempfile::TempDir);

impl Home {
    fn with(entries: &[&str]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for entry in entries {
            home.put(entry);
        }
        home
    }

    fn put(&self, entry: &str) {
        let (name, text) = entry.split_once('=').unwrap_or((entry, ""));
        let path = self.path().join(name);
        if name.ends_with('/') {
            return fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn search(&self) -> ToolchainSearch {
        ToolchainSearch {
            home: Some(self.path()),
            variables: BTreeMap::new(),
            workspace: None,
        }
    }

    fn find(&self) -> Toolchains {
        self.find_by(&self.search())
    }

    fn find_by(&self, search: &ToolchainSearch) -> Toolchains {
        let own = self.path().join(".local/state/haft");
        Toolchains::find(
            &Places::declared([own], []).with_homes([self.path()]),
            search,
        )
    }

    /// Returns the parts of one toolchain, relative to the home.
    fn parts(&self, all: &Toolchains, name: &str) -> Vec<String> {
        let found = all.all().iter().find(|one| one.name == name);
        self.below(found.iter().flat_map(|one| one.folders()))
    }

    fn path_of(&self, all: &Toolchains, name: &str) -> Vec<String> {
        let found = all.all().iter().find(|one| one.name == name);
        self.below(
            found
                .iter()
                .flat_map(|one| one.path())
                .map(PathBuf::as_path),
        )
    }

    fn below<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Vec<String> {
        let home = self.path();
        let below = |path: &Path| path.strip_prefix(&home).unwrap().display().to_string();
        paths.map(below).collect()
    }
}

/// A toolchain, the files in the home, and the parts and program folders that commands see.
type Manager = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const MANAGERS: &[Manager] = &[
    (
        "cargo",
        &[
            ".cargo/bin/cargo",
            ".cargo/credentials.toml=secret",
            ".cargo/config.toml=x",
        ],
        &[".cargo/bin"],
        &[".cargo/bin"],
    ),
    (
        "rustup",
        &[
            ".rustup/settings.toml=default_toolchain = \"stable\"\n",
            ".rustup/toolchains/nightly/bin/rustc",
            ".rustup/toolchains/stable/bin/rustc",
            ".rustup/downloads/",
        ],
        &[".rustup/toolchains", ".rustup/settings.toml"],
        &[".rustup/toolchains/stable/bin"],
    ),
    (
        "nvm",
        &[
            ".nvm/alias/default=lts/iron",
            ".nvm/alias/lts/iron=v20.1.0",
            ".nvm/versions/node/v20.1.0/bin/node",
            ".nvm/versions/node/v20.1.0/lib/node_modules/npm/",
            ".nvm/versions/node/v20.1.0/etc/npmrc=token",
            ".nvm/versions/node/v22.0.0/bin/node",
        ],
        &[
            ".nvm/versions/node/v20.1.0/bin",
            ".nvm/versions/node/v20.1.0/lib",
        ],
        &[".nvm/versions/node/v20.1.0/bin"],
    ),
    (
        "fnm",
        &[".local/share/fnm/node-versions/v21.0.0/installation/bin/node"],
        &[".local/share/fnm/node-versions/v21.0.0/installation/bin"],
        &[".local/share/fnm/node-versions/v21.0.0/installation/bin"],
    ),
    (
        "volta",
        &[
            ".volta/bin/node",
            ".volta/tools/image/node/20/bin/node",
            ".volta/tools/user/platform.json={}",
            ".volta/log/x",
        ],
        &[".volta/tools/image", ".volta/bin", ".volta/tools/user"],
        &[".volta/bin"],
    ),
    (
        "pyenv",
        &[
            ".pyenv/version=3.11\n",
            ".pyenv/versions/3.11.7/bin/python3",
            ".pyenv/versions/3.12.0/bin/python3",
            ".pyenv/versions/3.11.7/pip.conf=token",
        ],
        &[".pyenv/versions/3.11.7/bin"],
        &[".pyenv/versions/3.11.7/bin"],
    ),
    (
        "uv",
        &[".local/bin/uv", ".local/bin/uvx", ".local/bin/other"],
        &[".local/bin/uv", ".local/bin/uvx"],
        &[".local/bin"],
    ),
    (
        "bun",
        &[".bun/bin/bun", ".bun/install/global/package.json"],
        &[".bun/bin/bun"],
        &[".bun/bin"],
    ),
    (
        "deno",
        &[".deno/bin/deno"],
        &[".deno/bin/deno"],
        &[".deno/bin"],
    ),
    (
        "pnpm",
        &[".local/share/pnpm/pnpm", ".local/share/pnpm/store/x"],
        &[".local/share/pnpm/pnpm"],
        &[".local/share/pnpm"],
    ),
    (
        "go programs",
        &["go/bin/gopls", "go/src/private/"],
        &["go/bin"],
        &["go/bin"],
    ),
    (
        "asdf",
        &[
            ".tool-versions=nodejs 20.1.0\ngolang 1.22.0 # newest\n",
            ".asdf/installs/nodejs/20.1.0/bin/node",
            ".asdf/installs/nodejs/22.0.0/bin/node",
            ".asdf/installs/golang/1.22.0/go/bin/go",
            ".asdf/installs/rust/1.80.0/bin/cargo",
            ".asdf/installs/rust/1.80.0/credentials.toml=token",
            ".asdf/shims/node",
        ],
        &[
            ".asdf/installs/golang/1.22.0/go",
            ".asdf/installs/nodejs/20.1.0/bin",
            ".asdf/installs/rust/1.80.0/bin",
        ],
        &[
            ".asdf/installs/golang/1.22.0/go/bin",
            ".asdf/installs/nodejs/20.1.0/bin",
            ".asdf/installs/rust/1.80.0/bin",
        ],
    ),
    (
        "mise",
        &[
            ".config/mise/config.toml=[tools]\npython = \"3.12\"\n",
            ".local/share/mise/installs/python/3.12.4/bin/python3",
            ".local/share/mise/installs/python/3.13.0/bin/python3",
        ],
        &[".local/share/mise/installs/python/3.12.4/bin"],
        &[".local/share/mise/installs/python/3.12.4/bin"],
    ),
    (
        "sdkman",
        &[
            ".sdkman/candidates/java/21.0.1-tem/bin/java",
            ".sdkman/candidates/java/21.0.1-tem/conf/x",
            ".sdkman/candidates/maven/3.9.6/bin/mvn",
            ".sdkman/candidates/maven/3.9.6/conf/settings.xml=password",
        ],
        &[
            ".sdkman/candidates/java/21.0.1-tem/bin",
            ".sdkman/candidates/java/21.0.1-tem/conf",
            ".sdkman/candidates/maven/3.9.6/bin",
        ],
        &[
            ".sdkman/candidates/java/21.0.1-tem/bin",
            ".sdkman/candidates/maven/3.9.6/bin",
        ],
    ),
];

#[test]
fn each_manager_shows_the_exact_folders_of_an_installation() {
    for (name, entries, parts, path) in MANAGERS {
        let home = Home::with(entries);
        let all = home.find();
        assert_eq!(home.parts(&all, name), *parts, "{name}");
        assert_eq!(home.path_of(&all, name), *path, "{name}");
        assert_eq!(all.refused(), [], "{name}");
    }
}

#[test]
fn j2_a_toolchain_folder_that_leads_to_the_home_or_the_root_is_refused() {
    const PROGRAMS: &[&str] = &["bin/cargo", "toolchains/x/bin/rustc", ".ssh/id_ed25519=key"];
    let links: &[(&str, &str)] = &[
        (".cargo", "."),
        (".cargo", "/"),
        (".cargo", ".."),
        (".rustup", "."),
        (".nvm", "."),
        (".volta", "."),
        (".pyenv", "/"),
        (".asdf", "."),
        (".sdkman", "."),
    ];
    for (name, to) in links {
        let home = Home::with(PROGRAMS);
        symlink(home.path().join(to), home.path().join(name)).unwrap();
        let all = home.find();
        assert!(
            all.all().iter().all(|one| one.name == "go"),
            "{name} -> {to}: {all:?}"
        );
        assert_eq!(all.refused().len(), 1, "{name} -> {to}: {all:?}");
    }
}

#[test]
fn j2_a_link_inside_a_managers_folder_is_not_followed() {
    let rows: &[(&[&str], &str, &str)] = &[
        (&[".ssh/id=key"], ".cargo/bin", ".ssh"),
        (&[".ssh/id=key"], ".rustup/toolchains", "."),
        (&["x/bin/node"], ".nvm/versions/node", "x"),
        (
            &[".nvm/versions/node/v20.0.0/"],
            ".nvm/versions/node/v20.0.0/bin",
            ".",
        ),
        (
            &[".pyenv/versions/3.12.0/bin/python3"],
            ".pyenv/versions/3.12.0/lib",
            "..",
        ),
        (&[".asdf/installs/x/1/"], ".asdf/installs/x/1/bin", ".ssh"),
    ];
    for (entries, link, to) in rows {
        let home = Home::with(entries);
        home.put(".rustup/toolchains-of-old/x/bin/rustc");
        home.put(".ssh/id_ed25519=key");
        let path = home.path().join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(home.path().join(to), &path).unwrap();
        let all = home.find();
        let shown: Vec<_> = all.all().iter().flat_map(FoundToolchain::folders).collect();
        assert!(
            shown
                .iter()
                .all(|part| !part.starts_with(home.path().join(".ssh"))),
            "{shown:?}"
        );
        assert!(!shown.contains(&&*home.path()), "{shown:?}");
        assert!(!shown.contains(&&*path), "{link} -> {to}: {shown:?}");
        if path.is_dir() && *link != ".nvm/versions/node" && *link != ".rustup/toolchains" {
            assert_eq!(all.refused().len(), 1, "{link} -> {to}: {all:?}");
        }
    }
}

#[test]
fn a_program_that_is_a_link_is_shown_by_the_file_of_its_name_alone() {
    let home = Home::with(&[
        ".local/share/tools/uv/bin/uv",
        ".local/bin/x",
        ".ssh/id=key",
        ".bun/bin/bun",
    ]);
    let bin = home.path().join(".local/bin");
    symlink("../share/tools/uv/bin/uv", bin.join("uv")).unwrap();
    symlink("../../.ssh/id", bin.join("uvx")).unwrap();
    symlink("bun", home.path().join(".bun/bin/bunx")).unwrap();
    let all = home.find();
    assert_eq!(home.parts(&all, "uv"), [".local/share/tools/uv/bin/uv"]);
    assert_eq!(home.parts(&all, "bun"), [".bun/bin/bun"]);
    assert_eq!(all.refused(), []);
}

#[test]
fn haft_own_state_and_what_tools_may_change_are_no_toolchains() {
    let home = Home::with(&[".local/state/haft/bin/cargo", "w/.cargo/bin/cargo"]);
    for folder in [".local/state/haft", ".local/state", "w/.cargo"] {
        let mut search = home.search();
        let named = home.path().join(folder);
        let own = home.path().join(".local/state/haft");
        let places = Places::declared([own], [home.path().join("w")]).with_homes([home.path()]);
        search
            .variables
            .insert("CARGO_HOME".into(), named.display().to_string());
        let all = Toolchains::find(&places, &search);
        assert_eq!(
            all.all().iter().filter(|one| one.name != "go").count(),
            0,
            "{folder}: {all:?}"
        );
        assert_eq!(all.refused().len(), 1, "{folder}: {all:?}");
    }
}

#[test]
fn the_workspace_and_the_path_choose_before_the_default() {
    let home = Home::with(&[
        ".nvm/alias/default=20",
        ".nvm/versions/node/v18.0.0/bin/node",
        ".nvm/versions/node/v20.0.0/bin/node",
        ".nvm/versions/node/v22.0.0/bin/node",
        "w/.nvmrc=v18\n",
    ]);
    let version = |search: &ToolchainSearch| {
        let all = home.find_by(search);
        all.all()
            .iter()
            .find(|one| one.name == "nvm")
            .and_then(|one| one.version.clone())
    };
    let mut search = home.search();
    assert_eq!(version(&search).as_deref(), Some("v20.0.0"));
    let bin = home.path().join(".nvm/versions/node/v22.0.0/bin");
    search
        .variables
        .insert("PATH".into(), format!("/usr/bin:{}", bin.display()));
    assert_eq!(version(&search).as_deref(), Some("v22.0.0"));
    search.workspace = Some(home.path().join("w"));
    assert_eq!(version(&search).as_deref(), Some("v18.0.0"));
    // A file that others could write can only choose installed versions.
    home.put("w/.nvmrc=../../../.ssh\n");
    assert_eq!(version(&search).as_deref(), Some("v22.0.0"));
}

#[test]
fn what_is_left_out_is_listed_with_the_reason() {
    let home = Home::with(&[".cargo/bin/cargo", ".deno/bin/deno"]);
    let mut all = home.find();
    all.leave_out(|path| path.ends_with("deno").then(|| "is denied".to_owned()));
    assert_eq!(home.parts(&all, "cargo"), [".cargo/bin"]);
    assert_eq!(home.parts(&all, "deno"), [""; 0]);
    assert!(
        all.refused()[0].to_string().ends_with("deno` is denied"),
        "{all:?}"
    );
}

#[test]
fn settings_show_no_credentials_and_change_nothing_that_other_programs_trust() {
    let home = Home::with(&[
        ".ssh/id=key",
        ".config/gh/hosts.yml=token",
        ".cache/x/",
        ".cargo/bin/cargo",
        ".local/state/haft/token",
        ".gradle/init.d/",
        ".local/lib/python3.11/site-packages/",
        ".vim/plugin/",
        "data/",
        "w/",
    ]);
    let own = home.path().join(".local/state/haft");
    let places = Places::declared([own], [home.path().join("w")]).with_homes([home.path()]);
    for (name, read, changed) in [
        ("data", true, true),
        (".cache/x", true, true),
        (".cache", true, false),
        (".gradle/init.d", true, false),
        (".local/lib", true, false),
        (".vim", true, false),
        (".cargo/bin", true, false),
        (".ssh", false, false),
        (".ssh/id", false, false),
        (".config", false, false),
        (".local/state", false, false),
        (".local/state/haft", false, false),
        (".", false, false),
        ("/", false, false),
        ("/etc", false, false),
        ("/usr/share", true, false),
        ("absent", false, false),
    ] {
        let path = home.path().join(name);
        assert_eq!(
            places.check_shown(&path, false).is_ok(),
            read,
            "read {name}"
        );
        assert_eq!(
            places.check_shown(&path, true).is_ok(),
            changed,
            "change {name}"
        );
    }
}
