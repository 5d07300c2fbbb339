//! The names of the shell startup files in a home folder.

/// Files that bash, zsh, ksh and the shells that read `.profile` run when they start or end. A program that writes one of them
/// runs code the next time a terminal opens (bash(1) "INVOCATION", zsh(1) "STARTUP/SHUTDOWN FILES", ksh(1)).
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
