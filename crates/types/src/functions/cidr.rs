//! cidr: networks, kept as their text.
//!
//! # Differs from PostgreSQL
//! Networks in hexadecimal (`0x0a01`) are not read.

use super::inet::{self, Network};
use crate::args::{int4, text};
use crate::registry::{BodyTable, FunctionBody::Scalar as S};
use crate::{Datum, Text};
use base::{Result, SqlError, SqlState, bail};
use std::fmt::Write;
use std::net::IpAddr;

/// Reads cidr's text: numbers that are left out are zero, and the old classes say how long a network's part is where nobody does.
fn parse(s: &str) -> Option<Network> {
    if s.contains(':') {
        return inet::parse(s);
    }
    if let Some((address, bits)) = s.split_once('/') {
        let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        let bits = bits.parse().ok().filter(|bits| digits && *bits <= 32)?;
        return Some(Network { address: inet::short_v4(address)?.0, bits });
    }
    let (address, given) = inet::short_v4(s)?;
    let IpAddr::V4(v4) = address else { return None };
    let of_class = match v4.octets()[0] {
        0..128 | 224..240 => 8,
        128..192 => 16,
        192..224 => 24,
        240.. => 32,
    };
    // The last of them that has any is one of addresses for many.
    let bits = if (v4.octets()[0], given) == (224, 8) { 4 } else { given.max(of_class) };
    Some(Network { address, bits })
}

/// cidr's text: always with its length.
fn show(network: Network) -> Datum {
    Datum::Text(Text::from(format!("{}/{}", network.address, network.bits)))
}

/// Reads cidr, and writes it as it is shown.
///
/// # Errors
/// `22P02`
pub(crate) fn input(s: &str) -> Result<Datum> {
    let Some(network) = parse(s) else { return Err(crate::io::invalid("cidr", s)) };
    if network != network.without_host() {
        let text = format!("invalid cidr value: \"{s}\"");
        return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text)
            .detail("Value has bits set to right of mask.")
            .into());
    }
    Ok(show(network))
}

fn network(a: &[Datum], i: usize) -> Result<Network> {
    let s = text(a, i)?;
    inet::parse(s).ok_or_else(|| crate::io::invalid("cidr", s))
}

fn with_length(a: &[Datum]) -> Result<Datum> {
    let (x, length) = (network(a, 0)?, int4(a, 1)?);
    let bits = if length == -1 { Some(x.width()) } else { u8::try_from(length).ok() };
    match bits.filter(|b| *b <= x.width()) {
        Some(bits) => Ok(show(Network { bits, ..x }.without_host())),
        None => bail!(INVALID_PARAMETER_VALUE, "invalid mask length: {length}"),
    }
}

/// The smallest network with both in it.
fn merged(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (network(a, 0)?, network(a, 1)?);
    if x.width() != y.width() {
        bail!(INVALID_PARAMETER_VALUE, "cannot merge addresses from different families");
    }
    let alike = (x.value() ^ y.value()).leading_zeros();
    let bits = x.bits.min(y.bits).min(u8::try_from(alike).unwrap_or(u8::MAX));
    Ok(show(Network { bits, ..x }.without_host()))
}

/// Without the numbers behind the network's.
fn abbreviated(x: Network) -> Datum {
    let mut out = String::new();
    match x.address {
        IpAddr::V4(v4) => {
            let count = usize::from(x.bits.div_ceil(8)).max(1);
            let parts: Vec<String> = v4.octets()[..count].iter().map(u8::to_string).collect();
            out.push_str(&parts.join("."));
        }
        IpAddr::V6(v6) => abbreviate_v6(&v6.segments(), x.bits, &mut out),
    }
    let _ = write!(out, "/{}", x.bits);
    Datum::Text(Text::from(out))
}

/// The parts that the network's bits reach into; numbers of IPv4 in the last two, if all before them are zero, or nearly.
fn abbreviate_v6(all: &[u16; 8], bits: u8, out: &mut String) {
    let parts = &all[..usize::from(bits.div_ceil(16)).max(2)];
    let zeros = longest_zeros(parts);
    let encapsulates = zeros.start == 0
        && match zeros.len() {
            n if n == parts.len() => false,
            5 => all[5] == 0xffff,
            6 => true,
            7 => all[7] & 0xff00 != 0 && all[7] & 0xff != 1,
            _ => false,
        };
    for (at, part) in parts.iter().enumerate() {
        if zeros.contains(&at) {
            out.push_str(if at == zeros.start { ":" } else { "" });
            out.push_str(if at + 1 == parts.len() { ":" } else { "" });
        } else if encapsulates && at > 5 {
            let _ = write!(out, "{}{}", if at == 6 { ':' } else { '.' }, part >> 8);
            if at != 7 || bits > 120 {
                let _ = write!(out, ".{}", part & 0xff);
            }
        } else {
            out.push_str(if out.is_empty() { "" } else { ":" });
            let _ = write!(out, "{part:x}");
        }
    }
}

/// Where the first of the longest runs of zeros is.
fn longest_zeros(parts: &[u16]) -> std::ops::Range<usize> {
    let mut best = 0..0;
    let mut start = 0;
    for (at, part) in parts.iter().enumerate() {
        if *part != 0 {
            start = at + 1;
        } else if at + 1 - start > best.len() {
            best = start..at + 1;
        }
    }
    best
}

pub(super) const BODIES: BodyTable = &[
    ("network_network", S(|_, a| Ok(show(network(a, 0)?.without_host())))),
    ("inet_to_cidr", S(|_, a| Ok(show(network(a, 0)?.without_host())))),
    ("cidr_set_masklen", S(|_, a| with_length(a))),
    ("cidr_abbrev", S(|_, a| Ok(abbreviated(network(a, 0)?)))),
    ("inet_merge", S(|_, a| merged(a))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_shown_as_postgresql_does() {
        for (written, shown, short) in [
            ("10", "10.0.0.0/8", "10/8"),
            ("10.1.2", "10.1.2.0/24", "10.1.2/24"),
            ("192.168", "192.168.0.0/24", "192.168.0/24"),
            ("128.1", "128.1.0.0/16", "128.1/16"),
            ("224", "224.0.0.0/4", "224/4"),
            ("224.1", "224.1.0.0/16", "224.1/16"),
            ("240", "240.0.0.0/32", "240.0.0.0/32"),
            ("10/7", "10.0.0.0/7", "10/7"),
            ("0/0", "0.0.0.0/0", "0/0"),
            ("1.2.3.4", "1.2.3.4/32", "1.2.3.4/32"),
            ("2001:db8:1::/48", "2001:db8:1::/48", "2001:db8:1/48"),
            ("::/0", "::/0", "::/0"),
            ("FFFF::/16", "ffff::/16", "ffff::/16"),
            ("1::1", "1::1/128", "1::1/128"),
        ] {
            let text = |value: Datum| match value {
                Datum::Text(text) => text.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(text(input(written).unwrap()), shown, "{written}");
            assert_eq!(text(abbreviated(parse(shown).unwrap())), short, "{written}");
        }
        for wrong in ["10.1.2.3/24", "::1/64", "10.0.0.0/33", "x", "", "10.", "256"] {
            assert!(input(wrong).is_err(), "{wrong}");
        }
    }
}
