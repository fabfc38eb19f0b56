//! Whatever the bytes, nothing panics and nothing hangs.

use super::mock::{Mock, ran_with};
use crate::{Options, Returns};

const GOOD: &str = include_str!("good.sql");

/// A small generator: the tests need no more.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn try_out(body: &str) {
    for returns in [Returns::Nothing, Returns::Value, Returns::Set] {
        let mock = Mock { patience: Some(300), ..Mock::default() };
        let options = Options { returns, ..Options::default() };
        ran_with(body, &options, mock);
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

#[test]
fn good_bodies_are_good() {
    for body in GOOD.split("----\n") {
        let mock = Mock { patience: Some(3000), ..Mock::default() };
        let all = ran_with(body, &Options::default(), mock);
        let wrong = all.iter().find(|l| l.starts_with("ERROR"));
        assert!(wrong.is_none(), "{body}\n{all:#?}");
    }
}

#[test]
fn cuts() {
    for body in GOOD.split("----\n") {
        for (at, _) in body.char_indices() {
            try_out(&body[..at]);
            try_out(&body[at..]);
        }
    }
}

#[test]
fn shuffles() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let all = words(GOOD);
    for _ in 0..3000 {
        let n = 1 + random.below(30);
        let body: String = (0..n).map(|_| all[random.below(all.len())]).collect();
        try_out(&body);
        let mut body: Vec<&str> = words(GOOD.split("----\n").nth(random.below(3)).unwrap_or(""));
        for _ in 0..=random.below(3) {
            let at = random.below(body.len());
            match random.below(3) {
                0 => {
                    body.remove(at);
                }
                1 => body.insert(at, all[random.below(all.len())]),
                _ => body[at] = all[random.below(all.len())],
            }
        }
        try_out(&body.concat());
    }
}

#[test]
fn bytes() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let signs: Vec<char> = "'\"$;:=.()[]<>-/*#%\\ \n\u{e9}\u{1f600}\0eEuUx1a".chars().collect();
    for _ in 0..5000 {
        let n = random.below(40);
        let text: String = (0..n).map(|_| signs[random.below(signs.len())]).collect();
        try_out(&text);
        try_out(&format!("BEGIN {text} END"));
        try_out(&format!("DECLARE x int := {text}; BEGIN END"));
    }
}
