//! The network access of commands, from settings: the mode, its hosts, and the folder for this workspace's packages.

use std::path::PathBuf;
use std::sync::Arc;

use haft_builtins::command::{CommandNetwork, REGISTRIES, packages_of};
use haft_builtins::proxy::{AllowList, Proxy};
use haft_builtins::services::Services;
use haft_sandbox::Places;

use crate::config::Settings;
use crate::config::typed::{SANDBOX_BACKEND, SANDBOX_NETWORK};
use crate::listening::Listeners;
use crate::problem::Problem;
use crate::site::Site;
use crate::upstream::upstream;
use crate::wiring::credentials;

/// Builds the network access of commands.
pub(crate) fn network(
    at: &Site,
    settings: &Settings,
    places: &Places,
) -> Result<CommandNetwork, Problem> {
    let word = settings.get(SANDBOX_NETWORK);
    let word = word.as_str();
    let passthrough = settings.get(SANDBOX_BACKEND) == "passthrough";
    if passthrough && matches!(word, "allow-list" | "install") {
        let what = format!("`sandbox.network = \"{word}\"` needs the jail");
        return Err(Problem::settings(what).advise("remove `sandbox.backend` from the settings"));
    }
    let packages = packages(at);
    let upstream = upstream(settings)?;
    let logins = credentials::logins(at, settings, places)?;
    let proxy = |hosts| {
        let proxy = Proxy::new(hosts);
        let own = Arc::new(Listeners::of(at.home.path()));
        proxy
            .with_upstream(upstream.clone())
            .with_logins(logins.clone())
            .without_own_listeners(own)
    };
    let network = match word {
        "none" => CommandNetwork::default(),
        // Without a jail no connection can be held back; `haft doctor` reports that.
        "ask" if passthrough => CommandNetwork::default(),
        "ask" => {
            // The hosts are allow rules of the policy; here they are only checked.
            allowed(settings, &[])?;
            CommandNetwork::ask(proxy(AllowList::default()))
        }
        "allow-list" => CommandNetwork::allow_list(proxy(allowed(settings, &[])?)),
        "install" => {
            let folder = packages.clone().ok_or_else(|| {
                let what =
                    "there is no folder for packages: neither XDG_CACHE_HOME nor HOME is set";
                Problem::settings(what).advise("set XDG_CACHE_HOME")
            })?;
            CommandNetwork::install(proxy(allowed(settings, REGISTRIES)?), folder)
        }
        "full" => CommandNetwork::full(),
        other => return Err(settings.unavailable("sandbox.network", other)),
    };
    let network = network.with_services(Services::new(at.home.path()));
    Ok(match packages {
        Some(folder) => network.with_packages(folder),
        None => network,
    })
}

/// Combines these hosts with those from the settings; one that can never be reached is an error at its position.
fn allowed(settings: &Settings, built_in: &[&str]) -> Result<AllowList, Problem> {
    let items = settings.items("sandbox.allow_hosts");
    let mut hosts = built_in.to_vec();
    for (value, source) in items {
        let host = value.as_str().unwrap_or_default();
        AllowList::read([host]).map_err(|error| {
            let problem = Problem::settings(format!("`sandbox.allow_hosts`: {error}"))
                .advise("write example.com, *.example.com or example.com:8443");
            match &source.place {
                Some(place) => problem.at(place.clone()),
                None => problem,
            }
        })?;
        hosts.push(host);
    }
    AllowList::read(hosts).map_err(|error| Problem::settings(error.to_string()))
}

/// Returns the folder for this workspace's packages: in the user's cache, since it can be recreated.
pub(crate) fn packages(at: &Site) -> Option<PathBuf> {
    let cache = at.environment.folder("XDG_CACHE_HOME");
    let cache = cache.or_else(|| Some(at.environment.folder("HOME")?.join(".cache")))?;
    Some(packages_of(&cache, &at.workspace))
}
