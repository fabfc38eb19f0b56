//! TLS as libpq has it: `sslmode` and `sslrootcert` of a connection string, and what is asked of a server's certificate.
//!
//! `prefer` (the default) and `require` encrypt without asking who the server is; `verify-ca` wants a certificate that
//! a root of `sslrootcert` vouches for, `verify-full` wants the host's name in it too. As with libpq, `require` with a
//! `sslrootcert` is `verify-ca`, and a certificate that is itself among the roots needs nobody to vouch for it.

use crate::Result;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much TLS is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// None.
    #[default]
    Disable,
    /// Where the server has it.
    Prefer,
    /// In any case.
    Require,
    /// With a certificate that is vouched for.
    VerifyCa,
    /// With one that is vouched for, and of that host.
    VerifyFull,
}

impl Mode {
    /// libpq's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Disable => "disable",
            Mode::Prefer => "prefer",
            Mode::Require => "require",
            Mode::VerifyCa => "verify-ca",
            Mode::VerifyFull => "verify-full",
        }
    }

    fn of(word: &str) -> Result<Mode> {
        let all = [Mode::Disable, Mode::Prefer, Mode::Require, Mode::VerifyCa, Mode::VerifyFull];
        let found = all.into_iter().find(|mode| mode.word() == word);
        let known = "sslmode is disable, prefer, require, verify-ca or verify-full here";
        found.ok_or_else(|| format!("{known}, not {word:?}").into())
    }
}

/// What a connection string says of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// How much.
    pub mode: Mode,
    /// The file with roots, where one is named.
    pub root: Option<PathBuf>,
}

impl Tls {
    /// Takes `sslmode` and `sslrootcert` out of a connection string, an URL or `host=…` words; what it does not say
    /// is looked for in `PGSSLMODE` and `PGSSLROOTCERT`. The rest of the string comes back.
    pub fn take(server: &str) -> Result<(Tls, String)> {
        let (found, rest) = if server.contains("://") { of_url(server) } else { of_words(server) };
        let value = |name: &str, variable: &str| {
            let said = found.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone());
            said.or_else(|| std::env::var(variable).ok()).filter(|v| !v.is_empty())
        };
        let mode =
            value("sslmode", "PGSSLMODE").map_or(Ok(Mode::Prefer), |word| Mode::of(&word))?;
        let root = value("sslrootcert", "PGSSLROOTCERT").map(PathBuf::from);
        Ok((Tls { mode, root }, rest))
    }

    /// How a client is to do it; none where it is to do without.
    pub fn config(&self) -> Result<Option<ClientConfig>> {
        if self.mode == Mode::Disable {
            return Ok(None);
        }
        let Some(provider) = provider() else {
            let without = "TLS needs a processor that this build has no cryptography for";
            return if self.mode == Mode::Prefer { Ok(None) } else { Err(without.into()) };
        };
        let vouched = match (self.mode, &self.root) {
            (Mode::VerifyCa | Mode::VerifyFull, None) => Some(roots(&own_roots()?)?),
            (Mode::VerifyCa | Mode::VerifyFull | Mode::Require, Some(file)) => Some(roots(file)?),
            _ => None,
        };
        let verifier = Verifier {
            provider: Arc::clone(&provider),
            vouched,
            named: self.mode == Mode::VerifyFull,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Some(config))
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn provider() -> Option<Arc<CryptoProvider>> {
    graviola::util::is_cpu_supported().then(|| Arc::new(rustls_graviola::default_provider()))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn provider() -> Option<Arc<CryptoProvider>> {
    None
}

/// Names and values of what was taken, and the rest.
type Taken = (Vec<(String, String)>, String);

fn is_ours(name: &str) -> bool {
    matches!(name, "sslmode" | "sslrootcert")
}

/// Out of `scheme://user:password@host/database?name=value&…`.
fn of_url(url: &str) -> Taken {
    // A question mark in a password is not the query's.
    let login = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or("");
    let start =
        login.rfind('@').map_or(0, |at| url.len().min(url.find("://").unwrap_or(0) + 3 + at));
    let Some(query) = url[start..].find('?').map(|at| start + at) else {
        return (Vec::new(), url.to_owned());
    };
    let (mut found, mut kept) = (Vec::new(), Vec::new());
    for part in url[query + 1..].split('&') {
        match part.split_once('=').filter(|(name, _)| is_ours(name)) {
            Some((name, value)) => found.push((name.to_owned(), crate::client::decoded(value))),
            None => kept.push(part),
        }
    }
    let question = if kept.is_empty() { "" } else { "?" };
    (found, format!("{}{question}{}", &url[..query], kept.join("&")))
}

/// Out of `host=… port=…`, where a value may be quoted.
fn of_words(text: &str) -> Taken {
    let (mut found, mut kept) = (Vec::new(), String::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let whole = rest;
        let (name, after) = rest.split_once('=').unwrap_or((rest, ""));
        let after = after.trim_start();
        let mut value = String::new();
        let quoted = after.starts_with('\'');
        let mut end = after.len();
        let mut characters = after.char_indices().skip(usize::from(quoted));
        while let Some((at, c)) = characters.next() {
            match c {
                '\'' if quoted => {
                    end = at + 1;
                    break;
                }
                c if c.is_whitespace() && !quoted => {
                    end = at;
                    break;
                }
                '\\' => value.extend(characters.next().map(|(_, c)| c)),
                c => value.push(c),
            }
        }
        rest = after[end..].trim_start();
        if is_ours(name.trim()) {
            found.push((name.trim().to_owned(), value));
        } else {
            kept.push_str(&whole[..whole.len() - rest.len()]);
        }
    }
    (found, kept.trim_end().to_owned())
}

fn own_roots() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let file = home.join(".postgresql/root.crt");
    if file.is_file() {
        return Ok(file);
    }
    Err(format!(
        "there is no {}: name a file of root certificates with sslrootcert",
        file.display()
    )
    .into())
}

/// Certificates that vouch for others.
#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

fn roots(file: &Path) -> Result<Roots> {
    let told = |e: &dyn std::fmt::Display| format!("root certificates {}: {e}", file.display());
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| told(&e))? {
        certificates.push(certificate.map_err(|e| told(&e))?);
    }
    let mut store = RootCertStore::empty();
    let (taken, _) = store.add_parsable_certificates(certificates.iter().cloned());
    if taken == 0 {
        return Err(told(&"no certificate in it").into());
    }
    Ok(Roots { store, certificates })
}

/// Holds a server to have its certificate's key, and the certificate to be what is wanted.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Who may vouch for it; none takes any certificate.
    vouched: Option<Roots>,
    /// Whether the host's name must be in it.
    named: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        let Some(Roots { store, certificates }) = &self.vouched else {
            return Ok(ServerCertVerified::assertion());
        };
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !certificates.contains(certificate) {
            let known = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, store, between, now, known)?;
        }
        if self.named {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_says_how_much() {
        let taken = |server: &str| {
            let (tls, rest) = Tls::take(server).expect("a mode");
            (tls.mode, tls.root.map(|r| r.display().to_string()), rest)
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            taken("postgres://a:b@h/d?sslmode=verify-full&x=1&sslrootcert=%2Fa/b@c.crt"),
            (Mode::VerifyFull, text("/a/b@c.crt"), "postgres://a:b@h/d?x=1".into())
        );
        assert_eq!(
            taken("postgres://a:b?c@h?sslmode=require"),
            (Mode::Require, None, "postgres://a:b?c@h".into())
        );
        assert_eq!(
            taken("host=h sslmode = disable password='a b' sslrootcert='x y'"),
            (Mode::Disable, text("x y"), "host=h password='a b'".into())
        );
        assert!(Tls::take("postgres://h/?sslmode=allow").is_err());
    }
}
