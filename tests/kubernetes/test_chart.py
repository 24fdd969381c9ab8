"""What the chart renders, with real helm: every documented value, roles as the code derives them, restricted pods."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.release import chart, provenance
from tests.support.chartbed import CHART, ROOT, SPACE, helm_binary

from kohort import __version__
from kohort.api.crd import crds
from kohort.run.options import parse
from kohort.run.roles import as_objects, every_role, webhook_roles

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
OTHERS = ("jobset", "trainjob", "grove", "leaderworkerset")
# Every value that the schema documents, with another value than its default.
VALUES: Mapping[str, Any] = {
    "image.repository": "registry.example/team/kohort",
    "image.tag": "v9",
    "image.digest": "sha256:" + "0" * 64,
    "image.pullPolicy": "Always",
    "imagePullSecrets": [{"name": "pull"}],
    "fullnameOverride": "gangs",
    "replicas": 3,
    "split": True,
    "scheduler.enabled": False,
    "scheduler.names": ["kohort", "gang"],
    "scheduler.profile": {"score": []},
    **{f"controllers.{name}": False for name in OTHERS},
    "crds.enabled": False,
    "crds.keep": False,
    "dashboard.enabled": True,
    "dashboard.tlsSecret": "page-tls",
    "webhook.enabled": False,
    "webhook.failurePolicy": "Fail",
    "webhook.timeoutSeconds": 7,
    "webhook.excludedNamespaces": ["legacy"],
    "webhook.certificates": "cert-manager",
    "webhook.issuerRef": {"kind": "ClusterIssuer", "name": "internal"},
    "webhook.grouping": True,
    "webhook.port": 20001,
    "webhook.resources": {"requests": {"cpu": "2"}},
    "namespaces": ["team-a", "team-b"],
    "featureGates": {"ElasticJobSet": True},
    "settings": {"jobset": {"gangRendering": "Composite"}},
    "config": {"debugTokenFile": "/etc/kohort/token"},
    "leaderElection.leaseSeconds": 30,
    "leaderElection.renewSeconds": 5,
    "leaderElection.retrySeconds": 2,
    "log.format": "text",
    "log.verbose": True,
    "port": 20000,
    "listenAddress": "[::]",
    "serviceAccount.annotations": {"example.com/a": "b"},
    "resources": {"requests": {"cpu": "2"}},
    "priorityClassName": "",
    "podDisruptionBudget.enabled": False,
    "podDisruptionBudget.maxUnavailable": "50%",
    "nodeSelector": {"example.com/pool": "system"},
    "tolerations": [{"key": "example.com/system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "example.com/row", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "podAnnotations": {"example.com/a": "b"},
    "podLabels": {"example.com/a": "b"},
    "env": [{"name": "A", "value": "b"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "tmp", "mountPath": "/more"}],
    "terminationGracePeriodSeconds": 60,
    **{
        f"{probe}.{name}": 7
        for probe in ("livenessProbe", "readinessProbe")
        for name in ("periodSeconds", "timeoutSeconds", "failureThreshold", "initialDelaySeconds")
    },
    "networkPolicy.enabled": True,
    "networkPolicy.metricsFrom": [{"podSelector": {}}],
    "networkPolicy.webhookFrom": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
    "networkPolicy.apiServerTo": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
    "networkPolicy.apiServerPorts": [7443],
    "metrics.serviceMonitor.enabled": True,
    "metrics.serviceMonitor.interval": "5s",
    "metrics.serviceMonitor.labels": {"release": "prometheus"},
    "metrics.prometheusRule.enabled": True,
    "metrics.prometheusRule.labels": {"release": "prometheus"},
    "metrics.dashboard.enabled": True,
    "metrics.dashboard.labels": {"grafana": "yes"},
}  # fmt: skip
# What shows only where something else is switched on.
WITH = {
    "networkPolicy": "networkPolicy.enabled",
    "dashboard": "dashboard.enabled",
    **{f"metrics.{name}": f"metrics.{name}.enabled" for name in ("serviceMonitor", "prometheusRule", "dashboard")},
}
NOT_SHOWN = {"global"}  # Helm's own


def helm(*args: str, check: bool = True) -> str:
    done = subprocess.run([helm_binary(), *args], capture_output=True, text=True, timeout=60, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout if check else done.stderr


def rendered(values: Mapping[str, Any] | None = None, *, definitions: bool = False) -> list[dict[str, Any]]:
    sets = [f"--set-json={name}={json.dumps(value)}" for name, value in (values or {}).items()]
    return _rendered(tuple(sets if definitions else ["--set-json=crds.enabled=false", *sets]))


@cache
def _rendered(sets: tuple[str, ...]) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(helm("template", "kohort", str(CHART), "-n", SPACE, *sets), loader) if one]


def of(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] == kind]


def leaves(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, one in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield from leaves(one, here) if one.get("properties") else [(here, one)]


def test_lint() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_is_documented_and_tried() -> None:
    documented = {path: one for path, one in leaves(SCHEMA) if path not in NOT_SHOWN}
    assert set(VALUES) == set(documented)
    assert [path for path, one in documented.items() if not one.get("description")] == []
    for path in documented:
        found: Any = DEFAULTS
        for part in path.split("."):
            assert part in found or part == "initialDelaySeconds", f"{path} is not in values.yaml"
            found = found.get(part)
    commented = (CHART / "values.yaml").read_text()
    assert [name for name in DEFAULTS if not re.search(rf"(#.*\n{name}:|{name}:.*\n  #|{name}:)", commented)] == []


@pytest.mark.parametrize("path", VALUES)
def test_a_value_has_an_effect(path: str) -> None:
    whole = path.startswith("crds.")
    beside: dict[str, Any] = {flag: True for start, flag in WITH.items() if path.startswith(start)}
    beside.pop(path, None)
    if path == "webhook.issuerRef":
        beside = {"webhook.certificates": "cert-manager"}
    changed = rendered({**beside, path: VALUES[path]}, definitions=whole)
    assert changed != rendered(beside, definitions=whole)
    for config in (one for one in of(changed, "ConfigMap") if "config.yaml" in one["data"]):
        parse(yaml.safe_load(config["data"]["config.yaml"]))  # kohort run accepts it


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("replicas", "two", "got string, want integer"),
        ("schedular", {}, "additional properties 'schedular' not allowed"),
        ("namespaces", ["Team A"], "does not match pattern"),
        ("scheduler.names", [], "minItems"),
        ("log.format", "xml", "must be one of"),
    ],
)
def test_a_wrong_value_is_refused(path: str, value: Any, says: str) -> None:
    assert says in helm("template", str(CHART), f"--set-json={path}={json.dumps(value)}", check=False)


def test_nothing_switched_on_is_refused() -> None:
    sets = [f"--set=controllers.{name}=false" for name in OTHERS]
    said = helm("template", str(CHART), "--set=scheduler.enabled=false", *sets, check=False)
    assert "switch on the scheduler or a controller" in said


# ---- roles


def triples(rules: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for rule in rules:
        for verb in rule["verbs"]:
            found |= {(verb, path) for path in rule.get("nonResourceURLs", ())}
            found |= {(verb, g, r) for g in rule.get("apiGroups", ()) for r in rule.get("resources", ())}
    return found


def granted(objects: list[dict[str, Any]], account: str, *, only: str = "") -> set[tuple[str, ...]]:
    """What bindings give an account; `only`: by bindings of this kind."""
    roles = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in objects if one["kind"].endswith("Role")}
    found: set[tuple[str, ...]] = set()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for one in of(objects, kind) if only in ("", kind) else ():
            if account in {subject["name"] for subject in one["subjects"]}:
                found |= triples(roles[one["roleRef"]["kind"], one["roleRef"]["name"]])
    return found


def derived(parts: set[str], controllers: set[str]) -> set[tuple[str, ...]]:
    """What the code says that these parts need."""
    jobs = [
        one for one in every_role() if parts & set(one.parts) and (not one.controller or one.controller in controllers)
    ]
    return {right for one in jobs for right in triples(as_objects(one.rules))}


@pytest.mark.parametrize("off", [(), ("grove",), ("jobset", "trainjob"), OTHERS])
@pytest.mark.parametrize("scheduler", [True, False])
def test_roles_are_what_the_code_derives(off: tuple[str, ...], scheduler: bool) -> None:
    on = set(OTHERS) - set(off)
    if not on and not scheduler:
        return  # refused, see above
    objects = rendered({"scheduler.enabled": scheduler, **{f"controllers.{name}": False for name in off}})
    parts = ({"scheduler"} if scheduler else set()) | ({"controllers"} if on else set())
    assert granted(objects, "kohort") == derived(parts, on)


def test_two_accounts_share_no_more_than_they_must() -> None:
    objects = rendered({"split": True})
    assert granted(objects, "kohort-scheduler") == derived({"scheduler"}, set())
    assert granted(objects, "kohort-controllers") == derived({"controllers"}, set(OTHERS))
    assert ("create", "", "pods/binding") not in granted(objects, "kohort-controllers")


def test_with_namespaces_nothing_in_others_can_be_written() -> None:
    objects = rendered({"namespaces": ["team-a", "team-b"]})
    assert granted(objects, "kohort") == derived({"scheduler", "controllers"}, set(OTHERS))
    wide = granted(objects, "kohort", only="ClusterRoleBinding")
    writes = {one[2].partition("/")[0] for one in wide if len(one) == 3 and one[0] not in {"get", "list", "watch"}}
    cluster_wide = {"persistentvolumes", "clustertopologybindings", "groupingrules"}
    assert writes == cluster_wide | {"tokenreviews"}
    spaces = {one["metadata"]["namespace"] for one in of(objects, "RoleBinding")}
    assert spaces == {SPACE, "team-a", "team-b"}


@pytest.mark.parametrize("split", [False, True])
def test_the_dashboard_may_read_and_ask_and_nothing_else(split: bool) -> None:
    values = {"dashboard.enabled": True, "dashboard.tlsSecret": "page-tls", "split": split}
    objects, account = rendered(values), "kohort-scheduler" if split else "kohort"
    more = granted(objects, account) - granted(rendered({"split": split}), account)
    assert {one[0] for one in more} <= {"get", "list", "watch", "create"}
    assert {one[2] for one in more if one[0] == "create"} <= {"tokenreviews", "subjectaccessreviews"}
    (config,) = [one for one in of(objects, "ConfigMap") if one["metadata"]["name"] == account]
    options = parse(yaml.safe_load(config["data"]["config.yaml"]))
    assert options.dashboard is not None
    assert options.dashboard.certificate == "/etc/kohort-dashboard/tls.crt"
    (service,) = [one for one in of(objects, "Service") if one["metadata"]["name"] == "kohort-dashboard"]
    assert service["spec"]["sessionAffinity"] == "ClientIP"


# ---- the webhook


def test_the_webhook_has_an_account_of_its_own_and_no_more_rights_than_it_needs() -> None:
    objects = rendered({"webhook.grouping": True})
    jobs = [one for one in (*every_role(), *webhook_roles()) if {"webhook", "webhook-groups"} & set(one.parts)]
    wanted = {right for one in jobs for right in triples(as_objects(one.rules))}
    assert granted(objects, "kohort-webhook") == wanted
    writes = {one for one in granted(rendered(), "kohort-webhook") if one[0] not in {"get", "list", "watch"}}
    hooks = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert writes == {("update", "", "secrets"), *(("patch", "admissionregistration.k8s.io", name) for name in hooks)}
    named = [
        rule["resourceNames"]
        for role in (*of(rendered(), "Role"), *of(rendered(), "ClusterRole"))
        for rule in role["rules"]
        if {"secrets", *hooks} & set(rule.get("resources", ())) and {"update", "patch"} & set(rule["verbs"])
        and role["metadata"]["name"].startswith("kohort-webhook")
    ]  # fmt: skip
    assert named == [["kohort-webhook"]] * 2


def hook_of(objects: list[dict[str, Any]], kind: str = "Validating") -> dict[str, Any]:
    (one,) = of(objects, f"{kind}WebhookConfiguration")
    (hook,) = one["webhooks"]
    found: dict[str, Any] = hook
    return found


def test_a_dead_webhook_can_stop_nobody() -> None:
    for hook in (hook_of(rendered()), hook_of(rendered({"webhook.grouping": True}), "Mutating")):
        assert hook["failurePolicy"] == "Ignore"
        assert hook["timeoutSeconds"] <= 5
        excluded = [
            one["values"] for one in hook["namespaceSelector"]["matchExpressions"] if one["operator"] == "NotIn"
        ]
        assert excluded == [["kube-system", SPACE]]
    asked = {name for rule in hook_of(rendered())["rules"] for name in rule["apiGroups"]}
    assert not asked & {"", "apps", "batch", "rbac.authorization.k8s.io", "coordination.k8s.io"}
    assert hook["namespaceSelector"]["matchLabels"] == {"kohort.dev/grouping": "enabled"}
    assert of(rendered(), "MutatingWebhookConfiguration") == []


def test_the_webhook_is_asked_about_kinds_that_are_switched_on() -> None:
    rules = hook_of(rendered({"controllers.grove": False, "namespaces": ["team-a"]}))["rules"]
    assert {name for rule in rules for name in rule["apiGroups"]} == {
        "jobset.x-k8s.io", "trainer.kubeflow.org", "leaderworkerset.x-k8s.io",
    }  # fmt: skip
    alone = rendered(
        {"scheduler.enabled": False, "webhook.grouping": True, **{f"controllers.{n}": False for n in OTHERS}}
    )
    assert [one["metadata"]["name"] for one in of(alone, "Deployment")] == ["kohort-webhook"]
    assert of(alone, "ValidatingWebhookConfiguration") == []


def test_cert_manager_makes_the_certificate() -> None:
    objects = rendered({"webhook.certificates": "cert-manager"})
    (made,), (issuer,) = of(objects, "Certificate"), of(objects, "Issuer")
    assert made["spec"]["issuerRef"] == {"kind": "Issuer", "name": issuer["metadata"]["name"]}
    (one,) = of(objects, "ValidatingWebhookConfiguration")
    assert one["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": f"{SPACE}/{made['metadata']['name']}"}
    assert of(objects, "Secret") == []
    assert ("update", "", "secrets") not in granted(objects, "kohort-webhook")
    (config,) = [one for one in of(objects, "ConfigMap") if one["metadata"]["name"] == "kohort-webhook"]
    assert parse(yaml.safe_load(config["data"]["config.yaml"])).webhook.certificate == "/etc/kohort-webhook/tls.crt"


# ---- definitions and pods


def test_definitions_are_those_of_kohort_crds() -> None:
    found = {one["metadata"]["name"]: one for one in of(rendered(definitions=True), "CustomResourceDefinition")}
    assert {name: one["spec"] for name, one in found.items()} == {
        one["metadata"]["name"]: one["spec"] for one in crds()
    }
    assert all(one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for one in found.values())


def test_definitions_of_a_kind_that_is_off_are_left_out() -> None:
    found = of(rendered({"controllers.grove": False}, definitions=True), "CustomResourceDefinition")
    assert [one["metadata"]["name"] for one in found if "grove" in one["metadata"]["name"]] == []


@pytest.mark.parametrize("values", [{}, {"split": True}], ids=["one", "split"])
def test_pods_are_restricted(values: dict[str, Any]) -> None:
    """The pod security standard "restricted", and what score cards ask beyond it."""
    for deployment in of(rendered(values), "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {kind for one in pod["volumes"] for kind in one if kind != "name"} <= {"configMap", "emptyDir"}
        (container,) = pod["containers"]
        secure = container["securityContext"]
        assert secure["allowPrivilegeEscalation"] is False
        assert secure["capabilities"] == {"drop": ["ALL"]}
        assert secure["readOnlyRootFilesystem"] is True
        assert {"requests", "limits"} <= set(container["resources"])
        assert {"livenessProbe", "readinessProbe"} <= set(container)
        assert not container["image"].endswith(":latest")
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] != "default"


def test_the_namespace_of_everything_is_the_release_s() -> None:
    spaced = {"Deployment", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "Role", "RoleBinding"}
    assert {one["metadata"].get("namespace") for one in rendered() if one["kind"] in spaced} == {SPACE}


def test_names_of_another_release() -> None:
    names = {one["metadata"]["name"] for one in of(_loaded("gangs"), "Deployment")}
    assert names == {"gangs-kohort", "gangs-kohort-webhook"}
    rules = [rule for role in of(_loaded("gangs"), "Role") for rule in role["rules"]]
    named = {name for rule in rules for name in rule.get("resourceNames", ())}
    assert named == {"gangs-kohort-webhook"}


def _loaded(release: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(helm("template", release, str(CHART), "--set=crds.enabled=false")))


def test_kustomize_and_the_static_manifests_are_the_chart(tmp_path: Path) -> None:
    static = list(yaml.safe_load_all((ROOT / "deploy" / "kustomize" / "kohort.yaml").read_text()))
    assert static[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    assert static[1:] == [_without_helm(one) for one in rendered()], "run `make manifests`"


def _without_helm(one: dict[str, Any]) -> dict[str, Any]:
    label = '"app.kubernetes.io/managed-by": '
    made: dict[str, Any] = json.loads(json.dumps(one).replace(f'{label}"Helm"', f'{label}"kohort"'))
    return made


def test_the_provenance_of_a_release_is_what_helm_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not here (apt install gnupg)")
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    gpg = ["gpg", "--batch", "--quiet", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", "Kohort test", "rsa3072", "sign"], check=True)
    ring = tmp_path / "releases.gpg"
    subprocess.run([*gpg, "--output", str(ring), "--export", "Kohort test"], check=True)
    try:
        package = chart(tmp_path, "0")
        provenance(package, "Kohort test")
        assert "Chart Hash Verified" in helm("verify", "--keyring", str(ring), str(package))
        package.write_bytes(package.read_bytes() + b"\0")
        assert "sha256 sum does not match" in helm("verify", "--keyring", str(ring), str(package), check=False)
        assert "0 chart(s) failed" in helm("lint", str(chart(tmp_path, "0")))
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False)
