//! The toolchains of single languages, found by the layout that their installers create.

use std::path::Path;

use super::finder::{Finder, ToolchainBuilder, names, requested_versions, short_text};

/// Maximum number of aliases followed in a row.
const ALIASES: usize = 4;

pub(super) fn find(finder: &mut Finder<'_>) {
    rust(finder);
    nvm(finder);
    fnm(finder);
    volta(finder);
    pyenv(finder);
    uv(finder);
    single(finder, "bun", &["BUN_INSTALL"], &[".bun"]);
    single(
        finder,
        "deno",
        &["DENO_INSTALL", "DENO_INSTALL_ROOT"],
        &[".deno"],
    );
    pnpm(finder);
    go(finder);
}

/// Adds `bin` of cargo's folder, whose other parts hold credentials; and rustup's toolchains and the file that names the
/// default one.
fn rust(finder: &mut Finder<'_>) {
    // The proxies choose by `rust-toolchain.toml`, and fail if they cannot create this folder: then the default toolchain's
    // own programs come first.
    let rustup = rustup(finder);
    let chooses = rustup
        .as_ref()
        .is_none_or(|kit| kit.root().join("update-hashes").is_dir());
    let mut kits = [cargo(finder), rustup];
    if !chooses {
        kits.reverse();
    }
    for kit in kits.into_iter().flatten() {
        finder.keep(kit);
    }
}

fn cargo(finder: &mut Finder<'_>) -> Option<ToolchainBuilder> {
    let folder = finder.folder("CARGO_HOME", &[".cargo"])?;
    let mut kit = finder.kit("cargo", &folder)?;
    if finder.add(&mut kit, "bin") {
        kit.add_to_path("bin");
    }
    Some(kit)
}

fn rustup(finder: &mut Finder<'_>) -> Option<ToolchainBuilder> {
    let folder = finder.folder("RUSTUP_HOME", &[".rustup"])?;
    let mut kit = finder.kit("rustup", &folder)?;
    let toolchains = names(&kit.root().join("toolchains"));
    if toolchains.is_empty() || !finder.add(&mut kit, "toolchains") {
        return Some(kit);
    }
    for part in ["settings.toml", "update-hashes"] {
        finder.add(&mut kit, part);
    }
    let root = kit.root().to_owned();
    kit.set("RUSTUP_HOME", &root);
    let text = short_text(&root.join("settings.toml")).unwrap_or_default();
    let default = text.lines().find_map(|line| {
        let value = line.strip_prefix("default_toolchain")?;
        Some(
            value
                .trim()
                .strip_prefix('=')?
                .trim()
                .trim_matches('"')
                .to_owned(),
        )
    });
    let default = default.filter(|name| toolchains.contains(name));
    let default = default.unwrap_or_else(|| toolchains[0].clone());
    kit.add_to_path(&format!("toolchains/{default}/bin"));
    Some(kit.with_version(default))
}

fn nvm(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("NVM_DIR", &[".nvm", ".config/nvm"]) else {
        return;
    };
    let Some(kit) = finder.kit("nvm", &folder) else {
        return;
    };
    let versions = kit.root().join("versions/node");
    let mut wishes = Vec::new();
    let mut alias = "default".to_owned();
    for _ in 0..ALIASES {
        let plain = !alias.starts_with('/') && !alias.split('/').any(|part| part == "..");
        let wish = requested_versions(&kit.root().join("alias").join(&alias), "");
        let Some(wish) = wish.into_iter().next().filter(|_| plain) else {
            break;
        };
        wishes.insert(0, wish.clone());
        alias = wish;
    }
    let version = finder.version(&versions, &[(".nvmrc", ""), (".node-version", "")], wishes);
    if let Some(version) = version {
        let mut kit = kit.with_version(&version);
        finder.add_installation(&mut kit, &format!("versions/node/{version}"));
        finder.keep(kit);
    }
}

fn fnm(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("FNM_DIR", &[".local/share/fnm", ".fnm"]) else {
        return;
    };
    let Some(kit) = finder.kit("fnm", &folder) else {
        return;
    };
    let versions = kit.root().join("node-versions");
    // The default is a symbolic link to `node-versions/VERSION/installation`.
    let default = kit.root().join("aliases/default").canonicalize().ok();
    let default = default.and_then(|path| {
        let below = path.strip_prefix(&versions).ok()?.iter().next()?;
        Some(below.to_str()?.to_owned())
    });
    let files = [(".node-version", ""), (".nvmrc", "")];
    let version = finder.version(&versions, &files, default.into_iter().collect());
    if let Some(version) = version {
        let mut kit = kit.with_version(&version);
        finder.add_installation(&mut kit, &format!("node-versions/{version}/installation"));
        finder.keep(kit);
    }
}

/// Its programs choose by `package.json` and need the versions to choose from.
fn volta(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("VOLTA_HOME", &[".volta"]) else {
        return;
    };
    let Some(mut kit) = finder.kit("volta", &folder) else {
        return;
    };
    if finder.add(&mut kit, "tools/image") && finder.add(&mut kit, "bin") {
        for part in ["tools/user", "layout.v4"] {
            finder.add(&mut kit, part);
        }
        kit.add_to_path("bin");
        let root = kit.root().to_owned();
        kit.set("VOLTA_HOME", &root);
    }
    finder.keep(kit);
}

fn pyenv(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("PYENV_ROOT", &[".pyenv"]) else {
        return;
    };
    let Some(kit) = finder.kit("pyenv", &folder) else {
        return;
    };
    let global = requested_versions(&kit.root().join("version"), "");
    let versions = kit.root().join("versions");
    let version = finder.version(&versions, &[(".python-version", "")], global);
    if let Some(version) = version {
        let mut kit = kit.with_version(&version);
        finder.add_installation(&mut kit, &format!("versions/{version}"));
        finder.keep(kit);
    }
}

/// Adds the program, and the interpreters that it installed.
fn uv(finder: &mut Finder<'_>) {
    if let Some(folder) = finder.folder("UV_INSTALL_DIR", &[".local/bin"])
        && let Some(mut kit) = finder.kit("uv", &folder)
    {
        if finder.add_program(&mut kit, "uv") {
            finder.add_program(&mut kit, "uvx");
            kit.add_to_path(".");
        }
        finder.keep(kit);
    }
    let pythons = finder.folder("UV_PYTHON_INSTALL_DIR", &[".local/share/uv/python"]);
    if let Some(folder) = pythons
        && let Some(mut kit) = finder.kit("uv python", &folder)
    {
        let version = finder.version(&folder, &[], Vec::new());
        let Some(version) = version else {
            return;
        };
        for name in names(kit.root()) {
            for part in ["bin", "lib", "include", "share"] {
                finder.add(&mut kit, &format!("{name}/{part}"));
            }
        }
        let root = kit.root().to_owned();
        kit.set("UV_PYTHON_INSTALL_DIR", &root);
        kit.add_to_path(&format!("{version}/bin"));
        let kit = kit.with_version(version);
        finder.keep(kit);
    }
}

/// Adds one program in `bin` and links to it.
fn single(finder: &mut Finder<'_>, name: &'static str, variables: &[&str], defaults: &[&str]) {
    let named = variables
        .iter()
        .find_map(|variable| finder.folder(variable, &[]));
    let Some(folder) = named.or_else(|| finder.folder("", defaults)) else {
        return;
    };
    let Some(mut kit) = finder.kit(name, &folder) else {
        return;
    };
    if finder.add_program(&mut kit, &format!("bin/{name}")) {
        // `bunx` is a link to `bun`.
        finder.add_program(&mut kit, &format!("bin/{name}x"));
        kit.add_to_path("bin");
    }
    finder.keep(kit);
}

fn pnpm(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("PNPM_HOME", &[".local/share/pnpm"]) else {
        return;
    };
    let Some(mut kit) = finder.kit("pnpm", &folder) else {
        return;
    };
    if finder.add_program(&mut kit, "pnpm") {
        kit.add_to_path(".");
    }
    finder.keep(kit);
}

/// Adds the toolchain, and the programs that `go install` built.
fn go(finder: &mut Finder<'_>) {
    let known = || Some(Path::new("/usr/local/go").to_owned()).filter(|folder| folder.is_dir());
    if let Some(folder) = finder.folder("GOROOT", &[]).or_else(known)
        && let Some(mut kit) = finder.kit("go", &folder)
    {
        if kit.root().join("bin/go").is_file() {
            finder.add_installation(&mut kit, ".");
            for part in ["src", "pkg"] {
                finder.add(&mut kit, part);
            }
        }
        finder.keep(kit);
    }
    if let Some(folder) = finder.folder("GOPATH", &["go"])
        && let Some(mut kit) = finder.kit("go programs", &folder)
    {
        if finder.add(&mut kit, "bin") {
            kit.add_to_path("bin");
        }
        finder.keep(kit);
    }
}
