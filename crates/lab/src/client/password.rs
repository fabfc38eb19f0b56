//! Answering a server that asks who we are: SCRAM-SHA-256, MD5, or the password as it is.

use super::message::Encoder;
use super::{Client, Raw, Target};
use crate::Result;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use std::io::Write as _;

/// The state of an exchange.
#[derive(Default)]
pub struct Exchange(Option<ScramSha256>);

impl Exchange {
    /// Answers one authentication request.
    pub fn answer(&mut self, client: &mut Client, raw: &Raw) -> Result<()> {
        let said = raw.body.get(4..).unwrap_or_default();
        let mut e = Encoder::default();
        match raw.i32_at(0) {
            0 => return Ok(()),
            3 => e.string(password(&client.target)?),
            5 => {
                let salt = *said.first_chunk::<4>().ok_or("a salt of other than 4 bytes")?;
                let user = client.target.user.as_bytes();
                e.string(&md5_hash(user, password(&client.target)?.as_bytes(), salt))
            }
            10 => {
                if !said.split(|b| *b == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    return Err("the server knows no SCRAM-SHA-256".into());
                }
                let secret = password(&client.target)?.as_bytes().to_vec();
                let scram = ScramSha256::new(&secret, ChannelBinding::unsupported());
                let first = scram.message().to_vec();
                self.0 = Some(scram);
                e.string(SCRAM_SHA_256).i32(i32::try_from(first.len())?).bytes(&first)
            }
            11 => {
                let scram = self.0.as_mut().ok_or("an answer to a question not put")?;
                scram.update(said)?;
                let next = scram.message().to_vec();
                e.bytes(&next)
            }
            12 => {
                // The server proves that it knows the password too.
                self.0.as_mut().ok_or("an answer to a question not put")?.finish(said)?;
                return Ok(());
            }
            other => {
                return Err(format!(
                    "the server asks for authentication {other}, which is not known here"
                )
                .into());
            }
        };
        client.stream.write_all(&e.tagged(b'p'))?;
        Ok(())
    }
}

fn password(target: &Target) -> Result<&str> {
    let missing = "the server asks for a password: put it into the URL or into PGPASSWORD";
    target.password.as_deref().ok_or_else(|| missing.into())
}
