//! What Unicode says of text: normal forms, and whether characters are assigned.

use crate::Datum;
use crate::args::text;
use crate::functions::text::check_size;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use base::{Result, bail};
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfd, is_nfkc, is_nfkd};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// A normal form.
#[derive(Clone, Copy)]
enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// The form that the second argument names; without one NFC.
fn form(a: &[Datum]) -> Result<Form> {
    if a.len() < 2 {
        return Ok(Form::Nfc);
    }
    let name = text(a, 1)?;
    Ok(match name.to_ascii_uppercase().as_str() {
        "NFC" => Form::Nfc,
        "NFD" => Form::Nfd,
        "NFKC" => Form::Nfkc,
        "NFKD" => Form::Nfkd,
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid normalization form: {name}"),
    })
}

fn normalized(a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    let form = form(a)?;
    if s.is_ascii() {
        return Ok(a[0].clone());
    }
    let made = match form {
        Form::Nfc => collected(s.nfc()),
        Form::Nfd => collected(s.nfd()),
        Form::Nfkc => collected(s.nfkc()),
        Form::Nfkd => collected(s.nfkd()),
    };
    made.map(Datum::text)
}

/// A text of these, unless it gets too long: one character may become eighteen.
fn collected(characters: impl Iterator<Item = char>) -> Result<String> {
    let mut out = String::new();
    for c in characters {
        out.push(c);
        check_size(out.len())?;
    }
    Ok(out)
}

fn is_normalized(a: &[Datum]) -> Result<Datum> {
    let s = text(a, 0)?;
    Ok(Datum::Bool(match form(a)? {
        Form::Nfc => is_nfc(s),
        Form::Nfd => is_nfd(s),
        Form::Nfkc => is_nfkc(s),
        Form::Nfkd => is_nfkd(s),
    }))
}

fn is_assigned(c: char) -> bool {
    c.general_category() != GeneralCategory::Unassigned
}

pub(super) const BODIES: BodyTable = &[
    ("unicode_normalize_func", S(|_, a| normalized(a))),
    ("unicode_is_normalized", S(|_, a| is_normalized(a))),
    ("unicode_assigned", S(|_, a| Ok(Datum::Bool(text(a, 0)?.chars().all(is_assigned))))),
    (
        "unicode_version",
        S(|_, _| {
            let (major, minor, _) = unicode_properties::UNICODE_VERSION;
            Ok(Datum::text(format!("{major}.{minor}")))
        }),
    ),
    // There is no ICU here.
    ("icu_unicode_version", S(|_, _| Ok(Datum::Null))),
];
