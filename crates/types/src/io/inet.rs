//! The binary form of network addresses, which are kept as their text: family, bits, whether it is a network, the
//! count of bytes, and these.

use base::{Result, bail, err};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const V4: u8 = 2;
const V6: u8 = 3;

fn parts(text: &str) -> Result<(IpAddr, u8)> {
    let bad =
        || err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type inet: \"{text}\"");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let full = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(full), |b| b.parse::<u8>().map_err(|_| bad()))?;
    if bits > full { Err(bad()) } else { Ok((address, bits)) }
}

pub(super) fn send(text: &str, network: bool, out: &mut Vec<u8>) -> Result<()> {
    let (address, bits) = parts(text)?;
    let (family, bytes) = match address {
        IpAddr::V4(a) => (V4, a.octets().to_vec()),
        IpAddr::V6(a) => (V6, a.octets().to_vec()),
    };
    out.extend([family, bits, u8::from(network), if family == V4 { 4 } else { 16 }]);
    out.extend(bytes);
    Ok(())
}

pub(super) fn receive(bytes: &[u8], network: bool) -> Result<String> {
    let what = if network { "cidr" } else { "inet" };
    let invalid = |part: &str| {
        err!(INVALID_BINARY_REPRESENTATION, "invalid {part} in external \"{what}\" value")
    };
    let [family, bits, _, _, address @ ..] = bytes else {
        bail!(PROTOCOL_VIOLATION, "insufficient data left in message");
    };
    let (address, full) = match *family {
        V4 => {
            let octets: [u8; 4] = address.try_into().map_err(|_| invalid("length"))?;
            (IpAddr::V4(Ipv4Addr::from(octets)), 32)
        }
        V6 => {
            let octets: [u8; 16] = address.try_into().map_err(|_| invalid("length"))?;
            (IpAddr::V6(Ipv6Addr::from(octets)), 128)
        }
        _ => return Err(invalid("address family")),
    };
    if *bits > full {
        return Err(invalid("bits"));
    }
    if network && has_host_bits(address, *bits) {
        let what = "invalid external \"cidr\" value";
        return Err(base::SqlError::new(base::SqlState::INVALID_BINARY_REPRESENTATION, what)
            .detail("Value has bits set to right of mask.")
            .into());
    }
    Ok(if *bits == full && !network { address.to_string() } else { format!("{address}/{bits}") })
}

/// Are any of an address's bits set behind the first `bits`?
fn has_host_bits(address: IpAddr, bits: u8) -> bool {
    match address {
        IpAddr::V4(a) => u32::from(a).checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(a) => u128::from(a).checked_shl(bits.into()).unwrap_or(0) != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{receive, send};

    #[test]
    fn what_is_sent_is_received() {
        for (text, network) in [
            ("10.0.0.1", false),
            ("10.0.0.0/8", false),
            ("::1", false),
            ("fe80::/10", true),
            ("10.1.0.0/16", true),
        ] {
            let mut bytes = Vec::new();
            send(text, network, &mut bytes).unwrap();
            assert_eq!(receive(&bytes, network).unwrap(), text);
            bytes[1] /= 2;
            assert!(receive(&bytes, true).is_err(), "bits behind the mask");
        }
        let mut bytes = Vec::new();
        send("10.0.0.1", false, &mut bytes).unwrap();
        assert_eq!(bytes, [2, 32, 0, 4, 10, 0, 0, 1]);
        assert!(receive(&[2, 33, 0, 4, 1, 2, 3, 4], false).is_err());
        assert!(receive(&[2, 32, 0, 4, 1, 2, 3], false).is_err());
        assert!(receive(&[9], false).is_err());
    }
}
