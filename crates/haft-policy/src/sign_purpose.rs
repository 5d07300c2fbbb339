//! The purposes of logins as effects and rules write them: `https:HOST`, `ssh:HOST:PORT`, `git`.

/// The kinds of purposes that name a host, with the port that is meant if they name none.
pub(crate) const OF_HOSTS: [(&str, u16); 2] = [("https", 443), ("ssh", 22)];
/// Splits `KIND:HOST` or `KIND:HOST:PORT`.
pub(crate) fn parts(text: &str) -> Option<(&str, &str, Option<u16>)> {
    let (kind, host) = text.split_once(':')?;
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => Some((kind, host, Some(port.parse().ok()?))),
        _ => Some((kind, host, None)),
    }
}

/// Returns the host and port that a purpose names, if it names one.
pub(crate) fn place_of(purpose: &str) -> Option<(&str, u16)> {
    let (kind, host, port) = parts(purpose)?;
    let usual = OF_HOSTS.iter().find(|(name, _)| *name == kind)?.1;
    (host != "?").then_some((host, port.unwrap_or(usual)))
}
