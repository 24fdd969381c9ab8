"""A snapshot without names: what is asked of it gets the same answers, and nobody learns whose cluster it was.

Every name of an object, every value of a label and every word with a domain that is not of a known project gets a
number, the same wherever it stands, in the order of the names, so that whoever sorts by names finds the same order.
Texts are dropped. Amounts, priorities, times, kinds and numbers stay: they are the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]
_DOMAINS: Final = (
    *("kubernetes.io", "k8s.io", "x-k8s.io", "kohort.dev", "grove.io", "kubeflow.org"),
    *("nvidia.com", "amd.com", "intel.com", "habana.ai", "google.com", "amazonaws.com"),
)
_TEXTS: Final = frozenset({"message", "text", "note", "how"})
_NAMES: Final = frozenset({"name", "namespace", "generateName"})
_WORDS: Final = frozenset({"labels", "matchLabels", "nodeSelector"})
# Fields whose values are words of an API, not of people.
_API: Final = frozenset(
    {"apiVersion", "kind", "phase", "type", "reason", "status", "operator", "effect", "whenUnsatisfiable", "policy"}
    | {
        "restartPolicy",
        "preemptionPolicy",
        "schedulerName",
        "creationTimestamp",
        "deletionTimestamp",
        "uid",
        "protocol",
    }
    | {"accessModes", "volumeMode", "version", "minor", "resource", "resourceVersion"}
)
# Names that every cluster has; what nodes are, so that a manifest that selects it is answered as before.
_KEPT: Final = frozenset(
    {"default", "kube-system", "kube-public", "kube-node-lease", "true", "false", ""}
    | {"linux", "windows", "amd64", "arm64"}
)
_NUMBER: Final = re.compile(r"[0-9.]+[a-zA-Z]{0,2}")
_DOMAIN: Final = re.compile(r"([a-z0-9.-]+\.[a-z]{2,})/(.+)")


def anonymised(snapshot: Json) -> Json:
    found: set[str] = set()
    for name, one in snapshot.items():
        found.update(_names(one, name))
    # A place that keeps the order, in the shape of a name.
    width = len(str(len(found)))
    known = {word: f"x{number:0{width}}" for number, word in enumerate(sorted(found))}
    made = {name: _changed(one, known, name) for name, one in snapshot.items()}
    assert isinstance(made, dict)
    return made


def _names(value: Any, field: str) -> Iterator[str]:
    """Words of people in a value: names, values of labels, and the own half of keys with a foreign domain."""
    if isinstance(value, list):
        for one in value:
            yield from _names(one, field)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _foreign(name)
            if isinstance(one, str):
                if name in _NAMES or field in _WORDS:
                    yield from (word for word in (one.rstrip("-"), one) if _is_own(word))
                yield from _foreign(one)
            else:
                yield from _names(one, name)
    elif isinstance(value, str) and field in {"values", "nodes", "names"} and _is_own(value):
        yield value


def _is_own(word: str) -> bool:
    return word not in _KEPT and _NUMBER.fullmatch(word) is None and _DOMAIN.fullmatch(word) is None


def _foreign(word: str) -> Iterator[str]:
    match = _DOMAIN.fullmatch(word)
    if match and not _is_known(match[1]):
        yield word


def _is_known(domain: str) -> bool:
    return any(domain == one or domain.endswith(f".{one}") for one in _DOMAINS)


def _changed(value: Any, known: Mapping[str, str], field: str) -> Any:
    if isinstance(value, list):
        return [_changed(one, known, field) for one in value]
    if isinstance(value, dict):
        return {
            _word(name, known): _changed(one, known, name)
            for name, one in value.items()
            if not (name in _TEXTS and isinstance(one, str))
        }
    return _word(value, known) if isinstance(value, str) and field not in _API else value


def _word(word: str, known: Mapping[str, str]) -> str:
    """Whole words, and what is made of them with slashes: keys of objects."""
    match = _DOMAIN.fullmatch(word)
    if match:
        return word if _is_known(match[1]) else f"{known[word]}.example.com/{known[word]}" if word in known else word
    if word in known:
        return known[word]
    return "/".join(known.get(part, part) for part in word.split("/")) if "/" in word else word
