"""A kind: everything the project knows of one resource in one version, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kohort.api import formats
from kohort.api.releases import RELEASES, Gate, Release, default_gates, release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kohort.api.errors import FieldError
    from kohort.api.formats import Format
    from kohort.api.schema import Obj

Object = dict[str, Any]  # one API object, as JSON has it


@dataclass(frozen=True, slots=True)
class Context:
    """What validation and defaulting depend on beside the object."""

    release: Release = RELEASES["1.37"]
    gates: frozenset[Gate] = field(default_factory=lambda: default_gates("1.37"))
    options: frozenset[str] = frozenset()  # our own gates, such as GangOfGangs

    @classmethod
    def of(cls, minor: str, gates: Iterable[Gate] | None = None, options: Iterable[str] = ()) -> Context:
        on = default_gates(minor) if gates is None else frozenset(gates)
        return cls(release(minor), on, frozenset(options))

    def on(self, gate: str) -> bool:
        return gate in self.gates or gate in self.options


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column. `path` is a JSON path for CRDs; `cell` computes it for native kinds.

    A date that a path leads to is shown as an age; one that a cell returns stays as it is.
    """

    name: str
    type: str = "string"  # string, integer, boolean, date
    path: str = ""
    cell: Callable[[Object], Any] | None = None
    priority: int = 0  # above 0: only with -o wide
    description: str = ""
    format: str = ""  # "name": of the object


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource of a kind."""

    spec_replicas: str
    status_replicas: str
    selector: str | None = None


def _nothing(_: Object, __: Context) -> list[FieldError]:
    return []


def _no_update(_: Object, __: Object, ___: Context) -> list[FieldError]:
    return []


def _no_reset(_: Object, __: Object) -> None:
    return None


def _no_status(_: Object) -> Object:
    return {}


def _no_default(_: Object, __: Context) -> None:
    return None


def _no_warning(_: Object, __: Context) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class SubresourceStrategy:
    """An endpoint under an object with rules of its own.

    `reset` puts what the endpoint does not write back to what is stored, in (new, old); then `validate` looks at both.
    """

    reset: Callable[[Object, Object], None]
    validate: Callable[[Object, Object, Context], list[FieldError]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One resource in one version.

    `schema` describes the object without apiVersion, kind and metadata. The functions hold what a schema cannot say:
    `default` completes an object in place, `validate` looks at a (defaulted) object alone, `validate_update` at
    (new, old), `validate_status` at (new, old) of the status endpoint, `warn` returns texts that do not refuse.
    An update asks `validate_update` only: what `validate` says is said again there if it still counts.
    """

    group: str
    version: str
    kind: str
    plural: str
    schema: Obj
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    native: bool = False  # served by the API server itself; others come as CRDs
    minors: tuple[str, ...] = tuple(RELEASES)
    columns: tuple[Column, ...] = ()
    status: bool = True
    scale: Scale | None = None
    storage: bool = True
    gate: str | None = None  # the feature gate without which the resource is not served
    name_format: Format = formats.subdomain
    needs_version: bool = False  # an update must name the resourceVersion (every CRD's must)
    counts_changes: bool = False  # metadata.generation follows the spec (of every CRD it does)
    first_status: Callable[[Object], Object] = _no_status  # what the server writes there on create
    webhook: str = ""  # upstream's validating webhook: it, not the schema, answers for `validate` and `validate_update`
    default: Callable[[Object, Context], None] = _no_default
    validate: Callable[[Object, Context], list[FieldError]] = _nothing
    validate_update: Callable[[Object, Object, Context], list[FieldError]] = _no_update
    validate_status: Callable[[Object, Object, Context], list[FieldError]] = _no_update
    reset_status: Callable[[Object, Object], None] = _no_reset  # parts of a status that an update of it cannot remove
    subresources: Mapping[str, SubresourceStrategy] = field(default_factory=dict)  # beside status and scale
    warn: Callable[[Object, Context], list[str]] = _no_warning

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def served(self, ctx: Context) -> bool:
        """Whether a server of this release, with these gates, has the resource."""
        return ctx.release.minor in self.minors and (self.gate is None or ctx.on(self.gate))
