"""The part of deploy/rbac.yaml that follows from the bundles of kinds: one role, and its binding, for each group of
controllers that a real cluster does not have. `python hack/generated.py` writes it there, a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kohort.api.bundle import ControllerGroup, Rule, bundles


def roles() -> str:
    """YAML documents, each after a line `---`."""
    found = [one for bundle in bundles() for one in bundle.controllers if one.rules]
    return "".join(map(_role, found)) + "".join(map(_binding, found))


def _role(one: ControllerGroup) -> str:
    lines = "\n".join(line for rule in one.rules for line in _rule(rule))
    return f"""---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kohort-{one.name}
rules:
{lines}
"""


def _rule(rule: Rule) -> Iterator[str]:
    if rule.why:
        yield f"# {rule.why}"
    yield f"- apiGroups: {_list(rule.groups)}"
    yield f"  resources: {_list(rule.resources)}"
    yield f"  verbs: {_list(rule.verbs)}"


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(word or json.dumps(word) for word in words)}]"


def _binding(one: ControllerGroup) -> str:
    return f"""---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: kohort-{one.name}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kohort-{one.name}}}
subjects:
- {{kind: ServiceAccount, name: kohort, namespace: kohort-system}}
"""
