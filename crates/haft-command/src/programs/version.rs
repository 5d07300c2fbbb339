//! Programs of which nothing is known but that `--version`, and a shorter word for it, runs nothing that a workspace names.

use haft_shell::AsWord as _;

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(
    &[
        "clang", "cmake", "curl", "docker", "g++", "gcc", "java", "less", "make", "node", "npm",
        "perl", "php", "python", "python3", "ruby", "wget",
    ],
    meaning,
)
.versioned();

/// Returns the other words that make the program print its version and end.
///
/// `cargo`, `rustc`, `go`, `yarn` and `pnpm` are missing: a file of the workspace names the version that starts, which may be a program of it.
fn spellings(name: &str) -> &'static [&'static str] {
    match name {
        "node" | "npm" | "perl" | "php" | "ruby" | "docker" | "make" => &["-v"],
        "python" | "python3" => &["-V", "-VV"],
        "curl" | "wget" | "less" => &["-V"],
        "java" => &["-version"],
        _ => &[],
    }
}

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    match call.words {
        [word] if word.is_known() && spellings(call.name).contains(&word.text) => print_words(call),
        _ => CommandMeaning::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn version_means_what_its_words_say() {
        check(&[
            ("python3 --version", "prints words"),
            ("python3 --version x", "unknown"),
            ("node -v", "prints words"),
            ("node -v x", "unknown"),
            ("node -r ./x -v", "unknown"),
            ("python3 -v", "unknown"),
            ("python3 -V", "prints words"),
            ("java -version", "prints words"),
            ("curl -v", "unknown"),
            ("cargo -V", "unknown"),
            ("xargs node -v", "prints words, unknown"),
            ("xargs make --version", "prints words, unknown"),
            ("make", "unknown"),
            ("/usr/bin/make --version", "prints words, unknown"),
        ]);
    }
}
