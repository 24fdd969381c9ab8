"""GroupingRule: rules without code, for kinds that nobody here has heard of. As objects (`api`) or in a configuration:

- name: flink
  apiVersion: flink.apache.org/v1beta1
  kind: FlinkDeployment
  membership: {label: app}                      # its value names the object; without: the chain of owners does
  groupBy: component                            # label; a group for each of its values
  minimum: {jsonPath: .spec.taskManager.replicas}    # several paths are added up; or {count: 4}, 4, {cel: EXPRESSION}
  rank: {label: component-index}
  topology: topology.kubernetes.io/zone
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.errors import FieldError, duplicate, invalid, required
from kohort.grouping import keys, paths
from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners.sizes import JOB, REPLICA_SET, STATEFUL_SET, owned
from kohort.grouping.registry import names

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL: Final = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_BETWEEN: Final = (JOB, REPLICA_SET, STATEFUL_SET)  # owners of pods that other kinds make
_MEMBERS: Final = ("name", "apiVersion", "kind", "membership", "groupBy", "minimum", "rank", "topology")
_MINIMUM: Final = "accepted are a whole number from 1 on as count, jsonPath with a path or a list of them, or cel"


@dataclass(frozen=True, slots=True)
class Custom:
    """What a GroupingRule says."""

    name: str
    kind: Kind
    label: str  # empty: by the chain of owners
    group_by: str
    number: int | None
    paths: tuple[paths.Path, ...]
    shown: str  # where the minimum is, for people
    expression: str  # CEL
    rank: str
    topology: str | None

    def place(self, pod: Subject, lister: ObjectLister) -> Place | None:
        found = self._object(pod, lister)
        if found is None or keys.wants(found, pod.annotations) is False:
            return None
        minimum = self._minimum(found)
        part = pod.said(self.group_by) if self.group_by else ""
        leaf = f"{found.name}/{part}" if part else found.name
        node = GroupNode(leaf, minimum or None, topology=self.topology)
        place = Place(self.name, Level.OWNER, pod.namespace, leaf, (node,), str(found), found.reference)
        return keys.adjusted(place, pod.annotations, found.annotations)

    def _minimum(self, found: Thing) -> int:
        if self.number is not None:
            return self.number
        if self.expression:
            from kohort.grouping import expressions  # the language is loaded by whoever uses it

            return expressions.value(self.expression, found)
        return paths.total(self.paths, {"spec": found.spec}, f"{found}: {self.shown}")

    def _object(self, pod: Subject, lister: ObjectLister) -> Thing | None:
        if self.label:
            name = pod.said(self.label)
            return lister.find(self.kind, pod.namespace, name) if name else None
        owner = pod.owner
        if owner is not None and owner.of in _BETWEEN and owner.of != self.kind:
            between = owned(pod, lister, owner, wait=False)
            owner = between.owner if between is not None else None
        return owned(pod, lister, owner) if owner is not None and owner.of == self.kind else None

    @property
    def rule(self) -> Rule:
        looked = (self.label,) if self.label else ()
        return Rule(
            name=self.name,
            about=f"GroupingRule for {self.kind.name}.{self.kind.group}",
            level=Level.OWNER,
            place=self.place,
            keys=looked,
            also=(self.group_by,) if self.group_by else (),
            owners=() if self.label else (self.kind, *_BETWEEN),
            reads=(self.kind,) if self.label else (self.kind, *_BETWEEN),
            rank=self.rank,
        )


def read(documents: Any, path: str, errors: list[FieldError]) -> tuple[Rule, ...]:
    """Rules of a configuration; all that is wrong is told."""
    if not isinstance(documents, list):
        errors.append(invalid(path, documents, "accepted is a list of rules"))
        return ()
    found: dict[str, Rule] = {}
    for number, document in enumerate(documents):
        made = _read(document, f"{path}[{number}]", errors)
        if made is None:
            continue
        if made.name in found or made.name in names():
            errors.append(duplicate(f"{path}[{number}].name", made.name))
        found[made.name] = made.rule
    return tuple(found.values())


def read_object(body: dict[str, Any], errors: list[FieldError]) -> Rule | None:
    """The rule of a GroupingRule object; all that is wrong is told."""
    name = (body.get("metadata") or {}).get("name")
    if name in names():
        errors.append(invalid("metadata.name", name, "a rule that comes with Kohort has this name"))
    spec = body.get("spec")
    made = _read({"name": name, **spec} if isinstance(spec, dict) else spec, "spec", errors)
    return made.rule if made is not None else None


def _read(document: Any, path: str, errors: list[FieldError]) -> Custom | None:
    before = len(errors)
    if not isinstance(document, dict):
        errors.append(invalid(path, document, f"accepted is a mapping with {', '.join(_MEMBERS)}"))
        return None
    for name, value in document.items():
        if name not in _MEMBERS:
            errors.append(invalid(f"{path}.{name}", value, f"not known; accepted are {', '.join(_MEMBERS)}"))
    number, found, expression = _minimum(document.get("minimum"), f"{path}.minimum", errors)
    made = Custom(
        _matching(document.get("name"), f"{path}.name", _NAME, "a name of small letters, digits and -", errors),
        _kind(document, path, errors),
        _label(document.get("membership"), f"{path}.membership", errors),
        _key(document.get("groupBy"), f"{path}.groupBy", errors),
        number,
        tuple(one for one in map(paths.parse, found) if one is not None),
        " + ".join(found),
        expression,
        _label(document.get("rank"), f"{path}.rank", errors),
        _key(document.get("topology"), f"{path}.topology", errors) or None,
    )
    return made if len(errors) == before else None


def _kind(document: dict[str, Any], path: str, errors: list[FieldError]) -> Kind:
    version = document.get("apiVersion")
    if not isinstance(version, str) or not re.fullmatch(r"([a-z0-9.-]+/)?v[0-9a-z]+", version):
        errors.append(_missing(f"{path}.apiVersion", version, "accepted is GROUP/VERSION of the owner's kind"))
        version = "v1"
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind.isalnum():
        errors.append(_missing(f"{path}.kind", kind, "accepted is the kind of the owner, such as FlinkDeployment"))
        kind = ""
    return Kind(version.rpartition("/")[0], kind)


def _minimum(value: Any, path: str, errors: list[FieldError]) -> tuple[int | None, list[str], str]:
    """A number, or paths, or an expression."""
    given: Any = value if isinstance(value, dict) else {"count": value} if value is not None else {}
    said = {name: one for name, one in given.items() if one is not None}
    if len(said) != 1:
        errors.append(_missing(path, value, f"{_MINIMUM}; exactly one of them"))
        return None, [], ""
    ((name, one),) = said.items()
    if name == "count" and isinstance(one, int) and not isinstance(one, bool) and one >= 1:
        return one, [], ""
    if name == "jsonPath":
        return None, _paths(one, f"{path}.jsonPath", errors), ""
    if name == "cel" and isinstance(one, str) and one.strip():
        from kohort.grouping import expressions  # the language is loaded by whoever uses it

        if problem := expressions.wrong(one):
            errors.append(invalid(f"{path}.cel", one, problem))
        return None, [], one
    errors.append(invalid(path, value, _MINIMUM))
    return None, [], ""


def _paths(value: Any, path: str, errors: list[FieldError]) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        errors.append(invalid(path, value, "accepted is a path or a list of them"))
        return []
    for one in found:
        parsed = paths.parse(one)
        if parsed is None or parsed[0] != "spec":
            text = "accepted is a path in the spec, such as .spec.replicas or .spec.groups[*].replicas"
            errors.append(invalid(path, one, text))
    return found


def _label(value: Any, path: str, errors: list[FieldError]) -> str:
    if value is None:
        return ""
    if not isinstance(value, dict) or set(value) != {"label"}:
        errors.append(invalid(path, value, "accepted is {label: KEY}"))
        return ""
    return _key(value["label"], f"{path}.label", errors)


def _key(value: Any, path: str, errors: list[FieldError]) -> str:
    return "" if value is None else _matching(value, path, _LABEL, "a label's key", errors)


def _matching(value: Any, path: str, pattern: re.Pattern[str], accepted: str, errors: list[FieldError]) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    errors.append(_missing(path, value, f"accepted is {accepted}"))
    return ""


def _missing(path: str, value: Any, accepted: str) -> FieldError:
    return required(path, accepted) if value is None else invalid(path, value, accepted)
