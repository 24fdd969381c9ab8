"""Discovery documents: which groups, versions and resources there are; plain, and all at once (aggregated)."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.server.resources import Resource, Resources, Subresource

Document = dict[str, Any]


def core_versions(address: str) -> Document:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(resources: Resources) -> Document:
    groups = [group(resources, name) for name in resources.versions() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(resources: Resources, name: str, *, whole: bool = False) -> Document:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in resources.versions().get(name, [])
    ]
    found: Document = {"name": name, "versions": versions, "preferredVersion": versions[0]}
    return {"kind": "APIGroup", "apiVersion": "v1", **found} if whole else found


def resource_list(resources: Resources, group_name: str, version: str) -> Document | None:
    found = [one for one in resources.every() if (one.group, one.version) == (group_name, version)]
    if not found:
        return None
    entries = [entry for one in sorted(found, key=lambda one: one.plural) for entry in _plain(resources, one)]
    return {
        "kind": "APIResourceList",
        **({} if not group_name else {"apiVersion": "v1"}),
        "groupVersion": f"{group_name}/{version}" if group_name else version,
        "resources": entries,
    }


def _plain(resources: Resources, one: Resource) -> list[Document]:
    entry: Document = {
        "name": one.plural,
        "singularName": one.singular,
        "namespaced": one.namespaced,
        "kind": one.kind,
        "verbs": list(one.verbs),
    }
    if one.short_names:
        entry["shortNames"] = list(one.short_names)
    if one.categories:
        entry["categories"] = list(one.categories)
    if one.stored:
        # The version in which it is kept counts, not the one that is looked at.
        kept = resources.of_plural(one.group, one.plural) or one
        entry["storageVersionHash"] = kept.storage_hash
    return [entry, *(_plain_sub(one, sub) for _, sub in sorted(one.subresources.items()))]


def _plain_sub(one: Resource, sub: Subresource) -> Document:
    entry: Document = {
        "name": f"{one.plural}/{sub.name}",
        "singularName": "",
        "namespaced": one.namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if sub.version:
        entry |= {"group": sub.group, "version": sub.version}
    return entry


def aggregated(resources: Resources, root: str) -> Document:
    """The apidiscovery.k8s.io/v2 document of /api or /apis."""
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [_version(resources, name, version) for version in versions],
        }
        for name, versions in resources.versions().items()
        if (root == "/api") is (name == "")
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _version(resources: Resources, name: str, version: str) -> Document:
    found = [one for one in resources.every() if (one.group, one.version) == (name, version)]
    entries = [_entry(one) for one in sorted(found, key=lambda one: one.plural)]
    return {"version": version, "freshness": "Current", "resources": entries}


def _entry(one: Resource) -> Document:
    entry: Document = {
        "resource": one.plural,
        "responseKind": {"group": one.response_group, "version": one.response_version, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(one.verbs),
    }
    if one.short_names:
        entry["shortNames"] = list(one.short_names)
    if one.categories:
        entry["categories"] = list(one.categories)
    if one.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                "verbs": list(sub.verbs),
            }
            for _, sub in sorted(one.subresources.items())
        ]
    return entry


def version_info(version: str) -> Document:
    major, minor, *_ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{version}+kohort",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-11-15T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def etag(body: bytes) -> str:
    return base64.b16encode(hashlib.sha512(body).digest()).decode()
