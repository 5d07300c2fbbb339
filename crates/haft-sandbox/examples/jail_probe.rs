//! Prints how strong the jail is here, and runs a command line in it: `jail_probe [LINE [WORKSPACE]]`.

use std::io::Write;

use haft_sandbox::{CommandSpec, Config, Mounts, PathGuard, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    haft_sandbox::enter();
    let mut words = std::env::args().skip(1);
    let line = words.next();
    let workspace = words
        .next()
        .map_or_else(std::env::current_dir, |path| Ok(path.into()))?;
    let mut out = std::io::stdout().lock();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = Config {
            detect_interpreters: true,
            places: haft_sandbox::Places::declared([], []),
            ..Config::default()
        };
        let sandbox = Sandbox::new(config);
        let probe = sandbox.probe().await;
        writeln!(out, "{}", probe.detail())?;
        for missing in &probe.missing {
            writeln!(out, "missing: {missing}")?;
        }
        let Some(line) = line else { return Ok(()) };
        let mut mounts = Mounts::workspace(&workspace);
        mounts.guards = vec![
            PathGuard::protect_dir(".git").at_any_depth(),
            PathGuard::protect_file("haft.toml"),
            PathGuard::protect_dir(".agents/skills"),
            PathGuard::hide_dir(".haft"),
            PathGuard::hide_file("secret.txt"),
        ];
        let running = sandbox
            .start(CommandSpec::line(&line, &workspace).with_mounts(mounts))
            .await?;
        let exit = running.wait().await;
        write!(out, "{}", running.stdout().text(0, 1 << 20).text)?;
        write!(out, "{}", running.stderr().text(0, 1 << 20).text)?;
        writeln!(out, "{exit:?}")?;
        Ok(())
    })
}
