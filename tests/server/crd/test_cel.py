"""CEL: values, errors, types and costs; verdicts of a real server on the rules of tests/recorded/cel.json."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kohort.cel import declare
from kohort.cel import language as cel
from kohort.cel.run import run
from kohort.cel.types import BOOL
from kohort.cel.values import Optional
from kohort.server.crd import rule_check, rules
from kohort.server.crd.validate import ABSENT

RULES = "x-kubernetes-validations"
BROKEN = ["", "1 +", "(1", "[1", "{1}", "a b", "1 2", "has(1)", "self.", "in", "for", "@", "'a", "1 = 1", "!" * 9999]
SELF: dict[str, Any] = {
    "n": 3,
    "s": "abc",
    "l": [1, 2, 3],
    "m": {"a": "x"},
    "b": True,
    "d": 1.5,
    "x-y": 1,
    "null": None,
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 + 2 * 3 == 7", True),
        ("isQuantity('Ki') && !isQuantity(' 1') && quantity('9Ei') == quantity('9223372036854775807')", True),
        ("quantity('1e999999999').isGreaterThan(quantity('1E')) && !quantity('1e999999999').isInteger()", True),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.5 / 2.5", 3.0),
        ("'a' + \"b\"", "ab"),
        ("[1] + [2]", [1, 2]),
        (r"'\n\x41\u0042\103'", "\nABC"),
        (r"r'\n'", "\\n"),
        ("'''a'b'''", "a'b"),
        ("0x10 + 1", 17),
        ("1e3", 1000.0),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("!(1 < 2) || 2 <= 2", True),
        ("1 == 1.0", True),
        ("1 == true", False),
        ("self.n in [1, 3]", True),
        ("'a' in self.m", True),
        ("has(self.n) && !has(self.q)", True),
        ("has(self.m.a)", True),
        ("self.x__dash__y == 1", True),
        ("self.l.all(x, x > 0)", True),
        ("self.l.exists(x, x == 2)", True),
        ("self.l.exists_one(x, x > 2)", True),
        ("self.l.filter(x, x > 1)", [2, 3]),
        ("self.l.map(x, x * 2)", [2, 4, 6]),
        ("self.l.map(x, x > 1, x * 2)", [4, 6]),
        ("self.m.all(k, k == 'a')", True),
        ("self.l.map(x, self.l.map(y, x * y).sum()).sum()", 36),
        ("size(self.s) == self.s.size()", True),
        ("self.l[1]", 2),
        ("self.m['a']", "x"),
        ("{'k': 1}.k", 1),
        ("self.s.startsWith('a') && self.s.endsWith('c') && self.s.contains('b')", True),
        ("self.s.matches('^[a-c]+$')", True),
        ("'A b'.lowerAscii() + 'a'.upperAscii()", "a bA"),
        ("'a,b'.split(',').join('-')", "a-b"),
        ("'abc'.substring(1) + 'abc'.substring(0, 1)", "bca"),
        ("'abcb'.indexOf('b') + 'abcb'.lastIndexOf('b')", 4),
        ("'aXa'.replace('X', 'b').trim()", "aba"),
        ("self.l.min() + self.l.max()", 4),
        ("self.l.isSorted()", True),
        ("string(self.n) + string(true)", "3true"),
        ("int('5') + int(1.0)", 6),
        ("double(1)", 1.0),
        ("self.q == 1 || true", True),
        ("true || self.q == 1", True),
        ("self.q == 1 && false", False),
        ("[1, 2].exists(x, x == 1 || self.q == x)", True),
        ("1 == 2 // a remark", False),
    ],
)
def test_values(text: str, wanted: Any) -> None:
    found = cel.evaluate(cel.parse(text), {"self": SELF})
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "text",
    ["self.q", "self.n.q", "self.l[5]", "self.m['q']", "1 / 0", "1 + 'a'", "1 < 'a'", "!1", "1 ? 2 : 3", "'a' in 1",
     "size(1)", "self.s.min()", "[].min()", "9223372036854775807 + 1", "int('x')", "other",
     "self.all(x, x)", "'a'.matches('(')",
     "'a'.substring(5)", "1.5 % 1.0", "self.l.map(x, x).q"],
)  # fmt: skip
def test_errors(text: str) -> None:
    with pytest.raises(cel.CelError):
        cel.evaluate(cel.parse(text), {"self": SELF})


@pytest.mark.parametrize("text", BROKEN)
def test_not_expressions(text: str) -> None:
    with pytest.raises(cel.CelSyntaxError):
        cel.parse(text)


def test_names_are_those_from_outside() -> None:
    assert cel.names(cel.parse("self.all(x, x.y == oldSelf.z) && other > x")) == {"self", "oldSelf", "other", "x"}


def test_optional_old() -> None:
    tree = cel.parse("oldSelf.hasValue() ? oldSelf.value() < self : oldSelf.orValue(0) == 0")
    assert cel.evaluate(tree, {"self": 2, "oldSelf": Optional(1)}) is True
    assert cel.evaluate(tree, {"self": 2, "oldSelf": Optional()}) is True


def test_an_expression_cannot_run_for_ever() -> None:
    inner = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"
    with pytest.raises(cel.CelError, match="actual cost limit exceeded"):
        cel.evaluate(cel.parse(inner), {"self": list(range(100))})
    with pytest.raises(cel.CelSyntaxError, match="levels deep"):
        cel.parse("(" * 300 + "1" + ")" * 300)
    with pytest.raises(cel.CelError, match="deep"):
        cel.evaluate(cel.parse("+".join(["1"] * 5000)), {})


@pytest.mark.parametrize(
    ("text", "missing"), [("self.metadata.name == 'a'", ""), ("has(self.metadata.labels)", "labels")]
)
def test_a_rule_of_the_whole_object_may_ask_for_its_name_and_nothing_else_of_its_metadata(
    text: str, missing: str
) -> None:
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}}, RULES: [{"rule": text}]}
    found = [one.detail for one in rule_check.problems(schema, "s")]
    assert [f"undefined field '{missing}'" in one for one in found] == [True] * bool(missing)


def test_a_reserved_word_is_a_name_after_a_dot() -> None:
    """JobSet's own definition asks for `t.metadata.namespace`; real servers take both forms, but of tokens one."""
    for word in ("namespace", "as", "package", "while"):
        for form in (word, f"__{word}__"):
            rule = f"has(self.{form}) && self.{form} == 'a'"
            schema = {"type": "object", "properties": {word: {"type": "string"}}, RULES: [{"rule": rule}]}
            assert list(rule_check.problems(schema, "s")) == [], rule
            assert list(rules.check(schema, {word: "a"}, ABSENT)) == [], rule
            assert list(rules.check(schema, {word: "b"}, ABSENT)) != [], rule
    schema = {"type": "object", "properties": {"in": {"type": "string"}}, RULES: [{"rule": "self.in == 'a'"}]}
    assert list(rule_check.problems(schema, "s")) != []


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^(\\w+\\s?)+!$", "Job has reached the specified backoff limit and nobody knows why it did so", False),
        ("^a$", "a\\n", False),
        ("^[[:alpha:]]+$", "ab", True),
    ],
)
def test_matches_is_of_go_and_linear(pattern: str, text: str, found: bool) -> None:
    assert cel.evaluate(cel.parse(f"'{text}'.matches('{pattern}')"), {}) is found


RECORDED = json.loads((Path(__file__).parents[2] / "recorded" / "cel.json").read_text())


@pytest.mark.parametrize(("verdict", "estimate", "rule"), RECORDED["rules"])
def test_verdicts_of_kubernetes_1_37(verdict: str, estimate: int | None, rule: str) -> None:
    """refused: the definition is, by types; dear: by its cost; error: the rule has no value for the object."""
    schema, value = {**RECORDED["schema"], RULES: [{"rule": rule}]}, RECORDED["object"]
    wrong = [one.detail for one in rule_check.problems(schema, "s")]
    if wrong:
        found = "dear" if "exceeds budget" in wrong[0] else "refused"
    else:
        told = [one.detail for one in rules.check(schema, value, value if "oldSelf" in rule else ABSENT)]
        found = "holds" if not told else "error" if told[0].startswith("rule evaluation error") else "fails"
    assert found == verdict
    kind = declare.declared(schema)
    assert kind is not None
    compiled = rule_check.compiled(rule, {"self": kind, "oldSelf": kind}, BOOL, "not a bool")
    assert verdict == "refused" or compiled.cost == estimate


@pytest.mark.parametrize(
    ("most", "factor"), [({}, "more than 100x"), ({"maxItems": 1000}, "4.6x"), ({"maxItems": 10}, "")]
)
def test_the_cost_of_a_rule_is_estimated_from_what_the_schema_allows(most: dict[str, int], factor: str) -> None:
    text = {"type": "string", "maxLength": 100}
    items = {"type": "array", "items": text, **most}
    rule = {"rule": "self.a.all(x, self.a.exists(y, x == y))"}
    schema = {"type": "object", "properties": {"a": items}, RULES: [rule]}
    found = [one.detail for one in rule_check.problems(schema, "s") if "estimated rule cost exceeds" in one.detail]
    assert [one.split(" (")[0] for one in found] == [
        f"estimated rule cost exceeds budget by factor of {factor}"
    ] * bool(factor)


def test_the_rules_of_a_schema_have_a_limit_together() -> None:
    item = {"type": "string", "maxLength": 1000, RULES: [{"rule": "self.matches('^[a-z]+(-[a-z]+)*$')"}]}
    names = {f"f{n}": {"type": "array", "maxItems": 4000, "items": item} for n in range(20)}
    found = rule_check.problems({"type": "object", "properties": names}, "s")
    assert len(found) == 5
    assert found[0].detail.startswith("contributed to estimated rule cost total")
    assert found[-1].detail.startswith(
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of"
    )


def test_what_is_wrong_is_shown_in_the_words_of_a_server() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        RULES: [{"rule": "self.n > 0 &&\n  self.q == 1"}],
    }
    (found,) = rule_check.problems(schema, "s")
    assert found.field == f"s.{RULES}[0].rule"
    assert found.detail == ("compilation failed: ERROR: <input>:2:7: undefined field 'q'\n |   self.q == 1\n | ......^")


@pytest.mark.parametrize(
    ("rule", "message", "detail"),
    [
        ("self.n", "", "cel expression must evaluate to a bool"),
        ("self.n == 'a'", "", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.n > 0", "self.n", "messageExpression must evaluate to a string"),
        ("self.n > 0", "self.q", "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'q'"),
        ("cel.bind(x, 1, x == 1)", "", "undeclared reference to 'cel'"),
    ],
)
def test_types_are_checked_when_a_definition_is_made(rule: str, message: str, detail: str) -> None:
    given = {"rule": rule, **({"messageExpression": message} if message else {})}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, RULES: [given]}
    (found,) = rule_check.problems(schema, "s")
    assert detail in found.detail


def test_the_rules_of_an_object_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Counter[str]()

    def counted(*given: Any) -> Any:
        runs["run"] += 1
        return run(*given)

    monkeypatch.setattr(rules, "run", counted)
    monkeypatch.setattr(rules, "PER_OBJECT", rules.PER_OBJECT // 20)
    item = {"type": "integer", RULES: [{"rule": "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5].all(b, a + b + self > 0))"}]}
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": item}}}
    found = [one.detail for one in rules.check(schema, {"l": [1] * 100_000})]
    assert ["running out of cost budget" in one for one in found] == [True]
    assert 100 < runs["run"] < 10_000  # the other items are not looked at


def test_a_rule_that_costs_too_much_ends_the_judging() -> None:
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        RULES: [{"rule": "self.l.all(a, self.l.all(b, a + b >= 0))"}, {"rule": "false"}],
    }
    (found,) = rules.check(schema, {"l": list(range(2000))})
    assert "no further validation rules will be run due to call cost exceeds limit" in found.detail
