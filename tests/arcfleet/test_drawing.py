"""Drawings: legible (nothing lies on anything else), complete, the same every time, and proof against hostile text."""

import math
import os
import re
import shutil
import subprocess
import sys
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afa.expression import Scope, Type, compile_expression
from afa.pattern import ALWAYS, Arc, CountWindow, Lifetime, Pattern, Register, TimeWindow
from arcfleet.drawing import draw, text
from arcfleet.drawing.geometry import Box
from arcfleet.drawing.layout import CHARACTER, LABEL_PADDING_X, Layout, lay_out

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    '"</title></text></g></svg><script>alert(1)</script>\'`*_]}|;#quot;&amp;\\N\\\\"%%{init}-->\x00\u202e\ud800\n\\'
)
SCOPE = Scope(registers={"r1": Type.INT, "r2": Type.INT})
FENCES = [
    compile_expression(words, SCOPE)
    for words in (
        "true",
        "r.r1 < 2",
        'e.change < -0.25 and e.symbol in ["a", "b"] or not e.is_open and r.r2 + 1 == 2 and e.kind == "more than fits"',
        "e." + "f" * 200 + " > 1",
        'e.name == "日本語のとても長い文字列です" # and a comment',
    )
]
TRANSFER = compile_expression("r.r1 + 1", SCOPE)


def arc(arc_id, source, target, when="true", *, transfer=(), lifetime=ALWAYS, epsilon=False, final=False):
    changes = tuple((name, compile_expression(words, SCOPE)) for name, words in transfer)
    return Arc(arc_id, source, target, compile_expression(when, SCOPE), changes, lifetime, epsilon, final)


def pattern(*arcs, name="p", start="q0", finals=("q3",), registers=(), window=None):
    return Pattern(name, start, frozenset(finals), tuple(registers), tuple(arcs), window)


Q1 = pattern(
    arc("a0", "q0", "q1", "e.change < -0.25"),
    arc("a1", "q1", "q1", "e.change < 0", transfer=[("r1", "r.r1 + 1")]),
    arc("a2", "q1", "q2", "e.change < 0", transfer=[("r1", "r.r1 + 1")]),
    arc("a3", "q2", "q2", "e.change > 0", transfer=[("r1", "r.r1 - 1")]),
    arc("a4", "q2", "q1", "e.change > 0 and r.r1 - 1 == 0", transfer=[("r1", "r.r1 - 1"), ("r2", "r.r2 + 1")]),
    arc("a5", "q2", "q3", "e.change > 0 and r.r2 + 1 == 2", lifetime=Lifetime(5000)),
    arc("x1", "q2", "q3", "r.r2 == 2", epsilon=True),
    name="q1",
    registers=[Register("r1", Type.INT, 0), Register("r2", Type.INT, 0)],
    window=TimeWindow(2000),
)


NAMES = st.text(max_size=40) | st.just(HOSTILE)


@st.composite
def patterns(draw_value, names=NAMES):
    states = draw_value(st.lists(names, min_size=1, max_size=9, unique=True))
    state = st.sampled_from(states)
    lifetime = st.sampled_from([ALWAYS, Lifetime(5000), Lifetime(-math.inf, 7), Lifetime(3, 3)])
    arcs = []
    for number in range(draw_value(st.integers(0, 20))):
        transfer = tuple((f"r{index}", TRANSFER) for index in range(draw_value(st.sampled_from([0, 0, 1, 2, 7]))))
        fence = draw_value(st.sampled_from(FENCES))
        arc_id = f"{number}{draw_value(names)}"
        arcs.append(
            Arc(
                arc_id,
                draw_value(state),
                draw_value(state),
                fence,
                transfer,
                draw_value(lifetime),
                draw_value(st.booleans()),
            )
        )
    finals = frozenset(draw_value(st.lists(state, max_size=3)))
    registers = tuple(
        Register(f"r{index}", Type.STRING, draw_value(names)) for index in range(draw_value(st.integers(0, 3)))
    )
    return Pattern(
        draw_value(names),
        states[0],
        finals,
        registers,
        tuple(arcs),
        draw_value(st.sampled_from([None, CountWindow(5)])),
    )


def label_boxes(layout: Layout) -> list[Box]:
    return [placed.box for arcs in layout.arcs for placed in arcs.labels]


def smaller(box: Box) -> Box:
    return Box(box.left + 1, box.top + 1, box.right - 1, box.bottom - 1)


def points_on(curve):
    here = curve.start
    for piece in curve.pieces:
        one, two, end = piece if len(piece) == 3 else (here, piece[0], piece[0])
        for step in range(21):
            t = step / 20
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield tuple(
                sum(w * p[axis] for w, p in zip(weights, (here, one, two, end), strict=True)) for axis in (0, 1)
            )
        here = end


def assert_legible(drawn: Pattern) -> None:
    layout = lay_out(drawn)
    boxes = [smaller(box) for box in label_boxes(layout) + [state.box for state in layout.states]]
    frame = Box(-0.1, -0.1, layout.width + 0.1, layout.height + 0.1)
    for one, other in combinations(boxes, 2):
        assert not one.meets(other)
    for arcs in layout.arcs:
        ends = {placed.label.arc for placed in arcs.labels}
        passed = {state for a in drawn.arcs if a.id in ends for state in (a.source, a.target)}
        others = [smaller(placed.box) for other in layout.arcs if other is not arcs for placed in other.labels]
        others += [smaller(state.box) for state in layout.states if state.name not in passed]
        for x, y in points_on(arcs.curve):
            assert frame.left <= x <= frame.right
            assert frame.top <= y <= frame.bottom
            assert not any(box.left < x < box.right and box.top < y < box.bottom for box in others)
        for placed in arcs.labels:
            assert placed.label.columns * CHARACTER + 2 * LABEL_PADDING_X <= placed.box.width + 0.1


@given(patterns())
def test_nothing_lies_on_anything_else(drawn):
    assert_legible(drawn)


@pytest.mark.parametrize("states", [9, 30, 60])
def test_nothing_lies_on_anything_else_in_several_rows(states):
    chain = [arc(f"a{number}", f"q{number}", f"q{number + 1}", "e.change < 0") for number in range(states)]
    back = [arc(f"b{number}", f"q{number}", f"q{number - 2}", "e.change > 0") for number in range(4, states, 7)]
    loops = [arc(f"c{number}", f"q{number}", f"q{number}", "e.change == 0") for number in range(0, states, 3)]
    drawn = pattern(*chain, *back, *loops, finals=[f"q{states}"])
    assert_legible(drawn)
    layout = lay_out(drawn)
    assert layout.width < 1_700
    assert layout.height > 200 * (states // 9)


def test_the_main_line_of_a_chain_is_straight():
    drawn = pattern(*(arc(f"a{number}", f"q{number}", f"q{number + 1}") for number in range(3)))
    layout = lay_out(drawn)
    assert len({state.box.centre[1] for state in layout.states}) == 1
    assert [state.box.left for state in layout.states] == sorted(state.box.left for state in layout.states)


def test_parallel_and_back_arcs_bend_apart():
    drawn = pattern(
        arc("a", "q0", "q3"), arc("b", "q0", "q3"), arc("c", "q3", "q0"), arc("d", "q0", "q3", epsilon=True)
    )
    heights = [arcs.labels[0].box.centre[1] for arcs in lay_out(drawn).arcs]
    assert len(set(heights)) == 4
    many = pattern(*(arc(f"a{number}", "q0", "q3") for number in range(9)))
    (together,) = lay_out(many).arcs
    assert [placed.label.arc for placed in together.labels] == [f"a{number}" for number in range(9)]


def test_svg_shows_all_of_q1():
    root = ElementTree.fromstring(draw([Q1], "svg"))
    lines = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert lines[:2] == ["q1", "within 2000  ·  r1 = 0  ·  r2 = 0"]
    assert {"q0", "q1", "q2", "q3"} <= set(lines)
    assert {"a0: e.change < -0.25", "a1: e.change < 0", "r1 := r.r1 + 1", "[5000, ∞)", "x1: ε r.r2 == 2"} <= set(lines)
    classes = [element.get("class") for element in root.iter(f"{SVG}g")]
    assert classes.count("node final") == 1
    assert classes.count("arc epsilon") == 1
    assert classes.count("start") == 1


def assert_tame(document: str) -> ElementTree.Element:
    root = ElementTree.fromstring(document.encode())
    allowed = {"svg", "style", "g", "title", "rect", "text", "tspan", "path", "circle"}
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in allowed
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    return root


@given(patterns())
def test_svg_is_well_formed_complete_and_has_no_way_out(drawn):
    root = assert_tame(draw([drawn], "svg"))
    assert [group.get("data-state") for group in root.iter(f"{SVG}g") if "data-state" in group.attrib] == [
        text.clean(state) for state in drawn.states
    ]
    shown = [group.get("data-arc") for group in root.iter(f"{SVG}g") if "data-arc" in group.attrib]
    assert sorted(shown) == sorted(text.clean(each.id) for each in drawn.arcs)


def test_what_is_cut_is_in_the_tooltip():
    long = "e." + "x" * 300 + " > 1 and e.y == 2"
    root = ElementTree.fromstring(draw([pattern(arc("i" * 200, "q0", "s" * 500, long))], "svg"))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert any(f"{'i' * 200}: {long}" in title for title in titles)
    assert "s" * 500 in titles
    assert max(len("".join(element.itertext())) for element in root.iter(f"{SVG}text")) <= 60


@given(st.lists(patterns(), max_size=3), st.sampled_from(["svg", "dot", "mermaid"]))
@settings(max_examples=25)
def test_the_same_patterns_give_the_same_drawing(drawn, drawing_format):
    assert draw(drawn, drawing_format) == draw(list(drawn), drawing_format)


def test_a_drawing_does_not_depend_on_hash_seeds():
    script = (
        "from afa.expression import Scope, compile_expression as c; from afa.pattern import Arc, Pattern\n"
        "from arcfleet.drawing import draw\n"
        "fence = c('true', Scope())\n"
        "arcs = [Arc(f'a{i}', f'q{i * 7 % 11}', f'q{i * 5 % 11}', fence) for i in range(30)]\n"
        "p = Pattern('p', 'q0', frozenset(f'q{i}' for i in range(11)), (), tuple(arcs))\n"
        "print(ascii([draw([p], kind) for kind in ('svg', 'dot', 'mermaid')]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-P", "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_several_patterns_stand_below_each_other():
    root = assert_tame(draw([Q1, pattern(name="empty", finals=()), Q1], "svg"))
    panels = [group for group in root.iter(f"{SVG}g") if group.get("class") == "pattern"]
    tops = [float(panel.get("transform").removesuffix(")").split()[1]) for panel in panels]
    heights = [float(panel.find(f"{SVG}rect").get("height")) for panel in panels]
    assert all(top + height < below for top, height, below in zip(tops, heights, tops[1:], strict=False))
    assert float(root.get("height")) >= tops[-1] + heights[-1]
    assert draw([Q1, Q1], "dot").count("digraph") == 2
    assert draw([Q1, Q1], "mermaid").count("\nflowchart LR\n") == 2
    assert_tame(draw([], "svg"))


def test_a_big_pattern_can_be_drawn():
    arcs = [arc(f"a{number}", f"q{number * 7919 % 1000}", f"q{number * 104729 % 997}") for number in range(5_000)]
    root = ElementTree.fromstring(draw([pattern(*arcs, finals=["q999"])], "svg"))
    assert sum(1 for group in root.iter(f"{SVG}g") if "data-arc" in group.attrib) == 5_000
    layout = lay_out(pattern(*arcs, finals=["q999"]))
    boxes = sorted((smaller(box) for box in label_boxes(layout)), key=lambda box: box.left)
    for number, box in enumerate(boxes):
        for other in boxes[number + 1 :]:
            if other.left >= box.right:
                break
            assert not box.meets(other)


QUOTED = r'"((?:[^"\\]|\\.)*)"'
DOT_LINE = re.compile(
    "|".join(
        [
            rf"digraph {QUOTED} {{",
            r"  (?:rankdir|node|edge|start \[).*",
            rf"  label={QUOTED};",
            rf'  s\d+ \[label={QUOTED}, tooltip={QUOTED}[^"]*(?:"[#\w,]+"[^"]*)*\];',
            r"  start -> s0;",
            rf'  s\d+ -> s\d+ \[label={QUOTED}, tooltip={QUOTED}(?:, style=dashed, color="#\w+")?\];',
            "}|",
        ]
    )
)


def dot_text(quoted: str) -> str:
    said = re.sub(r"\\(.)", lambda found: {"l": "\n", "n": "\n"}.get(found[1], found[1]), quoted)
    assert not re.search(r"&(?!amp;)", said)
    return said.replace("&amp;", "&")


@given(patterns())
def test_dot_quotes_everything(drawn):
    lines = draw([drawn], "dot").split("\n")
    for line in lines:
        assert DOT_LINE.fullmatch(line), line
    labels = [dot_text(found[1]) for line in lines if (found := re.match(rf"  s\d+ \[label={QUOTED}", line))]
    assert labels == [text.state_text(state) for state in drawn.states]
    tooltips = [
        found[2] for line in lines if (found := re.match(rf"  s\d+ -> s\d+ \[label={QUOTED}, tooltip={QUOTED}", line))
    ]
    assert [dot_text(tooltip) for tooltip in tooltips] == [text.label(each).tooltip for each in drawn.arcs]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_dot():
    hostile = pattern(
        arc(HOSTILE, HOSTILE, "q3", 'e.s == "\\"<&amp;"', final=True), name=HOSTILE, start=HOSTILE, finals=["end\\"]
    )
    run = subprocess.run(["dot", "-Tsvg"], input=draw([Q1, hostile], "dot").encode(), capture_output=True, check=True)
    assert not run.stderr
    assert "&quot;&lt;/title&gt;" in run.stdout.decode()


MERMAID_LINE = re.compile(
    "|".join(
        [
            r'%% [^{}"\n]*',
            r"flowchart LR",
            r'  subgraph pattern\["([^"]*)"\]',
            r"    direction LR",
            r'    start\(\(" "\)\):::start',
            r'    s\d+(?:\(\("([^"]*)"\)\)|\(\["([^"]*)"\]\)):::state',
            r'    s\d+(?:\(\(\("([^"]*)"\)\)\)|\[\["([^"]*)"\]\]):::final',
            r"    start --> s0",
            r'    s\d+ (?:-->|-\.->)\|"([^"]*)"\| s\d+',
            r"  end",
            r"  (?:classDef \w+|style pattern) [\w:#,]+|",
        ]
    )
)


def mermaid_text(quoted: str) -> str:
    bare = quoted.replace("<br/>", "\n")
    assert not re.search(r"[<>&\"'`*\[\]{}|\\~$@!?^%]", bare)
    assert not re.search(r":\S*#", bare)  # Mermaid would take it for a style and drop a semicolon
    assert re.fullmatch(r"(?:[^#;]|#\d+;)*", bare)
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), bare)


@given(patterns(names=NAMES | st.sampled_from(["1. x", "- x", "_x_", "a:b", "end"])))
def test_mermaid_quotes_everything(drawn):
    lines = draw([drawn], "mermaid").split("\n")
    found = [MERMAID_LINE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    said = [
        mermaid_text(next(group for group in match.groups() if group is not None)) for match in found if match.lastindex
    ]
    _, *rest = said
    assert rest[: len(drawn.states)] == [text.state_text(state) for state in drawn.states]
    assert rest[len(drawn.states) :] == [
        "\n".join("".join(span.text for span in line).strip() for line in text.label(each).lines) for each in drawn.arcs
    ]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("e.change > 0 and r.r1 - 1 == 0", ["e.change > 0", "and r.r1 - 1 == 0"]),
        ("e.a > 1 and e.b", ["e.a > 1 and e.b"]),
        ("e.aaaaaaaaaaa == e.bbbbbbbbbbbbbbbbb and e.c", ["e.aaaaaaaaaaa ==", "e.bbbbbbbbbbbbbbbbb", "and e.c"]),
        ("e.a == 1 and e.b == 2 and e.c == 3 and e.d == 4 and e.e == 5 and e.f == 6 and e.g == 7 and e.h", None),
        ("x" * 50, ["x" * 19 + "…"]),
    ],
)
def test_fences_wrap_at_their_clauses(words, lines):
    wrapped = text.wrap(words, 20, 20, 3)
    assert all(text.columns(line) <= 20 for line in wrapped)
    if lines is None:
        assert len(wrapped) == 3
        assert wrapped[-1].endswith(" …")
    else:
        assert wrapped == lines


def test_lifetimes_read_as_intervals():
    assert text.lifetime_text(Lifetime(5000)) == "[5000, ∞)"
    assert text.lifetime_text(Lifetime(-math.inf, 5000)) == "[-∞, 5000)"
    assert text.lifetime_text(Lifetime(7, 7)) == "[7, 7) never"
