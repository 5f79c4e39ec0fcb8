//! Records from a fixed seed: mostly good ones, and small damage to them.

use std::fmt::Write as _;

/// A xorshift generator: the same records on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit as u64).expect("small")
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A few bytes changed, taken out, doubled or put in.
    pub(super) fn damage(&mut self, record: &mut Vec<u8>, likely: &[u8]) {
        for _ in 0..=self.below(3) {
            if record.is_empty() {
                return;
            }
            let at = self.below(record.len());
            let byte = if self.chance(70) {
                likely[self.below(likely.len())]
            } else {
                u8::try_from(self.below(256)).expect("a byte")
            };
            match self.below(5) {
                0 => record[at] = byte,
                1 => record.insert(at, byte),
                2 => drop(record.remove(at)),
                3 => record.truncate(at),
                _ => record.extend_from_within(at..record.len().min(at + 3)),
            }
        }
    }
}

pub(super) const NAMES: &[&str] = &[
    "op",
    "key",
    "ts",
    "id",
    "seq",
    "rev",
    "type",
    "data",
    "when",
    "a",
    "b",
    "c",
    "price",
    "eight_by",
    "a_longer_name",
    "\u{e9}",
    "",
    "d\\u0061ta",
    "\\u0061",
    "x\\ny",
    "pric",
    "prices",
];
const TEXTS: &[&str] = &[
    "",
    "k",
    "insert",
    "retract",
    "punctuation",
    "arc",
    "arc-retract",
    "arc-punctuation",
    "inser",
    "exactly8",
    "more than eight",
    "\u{e9}",
    "\u{1f600} twice \u{1f600}",
    "\\n",
    "\\ud83d\\ude00",
    "a\\\"b",
    "retr\\u0061ct",
    "000000000012",
    "1234567890123",
];
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "12345678",
    "123456789",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "99999999999999999999",
    "0.5",
    "-0.0",
    "1.25",
    "31.52",
    "-0.4",
    "0.1",
    "123456.789012",
    "0.30000000000000004",
    "9007199254740993.0",
    "1e2",
    "1E-2",
    "1e22",
    "1e23",
    "-5e-324",
    "1e308",
    "1e309",
    "1e-400",
    "1.7976931348623157e308",
    "12345678.87654321",
    "0e0",
    "0.000000000000000000000001",
    "1e99999999999999999999999",
    "0e99999999999999999999999",
    "1234567812345678",
    "0.12345678123456781234",
    "5e-1",
];
const BAD_VALUES: &[&str] = &[
    "",
    "NaN",
    "-",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "tru",
    "nulls",
    "Infinity",
    "\"",
    "\"\\x\"",
    "\"\\u12g4\"",
    "\"\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\udc00\"",
    "\"\t\"",
    "[1,]",
    "[",
    "{",
    "{\"a\"}",
    "{\"a\":}",
    "{,}",
    "]",
    "1 2",
    "\u{feff}1",
    "\"\\",
    "\"\\u00",
];

/// A JSON object in the shape of a record, usually a good one.
pub(super) fn record(random: &mut Random) -> String {
    let mut out = String::from("{");
    let mut separator = "";
    if random.chance(90) {
        let _ = write!(
            out,
            "\"key\":\"{}\",\"ts\":{}",
            random.pick(TEXTS),
            random.below(100_000)
        );
        separator = ",";
    }
    for _ in 0..random.below(6) {
        let name = random.pick(NAMES);
        let _ = write!(out, "{separator}{}\"{name}\"{}:", space(random), space(random));
        match name {
            "data" | "d\\u0061ta" if random.chance(90) => object(random, &mut out, 1),
            "ts" | "seq" | "rev" if random.chance(90) => out.push_str(random.pick(NUMBERS)),
            "op" if random.chance(90) => {
                let operations = [
                    "insert",
                    "retract",
                    "punctuation",
                    "arc",
                    "arc-punctuation",
                    "retr\\u0061ct",
                ];
                let _ = write!(out, "\"{}\"", random.pick(&operations));
            }
            "id" | "key" | "type" | "when" if random.chance(90) => {
                let _ = write!(out, "\"{}\"", random.pick(TEXTS));
            }
            _ => any(random, &mut out, 1),
        }
        separator = ",";
    }
    out.push('}');
    out
}

fn space(random: &mut Random) -> &'static str {
    random.pick(&["", "", "", "", " ", "\n\t\r ", "      "])
}

fn object(random: &mut Random, out: &mut String, depth: usize) {
    out.push('{');
    for number in 0..random.below(5) {
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(
            out,
            "{separator}{}\"{}\"{}:",
            space(random),
            random.pick(NAMES),
            space(random)
        );
        out.push_str(space(random));
        any(random, out, depth + 1);
        out.push_str(space(random));
    }
    out.push('}');
}

fn any(random: &mut Random, out: &mut String, depth: usize) {
    match random.below(if depth > 5 { 5 } else { 8 }) {
        0 | 1 => out.push_str(random.pick(NUMBERS)),
        2 => {
            let _ = write!(out, "\"{}\"", random.pick(TEXTS));
        }
        3 => out.push_str(random.pick(&["true", "false", "null"])),
        4 if random.chance(10) => out.push_str(random.pick(BAD_VALUES)),
        4 => out.push_str(random.pick(&["[]", "{}", "[1,2.5]", "[ 1 ]", "[\"a\"]", "[null]", "[1e400]"])),
        5 | 6 => object(random, out, depth),
        _ => {
            out.push('[');
            any(random, out, depth + 1);
            out.push(',');
            any(random, out, depth + 1);
            out.push(']');
        }
    }
}
