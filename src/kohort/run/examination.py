"""Asks a cluster about its Kohort: processes, leases, rights, clocks, definitions, webhooks. Nothing is changed."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import yaml

from kohort.api.crd import crds
from kohort.api.kind import Object
from kohort.apimachinery.times import parse
from kohort.kinds.controllers import is_enabled
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.run.findings import Facts, OwnWebhook
from kohort.run.options import Options, OptionsError
from kohort.run.options import parse as parse_options
from kohort.run.process import look
from kohort.run.roles import LOOK, Role, every_role, webhook_roles
from kohort.run.survey import is_ours

LABEL: Final = "app.kubernetes.io/name=kohort"
_HOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_ASK_AT_ONCE: Final = 20


async def examine(client: Client, namespace: str = "") -> Facts:
    """`namespace`: where Kohort is; where its Deployment is found, if nothing is said."""
    unread: list[str] = []
    deployments = await _list(client, "apps/v1", "Deployment", unread, labels=LABEL)
    if namespace and deployments:
        deployments = [one for one in deployments if one["metadata"].get("namespace") == namespace]
    home = namespace or next((str(one["metadata"]["namespace"]) for one in deployments or ()), "kohort-system")
    configs = [await _config(client, one, unread) for one in deployments or ()]
    working = [chosen for one, chosen in zip(deployments or (), configs, strict=True) if not _is_webhook(one)]
    found = await look(client, working[0] if working else Options())
    names = {(one.election.namespace or home, one.election.name) for one in working} or {(home, "kohort")}
    hooks = await _hooks(client, unread)
    leases = await _list(client, "coordination.k8s.io/v1", "Lease", unread)
    ours = (
        None
        if leases is None
        else [one for one in leases if (one["metadata"]["namespace"], one["metadata"]["name"]) in names]
    )
    return Facts(
        survey=found.survey,
        plan=found.plan,
        namespace=home,
        now=client.clock.now(),
        server_time=await _server_time(client),
        deployments=deployments,
        leases=ours,
        lacking=await _lacking(client, list(zip(deployments or (), configs, strict=True)), unread),
        definitions=await _definitions(client, unread),
        dead_webhooks=await _dead_webhooks(client, hooks, unread),
        own_webhooks=tuple([await _own_webhook(client, one, unread) for one in hooks if is_ours(one)]),
        unread=tuple(dict.fromkeys((*found.survey.unread, *unread))),
    )


async def _list(
    client: Client, version: str, kind: str, unread: list[str], *, namespace: str = "", labels: str = ""
) -> list[Object] | None:
    try:
        return (await client.kind(version, kind).list(namespace, labels=labels)).items
    except NotServedError:
        return []
    except ApiError as error:
        unread.append(f"{kind}s: {error.message or error}")
        return None


async def _config(client: Client, deployment: Object, unread: list[str]) -> Options:
    """As the processes read it."""
    meta = deployment["metadata"]
    volumes = deployment["spec"]["template"]["spec"].get("volumes") or ()
    name = next((one["configMap"]["name"] for one in volumes if one.get("configMap")), "")
    try:
        found = await client.kind("v1", "ConfigMap").get(name, meta["namespace"]) if name else {}
        text = (found.get("data") or {}).get("config.yaml")
        return parse_options(yaml.safe_load(text)) if text else Options()
    except (ApiError, OptionsError, yaml.YAMLError) as error:
        unread.append(f"the configuration of {meta['namespace']}/{meta['name']}: {error}")
        return Options()


async def _server_time(client: Client) -> datetime | None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        made = await client.of(body).create(body)
    except (ApiError, NotServedError):
        return None
    return parse((made.get("metadata") or {}).get("creationTimestamp"))


# ---- rights


async def _lacking(client: Client, found: Iterable[tuple[Object, Options]], unread: list[str]) -> dict[str, list[str]]:
    made = {}
    for deployment, chosen in found:
        space = str(deployment["metadata"]["namespace"])
        account = deployment["spec"]["template"]["spec"].get("serviceAccountName") or "default"
        try:
            made[f"{space}/{account}"] = await _denied(client, space, account, chosen, _is_webhook(deployment))
        except (ApiError, NotServedError) as error:
            unread.append(f"rights of {space}/{account}: {error}")
    return made


async def _denied(client: Client, space: str, account: str, chosen: Options, webhook: bool) -> list[str]:
    gate = asyncio.Semaphore(_ASK_AT_ONCE)

    async def ask(asked: Mapping[str, Any]) -> str:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{space}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{space}", "system:authenticated"],
            **asked,
        }}  # fmt: skip
        async with gate:
            answer = await client.of(body).create(body)
        return "" if answer["status"].get("allowed") else _words(asked)

    roles = _wanted_by_webhook(chosen) if webhook else _wanted(chosen)
    questions = [one for role in roles for one in _questions(role, space, chosen)]
    return sorted({said for said in await asyncio.gather(*map(ask, questions)) if said})


def _wanted(chosen: Options) -> Iterator[Role]:
    """The roles of what a process with this configuration runs."""
    controllers = chosen.controllers != ()
    for role in every_role():
        parts = {"scheduler": chosen.scheduler, "controllers": controllers}
        if any(parts[part] for part in role.parts) and (
            not role.controller or is_enabled(chosen.controllers, role.controller)
        ):
            yield role


def _wanted_by_webhook(chosen: Options) -> Iterator[Role]:
    """Without those for grouping, and with files for TLS without those for a certificate of its own: both are off
    unless somebody has switched them on, and then API servers would say so."""
    own = set() if not chosen.webhook.certificate else {"webhook-certificate", "webhook-configurations"}
    for role in (LOOK, *webhook_roles()):
        off = bool(role.controller) and not is_enabled(chosen.controllers, role.controller)
        if "webhook" in role.parts and role.name not in own and not off:
            yield _renamed(role, chosen.webhook.name)


def _renamed(role: Role, name: str) -> Role:
    return replace(role, rules=tuple(replace(rule, names=(name,)) if rule.names else rule for rule in role.rules))


def _is_webhook(deployment: Object) -> bool:
    return (deployment["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == "webhook"


def _questions(role: Role, space: str, chosen: Options) -> Iterator[dict[str, Any]]:
    if role.own_namespace:
        yield from _of_rules(role.rules, space)
        return
    yield from _of_rules(role.wide, "")
    for name in chosen.namespaces or ("",):
        yield from _of_rules(role.narrow, name)


def _of_rules(rules: Iterable[Any], namespace: str) -> Iterator[dict[str, Any]]:
    for rule in rules:
        for verb in rule.verbs:
            for path in rule.paths:
                yield {"nonResourceAttributes": {"verb": verb, "path": path}}
            for group in rule.groups:
                for resource in rule.resources:
                    yield from _of_resource(resource, verb, group, namespace, rule.names)


def _of_resource(
    resource: str, verb: str, group: str, namespace: str, names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    kind, _, sub = resource.partition("/")
    for name in names or ("",):
        asked = {"verb": verb, "group": group, "resource": kind, "subresource": sub, "namespace": namespace}
        yield {"resourceAttributes": {**asked, **({"name": name} if name else {})}}


def _words(asked: Mapping[str, Any]) -> str:
    one = asked.get("resourceAttributes")
    if one is None:
        return f"{asked['nonResourceAttributes']['verb']} {asked['nonResourceAttributes']['path']}"
    name = (
        one["resource"]
        + (f".{one['group']}" if one["group"] else "")
        + (f"/{one['subresource']}" if one["subresource"] else "")
    )
    return f"{one['verb']} {name}" + (f" in {one['namespace']}" if one["namespace"] else "")


# ---- definitions and webhooks


async def _definitions(client: Client, unread: list[str]) -> dict[str, str]:
    """Of the kinds that are there: kinds that are not are told as controllers that cannot run."""
    listed = await _list(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", unread)
    there = {one["metadata"]["name"]: one for one in listed or ()}
    return {
        one["metadata"]["name"]: _difference(one, there[one["metadata"]["name"]])
        for one in crds()
        if one["metadata"]["name"] in there
    }


def _difference(ours: Object, theirs: Object) -> str:
    served = {version["name"] for version in theirs["spec"]["versions"] if version.get("served")}
    lacking = [version["name"] for version in ours["spec"]["versions"] if version["name"] not in served]
    if lacking:
        return f"{', '.join(lacking)} is not served (served: {', '.join(sorted(served)) or 'none'})"
    known = {version["name"]: _fields(version) for version in theirs["spec"]["versions"]}
    for version in ours["spec"]["versions"]:
        less = sorted(_fields(version) - known[version["name"]])
        if less:
            return f"{version['name']} does not know {', '.join(less[:3])}: another version or operator made it"
    stale = set((theirs.get("status") or {}).get("storedVersions") or ()) - served
    return f"objects are stored as {', '.join(sorted(stale))}, which is not served" if stale else ""


def _fields(version: Mapping[str, Any]) -> set[str]:
    """Of spec, down two levels: what an older definition would drop."""
    spec = version.get("schema", {}).get("openAPIV3Schema", {}).get("properties", {}).get("spec", {})
    found = set()
    for name, one in (spec.get("properties") or {}).items():
        found.add(f"spec.{name}")
        items = one.get("items") or one
        found |= {f"spec.{name}.{inner}" for inner in (items.get("properties") or {})}
    return found


async def _hooks(client: Client, unread: list[str]) -> list[Object]:
    """All configurations of webhooks, each with its kind."""
    return [
        {**one, "kind": kind}
        for kind in _HOOKS
        for one in await _list(client, "admissionregistration.k8s.io/v1", kind, unread) or ()
    ]


async def _dead_webhooks(client: Client, found: Iterable[Object], unread: list[str]) -> dict[str, str]:
    dead = {}
    for one in found:
        for hook in one.get("webhooks") or ():
            service = (hook.get("clientConfig") or {}).get("service")
            fails = hook.get("failurePolicy", "Fail") == "Fail"
            if service and fails and not await _answers(client, service, unread):
                dead[f"{one['kind']} {one['metadata']['name']}"] = f"{service['namespace']}/{service['name']}"
    return dead


async def _own_webhook(client: Client, found: Object, unread: list[str]) -> OwnWebhook:
    """Of the Secret only the certificate is looked at, which everybody is shown who connects."""
    (hook, *_) = found["webhooks"]
    service = (hook.get("clientConfig") or {}).get("service") or {"namespace": "", "name": ""}
    try:
        secret = await client.kind("v1", "Secret").get(service["name"], service["namespace"])
        certificate: bytes | None = b64decode((secret.get("data") or {}).get("tls.crt") or "")
    except ApiError as error:
        certificate = b"" if error.not_found else None
    return OwnWebhook(
        name=f"{found['kind']} {found['metadata']['name']}",
        namespace=service["namespace"],
        service=f"{service['namespace']}/{service['name']}",
        answers=await _answers(client, service, unread),
        trusted=b64decode(hook["clientConfig"].get("caBundle") or ""),
        certificate=certificate,
    )


async def _answers(client: Client, service: Mapping[str, Any], unread: list[str]) -> bool:
    label = f"kubernetes.io/service-name={service['name']}"
    version = "discovery.k8s.io/v1"
    slices = await _list(client, version, "EndpointSlice", unread, namespace=service["namespace"], labels=label)
    if slices is None:
        return True  # not known: said as unread
    return any(
        (one.get("conditions") or {}).get("ready", True) for part in slices for one in part.get("endpoints") or ()
    )
