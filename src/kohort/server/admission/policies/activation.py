"""What the expressions of a policy see of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.cel.lib_authorizer import AuthorizerValue, ResourceCheck
from kohort.kube.wire import User
from kohort.server.admission import versions
from kohort.server.admission.webhooks import matching, review
from kohort.server.auth import users
from kohort.server.auth.attributes import AuthorizerAttributes

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.resources import Resource

_HIDDEN: Final = {"uid", "object", "oldObject"}
_NAMESPACE_METADATA: Final = {"managedFields", "ownerReferences", "selfLink"}
_NOBODY: Final = User("system:apiserver", groups=(users.MASTERS,))


class Activation:
    """Names of the variables, for each version that policies want to see."""

    def __init__(self, attrs: AdmissionAttributes, lister: Lister, authorizer: Authorizer | None) -> None:
        self._attrs, self._lister, self._authorizer = attrs, lister, authorizer
        self._namespace = self._namespace_object()

    def names(self, resource: Resource, params: Object | None, *, condition: bool = False) -> dict[str, Any]:
        """`condition`: a match condition does not see the namespace."""
        attrs = self._attrs
        request = review.question(attrs, resource, "", None, None)["request"]
        user = attrs.user or _NOBODY
        authorizer = AuthorizerValue(user, self._ask, _service_account)
        return {
            "object": None if attrs.object is None else versions.shown(attrs.object, attrs.resource, resource),
            "oldObject": None if attrs.old is None else versions.shown(attrs.old, attrs.resource, resource),
            "params": params,
            "namespaceObject": None if condition else self._namespace,
            "request": {name: value for name, value in request.items() if name not in _HIDDEN},
            "authorizer": authorizer,
            "authorizer.requestResource": ResourceCheck(
                authorizer,
                attrs.resource.group,
                attrs.resource.plural,
                attrs.subresource,
                request.get("namespace", ""),
                attrs.name,
            ),
        }

    def _namespace_object(self) -> Object | None:
        attrs = self._attrs
        if not attrs.namespace or matching.is_namespace(attrs):
            return None
        found = self._lister.get("", "namespaces", "", attrs.namespace)
        if found is None:
            return None
        metadata = {name: value for name, value in found["metadata"].items() if name not in _NAMESPACE_METADATA}
        return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}

    def _ask(self, user: User, question: dict[str, str]) -> tuple[bool, str]:
        if self._authorizer is None:  # a server without tokens lets everybody do everything
            return True, ""
        return self._authorizer.allows(user, AuthorizerAttributes(**question, version="*"))


def _service_account(namespace: str, name: str) -> User:
    groups = (*users.service_account_groups(namespace), users.AUTHENTICATED)
    return User(users.service_account_name(namespace, name), groups=groups)
