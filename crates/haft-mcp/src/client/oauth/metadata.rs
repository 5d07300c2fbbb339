//! `Discovery`: who authorizes haft at a server: the server's metadata (RFC 9728), and the metadata of the authorization server
//! that it names (RFC 8414, `OpenID` Connect Discovery).

use haft::text::clip;
use http::header::ACCEPT;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::{Host, Url};

use super::challenge::Challenge;
use super::grants::OAuthGrant;
use super::{Fetch, OAuthTerms};

/// Maximum number of authorization servers to consider; the first is used unless the settings name one.
const MAX_SERVERS: usize = 16;
/// The well-known name of a server's metadata.
const RESOURCE: &str = "oauth-protected-resource";
/// Maximum number of scopes to request.
const MAX_SCOPES: usize = 64;

/// A server's metadata.
#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    #[serde(rename = "resource")]
    url: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// An authorization server's metadata.
#[derive(Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    /// Where to revoke tokens (RFC 7009).
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// The result of the discovery.
#[derive(Debug)]
pub(super) struct Discovery {
    /// The server's own name for itself: a token is valid for it only (RFC 8707).
    pub(super) resource: String,
    pub(super) server: AuthorizationServer,
    scopes: Vec<String>,
}

impl Discovery {
    /// Discovers the authorization server of the server at `at`; accepts only `only`, if the settings name one.
    pub(super) async fn of(
        fetch: &dyn Fetch,
        at: &Url,
        challenge: &Challenge,
        only: Option<&str>,
    ) -> Result<Self, String> {
        // A token would be sent to this address.
        checked(at.as_str())?;
        let Some((place, resource)) = resource(fetch, at, challenge).await? else {
            // Before 2025-06-18, a server was its own authorization server.
            let origin = at.origin().ascii_serialization();
            let issuer = choose_server(&[origin], only)?;
            return Ok(Self {
                resource: resource_of(at),
                server: server(fetch, &issuer, at).await?,
                scopes: Vec::new(),
            });
        };
        if !names_resource(&resource.url, &place, at) {
            return Err(format!(
                "{place} says that it is {:?}, which is another server: a token for that one is not sent to {at}",
                clip(&resource.url, 200)
            ));
        }
        let issuer = choose_server(&resource.authorization_servers, only)?;
        Ok(Self {
            server: server(fetch, &issuer, at).await?,
            resource: resource.url,
            scopes: resource.scopes_supported,
        })
    }

    /// Returns the scopes to request: those the server wants, or else those it knows, plus the earlier ones if they were insufficient.
    pub(super) fn scopes(
        &self,
        terms: &OAuthTerms,
        challenge: &Challenge,
        before: Option<&OAuthGrant>,
    ) -> Vec<String> {
        let mut scopes: Vec<String> = match &challenge.scope {
            Some(scope) => scope.split(' ').map(str::to_owned).collect(),
            None => self.scopes.clone(),
        };
        scopes.extend(terms.scopes.iter().cloned());
        if challenge.error.as_deref() == Some("insufficient_scope") {
            scopes.extend(
                before
                    .into_iter()
                    .flat_map(|grant| grant.scopes.iter().cloned()),
            );
        }
        let offline = "offline_access".to_owned();
        if !scopes.is_empty() && self.server.scopes_supported.contains(&offline) {
            scopes.push(offline);
        }
        let mut some: Vec<String> = Vec::new();
        for scope in scopes {
            if !scope.is_empty() && !some.contains(&scope) && some.len() < MAX_SCOPES {
                some.push(scope);
            }
        }
        some
    }
}

/// Returns the server's metadata, and where it lies; `None` if it has none.
async fn resource(
    fetch: &dyn Fetch,
    at: &Url,
    challenge: &Challenge,
) -> Result<Option<(Url, ResourceMetadata)>, String> {
    let mut places = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        places.push(checked(named)?);
    } else {
        places.push(well_known(at, RESOURCE, at.path()));
        places.push(well_known(at, RESOURCE, ""));
    }
    for place in places {
        if let Some(found) = read(fetch, &place).await? {
            return Ok(Some((place, found)));
        }
    }
    Ok(None)
}

/// Returns the authorization server to use: the one in the settings, provided that the server names it too.
fn choose_server(named: &[String], only: Option<&str>) -> Result<String, String> {
    let mut named = named.iter().take(MAX_SERVERS);
    let found = match only {
        Some(only) => named.find(|name| *name == only),
        None => named.next(),
    };
    found.cloned().ok_or_else(|| match only {
        Some(only) => format!(
            "it does not name {only:?}, the only authorization server that settings let haft sign in by (`oauth.issuer`)"
        ),
        None => "it names no authorization server".to_owned(),
    })
}

/// Returns an authorization server's metadata. It must identify itself by the name it was given and support PKCE with S256. `of`
/// is the server that names it.
async fn server(fetch: &dyn Fetch, issuer: &str, of: &Url) -> Result<AuthorizationServer, String> {
    let at = parse_server_address(issuer, of)?;
    let path = at.path().trim_end_matches('/');
    let mut places = vec![
        well_known(&at, "oauth-authorization-server", path),
        well_known(&at, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let mut behind = at.clone();
        behind.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(behind);
    }
    for place in places {
        let Some(server) = read::<AuthorizationServer>(fetch, &place).await? else {
            continue;
        };
        if server.issuer != issuer {
            return Err(format!(
                "the authorization server {:?} calls itself {:?}",
                clip(issuer, 200),
                clip(&server.issuer, 200)
            ));
        }
        if !server
            .code_challenge_methods_supported
            .iter()
            .any(|name| name == "S256")
        {
            return Err(format!(
                "the authorization server {issuer:?} does not offer PKCE with S256"
            ));
        }
        let registration = server.registration_endpoint.as_deref();
        let endpoints = [
            server.authorization_endpoint.as_str(),
            &server.token_endpoint,
        ];
        for endpoint in endpoints.into_iter().chain(registration) {
            parse_server_address(endpoint, of)?;
        }
        return Ok(server);
    }
    Err(format!(
        "nothing is known of the authorization server {:?}",
        clip(issuer, 200)
    ))
}

/// Reads a document; `None` if there is none at this address.
async fn read<T: DeserializeOwned>(fetch: &dyn Fetch, place: &Url) -> Result<Option<T>, String> {
    let mut request = Request::new(Vec::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = place
        .as_str()
        .parse()
        .map_err(|e| format!("{place}: {e}"))?;
    let json = http::HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json);
    let response = fetch.fetch(request).await?;
    match response.status() {
        StatusCode::OK => serde_json::from_slice(response.body())
            .map(Some)
            .map_err(|e| format!("what is at {place} is not understood: {e}")),
        status if status.is_client_error() => Ok(None),
        status => Err(format!("{place} answers HTTP {}", status.as_u16())),
    }
}

fn well_known(at: &Url, name: &str, path: &str) -> Url {
    let mut place = at.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.set_path(&format!(
        "/.well-known/{name}{}",
        path.trim_end_matches('/')
    ));
    place
}

/// Parses an address that a token or a user may be sent to: encrypted or on this machine, and without a login, which can disguise
/// another host's name.
pub(super) fn checked(text: &str) -> Result<Url, String> {
    let shown = || clip(text, 200).into_owned();
    let url = Url::parse(text).map_err(|e| format!("{:?} is not a URL: {e}", shown()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{:?} holds a login", shown()));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here(&url) => Ok(url),
        _ => Err(format!(
            "{:?} is neither https:// nor of this machine",
            shown()
        )),
    }
}

/// Parses an address of the server's authorization server. A remote server must not name an address on this machine.
fn parse_server_address(text: &str, server: &Url) -> Result<Url, String> {
    let url = checked(text)?;
    if is_here(&url) && !is_here(server) {
        return Err(format!(
            "{:?} is of this machine, and the server that names it is not",
            clip(text, 200)
        ));
    }
    Ok(url)
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns a server's address as the resource that a token is for (RFC 8707).
fn resource_of(at: &Url) -> String {
    let mut url = at.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.as_str();
    if url.path() == "/" {
        return text.trim_end_matches('/').to_owned();
    }
    text.to_owned()
}

/// Returns whether metadata at `place` may name itself so for the server at `at`: only as the server's own address or, where the origin's
/// own metadata says it, as the whole origin (RFC 9728, 3.3). What another path of the origin says counts for that path alone.
fn names_resource(resource: &str, place: &Url, at: &Url) -> bool {
    let Ok(named) = Url::parse(resource) else {
        return false;
    };
    let of_origin = *place == well_known(at, RESOURCE, "");
    let path = named.path().trim_end_matches('/');
    named.origin() == at.origin()
        && named.origin().is_tuple()
        && (path == at.path().trim_end_matches('/') || (path.is_empty() && of_origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_the_server_or_for_an_origin_that_says_so() {
        let at = Url::parse("https://a.example/team/mcp").unwrap();
        let [own, root, neighbour] =
            ["/team/mcp", "", "/team"].map(|path| well_known(&at, RESOURCE, path));
        let elsewhere = Url::parse("https://a.example/team/mcp/metadata").unwrap();
        for (place, resource, expect) in [
            (&own, "https://a.example/team/mcp", true),
            (&own, "https://a.example/team/mcp/", true),
            (&root, "https://a.example/team/mcp", true),
            (&elsewhere, "https://a.example/team/mcp", true),
            (&root, "https://a.example", true),
            (&root, "https://A.example:443/", true),
            (&own, "https://a.example", false),
            (&elsewhere, "https://a.example", false),
            (&own, "https://a.example/team", false),
            (&root, "https://a.example/team", false),
            (&neighbour, "https://a.example/team", false),
            (&own, "https://a.example/team/mc", false),
            (&root, "https://a.example/other", false),
            (&root, "http://a.example/", false),
            (&own, "http://a.example/team/mcp", false),
            (&own, "https://a.example:8443/team/mcp", false),
            (&root, "https://evil.example", false),
            (&own, "data:text", false),
            (&own, "team/mcp", false),
        ] {
            assert_eq!(
                names_resource(resource, place, &at),
                expect,
                "{resource} at {place}"
            );
        }
    }

    #[test]
    fn addresses_are_encrypted_or_of_this_machine() {
        for (text, expect) in [
            ("https://a.example/x", true),
            ("http://localhost:3000/x", true),
            ("http://127.0.0.1:1/", true),
            ("http://[::1]/", true),
            ("http://a.example/", false),
            ("http://localhost.evil.example/", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://bank.example@evil.example/", false),
            ("https://:word@evil.example/", false),
            ("x", false),
        ] {
            assert_eq!(checked(text).is_ok(), expect, "{text}");
        }
    }

    #[test]
    fn a_server_elsewhere_names_nothing_on_this_machine() {
        let [here, elsewhere] = ["http://127.0.0.1:8000/mcp", "https://a.example/mcp"]
            .map(|at| Url::parse(at).unwrap());
        for named in [
            "http://localhost:3000/",
            "https://127.0.0.1/",
            "https://[::1]:1/",
        ] {
            assert!(parse_server_address(named, &here).is_ok(), "{named}");
            assert!(parse_server_address(named, &elsewhere).is_err(), "{named}");
        }
        assert!(parse_server_address("https://login.example/", &elsewhere).is_ok());
    }

    #[test]
    fn settings_say_by_whom_haft_signs_in_where_a_server_names_several() {
        let named = ["https://a.example", "https://b.example"].map(str::to_owned);
        for (only, expect) in [
            (None, Some("https://a.example")),
            (Some("https://b.example"), Some("https://b.example")),
            (Some("https://c.example"), None),
        ] {
            assert_eq!(
                choose_server(&named, only).ok().as_deref(),
                expect,
                "{only:?}"
            );
        }
        assert!(choose_server(&[], None).is_err());
    }
}
