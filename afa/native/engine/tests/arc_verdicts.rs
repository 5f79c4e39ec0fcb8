//! The verdicts of the book of arcs against its rules, written a second time, on random records.

use afa_engine::arcs::book::{ArcBook, ArcRecord, BodyFacts, BodyText, KnownArc, Verdict};

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

fn late(since: &str, bound: i64) -> Verdict<'static> {
    Verdict::Late(format!(
        "it would change the pattern from {since} on, below the punctuation {bound}"
    ))
}

/// The rules again, as `afa/arc_table.py` writes them: times beyond all numbers, and bodies as the texts mean them.
fn expected<'a>(old: Option<KnownArc>, record: &ArcRecord<'a>, bound: Option<i64>) -> Verdict<'a> {
    const INFINITY: i128 = i128::MAX;
    let id = record.id;
    let span = |arc: &KnownArc| {
        let le = if arc.le == i64::MIN { -INFINITY } else { arc.le.into() };
        (le, arc.re.map_or(INFINITY, i128::from))
    };
    let body = record
        .body
        .map(|body| if body.fence == Some(b"e.x > 2") { 9 } else { 4 });
    let (first, timely) = if record.removes {
        let Some(old) = old else { return Verdict::Ask };
        let (le, re) = span(&old);
        (if re <= le { INFINITY } else { le }, Verdict::Remove { id })
    } else {
        let Some(body) = body.or(old.map(|old| old.body)) else {
            return Verdict::Ask;
        };
        let (le, re) = record.valid.unwrap_or_default();
        let new = known(body, le.unwrap_or(i64::MIN), re);
        if old == Some(new) {
            return Verdict::Nothing;
        }
        let spans: Vec<_> = old.iter().chain([&new]).map(span).filter(|(le, re)| le < re).collect();
        let same = old.is_some_and(|old| old.body == body) && spans.len() == 2 && spans[0].0 == spans[1].0;
        let first = if !same {
            spans.iter().map(|(le, _)| *le).min().unwrap_or(INFINITY)
        } else if spans[0].1 == spans[1].1 {
            INFINITY
        } else {
            spans[0].1.min(spans[1].1)
        };
        (
            first,
            Verdict::Set {
                id,
                body,
                le: new.le,
                re,
            },
        )
    };
    match bound {
        Some(bound) if first < bound.into() && first == -INFINITY => late("the beginning", bound),
        Some(bound) if first < bound.into() => late(&first.to_string(), bound),
        _ => timely,
    }
}

#[test]
fn verdicts_are_those_of_the_rules() {
    let mut state = 3_u64;
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % most
    };
    let ends = [None, Some(-3), Some(0), Some(4), Some(5), Some(9), Some(i64::MAX)];
    let bounds = [
        None,
        Some(i64::MIN),
        Some(-3),
        Some(0),
        Some(4),
        Some(6),
        Some(i64::MAX),
    ];
    let mut book = book();
    let mut counts = [0; 5];
    for _ in 0..200_000 {
        let removes = below(5) == 0;
        let whole = !removes && below(2) == 0;
        let lifetime = !removes && (!whole || below(3) > 0);
        let record = ArcRecord {
            removes,
            pattern: "p",
            id: ["a", "b", "c"][below(3)],
            body: whole.then(|| text(FENCES[below(3)])),
            valid: lifetime.then(|| (ends[below(7)], ends[below(7)])),
        };
        let bound = bounds[below(7)];
        let verdict = book.judge(&record, bound);
        assert_eq!(
            verdict,
            expected(book.get(record.id), &record, bound),
            "{record:?} {bound:?}"
        );
        let kind = match verdict {
            Verdict::Set { id, body, le, re } => {
                book.set(id, known(body, le, re));
                0
            }
            Verdict::Remove { id } => {
                assert!(book.remove(id));
                1
            }
            Verdict::Nothing => 2,
            Verdict::Late(_) => 3,
            Verdict::Ask => 4,
        };
        counts[kind] += 1;
    }
    assert!(counts.into_iter().all(|count| count > 2000), "{counts:?}");
}
