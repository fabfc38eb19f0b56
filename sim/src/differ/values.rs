//! Types, and values of them that have been wrong before: zeroes, ends of ranges, NaN, empty strings, leap days.

use base::Oid;

/// A type that columns and expressions have.
pub struct Type {
    /// As SQL writes it.
    pub name: &'static str,
    /// `pg_type.oid`
    pub oid: Oid,
    /// Ordinary values, of which no two are equal but look different; these stand in tables.
    pub plain: &'static [&'static str],
    /// Others, for expressions.
    pub odd: &'static [&'static str],
    /// Has a btree operator class, so it can be sorted and grouped.
    pub sorts: bool,
}

macro_rules! types {
    ($($name:literal $oid:literal $sorts:literal [$($plain:literal),*] [$($odd:literal),*];)*) => {
        /// All of them; the first are the most common.
        pub static TYPES: &[Type] = &[$(Type { name: $name, oid: Oid($oid), plain: &[$($plain),*], odd: &[$($odd),*], sorts: $sorts }),*];
    };
}

types! {
    "int4" 23 true ["0", "1", "2", "3", "5", "7", "-1", "10", "42", "100"] ["2147483647", "-2147483648", "-2147483647", "65536", "31", "32", "33", "4", "6", "8", "12", "-3"];
    "text" 25 true ["", "a", "b", "ab", "abc", "B", "x y", "Foo", "zz", "10"]
        ["a%b_c", "\\\\", "1", "-1.5", "  pad ", "Äöß€", "日本", "true", "2024-02-29", "{1,2}", "{\"a\":1}", "null", "''", "aaaa", "abcabcabc", "12:34:56", "1 day", "UTC", "%s-%I", "foo.bar", "YYYY-MM-DD HH24:MI:SS", "999D99", "FM9,999.00", "hex", "day", "epoch", "g", "(a)(b)?", "[a-c]+", "^a", "utf8", "md5"];
    "int8" 20 true ["0", "1", "2", "3", "-1", "10", "4294967296", "-5", "100"] ["9223372036854775807", "-9223372036854775808", "2147483648", "-2147483649", "63", "64"];
    "numeric" 1700 true ["0", "1", "2", "1.5", "-1.25", "100", "3.14159", "-7", "0.001", "99999.5"]
        ["NaN", "Infinity", "-Infinity", "0.00", "1.10", "12345678901234567890.123456789", "-0.5", "2.5", "1e20", "1e-20", "0.1", "9223372036854775807.5", "32767.5", "-99999999999999999999999999999", "1e130", "123.456e-3", "4", "10", "1000000.000"];
    "bool" 16 true ["f", "t"] [];
    "float8" 701 true ["0", "1", "2", "0.5", "-1.5", "100", "3.25", "-7"] ["-0", "NaN", "Infinity", "-Infinity", "1e308", "1e-308", "0.1", "2.5", "3.5", "1e15", "1e16", "123456789.125", "9.223372036854775e18", "4.9e-324", "90", "45", "1e-7"];
    "date" 1082 true ["2000-01-01", "2024-02-29", "1999-12-31", "2023-03-26", "2023-10-29", "1970-01-01", "2024-12-31"] ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01", "0001-12-31 BC", "2001-02-03", "1900-02-28"];
    "timestamp" 1114 true ["2000-01-01 00:00:00", "2024-02-29 12:34:56.789", "1999-12-31 23:59:59.999999", "2023-03-26 02:30:00", "2023-10-29 02:30:00", "1970-01-01 00:00:00"] ["infinity", "-infinity", "4713-01-01 00:00:00 BC", "294276-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC", "2024-01-31 00:00:00"];
    "interval" 1186 true ["1 day", "2 hours", "-3 days", "1 mon", "1 year 2 mons 3 days 04:05:06.789", "00:00:00", "00:00:01"] ["-1 mons +1 day", "24:00:00", "30 days", "178000000 years", "-178000000 years", "00:00:00.000001", "2562047788:00:54.775807", "-00:00:00.5", "1 mon -1 day 00:00:01", "12 mons"];
    "timestamptz" 1184 true ["2000-01-01 00:00:00+00", "2024-02-29 12:34:56.789+00", "1999-12-31 23:59:59.999999+00", "2023-03-26 01:30:00+00", "2023-10-29 00:30:00+00", "2023-10-29 01:30:00+00"] ["infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "294276-12-31 23:59:59+00", "1883-11-18 12:00:00+00", "2024-07-01 00:00:00-07"];
    "jsonb" 3802 true ["null", "1", "\"a\"", "{}", "[]", "{\"a\":1}", "[1,2,3]", "{\"a\":{\"b\":[1,null,\"x\"]}}", "true"] ["1.0", "1.50", "-0", "1e3", "12345678901234567890.12345", "{\"b\":1,\"a\":2}", "{\"a\":1,\"a\":2}", "{\"aa\":1,\"b\":2}", "[[1],[2,3]]", "\"\\u00e4\\n\"", "[\"a\",\"b\"]", "false", "{\"a\":null}", "[1,1]", "\"\"", "[{\"a\":1},{\"b\":2}]"];
    "varchar" 1043 true ["", "a", "b", "ab", "abc", "Z"] ["a%b", "Äö", "  x "];
    "int2" 21 true ["0", "1", "2", "-1", "7", "100"] ["32767", "-32768", "15", "16"];
    "time" 1083 true ["00:00:00", "12:34:56.789", "23:59:59.999999", "01:02:03"] ["24:00:00"];
    "int4[]" 1007 true ["{}", "{1}", "{1,2,3}", "{NULL,2}", "{3,2,1}", "{2}"] ["{{1,2},{3,4}}", "[2:4]={1,2,3}", "{1,1,2}", "[0:1][-1:0]={{1,2},{3,4}}", "{NULL}", "{{1},{2}}"];
    "text[]" 1009 true ["{}", "{a}", "{a,b}", "{NULL,x}", "{\"a b\",\"\"}"] ["{{a,b},{c,d}}", "[0:1]={p,q}", "{\"NULL\",null}", "{\"\\\"\",\"\\\\\"}", "{a,a}", "{b}"];
    "bytea" 17 true ["\\x", "\\x00", "\\x0102", "\\xff", "\\x616263"] ["\\xdeadbeef", "\\x5c", "\\x000000"];
    "uuid" 2950 true ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff"] ["01890a5d-ac96-774b-bcce-b302099a8057"];
    "bpchar" 1042 true ["a", "ab", "b", "abc"] ["a  ", "", "   ", "Ä "];
    "float4" 700 true ["0", "1", "0.5", "-2.25", "16"] ["NaN", "Infinity", "-0", "3.4028235e38", "1e-45", "0.1", "16777216", "1.1"];
    "timetz" 1266 true ["00:00:00+00", "12:34:56.789+00", "23:59:59+00"] ["24:00:00+00", "12:00:00-15:59", "12:00:00+02", "10:00:00-02"];
    "json" 114 false ["null", "1", "{\"a\": 1}", "[1, 2]", "\"x\""] ["{\"b\":1,  \"a\":2}", "{\"a\":1,\"a\":2}", "1.0", "[]", "{}", "{\"a\":{\"b\":[1,null,\"x\"]}}", "  1 ", "[[1],{\"z\":null}]"];
    "numeric[]" 1231 true ["{}", "{1.5}", "{1,2.5}"] ["{NaN,1}", "{{1,2}}"];
    "jsonb[]" 3807 true ["{}", "{\"{\\\"a\\\": 1}\"}"] [];
    "date[]" 1182 true ["{}", "{2000-01-01}"] ["{infinity,2024-02-29}"];
    "name" 19 true ["a", "abc"] ["", "Foo", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"];
    "\"char\"" 18 true ["a", "b"] ["", "z"];
    "oid" 26 true ["0", "1", "25"] ["4294967295", "2147483648"];
    "pg_lsn" 3220 true ["0/0", "1/2"] ["FFFFFFFF/FFFFFFFF", "16/B374D848"];
    "xid8" 5069 true ["0", "5"] ["18446744073709551615"];
}

/// An index into [`TYPES`].
pub type Ty = usize;

/// The type of this name.
pub fn ty(name: &str) -> Ty {
    TYPES.iter().position(|t| t.name == name).unwrap_or(0)
}

/// The type with this OID.
pub fn of_oid(oid: Oid) -> Option<Ty> {
    TYPES.iter().position(|t| t.oid == oid)
}

/// How many of [`TYPES`] stand in tables.
pub const IN_TABLES: usize = 21;

/// A constant in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its type.
    pub ty: Ty,
    /// Its text, or NULL.
    pub text: Option<String>,
    /// To be written without a cast.
    pub bare: bool,
}

impl Literal {
    /// Does it look like its type, written without a cast?
    pub fn typed(&self) -> bool {
        let digits = |t: &String| t.bytes().all(|b| b.is_ascii_digit());
        match TYPES[self.ty].name {
            "bool" => self.text.is_some(),
            "int4" => self.text.as_ref().is_some_and(digits),
            _ => false,
        }
    }

    /// As SQL writes it.
    pub fn sql(&self) -> String {
        let name = TYPES[self.ty].name;
        let Some(text) = &self.text else {
            return if self.bare { "NULL".into() } else { format!("NULL::{name}") };
        };
        if name == "bool" && self.bare {
            return if text == "t" { "true".into() } else { "false".into() };
        }
        if self.bare
            && matches!(name, "int4" | "numeric")
            && text.starts_with(|c: char| c.is_ascii_digit())
        {
            return text.clone();
        }
        let quoted = text.replace('\'', "''");
        if self.bare { format!("'{quoted}'") } else { format!("'{quoted}'::{name}") }
    }
}

/// A statement whose constants stand apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Text with `\u{1}n\u{2}` where constant n stands.
    pub text: String,
    /// The constants.
    pub literals: Vec<Literal>,
    /// Its rows come in an order that the statement fixes.
    pub ordered: bool,
}

impl Statement {
    fn fill(&self, mut with: impl FnMut(usize) -> String) -> String {
        let mut out = String::new();
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once('\u{1}') {
            out.push_str(before);
            let (number, after) = after.split_once('\u{2}').unwrap_or(("0", after));
            out.push_str(&with(number.parse().unwrap_or(0)));
            rest = after;
        }
        out + rest
    }

    /// With its constants where they belong.
    pub fn sql(&self) -> String {
        self.fill(|n| self.literals.get(n).map_or_else(String::new, Literal::sql))
    }

    /// The constants in the order in which they stand in the text.
    pub fn used(&self) -> Vec<Literal> {
        let mut list = Vec::new();
        self.fill(|n| {
            list.extend(self.literals.get(n).cloned());
            String::new()
        });
        list
    }

    /// The statement with other constants of the same types.
    pub fn other(&self) -> Statement {
        let mut other = self.clone();
        for literal in &mut other.literals {
            let plain = TYPES[literal.ty].plain;
            if let Some(text) = &mut literal.text
                && let Some(at) = plain.iter().position(|p| p == text)
            {
                *text = plain[(at + 1) % plain.len()].to_owned();
                // Without a cast it would be a text.
                literal.bare &= !text.starts_with('-');
            }
        }
        other
    }

    /// With other constants of the same types.
    pub fn varied(&self) -> String {
        self.other().sql()
    }

    /// With `$n` in their places, and their values.
    pub fn with_parameters(&self) -> (String, Vec<Option<String>>) {
        let mut values = Vec::new();
        let text = self.fill(|n| {
            let Some(literal) = self.literals.get(n) else { return String::new() };
            values.push(literal.text.clone());
            format!("${}::{}", values.len(), TYPES[literal.ty].name)
        });
        (text, values)
    }
}
