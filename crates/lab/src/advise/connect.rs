//! A connection to a user's own server: passwords by SCRAM or MD5, TLS where the server has it.
//!
//! As with libpq, `sslmode=prefer` (the default) and `require` encrypt without asking who the server is.

use crate::{Error, Result};
use postgres::config::SslMode;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::collections::HashMap;
use std::time::Duration;

/// A row: values by column.
pub type Row = HashMap<String, Option<String>>;

/// A session that only reads.
pub struct Session(Client);

impl Session {
    /// Connects by `postgres://…`, or by `host=… user=…`.
    pub fn new(server: &str) -> Result<Session> {
        if server.contains("sslmode=verify") || server.contains("sslmode=allow") {
            return Err(
                "sslmode is disable, prefer or require here; no certificate is verified".into()
            );
        }
        let mut config: Config = server.parse().map_err(|e| plain(&e))?;
        config.application_name("ebb lab advise");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        if config.get_user().is_none() {
            config.user(&std::env::var("PGUSER").or_else(|_| std::env::var("USER"))?);
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        Ok(Session(connect(&config)?))
    }

    /// The rows of a query, in a transaction that may only read; a look of its own at the statistics.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.0.batch_execute("START TRANSACTION READ ONLY").map_err(|e| plain(&e))?;
        let result = self.0.simple_query(sql);
        self.0.batch_execute("ROLLBACK").map_err(|e| plain(&e))?;
        let mut rows = Vec::new();
        for message in result.map_err(|e| plain(&e))? {
            if let SimpleQueryMessage::Row(row) = message {
                let columns = row.columns().iter().enumerate();
                rows.push(
                    columns
                        .map(|(at, c)| (c.name().to_owned(), row.get(at).map(str::to_owned)))
                        .collect(),
                );
            }
        }
        Ok(rows)
    }

    /// The only row of a query.
    pub fn row(&mut self, sql: &str) -> Result<Row> {
        self.rows(sql)?.pop().ok_or_else(|| format!("no row from: {sql}").into())
    }

    /// The first row of a query that this server may not know, or that this user may not ask.
    pub fn optional(&mut self, sql: &str) -> Option<Row> {
        self.rows(sql).ok()?.pop()
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn connect(config: &Config) -> Result<Client> {
    if config.get_ssl_mode() == SslMode::Disable || !graviola::util::is_cpu_supported() {
        return config.connect(NoTls).map_err(|e| plain(&e));
    }
    config.connect(tls::connector()?).map_err(|e| plain(&e))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn connect(config: &Config) -> Result<Client> {
    config.connect(NoTls).map_err(|e| plain(&e))
}

/// An error with its cause; of a server's own, just what it said.
fn plain(e: &postgres::Error) -> Error {
    if let Some(said) = e.as_db_error() {
        return format!("{}: {}", said.severity(), said.message()).into();
    }
    match std::error::Error::source(e) {
        Some(cause) => format!("{e}: {cause}").into(),
        None => e.to_string().into(),
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tls {
    use crate::Result;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
    use std::sync::Arc;
    use tokio_postgres_rustls::MakeRustlsConnect;

    pub fn connector() -> Result<MakeRustlsConnect> {
        let provider = Arc::new(rustls_graviola::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    /// Takes any certificate, and holds the server to have its key.
    #[derive(Debug)]
    struct Anyone(Arc<CryptoProvider>);

    impl ServerCertVerifier for Anyone {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> std::result::Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, Error> {
            let known = &self.0.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signature, known)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> std::result::Result<HandshakeSignatureValid, Error> {
            let known = &self.0.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, known)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
