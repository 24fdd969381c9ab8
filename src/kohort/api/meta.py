"""Object metadata: what the server fills in or takes back, and what it accepts. The same for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, forbidden, invalid, required, too_long
from kohort.api.sameness import identity, same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kohort.api.kind import Kind, Object


_GENERATED: Final = 58  # characters of generateName that are kept; five random ones follow
_ANNOTATIONS: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = {"kubernetes", "orphan", "foregroundDeletion"}
_OF_THE_SERVER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def name_of(obj: Object) -> str:
    meta = obj.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""


def prepare_create(obj: Object, suffix: Callable[[], str] | None = None) -> None:
    """Take back what only the server sets; complete `generateName` where a source of random endings is given."""
    meta = obj.setdefault("metadata", {})
    for name in _OF_THE_SERVER:
        meta.pop(name, None)
    _drop_repeated_owners(meta)
    if suffix is not None and meta.get("generateName") and not meta.get("name"):
        meta["name"] = meta["generateName"][:_GENERATED] + suffix()


def prepare_update(new: Object, old: Object) -> None:
    """Fill in what the stored object knows and an update may leave out."""
    meta, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    _drop_repeated_owners(meta)
    for name in ("uid", "creationTimestamp", "namespace", "generateName", "deletionGracePeriodSeconds"):
        if name in before and not meta.get(name):
            meta[name] = before[name]
    if before.get("deletionTimestamp"):
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    meta.pop("selfLink", None)
    if before.get("generation"):
        meta["generation"] = before["generation"]
    else:
        meta.pop("generation", None)


def _drop_repeated_owners(meta: dict[str, Any]) -> None:
    owners = meta.get("ownerReferences") or []
    kept: dict[Any, Any] = {}
    for owner in owners:
        kept.setdefault(identity(owner), owner)
    if len(kept) < len(owners):
        meta["ownerReferences"] = list(kept.values())


def count(kind: Kind, new: Object, old: Object | None = None, subresource: str = "") -> None:
    """metadata.generation: one at first, one more with every change beside metadata and status."""
    if kind.native and not kind.counts_changes:
        return
    before = ((old or {}).get("metadata") or {}).get("generation") or 0
    counted = [member for member in kind.schema.fields if member != "status"]
    noted = subresource != "status" and old is not None and _noted(kind, new, old)
    if noted or old is None or any(not same(new.get(member), old.get(member)) for member in counted):
        before += 1
    new["metadata"]["generation"] = before


def _noted(kind: Kind, new: Object, old: Object) -> bool:
    """Annotations of a Deployment are copied to what it makes, so they count."""
    if (kind.group, kind.kind) != ("apps", "Deployment"):
        return False
    return (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})


def check_create(kind: Kind, obj: Object) -> list[FieldError]:
    meta = obj.get("metadata") or {}
    return [*_names(kind, meta), *_common(meta, kind)]


def check_update(new: Object, old: Object, kind: Kind | None = None) -> list[FieldError]:
    """What did not change was validated when it was created."""
    meta, before = new.get("metadata") or {}, old.get("metadata") or {}
    fresh = {name: value for name, value in meta.items() if value != before.get(name)}
    return [*_changes(meta, before), *_common(fresh, kind)]


def _names(kind: Kind, meta: dict[str, Any]) -> Iterator[FieldError]:
    prefix, name = meta.get("generateName") or "", meta.get("name") or ""
    if prefix:
        # What follows may make a trailing dash good.
        for problem in formats.problems(kind.name_format, prefix[:-1] + "a" if prefix.endswith("-") else prefix):
            yield invalid("metadata.generateName", prefix, problem)
    if name:
        yield from (invalid("metadata.name", name, problem) for problem in formats.problems(kind.name_format, name))
    elif not prefix:
        yield required("metadata.name", "name or generateName is required")
    if not kind.namespaced and meta.get("namespace"):
        yield forbidden("metadata.namespace", "not allowed on this type")
    if (meta.get("generation") or 0) < 0:
        yield invalid("metadata.generation", meta["generation"], "must be greater than or equal to 0")


def _changes(meta: dict[str, Any], before: dict[str, Any]) -> Iterator[FieldError]:
    if before.get("deletionTimestamp"):
        added = [name for name in meta.get("finalizers") or [] if name not in (before.get("finalizers") or [])]
        if added:
            yield forbidden(
                "metadata.finalizers",
                f"no new finalizers can be added if the object is being deleted, found new finalizers {added}",
            )
    for name in ("deletionGracePeriodSeconds", "name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        if meta.get(name) != before.get(name):
            yield invalid(f"metadata.{name}", meta.get(name), "field is immutable")


def _common(meta: dict[str, Any], kind: Kind | None) -> Iterator[FieldError]:
    yield from check_labels(meta.get("labels") or {}, "metadata.labels")
    yield from check_annotations(meta.get("annotations") or {}, "metadata.annotations")
    yield from _owners(meta.get("ownerReferences") or [])
    # Custom resources, and their definitions, may have finalizers without a domain.
    domains = kind is None or (kind.native and kind.group != "apiextensions.k8s.io")
    yield from _finalizers(meta.get("finalizers") or [], domains)


def check_labels(labels: dict[str, str], path: str) -> Iterator[FieldError]:
    for key, value in labels.items():
        if formats.is_label(key, value):
            continue
        yield from (invalid(path, key, problem) for problem in formats.problems(formats.label_key, key))
        yield from (invalid(path, value, problem) for problem in formats.problems(formats.label_value, value))


def _is_short(annotations: dict[str, str]) -> bool:
    """Whatever they are written with."""
    return 4 * (sum(map(len, annotations)) + sum(map(len, annotations.values()))) <= _ANNOTATIONS


def check_annotations(annotations: dict[str, str], path: str) -> Iterator[FieldError]:
    for key in annotations:
        if formats.is_label_key(key.lower()):
            continue
        # Unlike in labels, capitals are fine in the prefix.
        yield from (invalid(path, key, problem) for problem in formats.problems(formats.label_key, key.lower()))
    if not _is_short(annotations) and (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS
    ):
        yield too_long(path, _ANNOTATIONS)


def _owners(owners: list[dict[str, Any]]) -> Iterator[FieldError]:
    first: dict[str, Any] | None = None
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        version = owner.get("apiVersion") or ""
        if version and (version.count("/") > 1 or not version.rpartition("/")[2]):
            yield invalid(f"{path}.apiVersion", version, "must be VERSION or GROUP/VERSION")
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield required(f"{path}.{name}", "must not be empty")
        if not owner.get("controller"):
            continue
        if first is not None:
            both = " and ".join(f"{one.get('kind')}/{one.get('name')}" for one in (first, owner))
            text = f'Only one reference can have Controller set to true. Found "true" in references for {both}'
            yield invalid("metadata.ownerReferences", owners, text)
        first = owner


def _finalizers(names: list[str], domains: bool) -> Iterator[FieldError]:
    for index, name in enumerate(names):
        # Two rules of the server, one after the other: the first names the list, the second the item.
        problems = formats.problems(formats.label_key, name)
        yield from (invalid("metadata.finalizers", name, problem) for problem in problems)
        if domains and "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", name, text)
    if {"orphan", "foregroundDeletion"} <= set(names):
        yield invalid("metadata.finalizers", names, "finalizers orphan and foregroundDeletion cannot be both set")


_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def check_selector(selector: Mapping[str, Any] | None, path: str) -> Iterator[FieldError]:
    """A metav1.LabelSelector."""
    chosen = selector or {}
    yield from check_labels(chosen.get("matchLabels") or {}, at(path, "matchLabels"))
    for index, expression in enumerate(chosen.get("matchExpressions") or []):
        yield from _expression(expression, f"{at(path, 'matchExpressions')}[{index}]")


def _expression(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in {"In", "NotIn"} and not values:
        yield required(at(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"} and values:
        yield forbidden(at(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in _OPERATORS:
        yield invalid(at(path, "operator"), operator, "not a valid selector operator")
    problem = formats.label_key(expression.get("key") or "")
    if problem:
        yield invalid(at(path, "key"), expression.get("key") or "", problem)
