//! A connection to a user's own server: passwords by SCRAM or MD5, TLS as [`crate::tls`] has it.

use crate::tls::{Mode, Tls};
use crate::{Error, Result};
use postgres::config::SslMode;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A row: values by column.
pub type Row = HashMap<String, Option<String>>;

/// A session that only reads.
pub struct Session(Client);

impl Session {
    /// Connects by `postgres://…`, or by `host=… user=…`.
    pub fn new(server: &str) -> Result<Session> {
        let (tls, server) = Tls::take(server)?;
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
        Ok(Session(connect(&mut config, &tls)?))
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

fn connect(config: &mut Config, tls: &Tls) -> Result<Client> {
    let Some(encrypted) = tls.config()? else {
        return config.ssl_mode(SslMode::Disable).connect(NoTls).map_err(|e| plain(&e));
    };
    let wanted = if tls.mode == Mode::Prefer { SslMode::Prefer } else { SslMode::Require };
    config.ssl_mode(wanted).connect(MakeRustlsConnect::new(encrypted)).map_err(|e| plain(&e))
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
