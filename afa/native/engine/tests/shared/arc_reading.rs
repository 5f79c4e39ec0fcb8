//! Whether the quick reader of arc records and the full reader of JSON see the same.

use afa_engine::arcs::record::ArcRecord;
use afa_engine::raw::json;
use afa_engine::rows::event::Data;

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
pub(crate) fn compare(record: &ArcRecord<'_>, bytes: &[u8]) {
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
