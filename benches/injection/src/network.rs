//! A made-up internet: a network namespace of its own, in which a public address is this process's, and names lead to it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::names::{SERVER, WEB};
use crate::world::World;
use crate::{haft, names, web};

/// Returns a command that runs in new namespaces, as their root.
pub(crate) fn inside(program: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "--"]);
    command.arg(program);
    command
}

/// Whether such namespaces can be had here.
pub(crate) fn is_possible() -> bool {
    let tried = inside(Path::new("ip"))
        .args(["link", "set", "lo", "up"])
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Sets up the network of the namespaces, and serves names, pages and MCP servers until the process ends.
pub(crate) fn build(folder: &Path, world: &Arc<World>) -> io::Result<()> {
    let ip = |words: &[&str]| haft::run(Command::new("ip").args(words));
    ip(&["link", "set", "lo", "up"])?;
    ip(&["addr", "add", &format!("{WEB}/32"), "dev", "lo"])?;
    for (file, text) in [
        ("resolv.conf", format!("nameserver {SERVER}\n")),
        ("hosts", "127.0.0.1 localhost\n".to_owned()),
    ] {
        let own = folder.join(file);
        fs::write(&own, text)?;
        let over = Path::new("/etc").join(file).canonicalize()?;
        haft::run(Command::new("mount").arg("--bind").arg(own).arg(over))?;
    }
    names::serve(Arc::clone(world))?;
    web::serve(world)
}
