//! `Authority`: vouches for haft as the hosts of credentials and of judged requests, in jails alone. Its key exists in the memory of this process only.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use haft::clock;
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Seconds in a year of the Gregorian calendar, on average.
const YEAR: u64 = 31_556_952;
/// The only protocol that is offered: what passes is read request by request.
const HTTP_1: &[u8] = b"http/1.1";

/// Maximum number of hosts whose certificates are kept; with more, they are made again. Rules for requests at any host concern all that a
/// command asks for.
const MAX_SERVERS: usize = 256;

/// A certificate authority of this process, and what it vouched for.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
    servers: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes an authority with a new key.
    pub(super) fn new() -> Result<Self, String> {
        let made = || -> Result<_, rcgen::Error> {
            let mut params = dated(Vec::new())?;
            let name = &mut params.distinguished_name;
            name.push(DnType::CommonName, "haft, for commands in its jail");
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let key = KeyPair::generate()?;
            CertifiedIssuer::self_signed(params, key)
        };
        let issuer = made().map_err(|error| error.to_string())?;
        Ok(Self {
            pem: issuer.pem(),
            issuer,
            servers: Mutex::default(),
        })
    }

    /// Returns its certificate as PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the setup of a server that is this host to a jail.
    pub(super) fn server(&self, host: &str) -> Result<Arc<ServerConfig>, String> {
        let mut servers = self.servers.lock();
        if let Some(known) = servers.get(host) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.make_server(host)?);
        if servers.len() >= MAX_SERVERS {
            servers.clear();
        }
        servers.insert(host.to_owned(), Arc::clone(&made));
        Ok(made)
    }

    fn make_server(&self, host: &str) -> Result<ServerConfig, String> {
        let certified = || -> Result<_, rcgen::Error> {
            let host = host.trim_matches(['[', ']']);
            let mut params = dated(vec![host.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, host);
            params.is_ca = IsCa::ExplicitNoCa;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            let key = KeyPair::generate()?;
            let certificate = params.signed_by(&key, &self.issuer)?;
            Ok((certificate.der().clone(), key.serialize_der()))
        };
        let (certificate, key) = certified().map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?;
        let config = config
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let mut config = config.map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(config)
    }
}

/// Returns the parameters of a certificate for these names that is valid now, also on a clock that is a year late.
fn dated(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let now = clock::wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    let year = 1970 + i32::try_from(now.as_secs() / YEAR).unwrap_or_default();
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + 2, 1, 1);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::Authority;

    #[test]
    fn each_process_has_an_authority_of_its_own() {
        let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        assert_ne!(one.pem(), other.pem());
        assert!(one.pem().starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!one.pem().contains("PRIVATE"));
        for host in ["example.com", "192.0.2.1", "[2001:db8::1]"] {
            assert!(one.server(host).is_ok(), "{host}");
        }
        assert!(!format!("{one:?}").contains("key"));
    }
}
