//! Programs of which nothing is known but that `--version` runs nothing that a workspace names.

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

fn meaning(_: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning::unknown()
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn version_means_what_its_words_say() {
        check(&[
            ("python3 --version", "prints words"),
            ("python3 --version x", "unknown"),
            ("xargs make --version", "prints words, unknown"),
            ("make", "unknown"),
            ("/usr/bin/make --version", "prints words, unknown"),
        ]);
    }
}
