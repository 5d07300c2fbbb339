//! `TAKEN_FROM_TREE`: sources, tests and manifests that a tool takes from all of the workspace, with the page that says so.
//!
//! What a tool takes only from its own folders, from the folder that it is started in or from those above it is not here, nor what only
//! counts beside another file of this table. A tool that leaves out what git ignores finds nothing in a build output.

/// What one tool takes.
pub(super) struct TreeSource {
    /// The page on which the tool says what it takes.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the test"))]
    source: &'static str,
    /// The names, as patterns of git.
    pub(super) names: &'static [&'static str],
}

/// The tools, by their names.
pub(super) const TAKEN_FROM_TREE: &[TreeSource] = &[
    // bats: with `-r`, all tests below a folder.
    TreeSource {
        source: "https://bats-core.readthedocs.io/en/stable/usage.html",
        names: &["*.bats"],
    },
    // Bazel and Please: each folder with such a file is a package of `//...`.
    TreeSource {
        source: "https://bazel.build/concepts/build-files",
        names: &["*.bazel", "BUILD", "WORKSPACE", "WORKSPACE.bzlmod"],
    },
    // Buck and Buck2.
    TreeSource {
        source: "https://buck2.build/docs/concepts/buildconfig/",
        names: &["BUCK", "BUCK.v2"],
    },
    // Dart's analyzer: of each folder, with the plugins that it names.
    TreeSource {
        source: "https://dart.dev/tools/analysis",
        names: &["analysis_options.yaml"],
    },
    // .NET's SDKs: compiled, embedded or run, from all folders but `bin` and `obj`; solutions and scripts.
    TreeSource {
        source: "https://learn.microsoft.com/en-us/dotnet/core/project-sdk/overview",
        names: &["*.cs", "*.csx", "*.resx", "*.slnf", "*.slnx", "*.vb"],
    },
    TreeSource {
        source: "https://learn.microsoft.com/en-us/aspnet/core/razor-pages/sdk",
        names: &["*.cshtml", "*.razor", "*.vbhtml"],
    },
    TreeSource {
        source: "https://learn.microsoft.com/en-us/dotnet/core/project-sdk/msbuild-props-desktop",
        names: &["*.xaml"],
    },
    // dune: from all folders but those of `_build`.
    TreeSource {
        source: "https://dune.readthedocs.io/en/stable/reference/files.html",
        names: &["dune", "dune-project"],
    },
    // Go: packages of `./...`, which `go generate` and `go test` run.
    TreeSource {
        source: "https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns",
        names: &["*.go"],
    },
    // Godot's editor: libraries that it loads when it opens the project.
    TreeSource {
        source: "https://docs.godotengine.org/en/stable/tutorials/scripting/gdextension/gdextension_file.html",
        names: &["*.gdextension"],
    },
    // Mill.
    TreeSource {
        source: "https://mill-build.org/mill/large/multi-file-builds.html",
        names: &["*.mill", "*.mill.yaml"],
    },
    // Robot Framework: suites below the folder that it is given.
    TreeSource {
        source: "https://robotframework.org/robotframework/latest/RobotFrameworkUserGuide.html",
        names: &["*.robot"],
    },
    // rust-analyzer: in the workspace's folder and in those directly below, with the macros that it loads.
    TreeSource {
        source: "https://rust-analyzer.github.io/book/non_cargo_based_projects.html",
        names: &["rust-project.json"],
    },
    // Scala's command line: all sources below a folder. sbt and Mill make such files in their own.
    TreeSource {
        source: "https://scala-cli.virtuslab.org/docs/commands/basics",
        names: &["*.sc", "*.scala"],
    },
    // Terragrunt: with `run --all`, all units below the folder, with their hooks.
    TreeSource {
        source: "https://terragrunt.gruntwork.io/docs/features/stacks/",
        names: &["terragrunt.hcl", "terragrunt.stack.hcl"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_names_its_source_and_something() {
        for tool in TAKEN_FROM_TREE {
            assert!(tool.source.starts_with("https://"), "{}", tool.source);
            assert!(!tool.names.is_empty(), "{}", tool.source);
        }
    }
}
