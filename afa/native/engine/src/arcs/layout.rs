//! The two layouts in which nearly all arc records come: fields in the order of the contract, with the spaces of
//! Python's `json.dumps` or with none. What lies between the texts is compared as a whole, at half the price of reading
//! it field by field; records with a transfer, and all others, are left to that.

use crate::arcs::record::{ArcRecord, BodyText, checked_integer, leading_digits, name, stops_of};

/// What stands between the texts and numbers of a record.
struct Layout {
    begin: &'static [u8],
    id: &'static [u8],
    source: &'static [u8],
    target: &'static [u8],
    fence: &'static [u8],
    valid: &'static [u8],
    comma: &'static [u8],
}

const COMPACT: Layout = Layout {
    begin: b"{\"op\":\"arc\",\"pattern\":\"",
    id: b"\",\"arc\":{\"id\":\"",
    source: b"\",\"from\":\"",
    target: b"\",\"to\":\"",
    fence: b"\",\"when\":\"",
    valid: b"\"},\"valid\":[",
    comma: b",",
};

const SPACED: Layout = Layout {
    begin: b"{\"op\": \"arc\", \"pattern\": \"",
    id: b"\", \"arc\": {\"id\": \"",
    source: b"\", \"from\": \"",
    target: b"\", \"to\": \"",
    fence: b"\", \"when\": \"",
    valid: b"\"}, \"valid\": [",
    comma: b", ",
};

/// A change in one of the two layouts.
#[inline]
pub(crate) fn read(json: &[u8]) -> Option<ArcRecord<'_>> {
    match json.get(6) {
        Some(b'"') => read_as(json, &COMPACT),
        Some(b' ') => read_as(json, &SPACED),
        _ => None,
    }
}

#[inline(always)]
#[allow(clippy::inline_always)] // so that the layout is known where its parts are compared
fn read_as<'a>(json: &'a [u8], layout: &Layout) -> Option<ArcRecord<'a>> {
    let (pattern, rest) = text(json.strip_prefix(layout.begin)?)?;
    let (id, mut rest) = text(rest.strip_prefix(layout.id)?)?;
    let mut body = None;
    if let Some(begun) = rest.strip_prefix(layout.source) {
        let (source, begun) = text(begun)?;
        let (target, begun) = text(begun.strip_prefix(layout.target)?)?;
        rest = begun;
        let mut fence = None;
        if let Some(begun) = rest.strip_prefix(layout.fence) {
            let (fence_text, begun) = text(begun)?;
            fence = Some(fence_text);
            rest = begun;
        }
        let transfer = None;
        body = Some(BodyText {
            source,
            target,
            fence,
            transfer,
        });
    }
    let mut valid = None;
    if let Some(begun) = rest.strip_prefix(layout.valid) {
        let (le, begun) = end_of_lifetime(begun)?;
        let (re, begun) = end_of_lifetime(begun.strip_prefix(layout.comma)?)?;
        valid = Some((le, re));
        rest = begun;
    }
    let is_whole = if valid.is_some() {
        rest == b"]}"
    } else {
        body.is_some() && rest == b"\"}}"
    };
    is_whole.then_some(ArcRecord {
        removes: false,
        pattern: std::str::from_utf8(pattern).ok()?,
        id: name(id)?,
        body,
        valid,
    })
}

/// The next eight bytes; after the end there are zeros.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A text without its quotes, and what follows from its last quote on; a text that ends otherwise is found out there.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0;
    loop {
        let stops = stops_of(word(bytes.get(length..)?));
        if stops != 0 {
            return bytes.split_at_checked(length + (stops.trailing_zeros() / 8) as usize);
        }
        length += 8;
    }
}

/// One end of a lifetime, and what follows.
#[inline]
pub(crate) fn end_of_lifetime(bytes: &[u8]) -> Option<(Option<i64>, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(b"null") {
        return Some((None, rest));
    }
    let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let (mut number, mut length) = leading_digits(word(unsigned));
    if length == 8 {
        for digit in unsigned[8..].iter().take_while(|byte| byte.is_ascii_digit()) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            length += 1;
        }
    }
    let (digits, rest) = unsigned.split_at_checked(length)?;
    let number = checked_integer(unsigned.len() < bytes.len(), number, digits)?;
    Some((Some(number), rest))
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::arcs::record::{read_any_layout, read_arc_record};

    #[test]
    fn both_readers_agree() {
        let records = [
            r#"{"op":"arc","pattern":"q1","arc":{"id":"a7","from":"q1","to":"q3"}}"#,
            r#"{"op":"arc","pattern":"q1","arc":{"id":"a7","from":"q1","to":"q3"},"valid":[5000,null]}"#,
            r#"{"op":"arc","pattern":"q1","arc":{"id":"a7","from":"q1","to":"q3","when":"e.x > 9"},"valid":[null,-17]}"#,
            r#"{"op":"arc","pattern":"q1","arc":{"id":"a7"},"valid":[1234567890123,9223372036854775807]}"#,
        ];
        for record in records {
            let spaced = record.replace(':', ": ").replace(',', ", ");
            for record in [record, &*spaced] {
                let expected = read_any_layout(record.as_bytes());
                assert!(expected.is_some(), "{record}");
                assert_eq!(read(record.as_bytes()), expected, "{record}");
                for cut in 0..record.len() {
                    assert_eq!(read_arc_record(&record.as_bytes()[..cut]), None, "{record}");
                }
                for (at, _) in record.char_indices() {
                    for byte in *b"\"\\{}[]:, 0-.e\x01\x7fx" {
                        let mut spoiled = record.as_bytes().to_vec();
                        spoiled[at] = byte;
                        let usual = read(&spoiled);
                        assert!(
                            usual.is_none() || usual == read_any_layout(&spoiled),
                            "{at} {byte} {record}"
                        );
                    }
                }
            }
        }
    }
}
