//! Compiles the library that locks a script's process, for a Python to load.

use std::env;
use std::error::Error;
use std::path::PathBuf;

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler"
)]
fn main() -> Result<(), Box<dyn Error>> {
    for file in ["src/lockdown/library.rs", "src/lockdown/lock.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let missing = |name: &str| format!("cargo sets no {name}");
    let rustc = env::var_os("RUSTC").ok_or_else(|| missing("RUSTC"))?;
    let target = env::var("TARGET")?;
    let library = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| missing("OUT_DIR"))?);
    let mut command = std::process::Command::new(rustc);
    command
        .args(["--edition=2024", "--crate-name=haft_lockdown"])
        .args(["--crate-type=cdylib", "--target", &target])
        .args(["-Cpanic=abort", "-Copt-level=2", "-Clto", "-Cstrip=symbols"])
        .args(["-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles"])
        .args(["-Clink-arg=-Wl,--no-undefined", "-o"])
        .arg(library.join("lockdown.so"))
        .arg("src/lockdown/library.rs");
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("-Clinker=");
        option.push(linker);
        command.arg(option);
    }
    if command.status()?.success() {
        Ok(())
    } else {
        Err("the library of locks does not compile".into())
    }
}
