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
    // Maven Central under both of its names (central.sonatype.org/faq/ssl). Gradle's `mavenCentral()` is the first.
    NetworkBundle {
        name: "maven",
        hosts: &["repo.maven.apache.org", "repo1.maven.org"],
        programs: &["mvn", "mvnw", "mvnd", "gradle", "gradlew", "sbt"],
    },
    // Distributions, which the wrapper downloads, and the plugin portal with the host that it redirects files to.
    NetworkBundle {
        name: "gradle",
        hosts: &[
            "services.gradle.org",
            "downloads.gradle.org",
            "plugins.gradle.org",
            "plugins-artifacts.gradle.org",
        ],
        programs: &["gradle", "gradlew"],
    },
    // The service index and what it names for restoring (learn.microsoft.com/nuget/api/overview), and the CDN of packages.
    NetworkBundle {
        name: "nuget",
        hosts: &["api.nuget.org", "www.nuget.org", "globalcdn.nuget.org"],
        programs: &["dotnet", "nuget", "paket"],
    },
    // The API with the packages, and the compact index that Bundler reads (guides.rubygems.org/rubygems-org-compact-index-api).
    NetworkBundle {
        name: "rubygems",
        hosts: &["rubygems.org", "index.rubygems.org"],
        programs: &["gem", "bundle", "bundler"],
    },
    // Metadata (packagist.org/apidoc). The packages themselves come from where their sources are, mostly `github`.
    NetworkBundle {
        name: "packagist",
        hosts: &["repo.packagist.org", "packagist.org"],
        programs: &["composer"],
    },
    // The repository (hex.pm/docs/mirrors), the API, and the builds of Hex and Rebar that `mix local` downloads.
    NetworkBundle {
        name: "hex",
        hosts: &["repo.hex.pm", "hex.pm", "builds.hex.pm"],
        programs: &["mix", "rebar", "gleam"],
    },
    // The mirror that R offers first, and the master (cran.r-project.org/mirrors.html).
    NetworkBundle {
        name: "cran",
        hosts: &["cloud.r-project.org", "cran.r-project.org"],
        programs: &["R", "Rscript"],
    },
    // `channel_alias` and `default_channels` of conda's settings (docs.conda.io, "Conda configuration").
    NetworkBundle {
        name: "conda",
        hosts: &["conda.anaconda.org", "repo.anaconda.com"],
        programs: &["conda", "mamba", "micromamba", "pixi"],
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
