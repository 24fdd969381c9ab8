"""Breaking objects: one small change at a time, anywhere in the tree, with the values that break things.

A mutation may well leave the object valid; what matters is that both sides are asked the same question.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    Path = tuple[str | int, ...]

STRINGS = (
    "",
    "a",
    "0",
    "x-1",
    "a.b",
    "A",
    "Rank_0",
    "-a",
    "a-",
    "a..b",
    "a/b",
    "a/b/c",
    "Example.org/rack",
    "example.org/",
    "/rack",
    ".",
    "..",
    "50%",
    "with space",
    "ümlaut",
    "n" * 63,
    "n" * 64,
    "n" * 253,
    "n" * 254,
    "no-such-class",
    "generated-low",
    "generated-high",
    "system-node-critical",
    "Never",
    "Indexed",
    "PodGroup",
    "true",
)
NUMBERS = (0, 1, -1, 2, 3, 9, 1000000000, 1000000001, 2147483647, -2147483648, 2147483648, 9223372036854775807)
# A member that is not there cannot be broken, so some are put there first. By the name of the member they go beside.
SIBLINGS: dict[str, tuple[tuple[str, Any], ...]] = {
    "basic": (("gang", {"minCount": 2}), ("gang", {})),
    "gang": (("basic", {}), ("basic", None)),
    "single": (("all", {}),),
    "all": (("single", {}),),
    "resourceClaimName": (("resourceClaimTemplateName", "t"), ("resourceClaimTemplateName", "")),
    "resourceClaimTemplateName": (("resourceClaimName", "c"),),
    "podGroupTemplates": (
        ("compositePodGroupTemplates", []),
        (
            "compositePodGroupTemplates",
            [{"name": "extra", "schedulingPolicy": {"basic": {}}, "podGroupTemplates": []}],
        ),
    ),
    "compositePodGroupTemplates": (
        ("podGroupTemplates", []),
        ("podGroupTemplates", [{"name": "extra", "schedulingPolicy": {"basic": {}}}]),
    ),
    "schedulingPolicy": (
        ("priority", 5),
        ("priority", 1000000001),
        ("priorityClassName", "gold"),
        ("priorityClassName", "No_Class"),
        ("preemptionPolicy", "Never"),
        ("preemptionPolicy", "Sometimes"),
        ("disruptionMode", {}),
        ("disruptionMode", {"all": {}}),
        ("disruptionMode", "PodGroup"),
        ("schedulingConstraints", {"topology": [{"key": "rack"}, {"key": "zone"}]}),
        ("schedulingConstraints", {"topology": [{}]}),
        ("schedulingConstraints", None),
        ("resourceClaims", [{"name": "gpu"}]),
        ("resourceClaims", [{"name": "gpu", "resourceClaimName": "c"}, {"name": "gpu", "resourceClaimName": "d"}]),
        ("workloadRef", {}),
        ("workloadRef", {"workloadName": "w", "templateName": "a.b"}),
        ("parentCompositePodGroupName", ""),
        ("parentCompositePodGroupName", "root"),
    ),
    "containers": (
        ("schedulingGroup", {}),
        ("schedulingGroup", {"podGroupName": ""}),
        ("schedulingGroup", {"podGroupName": "Ring"}),
    ),
    "parallelism": (("scheduling", {}), ("scheduling", {"schedulingPolicy": {}}), ("completions", 3)),
    "name": (("colour", "red"), ("generateName", "n-"), ("labels", {"a b": "c"}), ("finalizers", ["nobody"])),
    "metadata": (("status", {"conditions": []}), ("colour", "red")),
}
# Members that say what the request is, not what is in it.
_FIXED = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
# What the server wrote into a stored object; to touch it is another subject than validation.
_SERVERS = {"uid", "creationTimestamp", "resourceVersion", "managedFields", "generation", "status"}


def mutate(random: Random, body: dict[str, Any], times: int) -> tuple[dict[str, Any], list[str]]:
    """A copy with `times` changes, and what they were."""
    changed = copy.deepcopy(body)
    notes: list[str] = []
    while len(notes) < times:
        places = list(_places(changed))
        if not places:
            break  # the whole spec is gone already
        path = random.choice(places)
        note = random.choice(_OPERATIONS)(random, changed, path)
        if note:
            notes.append(f"{_written(path)}: {note}")
    return changed, notes


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    if path and path not in _FIXED:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            if not (path in {(), ("metadata",)} and key in _SERVERS):
                yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _places(item, (*path, at))


def _written(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _parent(body: Any, path: Path) -> Any:
    for part in path[:-1]:
        body = body[part]
    return body


# ---- operations: what was done, or "" where this place does not allow it


def _remove(random: Random, body: Any, path: Path) -> str:
    del _parent(body, path)[path[-1]]
    return "removed"


def _other_value(random: Random, body: Any, path: Path) -> str:
    """Another value of the same JSON type."""
    parent, last = _parent(body, path), path[-1]
    old = parent[last]
    new: Any
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, str):
        new = random.choice(STRINGS)
    elif isinstance(old, int):
        new = random.choice(NUMBERS)
    elif isinstance(old, list):
        new = []
    elif isinstance(old, dict):
        new = {}
    else:
        return ""
    if new == old:
        return ""
    parent[last] = new
    return f"{_short(old)} -> {_short(new)}"


def _null(random: Random, body: Any, path: Path) -> str:
    _parent(body, path)[path[-1]] = None
    return "null"


def _other_type(random: Random, body: Any, path: Path) -> str:
    new = random.choice(("text", 7, True, 1.5, ["x"], {"x": 1}, []))
    parent = _parent(body, path)
    if type(parent[path[-1]]) is type(new):
        return ""
    parent[path[-1]] = new
    return f"of another type: {_short(new)}"


def _repeat_item(random: Random, body: Any, path: Path) -> str:
    """An item of a list once more, or ten times, each time with its own name."""
    parent, last = _parent(body, path), path[-1]
    if not isinstance(last, int):
        return ""
    if random.random() < 0.5:
        parent.insert(random.randint(0, len(parent)), copy.deepcopy(parent[last]))
        return "repeated"
    for number in range(9):
        item = copy.deepcopy(parent[last])
        if isinstance(item, dict) and "name" in item:
            item["name"] = f"more-{number}"
        parent.append(item)
    return "nine more"


def _swap_items(random: Random, body: Any, path: Path) -> str:
    parent, last = _parent(body, path), path[-1]
    if not isinstance(last, int) or len(parent) < 2:
        return ""
    other = (last + 1) % len(parent)
    parent[last], parent[other] = parent[other], parent[last]
    return f"swapped with [{other}]"


def _put_beside(random: Random, body: Any, path: Path) -> str:
    """A member that the object could have, beside one that it has."""
    choices = SIBLINGS.get(str(path[-1]))
    if not choices:
        return ""
    name, value = random.choice(choices)
    _parent(body, path)[name] = copy.deepcopy(value)
    return f"beside it {name}: {_short(value)}"


def _copy_from_elsewhere(random: Random, body: Any, path: Path) -> str:
    """The value of a member of the same name somewhere else: repeats across lists, mixed up priorities."""
    last = path[-1]
    others = [place for place in _places(body) if place[-1] == last and place != path]
    if not others:
        return ""
    other = random.choice(others)
    value = copy.deepcopy(_parent(body, other)[other[-1]])
    if value == _parent(body, path)[last]:
        return ""
    _parent(body, path)[last] = value
    return f"as in {_written(other)}"


_OPERATIONS: tuple[Callable[[Random, Any, Path], str], ...] = (
    _remove,
    _other_value,
    _other_value,
    _other_value,
    _null,
    _other_type,
    _repeat_item,
    _repeat_item,
    _swap_items,
    _put_beside,
    _put_beside,
    _put_beside,
    _copy_from_elsewhere,
)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)})"
