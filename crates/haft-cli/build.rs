//! Links the binary with packed relocations where this system's linker writes them and its loader reads them: over a megabyte less.
//!
//! Loaders read them since glibc 2.36. A binary for older systems is built with `HAFT_RELOCATIONS=plain`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The linker's argument.
const PACK: &str = "-Wl,-z,pack-relative-relocs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HAFT_RELOCATIONS");
    let wanted = env::var_os("HAFT_RELOCATIONS").is_none_or(|value| value != "plain");
    let packed = wanted && is_native_linux() && packed_program_runs()?;
    if packed {
        println!("cargo:rustc-link-arg-bins={PACK}");
    }
    let word = if packed { "packed" } else { "plain" };
    println!("cargo:rustc-env=HAFT_RELOCATIONS={word}");
    Ok(())
}

/// Whether the binary is for a Linux with glibc like the one that builds it.
fn is_native_linux() -> bool {
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|set| set == value);
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("TARGET").ok() == env::var("HOST").ok()
}

/// Builds a small program with packed relocations and runs it: an old linker ignores the argument or refuses it, an old loader
/// refuses the program.
fn packed_program_runs() -> Result<bool, Box<dyn Error>> {
    let missing = |name: &str| format!("cargo sets no {name}");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| missing("OUT_DIR"))?);
    let rustc = env::var_os("RUSTC").ok_or_else(|| missing("RUSTC"))?;
    let (source, program) = (folder.join("packed.rs"), folder.join("packed"));
    fs::write(&source, "fn main() {}\n")?;
    let mut arguments: Vec<OsString> = vec![format!("-Clink-arg={PACK}").into(), "-o".into()];
    arguments.extend([program.clone().into(), source.into()]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        arguments.push(option);
    }
    Ok(succeeds(Path::new(&rustc), &arguments)
        && fs::read(&program)?
            .windows(9)
            .any(|bytes| bytes == b".relr.dyn")
        && succeeds(&program, &[]))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler and what it compiled"
)]
fn succeeds(program: &Path, arguments: &[OsString]) -> bool {
    let output = std::process::Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}
