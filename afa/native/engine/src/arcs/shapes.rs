//! Arc records that differ from one seen before only in the id and the lifetime: the other bytes are compared as a
//! whole, and what they said is known.

use crate::arcs::layout::{end_of_lifetime, text};
use crate::arcs::record::{ArcRecord, MAX_ID_BYTES};

/// What an arc record says, with the numbers of pattern and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said<'a> {
    pub(crate) pattern: usize,
    pub(crate) id: &'a str,
    /// None: the body that the arc has.
    pub(crate) body: Option<u32>,
    pub(crate) valid: (Option<i64>, Option<i64>),
}

/// A record without its id and lifetime.
#[derive(Debug)]
struct Shape {
    /// Up to the quote before the id.
    before_id: Box<[u8]>,
    /// From the quote after it to the bracket of the lifetime, which is the last member.
    after_id: Box<[u8]>,
    /// The first bytes of that, which tell most shapes apart.
    after_id_begins: [u8; 8],
    has_spaces: bool,
    pattern: usize,
    body: Option<u32>,
    /// Whether the shape before it has the same bytes before the id.
    begins_alike: bool,
}

/// A record's id, and what follows from the quote after it on.
type Begun<'a> = (&'a [u8], &'a [u8]);

impl Shape {
    #[inline]
    fn begin<'a>(&self, json: &'a str) -> Option<Begun<'a>> {
        let (id, rest) = text(json.as_bytes().strip_prefix(&*self.before_id)?)?;
        (!id.is_empty() && id.len() <= MAX_ID_BYTES).then_some((id, rest))
    }

    #[inline]
    fn read<'a>(&self, json: &'a str, (id, rest): Begun<'a>) -> Option<Said<'a>> {
        if rest.first_chunk() != Some(&self.after_id_begins) {
            return None;
        }
        let (le, rest) = end_of_lifetime(rest.strip_prefix(&*self.after_id)?)?;
        let mut rest = rest.strip_prefix(b",")?;
        if self.has_spaces {
            rest = rest.strip_prefix(b" ")?;
        }
        let (re, rest) = end_of_lifetime(rest)?;
        if rest != b"]}" {
            return None;
        }
        let begin = self.before_id.len();
        Some(Said {
            pattern: self.pattern,
            id: json.get(begin..begin + id.len())?,
            body: self.body,
            valid: (le, re),
        })
    }
}

/// The shapes of the records that came last.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    known: Vec<Shape>,
    next: usize,
}

impl Shapes {
    /// A change mostly takes two records: one ends an arc, one begins another with one of a few bodies.
    const MOST: usize = 8;

    /// What a record says whose shape is known.
    #[inline]
    pub(crate) fn read<'a>(&self, json: &'a str) -> Option<Said<'a>> {
        let mut begun = None;
        for shape in &self.known {
            if !shape.begins_alike {
                begun = shape.begin(json);
            }
            let said = begun.and_then(|begun| shape.read(json, begun));
            if said.is_some() {
                return said;
            }
        }
        None
    }

    /// Remembers the shape of a record that was read, if it has one.
    pub(crate) fn learn(&mut self, json: &str, record: &ArcRecord<'_>, pattern: usize, body: Option<u32>) {
        let id_at = record.id.as_ptr() as usize - json.as_ptr() as usize;
        let Some(bracket) = json.rfind('[').filter(|_| !record.removes) else {
            return;
        };
        // A text that ends in such a list ends outside of quotes, so the list is the last member: the lifetime.
        let after_id = &json.as_bytes()[(id_at + record.id.len()).min(bracket)..=bracket];
        let (Some(after_id_begins), Some(valid)) = (after_id.first_chunk(), record.valid) else {
            return;
        };
        let shape = |has_spaces| Shape {
            before_id: json.as_bytes()[..id_at].into(),
            after_id: after_id.into(),
            after_id_begins: *after_id_begins,
            has_spaces,
            pattern,
            body,
            begins_alike: false,
        };
        let said = Said {
            pattern,
            id: record.id,
            body,
            valid,
        };
        let fits = |shape: &Shape| shape.begin(json).and_then(|begun| shape.read(json, begun)) == Some(said);
        let Some(shape) = [true, false].into_iter().map(shape).find(fits) else {
            return;
        };
        if self.known.len() < Self::MOST {
            self.known.push(shape);
        } else {
            self.known[self.next] = shape;
            self.next = (self.next + 1) % Self::MOST;
        }
        for place in 1..self.known.len() {
            let before = &self.known[place - 1].before_id;
            self.known[place].begins_alike = *before == self.known[place].before_id;
        }
    }

    /// Numbers of bodies mean something else now.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Said, Shapes};
    use crate::arcs::record::read_arc_record;

    fn learnt(record: &str) -> Shapes {
        let mut shapes = Shapes::default();
        let read = read_arc_record(record.as_bytes()).expect("a usual record");
        shapes.learn(record, &read, 3, Some(7));
        shapes
    }

    #[test]
    fn other_ids_and_lifetimes_are_read() {
        for spaces in [true, false] {
            let layout = |text: &str| {
                if spaces {
                    text.to_owned()
                } else {
                    text.replace(": ", ":").replace(", ", ",")
                }
            };
            let first = r#"{"op": "arc", "pattern": "p", "arc": {"id": "a", "from": "q", "to": "r", "when": "e.x in [1,2]"}, "valid": [5, null]}"#;
            let shapes = learnt(&layout(first));
            let other = layout(
                &first
                    .replace(r#""a""#, r#""ümlaut-17""#)
                    .replace("[5, null]", "[null, -1234567890123]"),
            );
            let expected = Said {
                pattern: 3,
                id: "ümlaut-17",
                body: Some(7),
                valid: (None, Some(-1_234_567_890_123)),
            };
            assert_eq!(shapes.read(&other), Some(expected));
            for spoiled in [
                other.replace("\"r\"", "\"s\""),
                other.replace("\"ümlaut-17\"", "\"\""),
                other.replace("ümlaut", "\\u00fc"),
                other.replace("]}", "]} "),
                other.replace("-1234567890123", "01"),
                other.replace("-1234567890123", "1.5"),
            ] {
                assert_eq!(shapes.read(&spoiled), None, "{spoiled}");
            }
        }
    }

    #[test]
    fn shapes_are_told_apart_before_and_behind_the_id() {
        let mut shapes = Shapes::default();
        let record = |pattern: usize, behind: &str, id: &str| {
            format!(r#"{{"op":"arc","pattern":"p{pattern}","arc":{{"id":"{id}"{behind}}},"valid":[1,2]}}"#)
        };
        let behinds = ["", r#","from":"q","to":"r""#, r#","from":"q","to":"s""#];
        let all = || (0..4).flat_map(|pattern| behinds.map(|behind| (pattern, behind)));
        for (number, (pattern, behind)) in all().enumerate() {
            let json = record(pattern, behind, "a");
            let read = read_arc_record(json.as_bytes()).expect("a usual record");
            shapes.learn(&json, &read, pattern, u32::try_from(number).ok());
        }
        let known = shapes.known.len();
        assert_eq!(known, Shapes::MOST);
        let found = all().enumerate().filter_map(|(number, (pattern, behind))| {
            let json = record(pattern, behind, "another");
            let said = shapes.read(&json)?;
            assert_eq!(
                (said.pattern, said.id, said.body),
                (pattern, "another", u32::try_from(number).ok())
            );
            Some(())
        });
        assert_eq!(found.count(), known);
    }

    #[test]
    fn what_has_no_lifetime_at_its_end_has_no_shape() {
        for record in [
            r#"{"op":"arc","valid":[5,6],"pattern":"p","arc":{"id":"a","from":"q","to":"r","when":"e.x in [1,2]"}}"#,
            r#"{"op":"arc","pattern":"p","arc":{"id":"a","from":"q","to":"r"}}"#,
            r#"{"op":"arc-retract","pattern":"p","arc":{"id":"a"}}"#,
            r#"{"op":"arc","pattern":"p","valid":[5,6],"arc":{"id":"a"}}"#,
        ] {
            assert_eq!(learnt(record).read(record), None, "{record}");
        }
    }

    #[test]
    fn no_more_than_a_few_are_remembered() {
        let mut shapes = Shapes::default();
        let record = |state: usize| {
            format!(r#"{{"op":"arc","pattern":"p","arc":{{"id":"a","from":"q{state}","to":"r"}},"valid":[1,2]}}"#)
        };
        for state in 0..100 {
            let json = record(state);
            let read = read_arc_record(json.as_bytes()).expect("a usual record");
            shapes.learn(&json, &read, 0, Some(1));
            assert!(shapes.read(&json).is_some());
        }
        assert_eq!(shapes.known.len(), Shapes::MOST);
        shapes.forget();
        assert_eq!(shapes.read(&record(99)), None);
    }
}
