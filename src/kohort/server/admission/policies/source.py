"""The policies that a request concerns: each with a binding, the version it wants to see, and a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kohort.apimachinery.labels import matches
from kohort.server.admission import versions
from kohort.server.admission.webhooks import matching

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister
    from kohort.server.resources import Resource, Resources

GROUP: Final = matching.GROUP
# Policies cannot stop their own repair; reviews must be answered whatever policies say.
_EXEMPT: Final = frozenset(
    {
        *((GROUP, f"{sort}admissionpolic{end}") for sort in ("validating", "mutating") for end in ("ies", "ybindings")),
        *(("authentication.k8s.io", one) for one in ("selfsubjectreviews", "tokenreviews")),
        *(("authorization.k8s.io", f"{one}reviews") for one in ("localsubjectaccess", "selfsubjectaccess")),
        *(("authorization.k8s.io", f"{one}reviews") for one in ("selfsubjectrules", "subjectaccess")),
    }
)
P = TypeVar("P")


class ConfigurationError(Exception):
    """The policy cannot be evaluated for this request. Its failurePolicy says what follows."""

    def __init__(self, text: str, *, of_policy: bool) -> None:
        super().__init__(f"failed to configure {'policy' if of_policy else 'binding'}: {text}")
        self.of_policy = of_policy


@dataclass(frozen=True, slots=True)
class Invocation(Generic[P]):
    """One evaluation: `failed` is there instead of a parameter if it cannot be evaluated."""

    policy: P
    spec: Mapping[str, Any]
    name: str
    binding: Mapping[str, Any]
    binding_name: str
    resource: Resource
    params: Object | None
    failed: ConfigurationError | None = None

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def key(self) -> tuple[str, str, str, str]:
        meta = (self.params or {}).get("metadata") or {}
        return self.name, self.binding_name, str(meta.get("namespace") or ""), str(meta.get("name") or "")


class PolicySource(Generic[P]):
    """Reads policies and bindings again when they have changed. `compile` makes of a spec what is evaluated."""

    def __init__(
        self, lister: Lister, resources: Resources, sort: str, compile_policy: Callable[[Mapping[str, Any]], P]
    ) -> None:
        self._lister, self._resources, self._compile = lister, resources, compile_policy
        self._plurals = (f"{sort}admissionpolicies", f"{sort}admissionpolicybindings")
        self._versions: tuple[int, ...] | None = None
        self._hooks: list[tuple[str, Mapping[str, Any], P, list[tuple[str, Mapping[str, Any]]]]] = []

    def hooks(self) -> bool:
        """Whether any policy has a binding."""
        version = self._lister.version
        found = (version(GROUP, self._plurals[0]), version(GROUP, self._plurals[1]))
        if found != self._versions:
            self._hooks = list(self._read())
            self._versions = found
        return bool(self._hooks)

    def _read(self) -> Iterator[tuple[str, Mapping[str, Any], P, list[tuple[str, Mapping[str, Any]]]]]:
        bindings: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for one in self._lister.list(GROUP, self._plurals[1]):
            spec = one.get("spec") or {}
            bindings.setdefault(str(spec.get("policyName")), []).append((str(one["metadata"]["name"]), spec))
        for one in sorted(self._lister.list(GROUP, self._plurals[0]), key=lambda one: str(one["metadata"]["name"])):
            name, spec = str(one["metadata"]["name"]), one.get("spec") or {}
            if name in bindings:
                yield name, spec, self._compile(spec), sorted(bindings[name], key=lambda binding: binding[0])

    def concerned(self, attrs: AdmissionAttributes) -> list[Invocation[P]]:
        if not self.hooks() or (attrs.resource.group, attrs.resource.plural) in _EXEMPT:
            return []
        same = [one for one in self._resources.every() if one.table == attrs.resource.table]
        namespace = self._lister.get("", "namespaces", "", attrs.namespace) if attrs.namespace else None
        return [
            Invocation(policy, spec, name, binding, binding_name, resource, params, failed)
            for name, spec, policy, bindings in self._hooks
            for resource in _fitting(spec.get("matchConstraints") or {}, attrs, namespace, same)
            for binding_name, binding in bindings
            if not binding.get("matchResources") or _fitting(binding["matchResources"], attrs, namespace, same)
            for params, failed in self._params(spec, binding, attrs)
        ]

    def _params(
        self, spec: Mapping[str, Any], binding: Mapping[str, Any], attrs: AdmissionAttributes
    ) -> list[tuple[Object | None, ConfigurationError | None]]:
        """The parameters to evaluate with: none, each that is found, or why they cannot be found."""
        try:
            return [(one, None) for one in self._found_params(spec.get("paramKind"), binding.get("paramRef"), attrs)]
        except ConfigurationError as error:
            return [(None, error)]

    def _found_params(
        self, kind: Mapping[str, Any] | None, reference: Mapping[str, Any] | None, attrs: AdmissionAttributes
    ) -> Sequence[Object | None]:
        if kind is None:
            return [None]
        resource = self._resource(str(kind.get("apiVersion") or ""), str(kind.get("kind") or ""))
        if reference is None:
            return [None]
        named = reference.get("namespace") or ""
        if named and not resource.namespaced:
            raise _of_binding("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        within = named or (attrs.name if matching.is_namespace(attrs) else attrs.namespace)
        if resource.namespaced and not within:
            raise _of_binding("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
        namespace = within if resource.namespaced else ""
        found = self._look(resource, namespace, reference)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise _of_binding("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _look(self, resource: Resource, namespace: str, reference: Mapping[str, Any]) -> list[Object]:
        stored = self._resources.of_plural(resource.group, resource.plural) or resource
        if reference.get("name"):
            one = self._lister.get(resource.group, resource.plural, namespace, str(reference["name"]))
            found = [one] if one is not None else []
        else:
            every = self._lister.list(resource.group, resource.plural, namespace)
            selector = reference.get("selector") or {}
            found = [one for one in every if matches(selector, (one.get("metadata") or {}).get("labels") or {})]
        return [versions.shown(one, stored, resource) for one in found]

    def _resource(self, api_version: str, kind: str) -> Resource:
        for one in self._resources.every():
            if (one.api_version, one.kind) == (api_version, kind) and one.stored:
                return one
        group, _, version = api_version.rpartition("/")
        shown = f"{group}/{version}, Kind={kind}"
        text = f"failed to find resource referenced by paramKind: '{shown}'"
        raise ConfigurationError(text, of_policy=True)


def _of_binding(text: str) -> ConfigurationError:
    return ConfigurationError(text, of_policy=False)


def _fitting(
    wanted: Mapping[str, Any], attrs: AdmissionAttributes, namespace: Object | None, same: Sequence[Resource]
) -> list[Resource]:
    """The version that a policy's constraints (or a binding's) are about; empty if it is another resource."""
    if not matching.selected(wanted, attrs, namespace):
        return []
    exact = wanted.get("matchPolicy") == "Exact"
    if matching.matched(wanted.get("excludeResourceRules") or (), exact, attrs, same) is not None:
        return []
    rules = wanted.get("resourceRules") or ()
    found = matching.matched(rules, exact, attrs, same) if rules else attrs.resource
    return [found] if found is not None else []
