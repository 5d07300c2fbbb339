//! `network.proxy`: the proxy for haft's own requests, from settings.

#[cfg(feature = "s3")]
use std::sync::Arc;

#[cfg(feature = "s3")]
use haft_builtins::web::http::Http;
use haft_builtins::web::upstream::{UpstreamError, UpstreamProxy};
#[cfg(feature = "s3")]
use haft_store::artifacts::Dial;

use crate::config::Settings;
use crate::problem::Problem;

/// The variables that other programs read the proxy from.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Returns the proxy, if the settings name one.
///
/// # Errors
/// The URL is not that of a proxy, the settings contain its password in plain text, or an entry of `network.no_proxy` is not a host.
pub(crate) fn upstream(settings: &Settings) -> Result<Option<UpstreamProxy>, Problem> {
    let Some(entry) = settings.entry(&["network", "proxy"]) else {
        return Ok(None);
    };
    let url = entry.value.as_str().unwrap_or_default();
    if url.is_empty() {
        return Ok(None);
    }
    let written = entry.written.as_str().unwrap_or_default();
    if has_password(written) {
        return Err(wrong(
            "network.proxy",
            "its password is in the settings in plain text",
        )
        .advise(
            "write http://USER:${env:PROXY_PASSWORD}@HOST:PORT, or ${file:PATH} in its place",
        ));
    }
    let direct = settings.items("network.no_proxy");
    let direct = direct.iter().filter_map(|(value, _)| value.as_str());
    let proxy = UpstreamProxy::new(url, direct).map_err(|error| match error {
        UpstreamError::Direct { .. } => wrong("network.no_proxy", &error.to_string()),
        // Neither the value nor its line is shown, since the value may contain a password.
        _ => wrong("network.proxy", &error.to_string())
            .advise("write http://HOST:PORT or https://HOST:PORT, or remove it"),
    })?;
    Ok(Some(proxy))
}

fn wrong(key: &str, why: &str) -> Problem {
    Problem::settings(format!("`{key}`: {why}"))
}

/// Returns whether a URL contains a password in plain text instead of a reference such as `${env:NAME}`.
fn has_password(written: &str) -> bool {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let Some((login, _)) = rest.rsplit_once('@') else {
        return false;
    };
    // References contain colons of their own: only the text outside them is checked.
    let (mut plain, mut rest) = (String::new(), login);
    while let Some((before, after)) = rest.split_once("${") {
        plain.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain
        .split_once(':')
        .is_some_and(|(_, password)| !password.is_empty())
}

/// Returns the variable that names a proxy, which haft does not use by itself.
pub(crate) fn unused_variable(is_set: impl Fn(&str) -> bool) -> Option<&'static str> {
    PROXY_VARIABLES.into_iter().find(|name| is_set(name))
}

/// Returns what opens a bucket's connections through the proxy; `None` if there is no proxy.
#[cfg(feature = "s3")]
pub(crate) fn dial(settings: &Settings) -> Result<Option<Arc<dyn Dial>>, Problem> {
    let proxy = upstream(settings)?;
    Ok(proxy.map(|proxy| Arc::new(Http::trusted().with_upstream(Some(proxy))) as Arc<dyn Dial>))
}

#[cfg(test)]
mod tests {
    use super::{has_password, upstream};
    use crate::config::Settings;

    #[test]
    fn a_password_is_seen_beside_whatever_references_stand_there() {
        for (login, expect) in [
            ("ann", false),
            ("ann:", false),
            ("ann:hush", true),
            ("ann:${env:PW}", false),
            ("ann:hush${env:EMPTY}", true),
            ("ann:${env:EMPTY}hush", true),
            ("${env:USER}:hush", true),
            ("${env:USER}:${file:pw}", false),
            ("${env:LOGIN}", false),
        ] {
            let url = format!("http://{login}@proxy.example:3128");
            assert_eq!(has_password(&url), expect, "{url}");
        }
    }

    #[test]
    fn the_proxy_of_settings_is_taken_and_its_password_never_shown() {
        let none = Settings::of_options(&[]).unwrap();
        assert!(upstream(&none).unwrap().is_none());
        let off = Settings::of_options(&["network.proxy="]).unwrap();
        assert!(upstream(&off).unwrap().is_none());
        let some = [
            "network.proxy=http://ann@proxy.example:3128",
            "network.no_proxy=[\"10.0.0.0/8\"]",
        ];
        let proxy = upstream(&Settings::of_options(&some).unwrap())
            .unwrap()
            .unwrap();
        assert_eq!(proxy.address(), "http://proxy.example:3128");
        assert!(!proxy.serves("10.1.2.3", 443) && proxy.serves("example.com", 443));
        for (options, say) in [
            (
                &["network.proxy=http://ann:hush@proxy.example:3128"][..],
                "its password is in the settings in plain text",
            ),
            (&["network.proxy=socks5://hush.example"], "neither http://"),
            (
                &[
                    "network.proxy=http://p.example",
                    "network.no_proxy=[\"a b\"]",
                ],
                "`network.no_proxy`: `a b`",
            ),
        ] {
            let problem = upstream(&Settings::of_options(options).unwrap()).unwrap_err();
            let said = format!("{problem} {:?}", problem.advice());
            assert!(said.contains(say) && !said.contains("hush"), "{said}");
        }
    }
}
