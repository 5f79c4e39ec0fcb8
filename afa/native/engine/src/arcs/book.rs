//! Which arc changes are late and which apply, for the records whose texts were checked before.
//!
//! The rules are those of `afa/arc_table.py`. Whatever it would refuse, or has to read first, is asked of it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use crate::arcs::index::ArcIndex;
pub use crate::arcs::index::{KnownArc, Looked};
pub use crate::arcs::record::{ArcRecord, BodyText, read_arc_record};

/// The body number of an arc about which must always be asked: one whose lifetime names the least 64-bit number, which
/// is not the same as unbounded to the rules, though it is to an engine.
pub const ASKED: u32 = u32::MAX;

/// When the texts learnt take more than this, all are forgotten; those in use come back with their next record.
const MAX_TEXT_BYTES: usize = 16 * 1_048_576;
/// Counted for each text, whatever its length.
const TEXT_OVERHEAD_BYTES: usize = 128;

/// What a body's text does not tell in a record of the usual shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// Whether it consumes no event.
    pub epsilon: bool,
    /// Whether it makes its target final.
    pub is_final: bool,
}

/// What is to be done with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The arc becomes this.
    Set {
        /// Its id.
        id: &'a str,
        /// The number of its body.
        body: u32,
        /// Alive from here; `i64::MIN` is unbounded.
        le: i64,
        /// Alive before here; none is unbounded.
        re: Option<i64>,
    },
    /// The arc goes, its past included.
    Remove {
        /// Its id.
        id: &'a str,
    },
    /// The arc is like that already: applied, and changes nothing.
    Nothing,
    /// Not applied, for this reason.
    Late(String),
    /// The record may be bad, or its text is new: the full rules must judge.
    Ask,
}

/// A body's texts, and its number.
struct Learnt {
    source: Box<[u8]>,
    target: Box<[u8]>,
    fence: Option<Box<[u8]>>,
    transfer: Option<Box<[u8]>>,
    number: u32,
}

impl Learnt {
    fn text(&self) -> BodyText<'_> {
        BodyText {
            source: &self.source,
            target: &self.target,
            fence: self.fence.as_deref(),
            transfer: self.transfer.as_deref(),
        }
    }
}

/// Without marks between the texts: those that run together into the same bytes are told apart when they are compared.
fn hash_of(text: BodyText<'_>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(text.source);
    hasher.write(text.target);
    hasher.write(text.fence.unwrap_or_default());
    if let Some(transfer) = text.transfer {
        hasher.write(transfer);
    }
    hasher.finish()
}

fn byte_count(text: BodyText<'_>) -> usize {
    let optional = text.fence.map_or(0, <[u8]>::len) + text.transfer.map_or(0, <[u8]>::len);
    text.source.len() + text.target.len() + optional + TEXT_OVERHEAD_BYTES
}

/// Arc bodies whose texts were checked, and the arcs of one pattern as they are now.
///
/// Arcs stay known after cleanup took them away, as the contract demands, at the price that `arc_index` names. Equal
/// body numbers must mean equal bodies: a number is given to another body only after `forget_bodies`.
#[derive(Default)]
pub struct ArcBook {
    arcs: ArcIndex,
    /// By the hash of the texts. Of two texts with one hash the second is not learnt, so it is asked about.
    texts: HashMap<u64, Learnt, FixedState>,
    text_bytes: usize,
    /// Bodies that consume nothing or make a state final: whether they may change depends on the other arcs.
    asked: HashSet<u32, FixedState>,
}

impl ArcBook {
    /// Remembers a body's text and number, once its text was checked for this pattern.
    pub fn learn(&mut self, body: BodyText<'_>, number: u32, facts: BodyFacts) {
        if facts.epsilon || facts.is_final {
            self.asked.insert(number);
            return;
        }
        if self.text_bytes > MAX_TEXT_BYTES {
            self.texts = HashMap::default();
            self.text_bytes = 0;
        }
        let learnt = self.texts.entry(hash_of(body)).or_insert_with(|| {
            self.text_bytes += byte_count(body);
            Learnt {
                source: body.source.into(),
                target: body.target.into(),
                fence: body.fence.map(Into::into),
                transfer: body.transfer.map(Into::into),
                number,
            }
        });
        if learnt.text() == body {
            learnt.number = number;
        }
    }

    /// The number of the body with this text, if it was learnt.
    #[must_use]
    pub fn body(&self, text: BodyText<'_>) -> Option<u32> {
        let learnt = self.texts.get(&hash_of(text))?;
        (learnt.text() == text).then_some(learnt.number)
    }

    /// Inserts or replaces an arc. An arc whose lifetime names the least 64-bit number needs the body `ASKED`.
    ///
    /// # Panics
    /// If the id is longer than 65,535 bytes: names are checked before.
    pub fn set(&mut self, id: &str, arc: KnownArc) {
        self.arcs.set(id, arc);
    }

    /// The same for an id that was looked for just now.
    ///
    /// # Panics
    /// As `set`.
    pub fn put(&mut self, looked: Looked, id: &str, arc: KnownArc) {
        self.arcs.put(looked, id, arc);
    }

    /// Looks for an id.
    #[must_use]
    pub fn look_up(&self, id: &str) -> Looked {
        self.arcs.look_up(id)
    }

    /// The arc of an id that was looked for just now.
    #[must_use]
    pub fn arc(&self, looked: Looked) -> Option<KnownArc> {
        self.arcs.arc(looked)
    }

    /// Makes an id unknown, as an `arc-retract` does. False if it was.
    pub fn remove(&mut self, id: &str) -> bool {
        self.arcs.remove(id)
    }

    /// Cleanup took the arc away: it stays known but is not counted as live. False if the id is unknown.
    pub fn mark_dead(&mut self, id: &str) -> bool {
        self.arcs.mark_dead(id)
    }

    /// Cleanup took the arcs away for which it says so.
    pub fn mark_dead_if(&mut self, is_dead: impl Fn(&KnownArc) -> bool) {
        self.arcs.mark_dead_if(is_dead);
    }

    /// The arc of this id, dead or alive.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<KnownArc> {
        self.arcs.get(id)
    }

    /// How many arcs cleanup has not taken away: what `max_program_arcs` limits.
    #[must_use]
    pub fn live(&self) -> usize {
        self.arcs.live()
    }

    /// The bytes that arcs and texts take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arcs.bytes() + self.text_bytes
    }

    /// All arcs in order of their ids, and whether they are live. Sorts: not for every record.
    pub fn iter(&self) -> impl Iterator<Item = (&str, KnownArc, bool)> {
        self.arcs.in_order().into_iter()
    }

    /// Visits the bodies of all arcs, dead or alive.
    pub fn each_body(&self, mut visit: impl FnMut(u32)) {
        self.arcs.each(|arc| {
            if arc.body != ASKED {
                visit(arc.body);
            }
        });
    }

    /// Forgets the texts of bodies that are in use no more: their numbers may be given to others.
    pub fn forget_bodies(&mut self, is_in_use: impl Fn(u32) -> bool) {
        self.texts.retain(|_, learnt| is_in_use(learnt.number));
        self.text_bytes = self.texts.values().map(|learnt| byte_count(learnt.text())).sum();
        self.asked.retain(|body| is_in_use(*body));
    }

    /// What is to be done with a record of this pattern. `bound` is the punctuation below which nothing may change.
    /// Changes nothing itself.
    #[must_use]
    pub fn judge<'a>(&self, record: &ArcRecord<'a>, bound: Option<i64>) -> Verdict<'a> {
        self.judge_known(record, self.arcs.get(record.id), bound)
    }

    /// The same if the arc of the record's id is known.
    #[must_use]
    pub fn judge_known<'a>(&self, record: &ArcRecord<'a>, old: Option<KnownArc>, bound: Option<i64>) -> Verdict<'a> {
        if record.removes {
            return match old {
                Some(old) if self.must_ask(&old) => Verdict::Ask,
                Some(old) => verdict(first_instant(&old), bound, Verdict::Remove { id: record.id }),
                None => Verdict::Ask, // an unknown id: bad
            };
        }
        let body = match record.body {
            Some(text) => self.body(text),
            None => old.map(|old| old.body),
        };
        let valid = record.valid.unwrap_or((None, None));
        body.map_or(Verdict::Ask, |body| self.judge_life(record.id, body, valid, old, bound))
    }

    /// What is to be done so that an arc has this body and lifetime.
    #[must_use]
    pub fn judge_life<'a>(
        &self,
        id: &'a str,
        body: u32,
        (le, re): (Option<i64>, Option<i64>),
        old: Option<KnownArc>,
        bound: Option<i64>,
    ) -> Verdict<'a> {
        let new = KnownArc {
            body,
            le: le.unwrap_or(i64::MIN),
            re,
        };
        if le == Some(i64::MIN) || self.must_ask(&new) || old.is_some_and(|old| self.must_ask(&old)) {
            return Verdict::Ask;
        }
        if old == Some(new) {
            return Verdict::Nothing;
        }
        let KnownArc { body, le, re } = new;
        verdict(first_difference(old, &new), bound, Verdict::Set { id, body, le, re })
    }

    /// The least 64-bit number as an upper end is above unbounded to the rules, and not to a comparison of numbers.
    fn must_ask(&self, arc: &KnownArc) -> bool {
        arc.body == ASKED || arc.re == Some(i64::MIN) || (!self.asked.is_empty() && self.asked.contains(&arc.body))
    }
}

/// An instant, or none for "at no time".
type First = Option<i64>;

fn first_instant(arc: &KnownArc) -> First {
    (!arc.is_empty()).then_some(arc.le)
}

/// The first instant at which the two differ.
fn first_difference(old: Option<KnownArc>, new: &KnownArc) -> First {
    let before = old.as_ref().and_then(first_instant);
    let after = first_instant(new);
    if let Some(old) = old
        && old.body == new.body
        && before.is_some()
        && before == after
    {
        return match (old.re, new.re) {
            (a, b) if a == b => None,
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
    }
    [before, after].into_iter().flatten().min()
}

fn verdict(first: First, bound: Option<i64>, timely: Verdict<'_>) -> Verdict<'_> {
    let (Some(first), Some(bound)) = (first, bound) else {
        return timely;
    };
    // Unbounded is below every number, the least one too.
    if first >= bound && first != i64::MIN {
        return timely;
    }
    late(first, bound)
}

#[cold]
fn late(first: i64, bound: i64) -> Verdict<'static> {
    let since = if first == i64::MIN {
        "the beginning".to_owned()
    } else {
        first.to_string()
    };
    Verdict::Late(format!(
        "it would change the pattern from {since} on, below the punctuation {bound}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{ASKED, ArcBook, BodyFacts, BodyText, KnownArc, MAX_TEXT_BYTES, Verdict, read_arc_record};

    const FENCES: [&str; 3] = ["e.x > 1", "e.x  >  1", "e.x > 2"];
    const NUMBERS: [u32; 3] = [4, 4, 9];

    fn text(fence: &str) -> BodyText<'_> {
        BodyText {
            source: b"s",
            target: b"t",
            fence: Some(fence.as_bytes()),
            transfer: None,
        }
    }

    fn book() -> ArcBook {
        let mut book = ArcBook::default();
        for (fence, number) in FENCES.into_iter().zip(NUMBERS) {
            book.learn(text(fence), number, BodyFacts::default());
        }
        book
    }

    fn known(body: u32, le: i64, re: Option<i64>) -> KnownArc {
        KnownArc { body, le, re }
    }

    fn judged<'a>(book: &ArcBook, record: &'a str, bound: Option<i64>) -> Verdict<'a> {
        let record = read_arc_record(record.as_bytes()).expect("a record of the usual shape");
        book.judge(&record, bound)
    }

    fn late(since: &str, bound: i64) -> Verdict<'static> {
        Verdict::Late(format!(
            "it would change the pattern from {since} on, below the punctuation {bound}"
        ))
    }

    #[test]
    fn one_arc_ends_and_another_begins() {
        let mut book = book();
        book.set("a1", known(4, i64::MIN, None));
        let end = r#"{"op":"arc","pattern":"p","arc":{"id":"a1"},"valid":[null,5000]}"#;
        let (id, body, le, re) = ("a1", 4, i64::MIN, Some(5000));
        assert_eq!(judged(&book, end, Some(5000)), Verdict::Set { id, body, le, re });
        assert_eq!(judged(&book, end, Some(5001)), late("5000", 5001));
        let begin =
            r#"{"op":"arc","pattern":"p","arc":{"id":"a2","from":"s","to":"t","when":"e.x > 2"},"valid":[5000,null]}"#;
        let (id, body, le, re) = ("a2", 9, 5000, None);
        assert_eq!(judged(&book, begin, Some(5000)), Verdict::Set { id, body, le, re });
        book.set("a2", known(9, 5000, None));
        assert_eq!(judged(&book, begin, Some(9000)), Verdict::Nothing);
        let always = begin.replace(r#","valid":[5000,null]"#, "");
        assert_eq!(judged(&book, &always, Some(9000)), late("the beginning", 9000));
    }

    #[test]
    fn a_retraction_takes_the_past_along() {
        let mut book = book();
        let record = r#"{"op":"arc-retract","pattern":"p","arc":{"id":"a1"}}"#;
        assert_eq!(judged(&book, record, None), Verdict::Ask);
        for (arc, expected) in [
            (known(4, 10, None), late("10", 50)),
            (known(4, 50, None), Verdict::Remove { id: "a1" }),
            (known(4, 10, Some(10)), Verdict::Remove { id: "a1" }),
            (known(4, i64::MIN, Some(10)), late("the beginning", 50)),
        ] {
            book.set("a1", arc);
            assert_eq!(judged(&book, record, Some(50)), expected, "{arc:?}");
        }
        assert!(book.remove("a1"));
        assert_eq!(judged(&book, record, Some(50)), Verdict::Ask);
    }

    #[test]
    fn dead_arcs_stay_known_and_are_not_counted() {
        let mut book = book();
        book.set("a1", known(4, 10, Some(20)));
        book.set("a2", known(4, 10, None));
        assert!(book.mark_dead("a1"));
        assert_eq!((book.live(), book.get("a1")), (1, Some(known(4, 10, Some(20)))));
        let same = r#"{"op":"arc","pattern":"p","arc":{"id":"a1"},"valid":[10,20]}"#;
        assert_eq!(judged(&book, same, Some(30)), Verdict::Nothing);
        let longer = r#"{"op":"arc","pattern":"p","arc":{"id":"a1"},"valid":[10,40]}"#;
        assert_eq!(judged(&book, longer, Some(30)), late("20", 30));
        let all: Vec<_> = book.iter().map(|(id, _, live)| (id.to_owned(), live)).collect();
        assert_eq!(all, [("a1".to_owned(), false), ("a2".to_owned(), true)]);
    }

    #[test]
    fn what_other_rules_decide_is_asked() {
        let mut book = book();
        let facts = BodyFacts {
            epsilon: true,
            ..BodyFacts::default()
        };
        book.learn(text("r.n == 1"), 12, facts);
        assert_eq!(book.body(text("r.n == 1")), None);
        assert_eq!(book.body(text("e.x >1")), None);
        let ended = r#"{"op":"arc","pattern":"p","arc":{"id":"a1"},"valid":[10,20]}"#;
        assert_eq!(judged(&book, ended, None), Verdict::Ask);
        for arc in [
            known(12, 0, None),
            known(ASKED, 0, None),
            known(4, i64::MIN, Some(i64::MIN)),
        ] {
            book.set("a1", arc);
            assert_eq!(judged(&book, ended, None), Verdict::Ask, "{arc:?}");
        }
        let least = r#"{"op":"arc","pattern":"p","arc":{"id":"a1"},"valid":[null,20]}"#;
        let mut record = read_arc_record(least.as_bytes()).expect("usual");
        record.valid = Some((Some(i64::MIN), None));
        book.set("a1", known(4, 0, None));
        assert_eq!(book.judge(&record, None), Verdict::Ask);
    }

    #[test]
    fn texts_are_forgotten_before_they_fill_the_memory() {
        let mut book = ArcBook::default();
        let padding = " ".repeat(60_000);
        for number in 0..2000 {
            let fence = format!("e.x > {number}{padding}");
            book.learn(text(&fence), number, BodyFacts::default());
            assert_eq!(book.body(text(&fence)), Some(number));
        }
        assert!(book.bytes() < MAX_TEXT_BYTES + 100_000);
    }
}
