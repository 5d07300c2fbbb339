//! Which commands show what comes from a network: strangers may have written it.

use crate::started::{StartedCommand, started};

/// Programs that print, or bring into the workspace, what comes from a network.
const ANY: &[&str] = &[
    "aria2c",
    "aws",
    "az",
    "curl",
    "dig",
    "doctl",
    "elinks",
    "flyctl",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "gsutil",
    "heroku",
    "host",
    "http",
    "https",
    "httpie",
    "hub",
    "irssi",
    "kubectl",
    "lftp",
    "links",
    "lynx",
    "mail",
    "mosh",
    "mutt",
    "nc",
    "ncat",
    "netcat",
    "nslookup",
    "openssl",
    "rclone",
    "rsh",
    "s3cmd",
    "scp",
    "sftp",
    "socat",
    "ssh",
    "tea",
    "telnet",
    "tftp",
    "vercel",
    "w3m",
    "wget",
    "whois",
    "xh",
    "youtube-dl",
    "yt-dlp",
];

/// Programs of which some commands do, with these.
const SOME: &[(&str, &[&str])] = &[
    (
        "apt",
        &["install", "update", "download", "changelog", "source"],
    ),
    (
        "apt-get",
        &["install", "update", "download", "changelog", "source"],
    ),
    (
        "brew",
        &["fetch", "info", "install", "search", "update", "upgrade"],
    ),
    (
        "bun",
        &[
            "a", "add", "i", "info", "install", "outdated", "update", "x",
        ],
    ),
    ("bundle", &["add", "install", "outdated", "update"]),
    (
        "cargo",
        &["add", "fetch", "info", "install", "search", "update"],
    ),
    (
        "composer",
        &["install", "require", "search", "show", "update"],
    ),
    ("deno", &["add", "install", "outdated", "update"]),
    (
        "docker",
        &["build", "buildx", "compose", "pull", "run", "search"],
    ),
    ("gem", &["fetch", "info", "install", "search", "update"]),
    (
        "git",
        &[
            "clone",
            "fetch",
            "lfs",
            "ls-remote",
            "pull",
            "remote",
            "submodule",
        ],
    ),
    ("go", &["get", "install", "list", "mod"]),
    (
        "npm",
        &[
            "add", "audit", "ci", "exec", "i", "info", "install", "outdated", "search", "show",
            "update", "view",
        ],
    ),
    ("pip", &["download", "index", "install", "search"]),
    ("pip3", &["download", "index", "install", "search"]),
    ("pipx", &["install", "run", "upgrade"]),
    (
        "pnpm",
        &[
            "add", "audit", "dlx", "i", "info", "install", "outdated", "search", "update", "view",
        ],
    ),
    ("podman", &["build", "pull", "run", "search"]),
    ("poetry", &["add", "install", "search", "update"]),
    ("rustup", &["install", "toolchain", "update"]),
    ("uv", &["add", "lock", "pip", "run", "sync", "tool"]),
    (
        "yarn",
        &[
            "add", "audit", "dlx", "info", "install", "npm", "outdated", "up", "upgrade",
        ],
    ),
];

/// Programs that fetch what they run.
const FETCHING: &[&str] = &["bunx", "npx", "pnpx", "uvx"];

/// Returns the program of a line that shows what comes from a network, as a text for the user; `None` if none is known to. A line that
/// cannot be read may.
pub fn network_reader(line: &str) -> Option<String> {
    let Some(all) = started(line) else {
        return Some("a line that haft cannot read".to_owned());
    };
    all.iter().find_map(reader)
}

fn reader(command: &StartedCommand) -> Option<String> {
    let name = command.name();
    if ANY.contains(&name) || FETCHING.contains(&name) {
        return Some(name.to_owned());
    }
    let (_, some) = SOME.iter().find(|(program, _)| *program == name)?;
    // The value of an option may stand before the command: `git -C a fetch`.
    let mut words = command.words.iter().skip(1);
    let found = words.find(|word| some.contains(&word.as_str()))?;
    Some(format!("{name} {found}"))
}

#[cfg(test)]
mod tests {
    use super::network_reader;

    #[test]
    fn commands_that_show_what_strangers_wrote_are_known() {
        for (line, expect) in [
            ("gh issue view 12", Some("gh")),
            ("cd a && curl -s https://x | jq .", Some("curl")),
            ("bash -c 'wget -qO- x'", Some("wget")),
            ("git -C a pull", Some("git pull")),
            ("timeout 5 npm view left-pad", Some("npm view")),
            ("/usr/bin/gh pr list", Some("gh")),
            ("echo $(gh api x)", Some("gh")),
            ("npm test", None),
            ("git log --oneline", None),
            // It sends.
            ("git push origin", None),
            ("cargo test", None),
            ("make", None),
            ("ls; echo", None),
            ("if", Some("a line that haft cannot read")),
        ] {
            assert_eq!(network_reader(line).as_deref(), expect, "{line}");
        }
    }
}
