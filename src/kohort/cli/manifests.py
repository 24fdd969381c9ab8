"""`kohort manifests`: everything that Kohort needs on a cluster as one file, for people without Helm.

It is what the Helm chart renders with its default values, with a few things chosen. More is a matter for Helm or for
Kustomize (deploy/kustomize).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from kohort.api.bundle import bundles
from kohort.api.crd import crds
from kohort.cli.common import UsageError, friendly, write
from kohort.manifest import dump

Object = dict[str, Any]
_PACKAGED: Final = Path(__file__).parents[1] / "deploy" / "kohort.yaml"
_CLONED: Final = Path(__file__).parents[3] / "deploy" / "kustomize" / "kohort.yaml"
_SPACE: Final = "kohort-system"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_COMPONENT: Final = "app.kubernetes.io/component"
_WEBHOOK: Final = "kohort-webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    namespace: str
    image: str
    replicas: int
    controllers: str
    crds: bool
    webhook: bool = True


@friendly
def run(asked: Asked) -> int:
    on = _switched_on(asked)
    documents = [
        *(_definitions(on) if asked.crds else ()),
        *(_changed(one, asked, on) for one in _kept(on, asked.webhook)),
    ]
    write("---\n".join(dump(one) for one in documents))
    return 0


def _families() -> dict[str, tuple[str, ...]]:
    """Controllers that the chart knows, and the API groups of their kinds."""
    return {one.controllers[0].name: one.groups for one in bundles() if not one.native and one.controllers}


def _switched_on(asked: Asked) -> frozenset[str]:
    if _LABEL.fullmatch(asked.namespace) is None:
        raise UsageError(f"--namespace: {asked.namespace!r} is not a name of a namespace")
    known = _families()
    words = [word.strip() for word in asked.controllers.split(",") if word.strip()]
    if words in (["all"], ["none"]):
        return frozenset(known if words == ["all"] else ())
    wrong = [word for word in words if word not in known]
    if wrong or not words:
        found = ", ".join(wrong) or "nothing"
        raise UsageError(f"--controllers: found {found}; accepted are {', '.join(known)}, all, none")
    return frozenset(words)


def _definitions(on: frozenset[str]) -> Iterator[Object]:
    groups = {group for name in on for group in _families()[name]}
    others = {group for known in _families().values() for group in known} - groups
    return (one for one in crds() if one["spec"]["group"] not in others)


def _kept(on: frozenset[str], webhook: bool) -> Iterator[Object]:
    """Without the roles of controllers that are off, and without a webhook that has no kind to judge."""
    source = _PACKAGED if _PACKAGED.is_file() else _CLONED
    off = set(_families()) - on
    off |= {f"{name}-admission" for name in off} | (set() if on else {"groups"})
    for one in yaml.safe_load_all(source.read_text()):
        judges = str(one["metadata"]["name"]).startswith(_WEBHOOK)
        if (one["metadata"].get("labels") or {}).get(_COMPONENT) not in off and not (judges and not (webhook and on)):
            yield one


def _changed(one: Object, asked: Asked, on: frozenset[str]) -> Object:
    text = json.dumps(one).replace(f'"{_SPACE}"', json.dumps(asked.namespace))
    made: Object = json.loads(text.replace(f"serviceaccount:{_SPACE}:", f"serviceaccount:{asked.namespace}:"))
    if made["kind"] == "Deployment":
        made["spec"]["replicas"] = asked.replicas
        if asked.image:
            made["spec"]["template"]["spec"]["containers"][0]["image"] = asked.image
    elif made["kind"] == "ConfigMap":
        made["data"]["config.yaml"] = dump(_config(yaml.safe_load(made["data"]["config.yaml"]), asked, on))
    elif made["kind"] == "ValidatingWebhookConfiguration":
        groups = {group for name in on for group in _families()[name]}
        for hook in made["webhooks"]:
            hook["rules"] = [rule for rule in hook["rules"] if groups & set(rule["apiGroups"])]
    return made


def _config(config: Mapping[str, Any], asked: Asked, on: Iterable[str]) -> Object:
    off = [f"-{name}" for name in _families() if name not in set(on)]
    spaced = {
        name: {**config[name], "namespace": asked.namespace} for name in ("leaderElection", "webhook") if name in config
    }
    return {**config, **spaced, "controllers": ["*", *off] if set(on) else ["none"]}
