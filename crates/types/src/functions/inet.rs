//! inet: addresses of hosts and networks, kept as their text.

use crate::args::{int4, int8, text};
use crate::macros::{comparisons, order_body};
use crate::registry::{BodyTable, FunctionBody, FunctionBody::Scalar as S};
use crate::{Datum, Text};
use base::{Result, bail, err};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, and how many of its first bits name the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network {
    pub address: IpAddr,
    pub bits: u8,
}

impl Network {
    pub(super) fn width(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address's bits, first of all in the highest.
    pub(super) fn value(self) -> u128 {
        match self.address {
            IpAddr::V4(a) => u128::from(u32::from(a)) << 96,
            IpAddr::V6(a) => u128::from(a),
        }
    }

    /// An address of the same family.
    fn with(self, value: u128) -> Network {
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from((value >> 96) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(value)),
        };
        Network { address, ..self }
    }

    /// Ones in the network's bits.
    fn mask(self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0)
    }

    /// Ones in all bits of the family.
    fn all(self) -> u128 {
        Network { bits: self.width(), ..self }.mask()
    }

    /// The network itself.
    pub(super) fn without_host(self) -> Network {
        self.with(self.value() & self.mask())
    }

    /// inet's text, as it is kept.
    fn kept(self) -> String {
        match self.bits == self.width() {
            true => self.address.to_string(),
            false => format!("{}/{}", self.address, self.bits),
        }
    }

    fn datum(self) -> Datum {
        Datum::Text(Text::from(self.kept()))
    }
}

/// An address as it is shown. One of IPv6 that ends in one of IPv4 is kept as any other, and shown with the other's dots.
pub(super) fn address_text(address: IpAddr) -> String {
    let IpAddr::V6(v6) = address else { return address.to_string() };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
            let [a, b, c, d] = ((u32::from(high) << 16) | u32::from(low)).to_be_bytes();
            format!("::{a}.{b}.{c}.{d}")
        }
        _ => v6.to_string(),
    }
}

/// A text of inet or cidr, as it is kept, as it is shown.
pub(crate) fn shown(s: &str, with_length: bool) -> Cow<'_, str> {
    let s = if with_length { s } else { without_length(s) };
    let (address, length) = s.split_at(s.find('/').unwrap_or(s.len()));
    match address.strip_prefix("::").filter(|rest| !rest.is_empty()) {
        Some(_) => match address.parse() {
            Ok(address) => format!("{}{length}", address_text(address)).into(),
            Err(_) => s.into(),
        },
        None => s.into(),
    }
}

/// Reads inet's text.
pub(crate) fn parse(s: &str) -> Option<Network> {
    let (address, bits) = match s.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (s, None),
    };
    // IPv6's begin with no zero.
    let zeros = |b: &str| address.contains(':') && b.len() > 1 && b.starts_with('0');
    let digits = |b: &str| !b.is_empty() && b.bytes().all(|b| b.is_ascii_digit()) && !zeros(b);
    let bits: Option<u8> = match bits {
        Some(b) if digits(b) => Some(b.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    let (address, given) = match address.contains(':') {
        true => (IpAddr::V6(address.parse().ok()?), 128),
        // A length may stand behind a dot.
        false if bits.is_some() => short_v4(address.strip_suffix('.').unwrap_or(address))?,
        false => short_v4(address)?,
    };
    let width: u8 = if address.is_ipv4() { 32 } else { 128 };
    // Numbers that are left out are zero, if the network's are there.
    match bits {
        Some(bits) if bits <= width && bits / 8 <= given / 8 => Some(Network { address, bits }),
        None if given == width => Some(Network { address, bits: width }),
        _ => None,
    }
}

/// Up to four numbers with dots between them, and how many bits those are.
pub(super) fn short_v4(s: &str) -> Option<(IpAddr, u8)> {
    let mut octets = [0u8; 4];
    let mut count = 0;
    for part in s.split('.') {
        let number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *octets.get_mut(count).filter(|_| number)? = part.parse().ok()?;
        count += 1;
    }
    Some((IpAddr::V4(Ipv4Addr::from(octets)), count as u8 * 8))
}

/// A text of inet or cidr without the length of a whole address.
pub(crate) fn without_length(s: &str) -> &str {
    let whole = if s.contains(':') { "/128" } else { "/32" };
    s.strip_suffix(whole).unwrap_or(s)
}

/// Reads inet, and writes it as it is shown.
///
/// # Errors
/// `22P02`
pub(crate) fn input(s: &str) -> Result<Datum> {
    match parse(s) {
        Some(network) => Ok(network.datum()),
        None => Err(crate::io::invalid("inet", s)),
    }
}

/// inet's order: families, the network's bits, how many those are, the address.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (Some(x), Some(y)) = (parse(a), parse(b)) else { return a.as_bytes().cmp(b.as_bytes()) };
    let common = Network { bits: x.bits.min(y.bits), ..x }.mask();
    x.address
        .is_ipv6()
        .cmp(&y.address.is_ipv6())
        .then_with(|| (x.value() & common).cmp(&(y.value() & common)))
        .then_with(|| x.bits.cmp(&y.bits))
        .then_with(|| x.value().cmp(&y.value()))
}

fn network(a: &[Datum], i: usize) -> Result<Network> {
    let s = text(a, i)?;
    parse(s).ok_or_else(|| crate::io::invalid("inet", s))
}

/// Is all of `b` in `a`? With `strictly`, not if they are as large.
fn holds(a: Network, b: Network, strictly: bool) -> bool {
    a.width() == b.width()
        && (a.bits < b.bits || a.bits == b.bits && !strictly)
        && a.value() & a.mask() == b.value() & a.mask()
}

fn overlap(a: Network, b: Network) -> bool {
    holds(a, b, false) || holds(b, a, false)
}

fn both(a: &[Datum], word: &str, f: fn(u128, u128) -> u128) -> Result<Datum> {
    let (x, y) = (network(a, 0)?, network(a, 1)?);
    if x.width() != y.width() {
        bail!(INVALID_PARAMETER_VALUE, "cannot {word} inet values of different sizes");
    }
    let bits = x.bits.max(y.bits);
    Ok(Network { bits, ..x }.with(f(x.value(), y.value())).datum())
}

/// The address so many further on.
fn moved(x: Network, by: i64) -> Result<Datum> {
    let shift = 128 - u32::from(x.width());
    let place = x.value() >> shift;
    let most = x.all() >> shift;
    let to = match by >= 0 {
        true => place.checked_add(by.unsigned_abs().into()).filter(|v| *v <= most),
        false => place.checked_sub(by.unsigned_abs().into()),
    };
    match to {
        Some(to) => Ok(x.with(to << shift).datum()),
        None => bail!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range"),
    }
}

fn distance(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (network(a, 0)?, network(a, 1)?);
    if x.width() != y.width() {
        bail!(INVALID_PARAMETER_VALUE, "cannot subtract inet values of different sizes");
    }
    let shift = 128 - u32::from(x.width());
    // Of 128 bits, where a difference of more than half of them has the other sign, as PostgreSQL counts.
    let difference = (x.value() >> shift).wrapping_sub(y.value() >> shift) as i128;
    match i64::try_from(difference) {
        Ok(n) => Ok(Datum::Int8(n)),
        Err(_) => bail!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range"),
    }
}

fn with_length(a: &[Datum]) -> Result<Datum> {
    let (x, length) = (network(a, 0)?, int4(a, 1)?);
    let bits = if length == -1 { Some(x.width()) } else { u8::try_from(length).ok() };
    match bits.filter(|b| *b <= x.width()) {
        Some(bits) => Ok(Network { bits, ..x }.datum()),
        None => Err(err!(INVALID_PARAMETER_VALUE, "invalid mask length: {length}")),
    }
}

/// A value of the whole width of the family.
fn whole(x: Network, value: u128) -> Datum {
    Network { bits: x.width(), ..x }.with(value).datum()
}

fn larger(a: &[Datum], keep: Ordering) -> Result<Datum> {
    let first = compare(text(a, 0)?, text(a, 1)?) == keep;
    Ok(a[usize::from(!first)].clone())
}

fn str_compare(a: &str, b: &str) -> Ordering {
    compare(a, b)
}

pub(super) const COMPARISONS: BodyTable = comparisons!(text, text, str_compare; "network_eq", "network_ne", "network_lt", "network_le", "network_gt", "network_ge");

macro_rules! of {
    ($name:literal, $f:expr) => {
        ($name, S(|_, a| Ok($f(network(a, 0)?))))
    };
}

macro_rules! two {
    ($name:literal, $f:expr) => {
        ($name, S(|_, a| Ok(Datum::Bool($f(network(a, 0)?, network(a, 1)?)))))
    };
}

pub(super) const BODIES: BodyTable = &[
    ("network_cmp", order_body!(text, text, str_compare)),
    ("network_larger", S(|_, a| larger(a, Ordering::Greater))),
    ("network_smaller", S(|_, a| larger(a, Ordering::Less))),
    two!("network_sub", |a, b| holds(b, a, true)),
    two!("network_subeq", |a, b| holds(b, a, false)),
    two!("network_sup", |a, b| holds(a, b, true)),
    two!("network_supeq", |a, b| holds(a, b, false)),
    two!("network_overlap", overlap),
    two!("inet_same_family", |a: Network, b: Network| a.width() == b.width()),
    of!("network_host", |x: Network| Datum::text(address_text(x.address))),
    of!("network_show", |x: Network| Datum::text(format!(
        "{}/{}",
        address_text(x.address),
        x.bits
    ))),
    of!("inet_abbrev", |x: Network| Datum::text(&*shown(&x.kept(), false))),
    of!("network_masklen", |x: Network| Datum::Int4(x.bits.into())),
    of!("network_family", |x: Network| Datum::Int4(if x.width() == 32 { 4 } else { 6 })),
    of!("network_netmask", |x: Network| whole(x, x.mask())),
    of!("network_hostmask", |x: Network| whole(x, x.all() & !x.mask())),
    of!("network_broadcast", |x: Network| { x.with(x.value() | x.all() & !x.mask()).datum() }),
    of!("inetnot", |x: Network| x.with(!x.value() & x.all()).datum()),
    ("inet_set_masklen", S(|_, a| with_length(a))),
    ("inetand", S(|_, a| both(a, "AND", |x, y| x & y))),
    ("inetor", S(|_, a| both(a, "OR", |x, y| x | y))),
    ("inetpl", S(|_, a| moved(network(a, 0)?, int8(a, 1)?))),
    ("int8pl_inet(int8,inet)", S(|_, a| moved(network(a, 1)?, int8(a, 0)?))),
    (
        "inetmi_int8",
        S(|_, a| {
            let Some(by) = int8(a, 1)?.checked_neg() else {
                bail!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range");
            };
            moved(network(a, 0)?, by)
        }),
    ),
    ("inetmi", S(|_, a| distance(a))),
    ("max(inet)", extreme(true)),
    ("min(inet)", extreme(false)),
];

const fn extreme(greatest: bool) -> FunctionBody {
    if greatest { super::aggregate::MAX } else { super::aggregate::MIN }
}
