//! Encodings of clients and of COPY's files: text inside is UTF-8 always, and is made from and into these at the edge.
//!
//! # Differs from PostgreSQL
//! Those in which a character is one byte; of others there is UTF8 alone.

use crate::{Result, bail};
use std::sync::OnceLock;

/// An encoding in which bytes up to 0x7f are ASCII, and each byte is a character.
#[derive(PartialEq, Eq, Debug)]
pub struct Encoding {
    name: &'static str,
    /// Its other name, as [`plain`] makes it.
    also: &'static str,
    /// The first byte that `upper` tells of; from 0x80 to there the bytes are characters of their own number.
    first: u8,
    /// The characters of the bytes from `first` on; U+0000 where a byte is none.
    upper: &'static str,
}

/// UTF-8, or bytes of which nobody says what they are: both are taken as they come.
const UTF8: Encoding = Encoding { name: "UTF8", also: "unicode", first: 0, upper: "" };
const SQL_ASCII: Encoding = Encoding { name: "SQL_ASCII", also: "", first: 0, upper: "" };

/// As PostgreSQL compares names of encodings: letters and digits alone, small.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// The encoding of that name, however it is spelled.
pub fn by_name(name: &str) -> Option<&'static Encoding> {
    let name = match plain(name).as_str() {
        "win" => "win1251".to_owned(),
        "alt" => "win866".to_owned(),
        "abc" | "tcvn" | "tcvn5712" | "vscii" => "win1258".to_owned(),
        other => other.to_owned(),
    };
    let mut all = [&UTF8, &SQL_ASCII].into_iter().chain(TABLES);
    all.find(|e| plain(e.name) == name || (!e.also.is_empty() && e.also == name))
}

/// UTF-8.
pub fn utf8() -> &'static Encoding {
    &UTF8
}

impl Encoding {
    /// As PostgreSQL spells it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Is text in it other bytes than in UTF-8?
    pub fn converts(&self) -> bool {
        !self.upper.is_empty()
    }

    /// The characters of the bytes from 0x80 on.
    fn table(&'static self) -> &'static [char; 128] {
        static ALL: OnceLock<Vec<[char; 128]>> = OnceLock::new();
        let all = ALL.get_or_init(|| TABLES.iter().map(Encoding::characters).collect());
        let at = TABLES.iter().position(|e| std::ptr::eq(e, self)).unwrap_or(0);
        &all[at]
    }

    fn characters(&self) -> [char; 128] {
        let mut table = ['\0'; 128];
        let low = (0x80..self.first).map(char::from);
        for (slot, c) in table.iter_mut().zip(low.chain(self.upper.chars())) {
            *slot = c;
        }
        table
    }

    /// Adds what `bytes` mean, in UTF-8.
    ///
    /// # Errors
    /// `22P05`: a byte that means nothing.
    pub fn decode(&'static self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.converts() || bytes.is_ascii() {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let table = self.table();
        for byte in bytes {
            let c = match byte.checked_sub(0x80) {
                None => char::from(*byte),
                Some(at) => table[usize::from(at)],
            };
            if c == '\0' && *byte != 0 {
                bail!(
                    UNTRANSLATABLE_CHARACTER,
                    "character with byte sequence 0x{byte:02x} in encoding \"{}\" has no equivalent in encoding \"UTF8\"",
                    self.name
                );
            }
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }

    fn byte(table: &[char; 128], c: char) -> Option<u8> {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => Some(byte),
            _ => table.iter().position(|t| *t == c).and_then(|at| u8::try_from(at + 0x80).ok()),
        }
    }

    /// Adds `text` in this encoding.
    ///
    /// # Errors
    /// `22P05`: a character that it has not.
    pub fn encode(&'static self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        if !self.converts() || text.is_ascii() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let table = self.table();
        for c in text.chars() {
            let Some(byte) = Encoding::byte(table, c) else {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes().map(|b| format!("0x{b:02x}"));
                bail!(
                    UNTRANSLATABLE_CHARACTER,
                    "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"{}\"",
                    bytes.collect::<Vec<_>>().join(" "),
                    self.name
                );
            };
            out.push(byte);
        }
        Ok(())
    }

    /// Adds `text`, with `?` for what the encoding has not: of messages, which have to come through.
    pub fn encode_lossy(&'static self, text: &str, out: &mut Vec<u8>) {
        let table = self.table();
        out.extend(text.chars().map(|c| Encoding::byte(table, c).unwrap_or(b'?')));
    }
}

#[rustfmt::skip]
static TABLES: &[Encoding] = &[
    Encoding {
        name: "LATIN1",
        also: "iso88591",
        first: 0xa1,
        upper: "¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    },
    Encoding {
        name: "LATIN2",
        also: "iso88592",
        first: 0xa1,
        upper: "Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{ad}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙",
    },
    Encoding {
        name: "LATIN3",
        also: "iso88593",
        first: 0xa1,
        upper: "Ħ˘£¤\0Ĥ§¨İŞĞĴ\u{ad}\0Ż°ħ²³´µĥ·¸ışğĵ½\0żÀÁÂ\0ÄĊĈÇÈÉÊËÌÍÎÏ\0ÑÒÓÔĠÖ×ĜÙÚÛÜŬŜßàáâ\0äċĉçèéêëìíîï\0ñòóôġö÷ĝùúûüŭŝ˙",
    },
    Encoding {
        name: "LATIN4",
        also: "iso88594",
        first: 0xa1,
        upper: "ĄĸŖ¤ĨĻ§¨ŠĒĢŦ\u{ad}Ž¯°ą˛ŗ´ĩļˇ¸šēģŧŊžŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎĪĐŅŌĶÔÕÖ×ØŲÚÛÜŨŪßāáâãäåæįčéęëėíîīđņōķôõö÷øųúûüũū˙",
    },
    Encoding {
        name: "LATIN5",
        also: "iso88599",
        first: 0xa1,
        upper: "¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ",
    },
    Encoding {
        name: "LATIN6",
        also: "iso885910",
        first: 0xa1,
        upper: "ĄĒĢĪĨĶ§ĻĐŠŦŽ\u{ad}ŪŊ°ąēģīĩķ·ļđšŧž―ūŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎÏÐŅŌÓÔÕÖŨØŲÚÛÜÝÞßāáâãäåæįčéęëėíîïðņōóôõöũøųúûüýþĸ",
    },
    Encoding {
        name: "LATIN7",
        also: "iso885913",
        first: 0xa1,
        upper: "”¢£¤„¦§Ø©Ŗ«¬\u{ad}®Æ°±²³“µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž’",
    },
    Encoding {
        name: "LATIN8",
        also: "iso885914",
        first: 0xa1,
        upper: "Ḃḃ£ĊċḊ§Ẁ©ẂḋỲ\u{ad}®ŸḞḟĠġṀṁ¶ṖẁṗẃṠỳẄẅṡÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏŴÑÒÓÔÕÖṪØÙÚÛÜÝŶßàáâãäåæçèéêëìíîïŵñòóôõöṫøùúûüýŷÿ",
    },
    Encoding {
        name: "LATIN9",
        also: "iso885915",
        first: 0xa1,
        upper: "¡¢£€¥Š§š©ª«¬\u{ad}®¯°±²³Žµ¶·ž¹º»ŒœŸ¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    },
    Encoding {
        name: "LATIN10",
        also: "iso885916",
        first: 0xa1,
        upper: "ĄąŁ€„Š§š©Ș«Ź\u{ad}źŻ°±ČłŽ”¶·žčș»ŒœŸżÀÁÂĂÄĆÆÇÈÉÊËÌÍÎÏĐŃÒÓÔŐÖŚŰÙÚÛÜĘȚßàáâăäćæçèéêëìíîïđńòóôőöśűùúûüęțÿ",
    },
    Encoding {
        name: "WIN1256",
        also: "windows1256",
        first: 0x80,
        upper: "€\u{67e}‚ƒ„…†‡ˆ‰\u{679}‹Œ\u{686}\u{698}\u{688}\u{6af}‘’“”•–—\u{6a9}™\u{691}›œ\u{200c}\u{200d}\u{6ba}\u{a0}\u{60c}¢£¤¥¦§¨\
         ©\u{6be}«¬\u{ad}®¯°±²³´µ¶·¸¹\u{61b}»¼½¾\u{61f}\u{6c1}\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\
         \u{62a}\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}×\u{637}\u{638}\u{639}\u{63a}\
         \u{640}\u{641}\u{642}\u{643}à\u{644}â\u{645}\u{646}\u{647}\u{648}çèéêë\u{649}\u{64a}îï\u{64b}\u{64c}\u{64d}\u{64e}ô\
         \u{64f}\u{650}÷\u{651}ù\u{652}ûü\u{200e}\u{200f}\u{6d2}",
    },
    Encoding {
        name: "WIN1258",
        also: "windows1258",
        first: 0x80,
        upper: "€\0‚ƒ„…†‡ˆ‰\0‹Œ\0\0\0\0‘’“”•–—˜™\0›œ\0\0Ÿ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂĂÄÅÆÇÈÉÊË\u{300}ÍÎÏĐÑ\u{309}ÓÔƠÖ×Ø\
         ÙÚÛÜƯ\u{303}ßàáâăäåæçèéêë\u{301}íîïđñ\u{323}óôơö÷øùúûüư₫ÿ",
    },
    Encoding {
        name: "WIN866",
        also: "windows866",
        first: 0x80,
        upper: "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀рстуфхцчшщъыьэюяЁёЄєЇїЎў\
         °∙·√№¤■\u{a0}",
    },
    Encoding {
        name: "WIN874",
        also: "windows874",
        first: 0x80,
        upper: "€\0\0\0\0…\0\0\0\0\0\0\0\0\0\0\0‘’“”•–—\0\0\0\0\0\0\0\0\u{a0}กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯ\u{e30}\
         \u{e31}\u{e32}\u{e33}\u{e34}\u{e35}\u{e36}\u{e37}\u{e38}\u{e39}\u{e3a}\0\0\0\0\u{e3f}\u{e40}\u{e41}\u{e42}\u{e43}\u{e44}\
         \u{e45}\u{e46}\u{e47}\u{e48}\u{e49}\u{e4a}\u{e4b}\u{e4c}\u{e4d}\u{e4e}\u{e4f}๐๑๒๓๔๕๖๗๘๙๚๛\0\0\0\0",
    },
    Encoding {
        name: "KOI8R",
        also: "koi8",
        first: 0x80,
        upper: "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{a0}⌡°²·÷═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯР\
         СТУЖВЬЫЗШЭЩЧЪ",
    },
    Encoding {
        name: "WIN1251",
        also: "windows1251",
        first: 0x80,
        upper: "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\0™љ›њќћџ\u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї°±Ііґµ¶·ё№є»јЅѕїАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклм\
         нопрстуфхцчшщъыьэюя",
    },
    Encoding {
        name: "WIN1252",
        also: "windows1252",
        first: 0x80,
        upper: "€\0‚ƒ„…†‡ˆ‰Š‹Œ\0Ž\0\0‘’“”•–—˜™š›œ\0žŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçè\
         éêëìíîïðñòóôõö÷øùúûüýþÿ",
    },
    Encoding {
        name: "ISO_8859_5",
        also: "",
        first: 0xa1,
        upper: "ЁЂЃЄЅІЇЈЉЊЋЌ\u{ad}ЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя№ёђѓєѕіїјљњћќ§ўџ",
    },
    Encoding {
        name: "ISO_8859_6",
        also: "",
        first: 0xa1,
        upper: "\0\0\0¤\0\0\0\0\0\0\0\u{60c}\u{ad}\0\0\0\0\0\0\0\0\0\0\0\0\0\u{61b}\0\0\0\u{61f}\0\u{621}\u{622}\u{623}\u{624}\u{625}\
         \u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}\
         \u{637}\u{638}\u{639}\u{63a}\0\0\0\0\0\u{640}\u{641}\u{642}\u{643}\u{644}\u{645}\u{646}\u{647}\u{648}\u{649}\u{64a}\
         \u{64b}\u{64c}\u{64d}\u{64e}\u{64f}\u{650}\u{651}\u{652}\0\0\0\0\0\0\0\0\0\0\0\0\0",
    },
    Encoding {
        name: "ISO_8859_7",
        also: "",
        first: 0xa1,
        upper: "‘’£€₯¦§¨©ͺ«¬\u{ad}\0―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\0ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\0",
    },
    Encoding {
        name: "ISO_8859_8",
        also: "",
        first: 0xa1,
        upper: "\0¢£¤¥¦§¨©×«¬\u{ad}®¯°±²³´µ¶·¸¹÷»¼½¾\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0‗\u{5d0}\u{5d1}\
         \u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\
         \u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}\0\0\u{200e}\u{200f}\0",
    },
    Encoding {
        name: "WIN1250",
        also: "windows1250",
        first: 0x80,
        upper: "€\0‚\0„…†‡\0‰Š‹ŚŤŽŹ\0‘’“”•–—\0™š›śťžź\u{a0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{ad}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçč\
         éęëěíîďđńňóôőö÷řůúűüýţ˙",
    },
    Encoding {
        name: "WIN1253",
        also: "windows1253",
        first: 0x80,
        upper: "€\0‚ƒ„…†‡\0‰\0‹\0\0\0\0\0‘’“”•–—\0™\0›\0\0\0\0\u{a0}΅Ά£¤¥¦§¨©\0«¬\u{ad}®―°±²³΄µ¶·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\0ΣΤΥΦΧΨΩΪΫάέ\
         ήίΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\0",
    },
    Encoding {
        name: "WIN1254",
        also: "windows1254",
        first: 0x80,
        upper: "€\0‚ƒ„…†‡ˆ‰Š‹Œ\0\0\0\0‘’“”•–—˜™š›œ\0\0Ÿ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæ\
         çèéêëìíîïğñòóôõö÷øùúûüışÿ",
    },
    Encoding {
        name: "WIN1255",
        also: "windows1255",
        first: 0x80,
        upper: "€\0‚ƒ„…†‡ˆ‰\0‹\0\0\0\0\0‘’“”•–—˜™\0›\0\0\0\0\u{a0}¡¢£₪¥¦§¨©×«¬\u{ad}®¯°±²³´µ¶·¸¹÷»¼½¾¿\u{5b0}\u{5b1}\u{5b2}\u{5b3}\
         \u{5b4}\u{5b5}\u{5b6}\u{5b7}\u{5b8}\u{5b9}\0\u{5bb}\u{5bc}\u{5bd}\u{5be}\u{5bf}\u{5c0}\u{5c1}\u{5c2}\u{5c3}\u{5f0}\
         \u{5f1}\u{5f2}\u{5f3}\u{5f4}\0\0\0\0\0\0\0\u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\
         \u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}\0\0\
         \u{200e}\u{200f}\0",
    },
    Encoding {
        name: "WIN1257",
        also: "windows1257",
        first: 0x80,
        upper: "€\0‚\0„…†‡\0‰\0‹\0¨ˇ¸\0‘’“”•–—\0™\0›\0¯˛\0\u{a0}\0¢£¤\0¦§Ø©Ŗ«¬\u{ad}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąį\
         āćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙",
    },
    Encoding {
        name: "KOI8U",
        also: "",
        first: 0x80,
        upper: "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u{a0}⌡°²·÷═║╒ёє╔ії╗╘╙╚╛ґ╝╞╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯР\
         СТУЖВЬЫЗШЭЩЧЪ",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(name: &str, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        match by_name(name).unwrap().decode(bytes, &mut out) {
            Ok(()) => String::from_utf8(out).unwrap(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn every_table_goes_both_ways() {
        for e in TABLES {
            assert_eq!(e.upper.chars().count() + usize::from(e.first - 0x80), 128, "{}", e.name);
            for byte in 0..=255u8 {
                let mut text = Vec::new();
                if e.decode(&[byte], &mut text).is_ok() {
                    let (mut back, text) = (Vec::new(), String::from_utf8(text).unwrap());
                    e.encode(&text, &mut back).unwrap();
                    assert_eq!(back, [byte], "{} {text}", e.name);
                }
            }
        }
    }

    #[test]
    fn names_are_found_however_they_are_spelled() {
        let name = |n| by_name(n).map(Encoding::name);
        assert_eq!(name("iso-8859-1"), Some("LATIN1"));
        assert_eq!(name("Windows_1252"), Some("WIN1252"));
        assert_eq!(name("koi8"), Some("KOI8R"));
        assert_eq!(name("utf-8"), Some("UTF8"));
        assert_eq!(name(""), None);
        assert_eq!(name("EUC_JP"), None);
    }

    #[test]
    fn what_has_no_equivalent_is_named() {
        assert_eq!(converted("LATIN1", b"caf\xe9"), "café");
        assert_eq!(converted("WIN1252", b"\x80 5"), "€ 5");
        assert_eq!(converted("KOI8R", b"\xf0\xd2"), "Пр");
        assert_eq!(
            converted("WIN1253", b"\xaa"),
            "character with byte sequence 0xaa in encoding \"WIN1253\" has no equivalent in encoding \"UTF8\""
        );
        let mut out = Vec::new();
        let latin1 = by_name("latin1").unwrap();
        assert_eq!(
            latin1.encode("5 €", &mut out).unwrap_err().to_string(),
            "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        );
        let mut out = Vec::new();
        latin1.encode_lossy("é €", &mut out);
        assert_eq!(out, b"\xe9 ?");
    }
}
