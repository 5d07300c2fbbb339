//! Checks that a server's key signed a session: then the session is one with this server.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

use super::wire::WireReader;

/// Whether `signature` is one of `data` by `key`, all as SSH writes them. Certificates, keys in hardware and curves other than those
/// of most servers count as not verified.
pub(super) fn has_signed(key: &[u8], data: &[u8], signature: &[u8]) -> bool {
    verify(key, data, signature).is_some()
}

fn verify(key: &[u8], data: &[u8], signature: &[u8]) -> Option<()> {
    let (mut key, mut signature) = (WireReader(key), WireReader(signature));
    let (kind, algorithm) = (key.string()?, signature.string()?);
    let blob = signature.string()?;
    match kind {
        b"ssh-ed25519" if algorithm == kind => {
            let point = key.string()?;
            UnparsedPublicKey::new(&ED25519, point)
                .verify(data, blob)
                .ok()?;
        }
        b"ecdsa-sha2-nistp256" if algorithm == kind => {
            ecdsa(
                &ECDSA_P256_SHA256_FIXED,
                32,
                key,
                &SignedBytes { data, blob },
            )?;
        }
        b"ecdsa-sha2-nistp384" if algorithm == kind => {
            ecdsa(
                &ECDSA_P384_SHA384_FIXED,
                48,
                key,
                &SignedBytes { data, blob },
            )?;
        }
        b"ssh-rsa" => {
            let parameters = match algorithm {
                b"rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                b"rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                _ => return None,
            };
            let (e, n) = (unsigned(key.string()?), unsigned(key.string()?));
            RsaPublicKeyComponents { n, e }
                .verify(parameters, data, blob)
                .ok()?;
        }
        _ => return None,
    }
    Some(())
}

/// Data and the signature of it, as the algorithm writes it.
struct SignedBytes<'a> {
    data: &'a [u8],
    blob: &'a [u8],
}

/// Checks a signature of two numbers (RFC 5656 §3.1.2), of a key on the curve that it names.
fn ecdsa(
    algorithm: &'static dyn VerificationAlgorithm,
    size: usize,
    mut key: WireReader<'_>,
    signed: &SignedBytes<'_>,
) -> Option<()> {
    let SignedBytes { data, blob } = *signed;
    let _curve = key.string()?;
    let point = key.string()?;
    let mut numbers = WireReader(blob);
    let (r, s) = (unsigned(numbers.string()?), unsigned(numbers.string()?));
    let mut fixed = vec![0; 2 * size];
    let (first, second) = fixed.split_at_mut(size);
    for (number, half) in [(r, first), (s, second)] {
        let start = size.checked_sub(number.len())?;
        half[start..].copy_from_slice(number);
    }
    UnparsedPublicKey::new(algorithm, point)
        .verify(data, &fixed)
        .ok()
}

/// Returns a positive number without the zero before it.
fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

    use super::super::wire::string;
    use super::has_signed;

    fn strings(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().flat_map(|part| string(part)).collect()
    }

    /// Writes half of a signature as a positive number.
    fn number(half: &[u8]) -> Vec<u8> {
        let zero = if half[0] > 127 { &[0][..] } else { &[] };
        [zero, half].concat()
    }

    #[test]
    fn a_session_is_of_the_server_whose_key_signed_it() {
        let random = SystemRandom::new();
        let pair = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
        let key = strings(&[b"ssh-ed25519", pair.public_key().as_ref()]);
        let signature = strings(&[b"ssh-ed25519", pair.sign(b"session").as_ref()]);
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let curve = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let curve = EcdsaKeyPair::from_pkcs8(kind, curve.as_ref(), &random).unwrap();
        let name = b"ecdsa-sha2-nistp256";
        let curve_key = strings(&[name, b"nistp256", curve.public_key().as_ref()]);
        let signed = curve.sign(&random, b"session").unwrap();
        let (r, s) = signed.as_ref().split_at(32);
        let curve_signature = strings(&[name, &strings(&[&number(r), &number(s)])]);
        let long = strings(&[name, &strings(&[&[1; 33], &number(s)])]);
        let renamed = strings(&[b"ssh-rsa", pair.sign(b"session").as_ref()]);
        for (key, data, signature, expect) in [
            (&key, &b"session"[..], &signature, true),
            (&key, b"another", &signature, false),
            (&key, b"session", &renamed, false),
            (&key, b"session", &curve_signature, false),
            (&curve_key, b"session", &curve_signature, true),
            (&curve_key, b"another", &curve_signature, false),
            (&curve_key, b"session", &signature, false),
            (&curve_key, b"session", &long, false),
            (&key, b"session", &Vec::new(), false),
            (&Vec::new(), b"session", &signature, false),
            (&key[..9].to_vec(), b"session", &signature, false),
        ] {
            assert_eq!(
                has_signed(key, data, signature),
                expect,
                "{key:?} {signature:?}"
            );
        }
    }
}
