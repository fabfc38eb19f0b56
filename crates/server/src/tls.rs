//! TLS with a given certificate.
//!
//! # Purpose
//! [`Tls`] holds what new connections are encrypted with, made from the settings `ssl`, `ssl_cert_file`, `ssl_key_file`,
//! `ssl_min_protocol_version` and `ssl_max_protocol_version`, and made anew when the configuration is reloaded.
//!
//! # Invariants
//! A server that was told to encrypt starts only with a certificate and a key that nobody else can read; a reload that fails
//! leaves what there was.
//!
//! # Differs from PostgreSQL
//! TLS 1.2 and 1.3 only, whatever older version the minimum names; no client certificates; no key behind a passphrase
//! (docs/decisions/0040).

use base::settings::ServerSettings;
use base::sync::{Mutex, Rank};
use base::{Error, Result, SqlError, SqlState, bail};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig, ServerConnection};
use rustls::{CipherSuite, ProtocolVersion, SupportedProtocolVersion};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name that a client of this protocol offers during a handshake.
const ALPN: &[u8] = b"postgresql";

/// What new connections are encrypted with.
pub struct Tls {
    folder: PathBuf,
    acceptor: Mutex<Option<Arc<Acceptor>>>,
}

/// A certificate and its key, ready for handshakes.
pub(crate) struct Acceptor {
    config: Arc<ServerConfig>,
    /// Hash of the certificate that SCRAM binds to; None if its signature names no hash.
    end_point: Option<Vec<u8>>,
}

impl Tls {
    /// Reads certificate and key, if `ssl` is on; relative names are below `folder`.
    ///
    /// # Errors
    /// `F0000` for a file that is missing, no certificate or key, or open to others.
    pub fn new(settings: &ServerSettings, folder: &Path) -> Result<Arc<Tls>> {
        let acceptor = load(settings, folder)?.map(Arc::new);
        Ok(Arc::new(Tls { folder: folder.to_path_buf(), acceptor: Mutex::new(Rank(5), acceptor) }))
    }

    /// Without encryption.
    pub fn off() -> Arc<Tls> {
        Arc::new(Tls { folder: PathBuf::new(), acceptor: Mutex::new(Rank(5), None) })
    }

    /// Reads the files again, for the connections to come. What is wrong goes to the log and changes nothing.
    pub fn reload(&self, settings: &ServerSettings) {
        match load(settings, &self.folder) {
            Ok(acceptor) => *self.acceptor.lock() = acceptor.map(Arc::new),
            Err(error) => {
                base::log::write_error(base::log::Level::Log, &error.to_sql_error());
                base::log!("SSL configuration was not reloaded");
            }
        }
    }

    pub(crate) fn acceptor(&self) -> Option<Arc<Acceptor>> {
        self.acceptor.lock().clone()
    }
}

impl Acceptor {
    /// A new connection's side of a handshake.
    pub(crate) fn connection(&self) -> std::result::Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config))
    }

    /// What a client's SCRAM exchange may bind to: `tls-server-end-point` of RFC 5929.
    pub(crate) fn end_point(&self) -> Option<&[u8]> {
        self.end_point.as_deref()
    }
}

/// Did both sides agree on this protocol's name?
pub(crate) fn agreed_on_protocol(connection: &ServerConnection) -> bool {
    connection.alpn_protocol() == Some(ALPN)
}

/// What `pg_stat_ssl` shows of a connection.
pub(crate) fn describe(connection: &ServerConnection) -> txn::TlsInfo {
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => "TLSv1.2",
    };
    let suite = connection.negotiated_cipher_suite().map(|s| s.suite());
    let (cipher, bits) = suite.map_or(("", 0), cipher_name);
    txn::TlsInfo { version, cipher, bits }
}

/// OpenSSL's name of a suite, which `pg_stat_ssl` shows, and the bits of its key.
fn cipher_name(suite: CipherSuite) -> (&'static str, i32) {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", 128),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", 256),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", 256),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
            ("ECDHE-ECDSA-AES128-GCM-SHA256", 128)
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => {
            ("ECDHE-ECDSA-AES256-GCM-SHA384", 256)
        }
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            ("ECDHE-ECDSA-CHACHA20-POLY1305", 256)
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", 128),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", 256),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            ("ECDHE-RSA-CHACHA20-POLY1305", 256)
        }
        other => (other.as_str().unwrap_or(""), 0),
    }
}

fn load(settings: &ServerSettings, folder: &Path) -> Result<Option<Acceptor>> {
    if !settings.bool("ssl") {
        return Ok(None);
    }
    let mut provider = provider()?;
    // The server's order, which decides by default, is OpenSSL's as to the keys' length.
    provider.cipher_suites.sort_by_key(|s| std::cmp::Reverse(cipher_name(s.suite()).1));
    let versions = versions(
        &settings.string("ssl_min_protocol_version"),
        &settings.string("ssl_max_protocol_version"),
    )?;
    let chain = certificates(&settings.string("ssl_cert_file"), folder)?;
    let key_file = settings.string("ssl_key_file");
    let key = private_key(&key_file, folder)?;
    let end_point = chain.first().and_then(|c| end_point_hash(c));
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .map_err(|e| wrong(format!("could not set SSL protocol versions: {e}")))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| match e {
            rustls::Error::InconsistentKeys(_) => {
                wrong("check of private key failed: key values mismatch".to_owned())
            }
            e => wrong(format!("could not load private key file \"{key_file}\": {e}")),
        })?;
    config.ignore_client_order = settings.bool("ssl_prefer_server_ciphers");
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Sessions are not resumed: clients of this protocol never ask, and a ticket is one more secret to keep.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Some(Acceptor { config: Arc::new(config), end_point }))
}

/// The cryptography, if this processor can run it: the library would end the process on one that lacks an instruction.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn provider() -> Result<CryptoProvider> {
    if !graviola::util::is_cpu_supported() {
        return Err(Error::unsupported("SSL on a processor without AES and vector instructions"));
    }
    Ok(rustls_graviola::default_provider())
}

/// There is none for other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn provider() -> Result<CryptoProvider> {
    Err(Error::unsupported("SSL on this kind of processor"))
}

fn wrong(message: String) -> Error {
    Error::Sql(Box::new(SqlError::new(SqlState::CONFIG_FILE_ERROR, message)))
}

/// The versions between two settings.
fn versions(least: &str, most: &str) -> Result<Vec<&'static SupportedProtocolVersion>> {
    // TLSv1 and TLSv1.1 are in the settings and not in the library.
    let rank = |name: &str| match name.to_ascii_lowercase().as_str() {
        "tlsv1" => 0,
        "tlsv1.1" => 1,
        "tlsv1.2" => 2,
        _ => 3,
    };
    let all = [(2, &rustls::version::TLS12), (3, &rustls::version::TLS13)];
    let (low, high) = (rank(least), rank(most));
    let versions: Vec<_> =
        all.into_iter().filter(|(r, _)| (low..=high).contains(r)).map(|(_, v)| v).collect();
    if versions.is_empty() {
        let mut error =
            SqlError::new(SqlState::CONFIG_FILE_ERROR, "could not set SSL protocol version range");
        error.detail = Some(
            if low > high {
                "\"ssl_min_protocol_version\" cannot be higher than \"ssl_max_protocol_version\""
            } else {
                "Versions before TLSv1.2 are not supported."
            }
            .to_owned(),
        );
        return Err(error.into());
    }
    Ok(versions)
}

/// Why reading a PEM file failed.
fn pem_reason(error: pem::Error) -> String {
    match error {
        pem::Error::Io(e) => reason(&e),
        pem::Error::NoItemsFound => "no start line".to_owned(),
        other => other.to_string(),
    }
}

/// An operating system's reason, without the number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn certificates(name: &str, folder: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let failed =
        |why: String| wrong(format!("could not load server certificate file \"{name}\": {why}"));
    let chain = CertificateDer::pem_file_iter(folder.join(name))
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|e| failed(pem_reason(e)))?;
    if chain.is_empty() { Err(failed("no start line".to_owned())) } else { Ok(chain) }
}

fn private_key(name: &str, folder: &Path) -> Result<PrivateKeyDer<'static>> {
    let path = folder.join(name);
    let metadata = std::fs::metadata(&path).map_err(|e| {
        wrong(format!("could not access private key file \"{name}\": {}", reason(&e)))
    })?;
    check_ownership(name, &metadata)?;
    PrivateKeyDer::from_pem_file(&path).map_err(|e| {
        let encrypted = std::fs::read_to_string(&path).is_ok_and(|text| text.contains("ENCRYPTED"));
        let why = if encrypted {
            "it requires a passphrase, which is not supported".to_owned()
        } else {
            pem_reason(e)
        };
        wrong(format!("could not load private key file \"{name}\": {why}"))
    })
}

/// A key that others can read is no secret: ours alone, or root's and readable by our group.
fn check_ownership(name: &str, metadata: &Metadata) -> Result<()> {
    if !metadata.is_file() {
        bail!(CONFIG_FILE_ERROR, "private key file \"{name}\" is not a regular file");
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        bail!(
            CONFIG_FILE_ERROR,
            "private key file \"{name}\" must be owned by the database user or root"
        );
    }
    let denied = if metadata.uid() == own { 0o077 } else { 0o037 };
    if metadata.mode() & denied != 0 {
        let mut error = SqlError::new(
            SqlState::CONFIG_FILE_ERROR,
            format!("private key file \"{name}\" has group or world access"),
        );
        error.detail = Some(
            "File must have permissions u=rw (0600) or less if owned by the database user, or permissions u=rw,g=r (0640) or less if owned by root."
                .to_owned(),
        );
        return Err(error.into());
    }
    Ok(())
}

/// Contents of the DER element that `bytes` begins with, its tag, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let n = usize::from(first & 0x7f);
        if n > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(n)?;
        (digits.iter().fold(0, |length, d| length << 8 | usize::from(*d)), rest)
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// The certificate's hash by the function of its own signature, SHA-256 in place of the broken ones (RFC 5929, 4.1).
fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OID, … }, … }
    let (0x30, inside, _) = element(certificate)? else { return None };
    let (_, _, after_body) = element(inside)?;
    let (0x30, algorithm, _) = element(after_body)? else { return None };
    let (0x06, oid, _) = element(algorithm)? else { return None };
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let bits = if let Some(rest) = oid.strip_prefix(&RSA) {
        match rest {
            [4 | 5 | 11] => 256,
            [12] => 384,
            [13] => 512,
            _ => return None,
        }
    } else {
        match oid.strip_prefix(&ECDSA)? {
            [1] | [3, 2] => 256,
            [3, 3] => 384,
            [3, 4] => 512,
            _ => return None,
        }
    };
    Some(match bits {
        256 => Sha256::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        _ => Sha512::digest(certificate).to_vec(),
    })
}
