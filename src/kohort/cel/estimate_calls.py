"""What calls may cost at most, and how large their results may become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from kohort.cel.check import Checker
from kohort.cel.costs import ENDLESS, LIST, PER_CHARACTER, PER_PATTERN, Size, added, capped, share
from kohort.cel.syntax import Node

_FORMAT_PATTERN: Final = 128


class Sizes(Protocol):
    """What an estimate asks of the expression around the call."""

    types: Checker
    sizes: dict[int, Size]

    def sure(self, node: Node) -> Size: ...

    def element(self, node: Node) -> tuple[str, Size]: ...


Estimate = Callable[[Sizes, Node, Sequence[Node]], int]


def _read(place: int, factor: float = 1, *, keeps: bool = False) -> Estimate:
    def estimate(of: Sizes, node: Node, given: Sequence[Node]) -> int:
        found = of.sure(given[place])
        if keeps:
            of.sizes[id(node)] = found
        return share(found[1], PER_CHARACTER * factor)

    return estimate


def _searched(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    text, pattern = of.sure(given[0])[1], of.sure(given[1])[1]
    if node.value != "matches":
        of.sizes[id(node)] = (0, text)
    return share(capped(text + 1), PER_CHARACTER) * share(pattern, PER_PATTERN)


def _contains(of: Sizes, _: Node, given: Sequence[Node]) -> int:
    return share(of.sure(given[0])[1], PER_CHARACTER) * share(of.sure(given[1])[1], PER_CHARACTER)


def _traversed(of: Sizes, _: Node, given: Sequence[Node]) -> int:
    count = of.sure(given[0])[1]
    if of.types.type_of(given[0]).kind != "list":
        return share(count, PER_CHARACTER)
    kind, item = of.element(given[0])
    return count * (1 + (share(item[1], PER_CHARACTER) if kind in {"string", "bytes"} else 0))


def _split(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    most = of.sure(given[0])[1]
    limit: Any = given[2].value if len(given) > 2 and given[2].sort == "literal" else None
    of.sizes[id(node)] = (0, limit % (1 << 64) if isinstance(limit, int) else most)
    return share(most, 2 * PER_CHARACTER)


def _join(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    count, (_, item) = of.sure(given[0]), of.element(given[0])
    whole = capped(count[1] * item[1])
    if len(given) > 1:
        whole = capped(whole + of.sure(given[1])[1] * max(0, count[1] - 1))
    of.sizes[id(node)] = (0, whole)
    return share(whole, PER_CHARACTER)


def _replace(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    whole, old, new = (of.sure(one) for one in given[:3])
    if old[0] == 0:
        most = added((0, whole[1]), (0, capped((whole[1] + 1) * new[1])))[1]
    elif new[1] <= old[0]:
        most = whole[1]
    else:
        most = capped(-(-whole[1] // old[0]) * new[1])
    of.sizes[id(node)] = (0, most)
    return share(whole[1], 2 * PER_CHARACTER)


def _within(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    """containsIP, containsCIDR: an address has at most 16 bytes."""
    base = 4 + (3 if node.value == "containsCIDR" else 0)
    return base + (share(of.sure(given[1])[1], PER_CHARACTER) if of.types.type_of(given[1]).kind == "string" else 0)


def _ip(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    return 1 if node.sort == "method" else _read(0)(of, node, given)


def _converted(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    kind, found = of.types.type_of(given[0]).kind, of.sure(given[0])
    if (node.value, kind) not in {("string", "bytes"), ("bytes", "string"), ("string", "dyn"), ("bytes", "dyn")}:
        return 1
    of.sizes[id(node)] = (0, found[1] if node.value == "string" else capped(found[1] * 4))
    return share(found[1], PER_CHARACTER)


def _validated(of: Sizes, _: Node, given: Sequence[Node]) -> int:
    return share(share(of.sure(given[1])[1], PER_CHARACTER), _FORMAT_PATTERN * PER_PATTERN)


def _pairs(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    pairs = capped(of.sure(given[0])[1] * of.sure(given[1])[1])
    return 1 + pairs * (2 if node.value == "sets.equivalent" else 1)


def _number(given: Sequence[Node], place: int, otherwise: int) -> int:
    literal = place < len(given) and given[place].sort == "literal" and type(given[place].value) is int
    return max(0, int(given[place].value)) if literal else otherwise


def _made(of: Sizes, node: Node, size: Size, factor: float = 1) -> int:
    """A call that makes a list of so many items."""
    of.sizes[id(node)] = size
    return share(size[1], factor) + 1 + LIST


def _sliced(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    count = (_number(given, 2, of.sure(given[0])[1]) - _number(given, 1, 0)) % (1 << 64)
    return _made(of, node, (count, count))


def _ranged(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    count = _number(given, 0, ENDLESS)
    return _made(of, node, (count, count))


def _flattened(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    depth = _number(given, 1, ENDLESS) if len(given) > 1 else 1
    return _made(of, node, of.sure(given[0]), float(depth))


def _squared(of: Sizes, node: Node, given: Sequence[Node]) -> int:
    least, most = of.sure(given[0])
    kind = of.types.type_of(given[0])
    texts = node.value == "sort" and kind.parts and kind.parts[0].kind in {"string", "bytes"}
    return _made(of, node, (capped(least**2), capped(most**2)), 2 + (PER_CHARACTER if texts else 0))


CALLS: Final[dict[str, Estimate]] = {
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _read(0, keeps=True)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver", "format"), _read(0)),
    **dict.fromkeys(("startsWith", "endsWith"), _read(1)),
    **dict.fromkeys(("matches", "find", "findAll"), _searched),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("containsIP", "containsCIDR"), _within),
    **dict.fromkeys(("string", "bytes"), _converted),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _pairs),
    "ip": _ip,
    "ip.isCanonical": _read(0, 2),
    "strings.quote": _read(0),
    "contains": _contains,
    "split": _split,
    "join": _join,
    "replace": _replace,
    "validate": _validated,
    "slice": _sliced,
    "lists.range": _ranged,
    "reverse": lambda of, node, given: _made(of, node, of.sure(given[0])),
    "flatten": _flattened,
    **dict.fromkeys(("distinct", "sort"), _squared),
}
