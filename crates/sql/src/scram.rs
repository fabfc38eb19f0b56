//! SCRAM-SHA-256 (RFC 5802, RFC 7677): verifiers as PostgreSQL stores them, and the server's side of the
//! exchange.

use base::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// As many as `scram_iterations` says if nothing is said.
const ITERATIONS: u32 = 4096;

/// A stored password: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
#[derive(Clone, Debug)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key length will do");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// A password as it is hashed: what looks the same is the same (SASLprep, RFC 4013). One that must not be, by that, is taken as it is, as
/// PostgreSQL and its clients take it.
fn prepared(password: &str) -> Cow<'_, str> {
    match stringprep::saslprep(password) {
        Ok(text) if !text.is_empty() => text,
        _ => Cow::Borrowed(password),
    }
}

impl Verifier {
    /// A verifier for `password` with a random salt.
    pub fn new(password: &str, iterations: u32) -> Verifier {
        Verifier::with_salt(password, &rand::random::<[u8; 16]>(), iterations)
    }

    fn with_salt(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let mut salted = [0u8; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(prepared(password).as_bytes(), salt, iterations, &mut salted);
        let client_key = hmac(&salted, &[b"Client Key"]);
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| BASE64.decode(text).ok()?.try_into().ok();
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }

    /// The stored form.
    pub fn to_text(&self) -> String {
        format!(
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            BASE64.encode(&self.salt),
            BASE64.encode(self.stored_key),
            BASE64.encode(self.server_key)
        )
    }

    /// Is it this password's?
    pub fn accepts(&self, password: &str) -> bool {
        Verifier::with_salt(password, &self.salt, self.iterations).stored_key == self.stored_key
    }

    /// A verifier that no password matches, for roles that do not exist. Who asks learns nothing if the role's salt is always the same one;
    /// nor by the time it takes: its keys are made of nothing.
    pub fn nobody(salt: &[u8]) -> Verifier {
        Verifier {
            iterations: ITERATIONS,
            salt: salt.to_vec(),
            stored_key: rand::random(),
            server_key: rand::random(),
        }
    }
}

/// The server's side of one exchange.
pub struct Exchange {
    verifier: Verifier,
    client_first_bare: String,
    server_first: String,
    nonce: String,
    /// What the client's last message must repeat: its choice of binding, and what it binds to.
    channel_binding: Vec<u8>,
}

/// How an exchange is bound to the connection below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Not: the connection has nothing to bind to.
    Impossible,
    /// Not, though the server offered it.
    Declined,
    /// To the hash of the server's certificate (`tls-server-end-point`).
    EndPoint(Vec<u8>),
}

/// The value of attribute `name` in a comma-separated SCRAM message.
fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

impl Exchange {
    /// Takes the client's first message; what to answer is [`Exchange::server_first`].
    ///
    /// # Errors
    /// `08P01` when it is not a SCRAM message.
    pub fn begin(verifier: Verifier, client_first: &[u8], binding: Binding) -> Result<Exchange> {
        let malformed = || base::err!(PROTOCOL_VIOLATION, "malformed SCRAM message");
        let message = std::str::from_utf8(client_first).map_err(|_| malformed())?;
        let mut parts = message.splitn(3, ',');
        let (flag, authzid, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(authzid), Some(bare)) = (flag, authzid, bare) else {
            return Err(malformed());
        };
        let mut channel_binding = format!("{flag},{authzid},").into_bytes();
        match (&binding, flag) {
            (Binding::EndPoint(hash), "p=tls-server-end-point") => {
                channel_binding.extend_from_slice(hash);
            }
            (Binding::EndPoint(_), "n" | "y") => bail!(
                PROTOCOL_VIOLATION,
                "client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data"
            ),
            (Binding::EndPoint(_), _) => {
                bail!(PROTOCOL_VIOLATION, "unsupported SCRAM channel-binding type \"{flag}\"")
            }
            // The client thinks that the server cannot, which was told it can: somebody in between struck it out.
            (Binding::Declined, "y") => bail!(
                INVALID_AUTHORIZATION_SPECIFICATION,
                "SCRAM channel binding negotiation error"
            ),
            (_, "n" | "y") => {}
            _ => bail!(
                PROTOCOL_VIOLATION,
                "client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data"
            ),
        }
        let client_nonce = attribute(bare, "r").ok_or_else(malformed)?;
        let nonce = format!("{client_nonce}{}", BASE64.encode(rand::random::<[u8; 18]>()));
        let salt = BASE64.encode(&verifier.salt);
        Ok(Exchange {
            server_first: format!("r={nonce},s={salt},i={}", verifier.iterations),
            client_first_bare: bare.to_owned(),
            channel_binding,
            nonce,
            verifier,
        })
    }

    /// The server's first message.
    pub fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Takes the client's final message: the server's final one if the password was right.
    ///
    /// # Errors
    /// `08P01` when it is not a SCRAM message.
    pub fn finish(&self, client_final: &[u8]) -> Result<Option<String>> {
        let malformed = || base::err!(PROTOCOL_VIOLATION, "malformed SCRAM message");
        let message = std::str::from_utf8(client_final).map_err(|_| malformed())?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(malformed)?;
        let proof: [u8; 32] =
            BASE64.decode(proof).ok().and_then(|p| p.try_into().ok()).ok_or_else(malformed)?;
        let binding = attribute(without_proof, "c").ok_or_else(malformed)?;
        if BASE64.decode(binding).ok().as_deref() != Some(self.channel_binding.as_slice()) {
            if self.channel_binding.starts_with(b"p=") {
                bail!(INVALID_AUTHORIZATION_SPECIFICATION, "SCRAM channel binding check failed");
            }
            bail!(
                PROTOCOL_VIOLATION,
                "unexpected SCRAM channel-binding attribute in client-final-message"
            );
        }
        if attribute(without_proof, "r") != Some(self.nonce.as_str()) {
            bail!(PROTOCOL_VIOLATION, "invalid SCRAM response");
        }
        let auth: [&[u8]; 5] = [
            self.client_first_bare.as_bytes(),
            b",",
            self.server_first.as_bytes(),
            b",",
            without_proof.as_bytes(),
        ];
        let signature = hmac(&self.verifier.stored_key, &auth);
        let mut client_key = [0u8; 32];
        for (out, (p, s)) in client_key.iter_mut().zip(proof.iter().zip(signature)) {
            *out = p ^ s;
        }
        let right = <[u8; 32]>::from(Sha256::digest(client_key)) == self.verifier.stored_key;
        let server = hmac(&self.verifier.server_key, &auth);
        Ok(right.then(|| format!("v={}", BASE64.encode(server))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's side, written from the RFC.
    fn client(exchange: &Exchange, password: &str, bare: &str) -> String {
        let first = exchange.server_first();
        let salt = BASE64.decode(attribute(first, "s").unwrap()).unwrap();
        let verifier = Verifier::with_salt(password, &salt, ITERATIONS);
        let mut salted = [0u8; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, ITERATIONS, &mut salted);
        let key = hmac(&salted, &[b"Client Key"]);
        let last = format!("c=biws,r={}", attribute(first, "r").unwrap());
        let message = format!("{bare},{first},{last}");
        let signature = hmac(&verifier.stored_key, &[message.as_bytes()]);
        let proof: Vec<u8> = key.iter().zip(signature).map(|(k, s)| k ^ s).collect();
        format!("{last},p={}", BASE64.encode(proof))
    }

    #[test]
    fn the_right_password_is_let_in_and_no_other() {
        let stored = Verifier::new("secret", ITERATIONS).to_text();
        let verifier = Verifier::parse(&stored).unwrap();
        let exchange = Exchange::begin(verifier, b"n,,n=,r=abc", Binding::Impossible).unwrap();
        let good = client(&exchange, "secret", "n=,r=abc");
        assert!(exchange.finish(good.as_bytes()).unwrap().unwrap().starts_with("v="));
        let bad = client(&exchange, "Secret", "n=,r=abc");
        assert!(exchange.finish(bad.as_bytes()).unwrap().is_none());
        assert!(exchange.finish(b"rubbish").is_err());
    }

    #[test]
    fn what_looks_the_same_is_the_same_password() {
        for (given, hashed) in [
            ("secret\t", "secret\t"),
            // A soft hyphen is nothing, a no-break space is a space, a Roman numeral is its letters.
            ("I\u{ad}X", "IX"),
            ("a\u{a0}b", "a b"),
            ("\u{2168}", "IX"),
            ("e\u{301}", "\u{e9}"),
            // Not to be: a control character, right and left in one, what Unicode 3.2 does not know, and nothing at all.
            ("\u{e9}\u{7}", "\u{e9}\u{7}"),
            ("\u{627}1", "\u{627}1"),
            ("\u{221}\u{aa}", "\u{221}\u{aa}"),
            ("\u{ad}", "\u{ad}"),
        ] {
            assert_eq!(prepared(given), hashed, "{given:?}");
        }
        let verifier = Verifier::new("\u{2168}\u{e9}", 1);
        assert!(verifier.accepts("I\u{ad}Xe\u{301}") && !verifier.accepts("IXe"));
    }
}
