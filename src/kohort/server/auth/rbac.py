"""Who may do what: the decision of role-based access control over the roles and bindings that are stored.

The index is made when roles or bindings have changed, at the next question; each user's rules are put together at
their first question. After that a decision is a few dictionary look-ups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.server.auth import aggregation, rules, users
from kohort.server.auth.rules import ALL, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.kube.wire import User
    from kohort.server.auth.attributes import AuthorizerAttributes
    from kohort.server.auth.lister import Lister

GROUP = "rbac.authorization.k8s.io"
_RESOURCES = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
_REMEMBERED = 10_000  # users and namespaces

Subject = tuple[str, str]  # "User" or "Group", name


class Grant(NamedTuple):
    """What one binding gives to one subject. `rules` is None if the role is not there."""

    order: int  # of the binding
    place: int  # of the subject in it
    rules: tuple[Rule, ...] | None
    binding: str
    role: str
    subject: str

    @property
    def reason(self) -> str:
        return f"RBAC: allowed by {self.binding} of {self.role} to {self.subject}"


class Granted:
    """All that one user has in one namespace (or in the cluster), ready for questions."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self.grants = tuple(_first_of_each_binding(grants))
        self.missing = tuple(dict.fromkeys(_not_found(grant.role) for grant in self.grants if grant.rules is None))
        self._by_resource: dict[str, list[tuple[Rule, Grant]]] = {}
        self._paths: list[tuple[Rule, Grant]] = []
        for grant in self.grants:
            for rule in grant.rules or ():
                for resource in rule.resources:
                    self._by_resource.setdefault(resource, []).append((rule, grant))
                if rule.paths:
                    self._paths.append((rule, grant))

    def rules(self) -> list[Rule]:
        return [rule for grant in self.grants for rule in grant.rules or ()]

    def allowing(self, attributes: AuthorizerAttributes) -> Grant | None:
        """The first binding that allows it."""
        found: Grant | None = None
        for candidates in self._candidates(attributes):
            for rule, grant in candidates:
                if found is not None and found.order <= grant.order:
                    break
                if rules.allows(rule, attributes):
                    found = grant
                    break
        return found

    def _candidates(self, attributes: AuthorizerAttributes) -> Iterator[Sequence[tuple[Rule, Grant]]]:
        if attributes.path:
            yield self._paths
            return
        table = self._by_resource
        yield table.get(ALL, ())
        yield table.get(attributes.full_resource, ())
        if attributes.subresource:
            yield table.get(f"*/{attributes.subresource}", ())

    @property
    def error(self) -> str:
        """About roles that bindings name and nobody has made."""
        return "" if not self.missing else self.missing[0] if len(self.missing) == 1 else f"[{', '.join(self.missing)}]"


class Index:
    """Subject -> grants, in the cluster and by namespace."""

    def __init__(
        self,
        cluster_roles: Sequence[Object] = (),
        roles: Sequence[Object] = (),
        cluster_bindings: Sequence[Object] = (),
        bindings: Sequence[Object] = (),
    ) -> None:
        effective = aggregation.effective(cluster_roles)
        self._cluster_roles = {name: tuple(map(rules.read, found)) for name, found in effective.items()}
        self._roles = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): tuple(map(rules.read, one.get("rules") or ()))
            for one in roles
        }
        self._cluster: dict[Subject, list[Grant]] = {}
        self._namespaced: dict[str, dict[Subject, list[Grant]]] = {}
        for order, binding in enumerate(cluster_bindings):
            self._add(self._cluster, order, binding, "")
        for order, binding in enumerate(bindings, len(cluster_bindings)):
            namespace = binding["metadata"]["namespace"]
            self._add(self._namespaced.setdefault(namespace, {}), order, binding, namespace)
        self._known: dict[tuple[str, tuple[str, ...], str], Granted] = {}

    def role_rules(self, reference: Mapping[str, Any], namespace: str) -> tuple[Rule, ...] | None:
        """What a roleRef stands for; None if there is no such role."""
        name = reference.get("name", "")
        if reference.get("kind") == "ClusterRole":
            return self._cluster_roles.get(name)
        return self._roles.get((namespace, name))

    def _add(self, table: dict[Subject, list[Grant]], order: int, binding: Object, namespace: str) -> None:
        reference, name = binding.get("roleRef") or {}, binding["metadata"]["name"]
        found = self.role_rules(reference, namespace)
        said = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        role = f'{reference.get("kind", "")} "{reference.get("name", "")}"'
        for place, subject in enumerate(binding.get("subjects") or ()):
            key, text = _subject(subject, namespace)
            table.setdefault(key, []).append(Grant(order, place, found, said, role, text))

    def granted(self, user: User, namespace: str) -> Granted:
        key = (user.name, user.groups, namespace if namespace in self._namespaced else "")
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = Granted(self._grants(user, key[2]))
        return found

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for table in (self._cluster, self._namespaced.get(namespace, {}) if namespace else {}):
            for subject in subjects:
                yield from table.get(subject, ())


class Authorizer:
    """Answers questions about what is stored now."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._index = Index()
        self._versions: tuple[int, ...] = ()

    @property
    def index(self) -> Index:
        versions = tuple(self._lister.version(GROUP, resource) for resource in _RESOURCES)
        if versions != self._versions:
            self._index = Index(*(self._lister.list(GROUP, resource) for resource in _RESOURCES))
            self._versions = versions
        return self._index

    def allows(self, user: User, attributes: AuthorizerAttributes) -> tuple[bool, str]:
        """Whether, and which binding says so; if not, what may be wrong with the bindings."""
        if users.MASTERS in user.groups:
            return True, ""
        granted = self.index.granted(user, attributes.namespace)
        grant = granted.allowing(attributes)
        if grant is not None:
            return True, grant.reason
        return False, f"rbac: RBAC: {granted.error}" if granted.missing else ""

    def granted(self, user: User, namespace: str) -> Granted:
        return self.index.granted(user, namespace)


def _first_of_each_binding(grants: Iterable[Grant]) -> Iterator[Grant]:
    last = -1
    for grant in sorted(grants, key=lambda one: (one.order, one.place)):
        if grant.order != last:
            yield grant
            last = grant.order


def _subject(subject: Mapping[str, Any], namespace: str) -> tuple[Subject, str]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return ("User", users.service_account_name(home, name)), f'ServiceAccount "{name}/{home}"'
    return (kind, name), f'{kind} "{name}"'


def _not_found(role: str) -> str:
    kind, _, name = role.partition(" ")
    return f"{kind.lower()}.{GROUP} {name} not found"
