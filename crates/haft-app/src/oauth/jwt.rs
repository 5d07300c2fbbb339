//! `Jwt`: parses an access token, verifies its signature, and checks its claims (RFC 7519, RFC 8725, RFC 9068).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::json::scan::scan_object;
use serde::Deserialize;
use serde_json::Value;

use crate::oauth::jwk::{Algorithm, PublicKey};

/// Maximum size of a token, in bytes.
const MAX_BYTES: usize = 16 << 10;
/// Maximum length of a key's name, in bytes.
const MAX_KID: usize = 256;
/// Tolerated difference between clocks, in seconds.
const LEEWAY: i64 = 30;

/// A token whose signature is not verified yet.
#[derive(Debug)]
pub(super) struct Jwt<'t> {
    algorithm: Algorithm,
    kid: Option<String>,
    /// The signed part.
    signed: &'t str,
    claims: String,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct JwtHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'t> Jwt<'t> {
    /// Parses a token; returns why it is invalid.
    pub(super) fn parse(token: &'t str) -> Result<Self, String> {
        if token.len() > MAX_BYTES {
            return Err(format!("it is longer than {MAX_BYTES} bytes"));
        }
        let parts: Vec<&str> = token.split('.').collect();
        let [header, claims, signature] = parts.as_slice() else {
            return Err("it is not a signed JWT".to_owned());
        };
        let signed = token.get(..header.len() + 1 + claims.len());
        let header: JwtHeader = serde_json::from_str(&object(header, "header")?)
            .map_err(|_| "its header is not that of a JWT".to_owned())?;
        if header.crit.is_some() {
            return Err("its header has `crit`, and nothing of that is known here".to_owned());
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err("its type is not that of an access token".to_owned());
        }
        let algorithm = Algorithm::of(&header.alg);
        let algorithm = algorithm.ok_or_else(|| "its algorithm is not accepted".to_owned())?;
        if header.kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
            return Err("the name of its key is too long".to_owned());
        }
        let signature = URL_SAFE_NO_PAD.decode(signature);
        Ok(Self {
            algorithm,
            kid: header.kid,
            signed: signed.unwrap_or_default(),
            claims: object(claims, "payload")?,
            signature: signature.map_err(|_| "its signature is not base64url".to_owned())?,
        })
    }

    /// Returns the name of the key that it claims to be signed with, which is only compared, never followed.
    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Returns the algorithm that it claims to be signed with.
    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns its claims if this key signed it.
    pub(super) fn verify(self, key: &PublicKey) -> Result<Claims, String> {
        if !key.signed(self.algorithm, self.signed.as_bytes(), &self.signature) {
            return Err("its signature is wrong".to_owned());
        }
        serde_json::from_str(&self.claims)
            .map_err(|_| "a claim is missing or of the wrong type".to_owned())
    }
}

/// Parses a part as an object, strictly: parsers disagree on the value of a duplicate key.
fn object(part: &str, what: &str) -> Result<String, String> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| format!("its {what} is not base64url of text"))?;
    scan_object(&text).map_err(|error| format!("its {what} is not a JSON object: {error}"))?;
    Ok(text)
}

fn is_access_token(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    matches!(typ.as_str(), "jwt" | "at+jwt" | "application/at+jwt")
}

/// The claims of a token.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMany,
    exp: Seconds,
    nbf: Option<Seconds>,
    /// RFC 8693: names separated by spaces.
    scope: Option<String>,
    /// The form that some issuers use instead.
    scp: Option<OneOrMany>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// A time in seconds since 1970, with or without a fraction.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(i64),
    Fraction(f64),
}

impl Seconds {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float is cut to the nearest second that there is"
    )]
    fn whole(self) -> i64 {
        match self {
            Self::Whole(seconds) => seconds,
            Self::Fraction(seconds) => seconds as i64,
        }
    }
}

impl Claims {
    /// Returns the subject that it was issued for.
    pub(super) fn subject(&self) -> &str {
        &self.sub
    }

    /// Returns its scopes: the words of `scope`, then those of `scp`, which some issuers write as a list.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &str> {
        let written = self.scope.as_deref().unwrap_or_default();
        let others = self.scp.as_ref().map_or(&[][..], OneOrMany::all);
        let others = others.iter().flat_map(|text| text.split_ascii_whitespace());
        written.split_ascii_whitespace().chain(others)
    }

    /// Checks that it was issued by this issuer for this audience, and is valid now.
    pub(super) fn check(&self, issuer: &str, audience: &str, now: i64) -> Result<(), String> {
        if self.iss != issuer {
            return Err("another issuer made it".to_owned());
        }
        if !self.aud.all().iter().any(|one| one == audience) {
            return Err("it was made for another server".to_owned());
        }
        if self.exp.whole().saturating_add(LEEWAY) <= now {
            return Err("it has expired".to_owned());
        }
        let begins = self.nbf.map_or(i64::MIN, Seconds::whole);
        if begins.saturating_sub(LEEWAY) > now {
            return Err("it does not count yet".to_owned());
        }
        Ok(())
    }
}
