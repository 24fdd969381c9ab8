"""Admission policies, what is asked of a server that has them, and what real Kubernetes 1.37 answers.

`SETUP` is created once; every policy is about the namespace of its case only. `ASKED` are dry runs, so that they can be
asked again. `REFUSED` are policies and bindings that a server does not take. The answers of a real server are in
tests/recorded/policies-1.37.json, written anew by tests/kubernetes/test_policy_differential.py with KOHORT_RECORD=1.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

Object = dict[str, Any]
R = "/apis/admissionregistration.k8s.io/v1"
V, VB = f"{R}/validatingadmissionpolicies", f"{R}/validatingadmissionpolicybindings"
M, MB = f"{R}/mutatingadmissionpolicies", f"{R}/mutatingadmissionpolicybindings"
SETUP: list[tuple[str, Object]] = []
ASKED: list[tuple[str, str, str, Any]] = []  # name, method, path, body
NAMESPACES: dict[str, dict[str, str]] = {}


def rule(resource: str = "configmaps", group: str = "", version: str = "v1", **more: Any) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
        **more,
    }


class Case:
    """A namespace with policies of its own."""

    def __init__(self, name: str, **labels: str) -> None:
        self.name, self.count = name, 0
        NAMESPACES[name] = labels
        self.root = f"/api/v1/namespaces/{name}"
        self.selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}

    def validating(
        self,
        *validations: Object,
        rules: Any = None,
        match: Object | None = None,
        bind: Object | None = None,
        **spec: Any,
    ) -> Case:
        match = {"resourceRules": rules or [rule()], "namespaceSelector": self.selector, **(match or {})}
        self.count += 1
        name = f"{self.name}-{self.count}"
        spec = {"matchConstraints": match, "validations": list(validations), **spec}
        SETUP.append((V, {"metadata": {"name": name}, "spec": spec}))
        binding = {"policyName": name, "validationActions": ["Deny"], **(bind or {})}
        SETUP.append((VB, {"metadata": {"name": f"{name}-b"}, "spec": binding}))
        return self

    def mutating(self, *mutations: str, rules: Any = None, bind: Object | None = None, **spec: Any) -> Case:
        match = {"resourceRules": rules or [rule()], "namespaceSelector": self.selector}
        self.count += 1
        name = f"{self.name}-{self.count}"
        spec = {
            "matchConstraints": match,
            "reinvocationPolicy": "Never",
            "mutations": [mutation(one) for one in mutations],
            **spec,
        }
        SETUP.append((M, {"metadata": {"name": name}, "spec": spec}))
        SETUP.append((MB, {"metadata": {"name": f"{name}-b"}, "spec": {"policyName": name, **(bind or {})}}))
        return self

    def has(self, plural: str, body: Object) -> Case:
        SETUP.append((f"{self.root}/{plural}", body))
        return self

    def asked(self, name: str, body: Object | None = None, plural: str = "configmaps", **data: str) -> Case:
        made = body if body is not None else config(name, **data)
        ASKED.append((f"{self.name}: {name} {data}"[:80], "POST", f"{self.root}/{plural}", made))
        return self

    def put(self, method: str, path: str, body: Any = None) -> Case:
        ASKED.append((f"{self.name}: {method} {path}", method, f"{self.root}/{path}", body))
        return self


def config(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": {"on": "true"}}, **({"data": data} if data else {})}


def mutation(expression: str) -> Object:
    if expression.lstrip().startswith("["):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def says(expression: str, **more: str) -> Object:
    return {"expression": expression, **more}


# ---- validations

Case("texts").validating(
    says("object.metadata.name != 'a'"),
    says("object.metadata.name != 'b'", message=" not b "),
    says("object.metadata.name != 'c'", messageExpression="'no ' + object.metadata.name", reason="Forbidden"),
    says("object.metadata.name != 'd'", message="m", messageExpression="string(object.data.missing)", reason="Invalid"),
    says("object.metadata.name != 'e'", messageExpression="'two\\nlines'", reason="RequestEntityTooLarge"),
    says("!(object.metadata.name in ['f', 'g'])", messageExpression="' '", message="blank"),
    says("object.metadata.name != 'g'"),
).asked("a").asked("b").asked("c").asked("d").asked("e").asked("f").asked("g").asked("fine")
Case("errors").validating(says("object.data.x == '1'")).asked("a").asked("a", x="1").asked("a", x="2")
Case("overload").validating(says("object.metadata.name + 1 == 2")).asked("a")
Case("deep").validating(says("object.data.x.y == '1'")).asked("a", x="1")
Case("division").validating(says("size(object.data) / (size(object.data) - 1) > 0")).asked("a", x="1")
Case("bounds").validating(says("object.data.x.split(',')[2] == 'c'")).asked("a", x="a,b").asked("a", x="a,b,c")
Case("lenient").validating(says("object.data.x == '1'"), failurePolicy="Ignore").asked("a").asked("a", x="2")
Case("warned").validating(
    says("object.metadata.name == 'b'", message="be b"), bind={"validationActions": ["Warn"]}
).asked("a").asked("b")
Case("audited").validating(says("false"), bind={"validationActions": ["Audit"]}).asked("a")
Case("both").validating(says("false", message="1"), bind={"validationActions": ["Warn", "Audit"]}).validating(
    says("object.metadata.name != 'x'", message="2")
).asked("a").asked("x")
Case("conditions").validating(
    says("false"),
    matchConditions=[
        {"name": "first", "expression": "object.metadata.name.startsWith('x')"},
        {"name": "second", "expression": "object.data.on == 'true'"},
    ],
).asked("a").asked("x").asked("x", on="true").asked("x", on="no").asked("y", on="no")
Case("lenientconditions").validating(
    says("false"), failurePolicy="Ignore", matchConditions=[{"name": "c", "expression": "object.data.on == 'true'"}]
).asked("a").asked("a", on="true")
Case("variables").validating(
    says("variables.short || variables.broken == 1", messageExpression="'length ' + string(variables.length)"),
    variables=[
        {"name": "length", "expression": "size(object.metadata.name)"},
        {"name": "short", "expression": "variables.length < 3"},
        {"name": "broken", "expression": "object.data.number.size()"},
    ],
).asked("ab").asked("abc").asked("abc", number="1").asked("abc", number="12")
Case("described", team="blue").validating(
    says("namespaceObject.metadata.labels.team == 'red'", messageExpression="namespaceObject.metadata.labels.team"),
    says("namespaceObject.status.phase == 'Active' && has(namespaceObject.metadata.creationTimestamp)"),
).asked("a")
Case("requests").validating(
    says("request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'"),
    says("request.operation == 'CREATE' && request.dryRun && request.namespace == 'requests'"),
    says("request.name == 'a' && !has(request.subResource)", message="another name"),
    says("'system:masters' in request.userInfo.groups"),
    says("request.options.kind == 'CreateOptions'", messageExpression="string(request.options.kind)"),
    says("oldObject == null && object.kind == 'ConfigMap' && object.apiVersion == 'v1'"),
).asked("a").asked("b")
Case("authorized").validating(
    says("authorizer.group('').resource('pods').namespace('x').check('create').allowed()"),
    says("authorizer.requestResource.check('create').allowed()"),
    says("authorizer.path('/healthz').check('get').allowed()"),
    says(
        "!authorizer.serviceAccount('authorized', 'nobody').group('').resource('secrets').check('get').allowed()",
    ),
    says("authorizer.serviceAccount('authorized', 'x').group('').resource('secrets').check('get').allowed()"),
).asked("a")
Case("threechecks").validating(
    says(
        " && ".join(
            f"authorizer.group('').resource('pods').namespace('{one}').check('create').allowed()" for one in "abc"
        )
    )
).asked("a")
Case("badaccount").validating(
    says("authorizer.serviceAccount('no spaces', 'x').group('').resource('y').check('get').allowed()")
).asked("a")

# ---- what is matched

Case("excluded").validating(
    says("false"),
    match={"excludeResourceRules": [rule(resourceNames=["free"])]},
    rules=[rule(resourceNames=["free", "bound"])],
).asked("free").asked("bound").asked("other")
Case("selected").validating(says("false"), match={"objectSelector": {"matchLabels": {"on": "true"}}}).asked("a").asked(
    "b", {"metadata": {"name": "b"}}
)
HPA = {
    "metadata": {"name": "h"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
}
SCALERS = "horizontalpodautoscalers"
for _sort in ("Equivalent", "Exact"):
    _case = Case(f"version{_sort.lower()}").validating(
        says("has(object.spec.targetCPUUtilizationPercentage)", messageExpression="string(object.apiVersion)"),
        says("request.kind.version == 'v1' && request.requestKind.version == 'v2'"),
        rules=[rule(SCALERS, "autoscaling", "v1")],
        match={"matchPolicy": _sort},
    )
    for _version in ("v1", "v2"):
        _path = f"/apis/autoscaling/{_version}/namespaces/{_case.name}/{SCALERS}"
        ASKED.append((f"{_case.name}: {_version}", "POST", _path, HPA))
Case("bound").validating(
    says("false"), bind={"matchResources": {"objectSelector": {"matchLabels": {"on": "false"}}}}
).asked("a").asked("b", {"metadata": {"name": "b", "labels": {"on": "false"}}})
Case("updates").has("configmaps", config("there", x="1")).validating(
    says("object == null || object.data.x == oldObject.data.x", message="x stays"),
    says("oldObject.metadata.name != 'there' || request.operation != 'DELETE'", message="it stays"),
    rules=[rule(operations=["UPDATE", "DELETE"])],
).put("PUT", "configmaps/there", config("there", x="2")).put("PUT", "configmaps/there", config("there", x="1")).put(
    "DELETE", "configmaps/there"
).put("PATCH", "configmaps/there", {"data": {"x": "3"}})

# ---- parameters

Case("params").has("configmaps", config("limit", most="2")).validating(
    says("size(object.metadata.name) <= int(params.data.most)", messageExpression="'at most ' + params.data.most"),
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    bind={"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}},
    rules=[rule("secrets")],
).asked("ab", {"metadata": {"name": "ab"}}, "secrets").asked("abc", {"metadata": {"name": "abc"}}, "secrets")
for _action in ("Allow", "Deny"):
    Case(f"missing{_action.lower()}").validating(
        says("false"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        bind={"paramRef": {"name": "none", "parameterNotFoundAction": _action}},
        rules=[rule("secrets")],
    ).asked("a", {"metadata": {"name": "a"}}, "secrets")
Case("manyparams").has("configmaps", config("one", most="3")).has("configmaps", config("two", most="2")).validating(
    says("size(object.metadata.name) <= int(params.data.most)", messageExpression="string(params.data.most)"),
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    bind={"paramRef": {"selector": {"matchLabels": {"on": "true"}}, "parameterNotFoundAction": "Deny"}},
    rules=[rule("secrets")],
).asked("ab", {"metadata": {"name": "ab"}}, "secrets").asked("abc", {"metadata": {"name": "abc"}}, "secrets")
Case("unknownparams").validating(
    says("false"),
    paramKind={"apiVersion": "example.org/v1", "kind": "Nothing"},
    bind={"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
).asked("a")
Case("noref").validating(
    says("params != null", message="none"), paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, rules=[rule("secrets")]
).asked("a", {"metadata": {"name": "a"}}, "secrets")
Case("clusterparams").validating(
    says("false"),
    paramKind={"apiVersion": "v1", "kind": "Namespace"},
    bind={"paramRef": {"name": "default", "namespace": "x", "parameterNotFoundAction": "Deny"}},
).asked("a")

# ---- limits

# A check of the authorizer costs 350,000: two are 700,000, which an expression may cost, and quick to evaluate.
_DEAR = " && ".join(["authorizer.path('/healthz').check('get').allowed()"] * 2)
Case("perpolicy").validating(*[says(f"{_DEAR} && {n} == {n}") for n in range(15)]).asked("a")
Case("perpolicyvariables").validating(
    *[says(f"variables.v{n}") for n in range(15)],
    variables=[{"name": f"v{n}", "expression": f"{_DEAR} && {n} == {n}"} for n in range(15)],
).asked("a")
Case("perconditions").validating(
    says("false"), matchConditions=[{"name": f"c{n}", "expression": f"{_DEAR} && {n} == {n}"} for n in range(4)]
).asked("a")
Case("lenientbudget").validating(*[says(f"{_DEAR} && {n} == {n}") for n in range(15)], failurePolicy="Ignore").asked(
    "a"
)
Case("annotated").validating(
    says("true"), auditAnnotations=[{"key": "k", "valueExpression": "'x ' + object.data.x"}]
).asked("a").asked("a", x="1")

# ---- mutations

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
PODS = [rule("pods")]
Case("labels").mutating(
    "Object{metadata: Object.metadata{labels: {'a': 'b', 'name': string(object.metadata.name)}}}",
    "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y'), value: 'w'}]",
).asked("a").asked("b", {"metadata": {"name": "b"}})
Case("sidecar").mutating(
    "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'mesh', image: 'mesh:1', "
    "restartPolicy: 'Always'}], containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, "
    "env: [Object.spec.containers.env{name: 'PROXY', value: 'on'}]})}}",
    rules=PODS,
    matchConditions=[
        {"name": "none", "expression": "!object.spec.?initContainers.orValue([]).exists(c, c.name == 'mesh')"}
    ],
).asked("p", POD, "pods")
Case("atomic").mutating(
    "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', args: ['x']}]}}", rules=PODS
).asked("p", POD, "pods")
Case("misnamed").mutating("Object{metadata: Object.spec{labels: {'a': 'b'}}}").asked("a")
Case("undeclared").mutating("Object{spec: Object.spec{nothing: 1}}", rules=PODS).asked("p", POD, "pods")
Case("failing").mutating("Object{metadata: Object.metadata{labels: {'x': object.data.x}}}").asked("a").asked("a", x="1")
Case("lenientfailing").mutating(
    "Object{metadata: Object.metadata{labels: {'x': object.data.x}}}", failurePolicy="Ignore"
).asked("a")
Case("tested").mutating(
    "[JSONPatch{op: 'test', path: '/metadata/name', value: 'a'}, "
    "JSONPatch{op: 'add', path: '/data', value: {'k': 'v'}}]"
).asked("a").asked("b")
Case("objects").mutating(
    "[JSONPatch{op: 'replace', path: '/spec', value: Object.spec{containers: [Object.spec.containers{name: 'n', "
    "image: 'i'}], schedulerName: 's'}}]",
    rules=PODS,
).asked("p", POD, "pods")
Case("given").has("configmaps", config("values", who="me")).mutating(
    "Object{metadata: Object.metadata{annotations: {'who': params.data.who}}}",
    rules=[rule("secrets")],
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    bind={"paramRef": {"name": "values", "parameterNotFoundAction": "Deny"}},
).asked("s", {"metadata": {"name": "s"}}, "secrets")
for _policy in ("Never", "IfNeeded"):
    Case(f"again{_policy.lower()}").mutating(
        "[JSONPatch{op: 'add', path: '/data/seen', value: string(size(object.data)) + object.data.?seen.orValue('')}]",
        reinvocationPolicy=_policy,
    ).asked("a", first="1")
Case("nomatch").mutating(
    "Object{metadata: Object.metadata{labels: {'x': 'y'}}}",
    matchConditions=[{"name": "c", "expression": "object.data.on == 'true'"}],
).asked("a").asked("a", on="no").asked("a", on="true")
Case("combined").mutating("Object{metadata: Object.metadata{labels: {'x': 'y'}}}").validating(
    says("object.metadata.labels.x == 'y'")
).asked("a")

# ---- policies that are refused


def policy(**spec: Any) -> tuple[str, Object]:
    base = {"matchConstraints": {"resourceRules": [rule()]}, "validations": [says("true")]}
    return V, {"metadata": {"name": "refused"}, "spec": {**base, **spec}}


def mutator(*expressions: str, **spec: Any) -> tuple[str, Object]:
    base = {
        "matchConstraints": {"resourceRules": [rule()]},
        "reinvocationPolicy": "Never",
        "mutations": [mutation(one) for one in expressions],
    }
    return M, {"metadata": {"name": "refused"}, "spec": {**base, **spec}}


def binding(path: str = VB, **spec: Any) -> tuple[str, Object]:
    actions = {"validationActions": ["Deny"]} if path == VB else {}
    return path, {"metadata": {"name": "refused"}, "spec": {"policyName": "p", **actions, **spec}}


REFUSED: list[tuple[str, Object]] = [
    policy(validations=[]),
    policy(validations=[says("object.metadata.name ==")])[:2],
    policy(validations=[says("objekt.x")]),
    policy(validations=[says("object.metadata.name")]),
    policy(validations=[says("1")]),
    policy(validations=[says("true", message="a\nb")]),
    policy(validations=[says("true", message=" ")]),
    policy(validations=[says("true", messageExpression="1")]),
    policy(validations=[says("true", messageExpression="authorizer.path('x').check('y').reason()")]),
    policy(validations=[says("true", reason="Because")]),
    policy(validations=[says("params.x")]),
    policy(validations=[says("variables.x")]),
    policy(validations=[says("variables.y == 1")], variables=[{"name": "x", "expression": "1"}]),
    policy(validations=[says("variables.x == 'a'")], variables=[{"name": "x", "expression": "1"}]),
    policy(variables=[{"name": "in", "expression": "1"}]),
    policy(variables=[{"name": "a-b", "expression": " "}]),
    policy(variables=[{"name": "x", "expression": "object.y +"}])[:2],
    policy(validations=[says("request.nothing == 1")]),
    policy(validations=[says("namespaceObject.metadata.nothing == ''")]),
    policy(validations=[says("Object{}.x == 1")]),
    policy(failurePolicy="Perhaps"),
    policy(paramKind={"apiVersion": "a/b/c", "kind": "X"}),
    policy(paramKind={"apiVersion": "UP/v1", "kind": "a_b"}),
    policy(paramKind={"apiVersion": "v1", "kind": ""}),
    policy(matchConstraints={"resourceRules": []}),
    policy(matchConstraints=None),
    policy(matchConstraints={"resourceRules": [rule(operations=["*", "CREATE"])]}),
    policy(matchConstraints={"resourceRules": [rule(operations=["READ"])]}),
    policy(matchConstraints={"resourceRules": [rule(apiGroups=["*", "a"], apiVersions=[], scope="Room")]}),
    policy(matchConstraints={"resourceRules": [rule(resources=["*/*", "pods", "pods/*", "pods/log", "*"])]}),
    policy(matchConstraints={"resourceRules": [rule(resourceNames=["a", "a", "a/b"])]}),
    policy(matchConstraints={"resourceRules": [rule()], "matchPolicy": "Loose"}),
    policy(matchConstraints={"resourceRules": [rule()], "objectSelector": {"matchLabels": {"a b": "c"}}}),
    policy(matchConditions=[{"name": "a", "expression": "1"}, {"name": "a", "expression": "true"}]),
    policy(matchConditions=[{"name": "a b", "expression": "variables.x"}]),
    policy(matchConditions=[{"name": "", "expression": ""}]),
    policy(auditAnnotations=[{"key": "k", "valueExpression": "1"}]),
    policy(auditAnnotations=[{"key": "a b", "valueExpression": ""}, {"key": "a b", "valueExpression": "'x'"}]),
    mutator(),
    mutator("Object{spec: 1}", reinvocationPolicy="Sometimes"),
    mutator("{'a': 'b'}"),
    mutator("[1]"),
    mutator("[JSONPatch{op: 1}]"),
    mutator("Objekt{}"),
    mutator("Object{metadata: Object.metadata{}}", matchConstraints={"resourceRules": [rule(operations=["DELETE"])]}),
    mutator(mutations=[{"patchType": "Other"}]),
    mutator(mutations=[{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]),
    mutator(mutations=[{"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}}]),
    binding(policyName=""),
    binding(policyName="A b"),
    binding(validationActions=[]),
    binding(validationActions=["Deny", "Warn", "Deny"]),
    binding(validationActions=["Shout"]),
    binding(paramRef={"name": "x", "selector": {}}),
    binding(paramRef={"parameterNotFoundAction": "Perhaps"}),
    binding(matchResources={"resourceRules": [rule(operations=[])]}),
    binding(MB, matchResources={"resourceRules": [rule(operations=["CONNECT"])]}),
]


# Examples of names, and what a parser had expected: said in other words here.
_OTHER_WORDS = re.compile(r""" \(e\.g\. .*?'\)(?="|,|\])|(?<=: )(Syntax error: .*?|expected a value.*?)(?=\\n)""")


def seen(code: int, body: Object, warnings: list[str]) -> Object:
    """What both servers have to say alike."""
    if code >= 400:
        details = body.get("details") or {}
        causes = [[one.get("field", ""), one.get("message", "")] for one in details.get("causes") or ()]
        found = {"code": code, "reason": body.get("reason", ""), "message": body["message"], "causes": causes}
        return cast("Object", json.loads(_OTHER_WORDS.sub("", json.dumps(found))))
    if body.get("kind") == "Status":
        return {"code": code, "warnings": warnings}
    meta = body["metadata"]
    kept = {name: meta[name] for name in ("labels", "annotations") if name in meta}
    for name in ("data", "spec"):
        if name in body:
            kept[name] = body[name]
    return {"code": code, "warnings": warnings, "object": kept}
