//! Messages of a client whose `client_encoding` is another than UTF-8.
//!
//! # Invariants
//! Inside of the server text is UTF-8: what comes in is converted before it is decoded, what goes out after it was
//! encoded. COPY's data is converted by COPY, which knows its own ENCODING.
//!
//! # Differs from PostgreSQL
//! Text among binary parameters, and in binary arrays and binary COPY, is UTF-8 whatever the client's encoding is. A
//! changed encoding holds from the end of the message that changed it.

use base::Oid;
use base::Result;
use base::encoding::Encoding;
use types::type_info;

/// A message's body, and the body that is made of it.
struct Body<'a> {
    rest: &'a [u8],
    made: Vec<u8>,
    encoding: &'static Encoding,
}

/// A body that is not laid out as its kind is: whoever decodes it says so.
struct Malformed;

/// Why it was not converted.
enum Stop {
    Malformed,
    Text(base::Error),
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Stop {
        Stop::Malformed
    }
}

impl Body<'_> {
    fn take(&mut self, n: usize) -> std::result::Result<&[u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Malformed)?;
        self.rest = rest;
        self.made.extend_from_slice(taken);
        Ok(taken)
    }

    fn count(&mut self) -> std::result::Result<usize, Malformed> {
        let taken = self.take(2)?;
        Ok(usize::from(u16::from_be_bytes([taken[0], taken[1]])))
    }

    fn string(&mut self) -> std::result::Result<(), Stop> {
        let end = self.rest.iter().position(|b| *b == 0).ok_or(Malformed)?;
        self.encoding.decode(&self.rest[..end], &mut self.made).map_err(Stop::Text)?;
        self.rest = &self.rest[end..];
        self.take(1)?;
        Ok(())
    }

    /// A parameter's value.
    fn value(&mut self, is_text: bool) -> std::result::Result<(), Stop> {
        let length = self.rest.first_chunk::<4>().ok_or(Malformed)?;
        let length = i32::from_be_bytes(*length);
        if length == -1 || !is_text {
            self.take(4 + usize::try_from(length).unwrap_or(0))?;
            return Ok(());
        }
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let bytes = self.rest.get(4..4 + length).ok_or(Malformed)?;
        let at = self.made.len();
        self.made.extend_from_slice(&[0; 4]);
        self.encoding.decode(bytes, &mut self.made).map_err(Stop::Text)?;
        let made = i32::try_from(self.made.len() - at - 4).map_err(|_| Malformed)?;
        self.made[at..at + 4].copy_from_slice(&made.to_be_bytes());
        self.rest = &self.rest[4 + length..];
        Ok(())
    }

    fn bind(&mut self) -> std::result::Result<(), Stop> {
        self.string()?;
        self.string()?;
        let formats = self.count()?;
        let codes: Vec<bool> = self.take(formats * 2)?.chunks(2).map(|c| c == [0, 0]).collect();
        for i in 0..self.count()? {
            let is_text = match codes.as_slice() {
                [] => true,
                [one] => *one,
                many => many.get(i).copied().unwrap_or(true),
            };
            self.value(is_text)?;
        }
        Ok(())
    }

    fn convert(&mut self, kind: u8) -> std::result::Result<(), Stop> {
        match kind {
            b'Q' | b'f' | b'E' => self.string(),
            b'P' => self.string().and_then(|()| self.string()),
            b'D' | b'C' => {
                self.take(1)?;
                self.string()
            }
            b'B' => self.bind(),
            _ => Ok(()),
        }?;
        self.take(self.rest.len())?;
        Ok(())
    }
}

/// A client's message with its text in UTF-8; None if it is that already, or not a message as it should be.
///
/// # Errors
/// `22P05`
pub fn incoming(encoding: &'static Encoding, kind: u8, body: &[u8]) -> Result<Option<Vec<u8>>> {
    if body.is_ascii() || !b"QfEPDCB".contains(&kind) {
        return Ok(None);
    }
    let mut message = Body { rest: body, made: vec![kind, 0, 0, 0, 0], encoding };
    match message.convert(kind) {
        Ok(()) => {}
        Err(Stop::Malformed) => return Ok(None),
        Err(Stop::Text(error)) => return Err(error),
    }
    let mut made = message.made;
    let Ok(length) = u32::try_from(made.len() - 1) else { return Ok(None) };
    made[1..5].copy_from_slice(&length.to_be_bytes());
    Ok(Some(made))
}

/// A message for the client with its text in the client's encoding; None if nothing is to be changed.
pub fn outgoing(encoding: &'static Encoding, message: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = message.split_at_checked(5)?;
    if body.is_ascii() {
        return None;
    }
    let mut made = head.to_vec();
    let lossy = |bytes: &[u8], made: &mut Vec<u8>| {
        encoding.encode_lossy(&String::from_utf8_lossy(bytes), made);
    };
    match head[0] {
        // Codes and strings with their ends.
        b'E' | b'N' | b'S' | b'C' => lossy(body, &mut made),
        b'A' => {
            made.extend_from_slice(&body[..4]);
            lossy(&body[4..], &mut made);
        }
        b'T' => {
            made.extend_from_slice(&body[..2]);
            let mut rest = &body[2..];
            while let Some(end) = rest.iter().position(|b| *b == 0) {
                lossy(&rest[..end], &mut made);
                // The name's end, and what is told of the column in 18 bytes.
                made.extend_from_slice(rest.get(end..end + 19)?);
                rest = &rest[end + 19..];
            }
        }
        _ => return None,
    }
    let length = u32::try_from(made.len() - 1).ok()?;
    made[1..5].copy_from_slice(&length.to_be_bytes());
    Some(made)
}

/// Where the text begins in a value's binary form, if it is text.
pub fn text_in_binary(ty: Oid) -> Option<usize> {
    match type_info(ty)?.send {
        "textsend" | "varcharsend" | "bpcharsend" | "namesend" | "json_send" | "xml_send"
        | "unknownsend" | "cstring_send" | "enum_send" => Some(0),
        // A version goes before it.
        "jsonb_send" => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latin1() -> &'static Encoding {
        base::encoding::by_name("LATIN1").unwrap()
    }

    #[test]
    fn text_parameters_are_converted_and_binary_ones_are_not() {
        let body = b"\xe9\0s\0\0\x02\0\0\0\x01\0\x03\0\0\0\x01\xe9\0\0\0\x01\xe9\xff\xff\xff\xff\0\x01\0\x01";
        let made = incoming(latin1(), b'B', body).unwrap().unwrap();
        // Three values and two formats: the third is text.
        let want = b"B\0\0\0\x27\xc3\xa9\0s\0\0\x02\0\0\0\x01\0\x03\0\0\0\x02\xc3\xa9\0\0\0\x01\xe9\xff\xff\xff\xff\0\x01\0\x01";
        assert_eq!(made[5..], want[5..]);
        assert_eq!(made[..5], [b'B', 0, 0, 0, u8::try_from(made.len() - 1).unwrap()]);
        for cut in 1..body.len() {
            assert!(incoming(latin1(), b'B', &body[..cut]).is_ok());
        }
    }

    #[test]
    fn queries_and_names_are_converted() {
        assert_eq!(incoming(latin1(), b'Q', b"SELECT 1\0").unwrap(), None);
        let made = incoming(latin1(), b'Q', b"'\xe9'\0").unwrap().unwrap();
        assert_eq!(made, b"Q\0\0\0\x09'\xc3\xa9'\0");
        let made = incoming(latin1(), b'P', b"\xe9\0'\xe9'\0\0\x01\0\0\0\xe9").unwrap().unwrap();
        assert_eq!(made[5..], *b"\xc3\xa9\0'\xc3\xa9'\0\0\x01\0\0\0\xe9");
        let greek = base::encoding::by_name("WIN1253").unwrap();
        assert!(incoming(greek, b'Q', b"\xaa\0").is_err());
    }

    #[test]
    fn what_goes_out_is_converted() {
        let made = outgoing(latin1(), b"E\0\0\0\x0cM\xc3\xa9\xe2\x82\xac\0\0").unwrap();
        assert_eq!(made, b"E\0\0\0\x09M\xe9?\0\0");
        let row =
            b"T\0\0\0\x1b\0\x01\xc3\xa9\0\0\0\xe9\xe9\0\x01\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let made = outgoing(latin1(), row).unwrap();
        assert_eq!(made[..5], *b"T\0\0\0\x1a");
        assert_eq!(made[7..], [b"\xe9", &row[9..]].concat());
        assert_eq!(outgoing(latin1(), b"D\0\0\0\x07\xc3\xa9\0"), None);
    }
}
