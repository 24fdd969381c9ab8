"""Trees of groups that nobody means: chains, cycles, parents that are not there, minimums that nobody reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.abuse.attack import Attack, Object, Sort, Source

_API: Final = "scheduling.k8s.io/v1alpha3"
_LINKS: Final = 100  # of a chain, in a request each; a cluster's own maximum of a template's depth is 4


def _reference(parent: str) -> Object:
    found: Object = {"workloadRef": {"workloadName": "nobody", "templateName": "none"}}
    return {**found, "parentCompositePodGroupName": parent} if parent else found


def composite(source: Source, parent: str = "", least: int = 1) -> Attack:
    spec = {**_reference(parent), "schedulingPolicy": {"gang": {"minGroupCount": least}}}
    return source.create(_API, "compositepodgroups", "CompositePodGroup", spec)


def group(source: Source, parent: str = "", least: int = 1) -> Attack:
    spec = {**_reference(parent), "schedulingPolicy": {"gang": {"minCount": least}}}
    return source.create(_API, "podgroups", "PodGroup", spec)


def member(source: Source, of: str) -> Attack:
    return source.pod({"schedulingGroup": {"podGroupName": of}})


def _last(source: Source, back: int = 0) -> str:
    return f"{source.sort}-{source.number - back}"


def _chain(source: Source) -> Iterator[Attack]:
    """Each names the one before as its parent; at the end a group with a pod."""
    yield composite(source)
    for _ in range(_LINKS):
        yield composite(source, _last(source))
    yield group(source, _last(source))
    yield member(source, _last(source))


def _from_below(source: Source) -> Iterator[Attack]:
    """The same chain, the lowest link first: every link changes the root of all that are below it."""
    links = source.pick(20, 60)
    first = source.number + 1
    yield group(source, f"{source.sort}-{first + 2}")
    yield member(source, f"{source.sort}-{first}")
    for link in range(2, links):
        yield composite(source, f"{source.sort}-{first + link + 1}" if link + 1 < links else "")


def _cycle(source: Source) -> Iterator[Attack]:
    """Composite groups in a ring, a group with a pod below."""
    first, size = source.number + 1, source.pick(1, 2, 3, 40)
    for link in range(size):
        yield composite(source, f"{source.sort}-{first + (link + 1) % size}")
    yield group(source, f"{source.sort}-{first}")
    yield member(source, _last(source))


def _wide(source: Source) -> Iterator[Attack]:
    """One parent of many children, each of one pod that fits: none may start before all can."""
    yield composite(source, least=2**31 - 1)
    parent = _last(source)
    for _ in range(10):
        yield group(source, parent)
        yield member(source, _last(source))


def _minimum(source: Source) -> Iterator[Attack]:
    yield group(source, least=source.pick(2**31 - 1, 10**6, 0, -1))
    yield member(source, _last(source))


def _strangers(source: Source) -> Iterator[Attack]:
    """Members of groups that do not exist, or are of another kind."""
    yield composite(source)
    yield member(source, _last(source))
    yield member(source, source.pick("a" * 253, "none", _last(source)))


SORTS: Final = (
    Sort("chain", _chain),
    Sort("chain-from-below", _from_below),
    Sort("cycle-of-parents", _cycle),
    Sort("wide-tree", _wide),
    Sort("minimum", _minimum),
    Sort("strangers", _strangers),
)
