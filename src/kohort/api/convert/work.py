"""What a conversion knows and finds while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.errors import show
from kohort.api.kind import Object
from kohort.api.releases import SCHEDULING_GROUP, Release

V1ALPHA1: Final = f"{SCHEDULING_GROUP}/v1alpha1"
V1ALPHA2: Final = f"{SCHEDULING_GROUP}/v1alpha2"
V1ALPHA3: Final = f"{SCHEDULING_GROUP}/v1alpha3"
V1BETA1: Final = f"{SCHEDULING_GROUP}/v1beta1"

WORKLOAD: Final = "Workload"
POD_GROUP: Final = "PodGroup"
COMPOSITE: Final = "CompositePodGroup"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something lost, made up or refused: the object, its field, what was found there and why."""

    object: str  # "PodGroup ns/g"
    field: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.object, self.field, self.message) if part)


@dataclass(slots=True)
class Work:
    """One conversion."""

    to: Release
    version: str  # apiVersion of Workload and PodGroup in the end
    flatten: bool = False
    recreate: bool = True  # the results are new objects, not the same ones seen in another shape
    warnings: list[Finding] = field(default_factory=list)
    errors: list[Finding] = field(default_factory=list)

    @property
    def target(self) -> str:
        return f"Kubernetes {self.to.minor}"

    def lose(self, obj: Object, path: str, value: Any, why: str) -> None:
        self.warn(obj, path, f"{show(value)} is lost: {why}")

    def warn(self, obj: Object, path: str, message: str) -> None:
        self.warnings.append(Finding(name_of(obj), path, message))

    def refuse(self, obj: Object, path: str, message: str) -> None:
        self.errors.append(Finding(name_of(obj), path, message))


def part(obj: Object, name: str) -> Object:
    """A member that is an object; empty where it is missing or something else."""
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def name_of(obj: Object) -> str:
    meta = part(obj, "metadata")
    name = meta.get("name") or meta.get("generateName") or "(no name)"
    return f"{obj.get('kind')} {meta['namespace']}/{name}" if meta.get("namespace") else f"{obj.get('kind')} {name}"


def namespace_or_default(obj: Object) -> str:
    """As kohort.api.objects has it, of a document that nobody has validated."""
    return str(part(obj, "metadata").get("namespace") or "default")


def key_of(obj: Object) -> tuple[str, str]:
    """(namespace, name)."""
    return namespace_or_default(obj), str(part(obj, "metadata").get("name") or "")


def is_a(obj: Object, kind: str, *versions: str) -> bool:
    return obj.get("kind") == kind and obj.get("apiVersion") in versions


def template_of(obj: Object) -> tuple[str, str] | None:
    """(workload, template) that a PodGroup of v1alpha2 names."""
    found = (part(obj, "spec").get("podGroupTemplateRef") or {}).get("workload")
    return (found.get("workloadName") or "", found.get("podGroupTemplateName") or "") if found else None
