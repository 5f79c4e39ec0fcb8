//! The quick reader of arc records against the full reader of JSON, on random records, spoiled ones too.

use afa_engine::arc_record::{ArcRecord, read_arc_record};
use afa_engine::event::Data;
use afa_engine::json;

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

fn text_of<'a>(data: &'a Data, name: &str) -> Option<&'a str> {
    match data.get(name)? {
        Data::Str(text) => Some(text),
        _ => panic!("`{name}` is no text"),
    }
}

fn end_of(data: &Data) -> Option<i64> {
    match data {
        Data::Null => None,
        Data::Int(number) => Some(*number),
        _ => panic!("the end of a lifetime"),
    }
}

fn utf8(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("UTF-8")
}

/// The full reader must see in the bytes what this one saw.
fn compare(record: &ArcRecord<'_>, bytes: &[u8]) {
    if std::str::from_utf8(bytes).is_err() {
        let body = record.body.expect("only the texts of a body are left unchecked");
        let texts = [Some(body.source), Some(body.target), body.fence, body.transfer];
        assert!(
            texts
                .into_iter()
                .flatten()
                .any(|text| std::str::from_utf8(text).is_err())
        );
        return;
    }
    let data = json::read(bytes).expect("what is read here is JSON");
    assert_eq!(
        text_of(&data, "op"),
        Some(if record.removes { "arc-retract" } else { "arc" })
    );
    assert_eq!(text_of(&data, "pattern"), Some(record.pattern));
    let arc = data.get("arc").expect("there is an arc");
    assert_eq!(text_of(arc, "id"), Some(record.id));
    assert_eq!(text_of(arc, "from"), record.body.map(|body| utf8(body.source)));
    assert_eq!(text_of(arc, "to"), record.body.map(|body| utf8(body.target)));
    assert_eq!(text_of(arc, "when"), record.body.and_then(|body| body.fence).map(utf8));
    let transfer = record.body.and_then(|body| body.transfer);
    let transfer = transfer.map(|text| json::read(text).expect("an object"));
    assert_eq!(arc.get("set"), transfer.as_ref());
    let valid = data.get("valid").map(|pair| match pair {
        Data::List(ends) if ends.len() == 2 => (end_of(&ends[0]), end_of(&ends[1])),
        _ => panic!("a lifetime is a pair"),
    });
    assert_eq!(valid, record.valid);
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
