//! The locale of a new database.
//!
//! # Differs from PostgreSQL
//! There are two locales, by either provider: `C`, whose letters are those of ASCII, and `C.UTF-8`, whose letters are Unicode's, each with
//! one other case at most. Text is in the order of its code points in both.

use crate::parse::utility::UtilityOption;
use base::{Error, Result, SqlError, SqlState, bail};
use engine::catalog::rows::{NewRow, Row};
use types::{Ctype, Datum};

/// What CREATE DATABASE says of it.
#[derive(Default)]
pub(super) struct NewLocale {
    provider: Option<u8>,
    locale: Option<String>,
    builtin_locale: Option<String>,
    icu_locale: Option<String>,
    collate: Option<String>,
    ctype: Option<String>,
}

/// A locale as `pg_database` has it.
pub(super) struct Locale {
    provider: u8,
    collate: String,
    ctype: String,
    /// The provider's, unless that is the system's library.
    name: Option<String>,
}

fn provider_name(letter: u8) -> &'static str {
    match letter {
        b'b' => "builtin",
        b'i' => "icu",
        _ => "libc",
    }
}

fn misplaced(text: &str) -> Error {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text).into()
}

/// Fails unless there is such a locale here.
fn check(name: &str) -> Result<()> {
    if Ctype::of_locale(name).is_some() {
        return Ok(());
    }
    let text = format!("locale \"{name}\" is not supported");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .hint("There are \"C\" and \"C.UTF-8\".")
        .into())
}

impl NewLocale {
    /// Takes an option, if it is of the locale.
    ///
    /// # Errors
    /// `42P17`, `42601`
    pub(super) fn take(&mut self, option: &UtilityOption) -> Result<bool> {
        let place = match option.name.as_str() {
            "locale" => &mut self.locale,
            "builtin_locale" => &mut self.builtin_locale,
            "icu_locale" => &mut self.icu_locale,
            "lc_collate" => &mut self.collate,
            "lc_ctype" => &mut self.ctype,
            "locale_provider" => {
                let name = option.string()?;
                self.provider = Some(match name.to_ascii_lowercase().as_str() {
                    "builtin" => b'b',
                    "icu" => b'i',
                    "libc" => b'c',
                    _ => return Err(misplaced(&format!("unrecognized locale provider: {name}"))),
                });
                return Ok(true);
            }
            _ => return Ok(false),
        };
        *place = Some(option.string()?);
        Ok(true)
    }

    /// What it comes to; what is not said is as the template has it.
    ///
    /// # Errors
    /// `0A000`, `42P17`, `22023`, `42809`
    pub(super) fn beside(self, template: &Row) -> Result<Locale> {
        let provider = self.provider.unwrap_or_else(|| template.char("datlocprovider"));
        if provider == b'i' {
            return Err(Error::unsupported("locale provider \"icu\""));
        }
        if self.icu_locale.is_some() {
            return Err(misplaced("ICU locale cannot be specified unless locale provider is ICU"));
        }
        let builtin = provider == b'b';
        if !builtin && self.builtin_locale.is_some() {
            return Err(misplaced(
                "BUILTIN_LOCALE cannot be specified unless locale provider is builtin",
            ));
        }
        let of = |own: Option<String>, column: &str| {
            let named = own.or_else(|| self.locale.clone());
            named.unwrap_or_else(|| template.text(column).to_owned())
        };
        let name = self.builtin_locale.clone().or_else(|| self.locale.clone());
        let name = name.or_else(|| template.text_opt("datlocale").map(str::to_owned));
        if builtin && name.is_none() {
            bail!(INVALID_PARAMETER_VALUE, "LOCALE or BUILTIN_LOCALE must be specified");
        }
        let (collate, ctype) = (of(self.collate, "datcollate"), of(self.ctype, "datctype"));
        let locale = Locale { provider, collate, ctype, name: name.filter(|_| builtin) };
        check(&locale.collate)?;
        check(&locale.ctype)?;
        if let Some(name) = locale.name.as_deref().filter(|n| Ctype::of_locale(n).is_none()) {
            bail!(WRONG_OBJECT_TYPE, "invalid locale name \"{name}\" for builtin provider");
        }
        Ok(locale)
    }
}

impl Locale {
    /// Fails where it is another than the template's, whose indexes may go by that.
    ///
    /// # Errors
    /// `22023`
    pub(super) fn check_same(&self, template: &Row) -> Result<()> {
        let differs = |text: String, what: &str| {
            let hint = format!(
                "Use the same {what} as in the template database, or use template0 as template."
            );
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).hint(hint).into())
        };
        let was = template.text("datcollate");
        if self.collate != was {
            let text = format!(
                "new collation ({}) is incompatible with the collation of the template database ({was})",
                self.collate
            );
            return differs(text, "collation");
        }
        let was = template.text("datctype");
        if self.ctype != was {
            let text = format!(
                "new LC_CTYPE ({}) is incompatible with the LC_CTYPE of the template database ({was})",
                self.ctype
            );
            return differs(text, "LC_CTYPE");
        }
        let was = template.char("datlocprovider");
        if self.provider != was {
            let text = format!(
                "new locale provider ({}) does not match locale provider of the template database ({})",
                provider_name(self.provider),
                provider_name(was)
            );
            return differs(text, "locale provider");
        }
        Ok(())
    }

    /// The row with it.
    pub(super) fn told(self, row: NewRow) -> NewRow {
        let row = row.set("datlocprovider", Datum::Char(self.provider));
        let row = row.text("datcollate", &self.collate).text("datctype", &self.ctype);
        row.set("datlocale", self.name.map_or(Datum::Null, |name| Datum::text(&name)))
    }
}
