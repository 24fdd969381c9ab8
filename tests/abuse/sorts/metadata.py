"""What every object has: names, owners, finalizers, annotations, lists, and the patches that change them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.abuse.attack import Attack, Sort, Source

_ROLES: Final = "apis/rbac.authorization.k8s.io/v1"


def _owners(source: Source) -> Iterator[Attack]:
    count = source.pick(100, 3000, 20_000)
    yield source.config_map({"ownerReferences": [_owner("ConfigMap", "p", f"u{n}") for n in range(count)]})


def _owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}


def _cycle(source: Source) -> Iterator[Attack]:
    """Owners that are each other, and none that exist: a garbage collector takes them."""
    first, size = source.number + 1, source.pick(1, 2, 20)
    for link in range(size):
        name = f"{source.sort}-{first + (link + 1) % size}"
        yield source.config_map(
            {"ownerReferences": [{**_owner("ConfigMap", name, "none"), "blockOwnerDeletion": True}]}
        )


def _strange_owners(source: Source) -> Iterator[Attack]:
    """Of kinds that are not served, of other namespaces' kinds, of itself."""
    api, kind = source.pick(("none.example/v1", "Thing"), ("v1", "Node"), ("v1", "Namespace"), ("x/y/z", "Q"))
    owner = {"apiVersion": api, "kind": kind, "name": "none", "uid": "none", "controller": True}
    yield source.config_map({"ownerReferences": [owner]})
    yield source.pod({"schedulingGates": [{"name": "a.b/c"}]}, {"ownerReferences": [owner]})


def _annotations(source: Source) -> Iterator[Attack]:
    size = source.pick(1000, 200_000, 262_100)
    one = {"a.b/large": "x" * size}
    many = {f"a.b/k{number}": "v" for number in range(min(size // 12, 15_000))}
    yield source.config_map({"annotations": source.pick(one, many)})
    yield source.config_map({"labels": {f"k{number}": "v" * 63 for number in range(source.pick(10, 3000))}})
    known = {"kubectl.kubernetes.io/last-applied-configuration": "{" * 1000, "kohort.dev/plan": "x" * 5000}
    yield source.pod({"schedulingGates": [{"name": "a.b/c"}]}, {"annotations": known})


def _finalizers(source: Source) -> Iterator[Attack]:
    """A dry run: finalizers that nobody removes would keep the namespace for ever, as on any cluster."""
    names = [f"a.b/{number}" for number in range(source.pick(100, 5000))]
    yield source.config_map({"finalizers": names}, query="?dryRun=All")


def _names(source: Source) -> Iterator[Attack]:
    odd = source.pick("a" * 100_000, "../../etc", "\x00", "a\nb", "é" * 300, "", "-", "%0a", "ａ")
    yield source.config_map({"name": odd, "labels": {odd: odd}, "annotations": {odd: odd}})
    yield source.config_map({"name": f"{'a' * 240}{source.number}", "annotations": {"a": odd}})
    yield source.config_map({"generateName": source.pick("a" * 250, "x-", "."), "name": ""})


def _depth(source: Source) -> Iterator[Attack]:
    depth = source.pick(199, 1000, 100_000)
    body = b'{"metadata":{"name":"x"},"data":' + b"[" * depth + b"]" * depth + b"}"
    yield source.send("POST", source.space("api/v1", "configmaps"), body, source.pick("json", "yaml"))


def _width(source: Source) -> Iterator[Attack]:
    yield source.config_map(
        data={f"k{number}": "v" for number in range(source.pick(1000, 50_000))}, query="?dryRun=All"
    )
    yield source.config_map(data={"k": "x" * source.pick(10, 900_000)}, query="?dryRun=All")
    yield source.config_map(data={f"k{number}": "v" for number in range(source.pick(100, 1000))})


def _yaml(source: Source) -> Iterator[Attack]:
    head = ["metadata:", f"  name: {source.name()}", "data:"]
    many = [f"  k{number}: 'v'" for number in range(source.pick(1000, 20_000))]
    sixty = ["  k: '" + "1:" * 2000 + "1'"]
    bomb = ["  a: &a [x,x,x,x,x,x,x,x]", "  b: &b [*a,*a,*a,*a,*a,*a]", "  c: [*b,*b,*b,*b,*b,*b]"]
    text = "\n".join([*head, *source.pick(many, many, sixty, bomb)])
    yield source.send("POST", source.space("api/v1", "configmaps?dryRun=All"), text.encode(), "yaml")
    small = "\n".join(["metadata:", f"  name: {source.name()}", "data:", *sixty])
    yield source.send("POST", source.space("api/v1", "configmaps"), small.encode(), "yaml")


def _patch(source: Source) -> Iterator[Attack]:
    """Copies of a tree into itself, insertions in front of long lists, removals from them."""
    yield source.config_map({"annotations": {"a": "b"}}, {"k": "v"})
    path = source.space("api/v1", f"configmaps/{source.sort}-{source.number}")
    steps: list[Any] = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
    steps += [{"op": "copy", "from": "/metadata", "path": f"/metadata/{n}"} for n in range(source.pick(26, 400))]
    yield source.send("PATCH", path, steps, "patch")
    steps = [{"op": "add", "path": "/metadata/finalizers", "value": []}]
    steps += [{"op": "add", "path": "/metadata/finalizers/0", "value": f"a.b/{n}"} for n in range(3000)]
    steps += [{"op": "remove", "path": "/metadata/finalizers/0"}] * 3000
    yield source.send("PATCH", path, steps, "patch")
    yield source.send("PATCH", path, {"data": {f"k{n}": None for n in range(10_000)}}, "merge")


def _strategic(source: Source) -> Iterator[Attack]:
    """Long lists that are merged by key, with directives about every item."""
    env = [{"name": f"E{number}", "value": "v"} for number in range(source.pick(100, 1500))]
    container = {"name": "c", "image": "i", "env": env}
    yield source.pod({"containers": [container], "schedulingGates": [{"name": "a.b/c"}]})
    path = source.space("api/v1", f"pods/{source.sort}-{source.number}")
    changed = {"containers": [{"name": "c", "image": "j", "$setElementOrder/env": env[::-1]}]}
    yield source.send("PATCH", path, {"spec": changed}, "strategic")
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(1500)]
    yield source.send("PATCH", path, {"spec": {"tolerations": tolerations}}, "strategic")


def _managers(source: Source) -> Iterator[Attack]:
    """Server-side apply by many managers, each with fields of its own."""
    name = source.name()
    for manager in range(source.pick(5, 30)):
        data = {f"k{manager}-{number}": "v" for number in range(source.pick(1, 100))}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        path = source.space("api/v1", f"configmaps/{name}?fieldManager=m{manager}&force=true")
        yield source.send("PATCH", path, body, "apply")


def _lists(source: Source) -> Iterator[Attack]:
    """Lists whose items are compared with each other."""
    count = source.pick(50, 1000, 20_000)
    ports = [{"name": f"p{number}", "port": 1 + number % 65_535} for number in range(count)]
    yield source.create("v1", "services", "Service", {"ports": ports, "selector": {"a": "b"}})
    peers = [{"ipBlock": {"cidr": f"10.{n // 256 % 256}.{n % 256}.0/24"}} for n in range(min(count, 5000))]
    policy = {"podSelector": {}, "ingress": [{"from": peers}], "policyTypes": ["Ingress"]}
    yield source.create("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", policy)
    volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(min(count, 2000))]
    mounts = [{"name": f"v{number}", "mountPath": f"/m/{number}"} for number in range(min(count, 2000))]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    yield source.pod({"containers": [container], "volumes": volumes, "schedulingGates": [{"name": "a.b/c"}]})


def _rules(source: Source) -> Iterator[Attack]:
    """Roles whose rules stand for a cube of permissions; each is compared with what its writer may."""
    side = source.pick(5, 40, 80)
    words = [f"w{number}" for number in range(side)]
    rule = {"apiGroups": words, "resources": words, "verbs": words}
    body = {"metadata": {"name": source.name()}, "rules": [rule] * source.pick(1, 10)}
    yield source.send("POST", source.space(_ROLES, "roles"), body)


def _selectors(source: Source) -> Iterator[Attack]:
    """Selectors that every pod of the namespace is compared with."""
    values = [f"v{number}" for number in range(source.pick(10, 1000))]
    wanted = [{"key": f"k{number}", "operator": "In", "values": values} for number in range(source.pick(1, 50))]
    budget = {"selector": {"matchExpressions": wanted}, "minAvailable": source.pick("100%", 2**31 - 1)}
    yield source.create("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", budget)
    template = {"metadata": {"labels": {"k0": "v0"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    wide = {"matchLabels": {"k0": "v0"}, "matchExpressions": wanted[:1]}
    spec = {"replicas": source.pick(1, 2**31 - 1), "selector": wide, "template": template}
    yield source.create("apps/v1", "replicasets", "ReplicaSet", spec)


def _small(source: Source) -> Iterator[Attack]:
    for _ in range(50):
        yield source.config_map(data={"k": "v"})
    about = {"kind": "Pod", "namespace": source.namespace, "name": "none"}
    for _ in range(20):
        event = {"metadata": {"name": source.name()}, "involvedObject": about, "reason": "R", "type": "Normal"}
        yield source.send("POST", source.space("api/v1", "events"), event)


SORTS: Final = (
    Sort("owners", _owners),
    Sort("cycle-of-owners", _cycle),
    Sort("strange-owners", _strange_owners),
    Sort("annotations", _annotations),
    Sort("finalizers", _finalizers, stored=False),
    Sort("names", _names),
    Sort("depth", _depth, stored=False),
    Sort("width", _width),
    Sort("yaml", _yaml),
    Sort("patch", _patch),
    Sort("strategic", _strategic),
    Sort("managers", _managers),
    Sort("lists", _lists),
    Sort("rules", _rules),
    Sort("selectors", _selectors),
    Sort("small", _small),
)
