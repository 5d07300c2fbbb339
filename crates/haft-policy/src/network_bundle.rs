//! `NetworkBundle`: the package registries and services that rules name by one word.

/// A package registry or service: hosts that are only useful together, and the programs that connect to them.
#[derive(Debug, PartialEq, Eq)]
pub struct NetworkBundle {
    /// Its name in rules. It cannot be a public host, since it has no dot.
    pub name: &'static str,
    /// Its hosts, in lower case.
    pub hosts: &'static [&'static str],
    /// The programs that connect to its hosts by themselves.
    pub(crate) programs: &'static [&'static str],
}

/// All bundles that rules can name.
pub(crate) const BUNDLES: &[NetworkBundle] = &[
    NetworkBundle {
        name: "npm",
        hosts: &["registry.npmjs.org", "registry.yarnpkg.com"],
        programs: &[
            "npm", "npx", "pnpm", "pnpx", "yarn", "corepack", "bun", "bunx",
        ],
    },
    NetworkBundle {
        name: "pypi",
        hosts: &["pypi.org", "files.pythonhosted.org"],
        programs: &["pip", "pipx", "uv", "uvx", "poetry", "pdm", "hatch"],
    },
    NetworkBundle {
        name: "crates",
        hosts: &["crates.io", "index.crates.io", "static.crates.io"],
        programs: &["cargo"],
    },
    NetworkBundle {
        name: "go",
        hosts: &["proxy.golang.org", "sum.golang.org"],
        programs: &["go"],
    },
    NetworkBundle {
        name: "debian",
        hosts: &["deb.debian.org", "security.debian.org"],
        programs: &["apt", "apt-get"],
    },
    NetworkBundle {
        name: "github",
        hosts: &[
            "github.com",
            "api.github.com",
            "codeload.github.com",
            "raw.githubusercontent.com",
            "objects.githubusercontent.com",
            "release-assets.githubusercontent.com",
        ],
        programs: &[],
    },
];

impl NetworkBundle {
    /// Returns the bundle with this host, given in lower case.
    pub fn of_host(host: &str) -> Option<&'static Self> {
        BUNDLES.iter().find(|bundle| bundle.hosts.contains(&host))
    }
}
