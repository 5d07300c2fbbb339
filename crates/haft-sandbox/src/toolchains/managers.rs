//! The managers of many tools: asdf, mise and sdkman.

use super::finder::{Finder, ToolchainBuilder, names, requested_versions};

/// Maximum number of tools per manager.
const MOST_TOOLS: usize = 32;
/// The parts of a Java installation in addition to those of every installation.
const JAVA: &[&str] = &["conf", "jmods"];
/// The additional parts of Java tools.
const JAVA_TOOLS: &[&str] = &["boot", "init.d"];

pub(super) fn find(finder: &mut Finder<'_>) {
    if let Some(folder) = finder.folder("ASDF_DATA_DIR", &[".asdf"])
        && let Some(kit) = finder.kit("asdf", &folder)
    {
        installs(finder, kit, &[".tool-versions"]);
    }
    if let Some(folder) = finder.folder("MISE_DATA_DIR", &[".local/share/mise"])
        && let Some(kit) = finder.kit("mise", &folder)
    {
        let files = ["mise.toml", ".mise.toml", ".tool-versions"];
        installs(finder, kit, &files);
    }
    sdkman(finder);
}

/// Adds `installs/TOOL/VERSION`, one version of each tool. The programs that they put on `PATH` themselves consult the manager,
/// whose settings no jail shows.
fn installs(finder: &mut Finder<'_>, mut kit: ToolchainBuilder, files: &[&str]) {
    let installs = kit.root().join("installs");
    for tool in names(&installs).into_iter().take(MOST_TOOLS) {
        let files: Vec<_> = files.iter().map(|file| (*file, tool.as_str())).collect();
        let home = finder.search.home.clone();
        let config = [".tool-versions", ".config/mise/config.toml"];
        let global = home
            .iter()
            .flat_map(|home| config.map(|file| home.join(file)));
        let global = global
            .flat_map(|file| requested_versions(&file, &tool))
            .collect();
        if let Some(version) = finder.version(&installs.join(&tool), &files, global) {
            let folder = format!("installs/{tool}/{version}");
            finder.add_installation(&mut kit, &folder);
            add_java(finder, &mut kit, &tool, &folder);
        }
    }
    finder.keep(kit);
}

fn sdkman(finder: &mut Finder<'_>) {
    let Some(folder) = finder.folder("SDKMAN_DIR", &[".sdkman"]) else {
        return;
    };
    let Some(mut kit) = finder.kit("sdkman", &folder) else {
        return;
    };
    let candidates = kit.root().join("candidates");
    for tool in names(&candidates).into_iter().take(MOST_TOOLS) {
        let versions = candidates.join(&tool);
        // `current` is a symbolic link to the version in use.
        let current = versions.join("current").canonicalize().ok();
        let current = current.filter(|path| path.parent() == Some(&*versions));
        let current = current.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let version = finder.version(
            &versions,
            &[(".sdkmanrc", &tool)],
            current.into_iter().collect(),
        );
        if let Some(version) = version {
            let folder = format!("candidates/{tool}/{version}");
            finder.add_installation(&mut kit, &folder);
            add_java(finder, &mut kit, &tool, &folder);
        }
    }
    finder.keep(kit);
}

fn add_java(finder: &mut Finder<'_>, kit: &mut ToolchainBuilder, tool: &str, folder: &str) {
    let parts = match tool {
        "java" => JAVA,
        "gradle" | "maven" => JAVA_TOOLS,
        _ => return,
    };
    for part in parts {
        finder.add(kit, &format!("{folder}/{part}"));
    }
    if tool == "java" {
        let home = kit.root().join(folder);
        kit.set("JAVA_HOME", home);
    }
}
