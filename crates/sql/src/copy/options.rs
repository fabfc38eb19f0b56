//! COPY's options.

use crate::parse::utility::{Copy, OptionValue, UtilityOption};
use base::encoding::Encoding;
use base::{Error, Result, SqlError, SqlState, bail};

/// How the data is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Tab-separated with backslashes.
    Text,
    /// Comma-separated with quotes.
    Csv,
    /// PostgreSQL's own.
    Binary,
}

/// HEADER
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// No.
    None,
    /// The first line is one.
    Skip,
    /// It must name the columns.
    Match,
}

/// Which columns an option means.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Columns {
    /// None.
    #[default]
    None,
    /// `*`
    All,
    /// These.
    Named(Vec<String>),
}

/// COPY's options, checked.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named after the options")]
pub struct CopyOptions {
    pub format: Format,
    pub freeze: bool,
    pub delimiter: u8,
    pub null: String,
    pub default: Option<String>,
    pub header: Header,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: Columns,
    pub force_not_null: Columns,
    pub force_null: Columns,
    /// None: the client's.
    pub encoding: Option<&'static Encoding>,
    pub ignore_errors: bool,
    pub reject_limit: Option<i64>,
    pub verbose: bool,
    pub silent: bool,
}

/// What was written, before defaults.
#[derive(Default)]
struct Written {
    delimiter: Option<String>,
    null: Option<String>,
    default: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
}

fn column_list(option: &UtilityOption, star: bool) -> Result<Columns> {
    match &option.value {
        Some(OptionValue::Star) if star => Ok(Columns::All),
        Some(OptionValue::List(names)) => Ok(Columns::Named(names.clone())),
        Some(OptionValue::Word(name)) => Ok(Columns::Named(vec![name.clone()])),
        _ => bail!(
            INVALID_PARAMETER_VALUE,
            "argument to option \"{}\" must be a list of column names",
            option.name
        ),
    }
}

fn header(option: &UtilityOption, from: bool) -> Result<Header> {
    let Some(value) = &option.value else { return Ok(Header::Skip) };
    let text = value.text().to_ascii_lowercase();
    Ok(match text.as_str() {
        "true" | "on" | "1" => Header::Skip,
        "false" | "off" | "0" => Header::None,
        "match" if from => Header::Match,
        "match" => {
            bail!(FEATURE_NOT_SUPPORTED, "cannot use \"{}\" with HEADER in COPY TO", value.text())
        }
        _ => bail!(SYNTAX_ERROR, "{} requires a Boolean value or \"match\"", option.name),
    })
}

fn encoding(name: &str) -> Result<&'static Encoding> {
    const OTHERS: &[&str] =
        &["eucjp", "euccn", "euckr", "euctw", "sjis", "gbk", "big5", "gb18030", "uhc", "johab"];
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match base::encoding::by_name(name) {
        Some(encoding) => Ok(encoding),
        None if OTHERS.contains(&plain.as_str()) => {
            Err(Error::unsupported(format!("encoding \"{name}\"")))
        }
        None => bail!(
            INVALID_PARAMETER_VALUE,
            "argument to option \"encoding\" must be a valid encoding name"
        ),
    }
}

fn one_byte(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [one] => Ok(*one),
        _ => bail!(FEATURE_NOT_SUPPORTED, "COPY {what} must be a single one-byte character"),
    }
}

impl CopyOptions {
    /// Reads and checks the options of a statement.
    ///
    /// # Errors
    /// PostgreSQL's for each thing that does not go together.
    pub fn of(copy: &Copy, source: &str) -> Result<CopyOptions> {
        let mut options = CopyOptions {
            format: Format::Text,
            freeze: false,
            delimiter: b'\t',
            null: String::new(),
            default: None,
            header: Header::None,
            quote: b'"',
            escape: b'"',
            force_quote: Columns::None,
            force_not_null: Columns::None,
            force_null: Columns::None,
            encoding: None,
            ignore_errors: false,
            reject_limit: None,
            verbose: false,
            silent: false,
        };
        let mut written = Written::default();
        let mut seen: Vec<&str> = Vec::new();
        for option in &copy.options {
            let at = |e: Error| crate::parse::error_at(source, e, option.loc);
            if seen.contains(&option.name.as_str()) {
                return Err(at(base::err!(SYNTAX_ERROR, "conflicting or redundant options")));
            }
            seen.push(&option.name);
            options.take(option, &mut written, copy.from).map_err(at)?;
        }
        options.settle(written)?;
        options.check(copy.from)?;
        Ok(options)
    }

    /// What text is to be converted from or into, if any.
    pub fn conversion(&self) -> Option<&'static Encoding> {
        self.encoding.filter(|e| e.converts() && self.format != Format::Binary)
    }

    fn take(&mut self, option: &UtilityOption, written: &mut Written, from: bool) -> Result<()> {
        match option.name.as_str() {
            "format" => {
                let name = option.string()?;
                self.format = match name.as_str() {
                    "text" => Format::Text,
                    "csv" => Format::Csv,
                    "binary" => Format::Binary,
                    _ => {
                        bail!(INVALID_PARAMETER_VALUE, "COPY format \"{name}\" not recognized")
                    }
                };
            }
            "freeze" => self.freeze = option.boolean()?,
            "delimiter" => written.delimiter = Some(option.string()?),
            "null" => written.null = Some(option.string()?),
            "default" => written.default = Some(option.string()?),
            "header" => written.header = Some(header(option, from)?),
            "quote" => written.quote = Some(option.string()?),
            "escape" => written.escape = Some(option.string()?),
            "force_quote" => self.force_quote = column_list(option, true)?,
            "force_not_null" => self.force_not_null = column_list(option, true)?,
            "force_null" => self.force_null = column_list(option, true)?,
            "encoding" => self.encoding = Some(encoding(&option.string()?)?),
            "on_error" => {
                let word = option.string()?;
                if !from {
                    bail!(INVALID_PARAMETER_VALUE, "COPY ON_ERROR cannot be used with COPY TO");
                }
                self.ignore_errors = match word.to_ascii_lowercase().as_str() {
                    "stop" => false,
                    "ignore" => true,
                    _ => bail!(INVALID_PARAMETER_VALUE, "COPY ON_ERROR \"{word}\" not recognized"),
                };
            }
            "log_verbosity" => {
                let word = option.string()?;
                match word.to_ascii_lowercase().as_str() {
                    "default" => {}
                    "verbose" => self.verbose = true,
                    "silent" => self.silent = true,
                    _ => bail!(
                        INVALID_PARAMETER_VALUE,
                        "COPY LOG_VERBOSITY \"{word}\" not recognized"
                    ),
                }
            }
            "reject_limit" => {
                let limit = option.integer()?;
                if limit <= 0 {
                    bail!(
                        INVALID_PARAMETER_VALUE,
                        "REJECT_LIMIT ({limit}) must be greater than zero"
                    );
                }
                self.reject_limit = Some(limit);
            }
            name => bail!(SYNTAX_ERROR, "option \"{name}\" not recognized"),
        }
        Ok(())
    }

    /// Defaults, and what each format allows.
    fn settle(&mut self, written: Written) -> Result<()> {
        let binary = self.format == Format::Binary;
        let csv = self.format == Format::Csv;
        let not_binary = |given: bool, what: &str| -> Result<()> {
            if binary && given {
                bail!(SYNTAX_ERROR, "cannot specify {what} in BINARY mode");
            }
            Ok(())
        };
        not_binary(written.delimiter.is_some(), "DELIMITER")?;
        not_binary(written.null.is_some(), "NULL")?;
        not_binary(written.default.is_some(), "DEFAULT")?;
        let needs_csv = |given: bool, what: &str| -> Result<()> {
            if !csv && given {
                bail!(FEATURE_NOT_SUPPORTED, "COPY {what} requires CSV mode");
            }
            Ok(())
        };
        if let Some(text) = &written.delimiter {
            self.delimiter = one_byte(text, "delimiter")?;
        } else if csv {
            self.delimiter = b',';
        }
        if matches!(self.delimiter, b'\n' | b'\r') {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter cannot be newline or carriage return");
        }
        self.null = written.null.unwrap_or(if csv { String::new() } else { "\\N".to_owned() });
        let breaks = |s: &str| s.contains(['\n', '\r']);
        if breaks(&self.null) {
            bail!(
                INVALID_PARAMETER_VALUE,
                "COPY null representation cannot use newline or carriage return"
            );
        }
        if written.default.as_deref().is_some_and(breaks) {
            bail!(
                INVALID_PARAMETER_VALUE,
                "COPY default representation cannot use newline or carriage return"
            );
        }
        self.default = written.default;
        let reserved = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";
        if self.format == Format::Text && reserved.contains(&self.delimiter) {
            bail!(
                INVALID_PARAMETER_VALUE,
                "COPY delimiter cannot be \"{}\"",
                char::from(self.delimiter)
            );
        }
        if let Some(header) = written.header {
            if binary && header != Header::None {
                bail!(FEATURE_NOT_SUPPORTED, "cannot specify HEADER in BINARY mode");
            }
            self.header = header;
        }
        needs_csv(written.quote.is_some(), "QUOTE")?;
        if let Some(text) = &written.quote {
            self.quote = one_byte(text, "quote")?;
            self.escape = self.quote;
        }
        if csv && self.delimiter == self.quote {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter and quote must be different");
        }
        needs_csv(written.escape.is_some(), "ESCAPE")?;
        if let Some(text) = &written.escape {
            self.escape = one_byte(text, "escape")?;
        }
        needs_csv(self.force_quote != Columns::None, "FORCE_QUOTE")?;
        needs_csv(self.force_not_null != Columns::None, "FORCE_NOT_NULL")?;
        needs_csv(self.force_null != Columns::None, "FORCE_NULL")
    }

    /// What goes with the direction, and with each other.
    fn check(&self, from: bool) -> Result<()> {
        let only = |given: bool, what: &str, direction: bool| -> Result<()> {
            if given && from != direction {
                let word = if from { "FROM" } else { "TO" };
                // FORCE_QUOTE's has a code of its own in PostgreSQL
                if what == "FORCE_QUOTE" {
                    bail!(FEATURE_NOT_SUPPORTED, "COPY {what} cannot be used with COPY {word}");
                }
                bail!(INVALID_PARAMETER_VALUE, "COPY {what} cannot be used with COPY {word}");
            }
            Ok(())
        };
        only(self.force_quote != Columns::None, "FORCE_QUOTE", false)?;
        only(self.force_not_null != Columns::None, "FORCE_NOT_NULL", true)?;
        only(self.force_null != Columns::None, "FORCE_NULL", true)?;
        if self.format != Format::Binary {
            self.check_markers(self.null.as_str(), "NULL")?;
        }
        only(self.freeze, "FREEZE", true)?;
        if let Some(default) = &self.default {
            if !from {
                bail!(FEATURE_NOT_SUPPORTED, "COPY DEFAULT cannot be used with COPY TO");
            }
            self.check_markers(default, "DEFAULT")?;
            if *default == self.null {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "NULL specification and DEFAULT specification cannot be the same"
                );
            }
        }
        if self.format == Format::Binary && self.ignore_errors {
            bail!(SYNTAX_ERROR, "only ON_ERROR STOP is allowed in BINARY mode");
        }
        if self.reject_limit.is_some() && !self.ignore_errors {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE",
            )
            .into());
        }
        Ok(())
    }

    fn check_markers(&self, text: &str, what: &str) -> Result<()> {
        let code = match what {
            "DEFAULT" => SqlState::FEATURE_NOT_SUPPORTED,
            _ => SqlState::INVALID_PARAMETER_VALUE,
        };
        if text.as_bytes().contains(&self.delimiter) {
            let text = "COPY delimiter character must not appear in the";
            return Err(SqlError::new(code, format!("{text} {what} specification")).into());
        }
        if self.format == Format::Csv && text.as_bytes().contains(&self.quote) {
            let text = "CSV quote character must not appear in the";
            return Err(SqlError::new(code, format!("{text} {what} specification")).into());
        }
        Ok(())
    }
}
