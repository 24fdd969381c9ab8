"""Asks a cluster about its Kohort: processes, leases, rights, clocks, definitions, webhooks. Nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
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
from kohort.run.findings import Facts
from kohort.run.options import Options, OptionsError
from kohort.run.options import parse as parse_options
from kohort.run.process import look
from kohort.run.roles import Role, every_role

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
    found = await look(client, configs[0] if configs else Options())
    names = {(one.election.namespace or home, one.election.name) for one in configs} or {(home, "kohort")}
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
        dead_webhooks=await _dead_webhooks(client, unread),
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
            made[f"{space}/{account}"] = await _denied(client, space, account, chosen)
        except (ApiError, NotServedError) as error:
            unread.append(f"rights of {space}/{account}: {error}")
    return made


async def _denied(client: Client, space: str, account: str, chosen: Options) -> list[str]:
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

    questions = [one for role in _wanted(chosen) for one in _questions(role, space, chosen)]
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
                    name, _, sub = resource.partition("/")
                    asked = {"verb": verb, "group": group, "resource": name, "subresource": sub, "namespace": namespace}
                    yield {"resourceAttributes": asked}


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


async def _dead_webhooks(client: Client, unread: list[str]) -> dict[str, str]:
    dead = {}
    for kind in _HOOKS:
        for one in await _list(client, "admissionregistration.k8s.io/v1", kind, unread) or ():
            for hook in one.get("webhooks") or ():
                service = (hook.get("clientConfig") or {}).get("service")
                if (
                    service
                    and hook.get("failurePolicy", "Fail") == "Fail"
                    and not await _answers(client, service, unread)
                ):
                    dead[f"{kind} {one['metadata']['name']}"] = f"{service['namespace']}/{service['name']}"
    return dead


async def _answers(client: Client, service: Mapping[str, Any], unread: list[str]) -> bool:
    label = f"kubernetes.io/service-name={service['name']}"
    version = "discovery.k8s.io/v1"
    slices = await _list(client, version, "EndpointSlice", unread, namespace=service["namespace"], labels=label)
    if slices is None:
        return True  # not known: said as unread
    return any(
        (one.get("conditions") or {}).get("ready", True) for part in slices for one in part.get("endpoints") or ()
    )
