//! Public keys of an issuer, and the signatures that each can verify. Only algorithms with public keys are supported: there is no `none`
//! and no `HS…`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

/// The tag of the uncompressed form of a point (SEC 1).
const UNCOMPRESSED: u8 = 4;

/// A signature algorithm (RFC 7518, RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// The kind of key that an algorithm requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// Returns the algorithm of this name; `None` if it is not supported.
    pub(super) fn of(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm)
    }

    fn kind(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                KeyKind::Rsa
            }
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::EdDsa => KeyKind::Ed25519,
        }
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }

    fn point_algorithm(self) -> Option<&'static dyn VerificationAlgorithm> {
        match self {
            Self::Es256 => Some(&ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Some(&ECDSA_P384_SHA384_FIXED),
            Self::EdDsa => Some(&ED25519),
            _ => None,
        }
    }
}

/// A public key.
#[derive(Debug, Clone)]
pub(crate) struct PublicKey {
    /// Its name; `None` if the issuer gives it none.
    pub(super) kid: Option<String>,
    kind: KeyKind,
    /// The only algorithm that it is for, if the issuer names one.
    only: Option<String>,
    /// Modulus and exponent, or the point and nothing.
    parts: (Vec<u8>, Vec<u8>),
}

/// A key as the issuer publishes it.
#[derive(Debug, Deserialize)]
pub(super) struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    /// What the key is for, in other words (RFC 7517, 4.3).
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// Returns the key, if it can verify signatures here.
    pub(super) fn public_key(self) -> Option<PublicKey> {
        if self
            .purpose
            .as_deref()
            .is_some_and(|purpose| purpose != "sig")
        {
            return None;
        }
        let verifies = |all: &Vec<String>| all.iter().any(|operation| operation == "verify");
        if !self.key_ops.as_ref().is_none_or(verifies) {
            return None;
        }
        let (kind, parts) = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => (KeyKind::Rsa, (number(self.n)?, number(self.e)?)),
            ("EC", Some("P-256")) => (
                KeyKind::P256,
                (encode_point(self.x, self.y, 32)?, Vec::new()),
            ),
            ("EC", Some("P-384")) => (
                KeyKind::P384,
                (encode_point(self.x, self.y, 48)?, Vec::new()),
            ),
            ("OKP", Some("Ed25519")) => (KeyKind::Ed25519, (decode_sized(self.x, 32)?, Vec::new())),
            _ => return None,
        };
        Some(PublicKey {
            kid: self.kid,
            kind,
            only: self.alg,
            parts,
        })
    }
}

fn decode_base64(text: Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

fn decode_sized(text: Option<String>, bytes: usize) -> Option<Vec<u8>> {
    decode_base64(text).filter(|found| found.len() == bytes)
}

/// Decodes a number without leading zeros.
fn number(text: Option<String>) -> Option<Vec<u8>> {
    let bytes = decode_base64(text)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    bytes.get(first..).map(<[u8]>::to_vec)
}

fn encode_point(x: Option<String>, y: Option<String>, bytes: usize) -> Option<Vec<u8>> {
    let (x, y) = (decode_sized(x, bytes)?, decode_sized(y, bytes)?);
    Some([&[UNCOMPRESSED][..], &x, &y].concat())
}

impl PublicKey {
    /// Returns whether it verifies signatures of this algorithm.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        let only = self.only.as_deref();
        let named = only.is_none_or(|only| Algorithm::of(only) == Some(algorithm));
        named && self.kind == algorithm.kind()
    }

    /// Returns whether it signed this text.
    pub(super) fn signed(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let (first, second) = (&self.parts.0, &self.parts.1);
        if let Some(parameters) = algorithm.rsa() {
            let key = RsaPublicKeyComponents {
                n: first,
                e: second,
            };
            return key.verify(parameters, text, signature).is_ok();
        }
        let Some(parameters) = algorithm.point_algorithm() else {
            return false;
        };
        let key = UnparsedPublicKey::new(parameters, first);
        key.verify(text, signature).is_ok()
    }
}
