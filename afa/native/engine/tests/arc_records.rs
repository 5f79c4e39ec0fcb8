//! The quick reader of arc records against the full reader of JSON, on random records, spoiled ones too.

#[path = "shared/arc_reading.rs"]
mod arc_reading;

use afa_engine::arcs::record::read_arc_record;
use arc_reading::compare;

/// Small, fixed and good enough to choose test cases.
struct Choice(u64);

impl Choice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn space(&mut self) -> &'static str {
        self.of(&["", "", "", " ", "\t\n"])
    }

    fn object(&mut self, members: &[(&str, String)]) -> String {
        let mut order: Vec<_> = members.iter().collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at + 1));
        }
        let mut told = Vec::new();
        for (name, value) in order {
            let spaces = [self.space(), self.space(), self.space(), self.space()];
            told.push(format!(
                "{}\"{name}\"{}:{}{value}{}",
                spaces[0], spaces[1], spaces[2], spaces[3]
            ));
        }
        format!("{}{{{}}}{}", self.space(), told.join(","), self.space())
    }

    fn text(&mut self) -> String {
        let texts = [
            "a",
            "a7",
            "q1",
            "e.price > 9",
            "\u{e9}\u{1f600}",
            "r.n + 1  and e.x < 3.5",
            "12345678",
        ];
        format!("\"{}\"", self.of(&texts))
    }

    fn record(&mut self) -> String {
        let mut arc = vec![("id", self.text())];
        let removes = self.below(4) == 0;
        let whole = !removes && self.below(2) == 0;
        if whole {
            arc.extend([("from", self.text()), ("to", self.text())]);
            if self.below(2) == 0 {
                arc.push(("when", self.text()));
            }
            if self.below(2) == 0 {
                let transfer = [("n", self.text()), ("m", self.text())];
                let count = self.below(3);
                arc.push(("set", self.object(&transfer[..count])));
            }
        }
        let operation = if removes { "\"arc-retract\"" } else { "\"arc\"" };
        let mut members = vec![
            ("op", operation.into()),
            ("pattern", self.text()),
            ("arc", self.object(&arc)),
        ];
        if !removes && (!whole || self.below(2) == 0) {
            let ends = ["null", "0", "-0", "-17", "5000", "9223372036854775807"];
            members.push((
                "valid",
                format!("[{}, {}{}]", self.of(&ends), self.of(&ends), self.space()),
            ));
        }
        self.object(&members)
    }

    fn spoil(&mut self, record: &mut Vec<u8>) {
        let bytes = b"\"\\{}[]:, 0-.e\x01\x7f\xc3atrue";
        let at = self.below(record.len());
        match self.below(3) {
            0 => record[at] = bytes[self.below(bytes.len())],
            1 => record.insert(at, bytes[self.below(bytes.len())]),
            _ => drop(record.remove(at)),
        }
    }
}

#[test]
fn the_full_reader_agrees_on_random_records() {
    let mut choice = Choice(20);
    let mut spoiled_and_read = 0;
    for _ in 0..30_000 {
        let mut bytes = choice.record().into_bytes();
        let record = read_arc_record(&bytes).expect("a record of the usual shape");
        compare(&record, &bytes);
        for _ in 0..=choice.below(2) {
            choice.spoil(&mut bytes);
        }
        if let Some(record) = read_arc_record(&bytes) {
            spoiled_and_read += 1;
            compare(&record, &bytes);
        }
    }
    assert!(spoiled_and_read > 1000, "{spoiled_and_read}");
}
