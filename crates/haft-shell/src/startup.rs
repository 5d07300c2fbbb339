//! The files that shells read when they start, by their names in a home folder.

/// What bash, zsh, ksh and the shells that read `.profile` run when they start or end: whoever writes one of these runs a
/// program the next time somebody opens a terminal (bash(1) "INVOCATION", zsh(1) "STARTUP/SHUTDOWN FILES", ksh(1)).
pub const STARTUP_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
];
