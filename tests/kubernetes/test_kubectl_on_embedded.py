"""kubectl, unchanged, against the embedded server: one long session, as a person would have it.

Each line is a command and what its output must have in it; `!` before the words: it must fail and say them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kohort.testing.environment.assets import find
from kohort.testing.pytest_plugin import require_binaries

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, labels: {tier: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {k: v}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: ok}]
"""
GANG = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: ring}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
"""
BAD = """\
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec: {containers: []}
"""
LIST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: typo}
date: {k: v}
"""

# command | words of the output, in order, separated by " .. "; a lone dot: whatever it says
SESSION = """\
version | Server Version: v{minor}.
cluster-info | is running at https://127.0.0.1
api-versions | apps/v1 .. batch/v1 .. scheduling.k8s.io/v1
api-resources | pods .. po .. Pod
api-resources --api-group=apps -o name | deployments.apps
get --raw /readyz?verbose | ping ok .. readyz check passed
get namespaces | default .. Active
auth whoami | kohort:admin .. system:masters
auth can-i create pods | yes
auth can-i --list | *.*
create namespace demo | namespace/demo created
config set-context --current --namespace=demo | modified
create -f node.yaml | node/n1 created
get nodes | NAME .. n1 .. Ready
get nodes -o wide | INTERNAL-IP
describe node n1 | Name: .. n1 .. Capacity
label node n1 rack=7 | labeled
taint nodes n1 a=b:NoSchedule | tainted
cordon n1 | cordoned
get nodes n1 | SchedulingDisabled
uncordon n1 | uncordoned
taint nodes n1 a:NoSchedule- | untainted
apply -f web.yaml | deployment.apps/api created .. configmap/conf created
apply -f web.yaml | api unchanged .. conf unchanged
get -f web.yaml | deployment.apps/api .. configmap/conf
get deploy api -o yaml | image: nginx:1 .. status
get deploy api -o json | "name": "api"
get deploy api -o jsonpath={.spec.replicas} | 2
get deploy -o go-template={{range.items}}{{.metadata.name}}{{end}} | api
get deploy -o custom-columns=N:.metadata.name,R:.spec.replicas | api .. 2
get deploy -o name | deployment.apps/api
get deploy -o wide --show-labels | CONTAINERS .. nginx:1 .. tier=web
get deploy -l tier=web,!other --no-headers | api
get deploy -l tier!=web | No resources found
get all | deployment.apps/api
get deploy --sort-by=.metadata.name | api
describe deploy api | Replicas: .. 2 desired
diff -f web2.yaml | ! nginx:2
apply -f web2.yaml | api configured
apply --server-side -f web2.yaml | serverside-applied
apply --server-side --field-manager=other -f web3.yaml | ! conflict
apply --server-side --field-manager=other --force-conflicts -f web3.yaml | serverside-applied
get deploy api -o yaml --show-managed-fields | manager: other
apply set-last-applied -f web3.yaml --create-annotation | api
apply view-last-applied deploy/api | nginx:3
patch deploy api -p {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:4"}]}}}} | patched
patch deploy api --type=merge -p {"metadata":{"labels":{"x":"y"}}} | patched
patch deploy api --type=json -p [{"op":"replace","path":"/spec/replicas","value":4}] | patched
patch deploy api --type=json -p [{"op":"test","path":"/spec/replicas","value":9}] | ! error
patch deploy api --subresource=status --type=merge -p {"status":{"replicas":4}} | patched
set image deploy/api c=nginx:5 | image updated
set env deploy/api A=B | env updated
set resources deploy/api --limits=cpu=1 | resource requirements updated
scale deploy api --replicas=3 | scaled
get deploy api -o jsonpath={.spec.replicas}/{.metadata.generation} | 3/
label deploy api a=b | labeled
label deploy api a=c | ! --overwrite is false
label deploy api a=c --overwrite | labeled
label deploy api a- | unlabeled
annotate deploy api note=hello | annotated
annotate deploy api note- | annotated
edit deploy api | edited
get deploy api -o jsonpath={.spec.replicas} | 7
replace -f web.yaml | replaced
wait --for=jsonpath={.spec.replicas}=2 deploy/api --timeout=5s | condition met
rollout history deploy/api | api
rollout pause deploy/api | paused
rollout resume deploy/api | resumed
autoscale deploy api --min=1 --max=3 --cpu=50% | autoscaled
get hpa | Deployment/api
expose deploy api --port=80 | exposed
get svc api | ClusterIP .. 80/TCP
describe svc api | Port: .. 80/TCP
create configmap c2 --from-literal=a=b | created
create secret generic s2 --from-literal=a=b | created
get secret s2 -o jsonpath={.data.a} | Yg==
create serviceaccount robot | created
create token robot | eyJ
create role reader --verb=get --resource=pods | created
create rolebinding readers --role=reader --serviceaccount=demo:robot | created
auth can-i get pods --as=system:serviceaccount:demo:robot | yes
auth can-i delete pods --as=system:serviceaccount:demo:robot | ! no
get pods --as=system:serviceaccount:demo:robot | ! forbidden
create clusterrole cr --verb=list --resource=nodes | created
create clusterrolebinding crb --clusterrole=cr --user=ann | created
create quota q --hard=pods=9 | created
create poddisruptionbudget budget --selector=app=x --min-available=1 | created
create priorityclass high --value=1000 | created
get pc high | 1000
create job j1 --image=busybox -- true | created
create cronjob cj --image=busybox --schedule=*/5_*_*_*_* -- true | created
get jobs,cronjobs | job.batch/j1 .. cronjob.batch/cj
create job j2 --from=cronjob/cj | created
create ingress ing --rule=a.example/x=api:80 | created
create deployment other --image=nginx --dry-run=client -o yaml | kind: Deployment
create deployment other --image=nginx --dry-run=server | server dry run
get deploy other | ! not found
run p1 --image=busybox --labels=app=p | created
get pods | p1 .. Pending
get pods -A --field-selector=status.phase=Pending,spec.nodeName= | p1
get pods --field-selector=metadata.name=nobody | No resources found
get pods -w --request-timeout=2s --output-watch-events | ADDED .. p1
describe pod p1 | Name: .. p1
logs p1 | .
get pod p1 -o yaml --show-managed-fields | manager: kubectl
create -f bad.yaml | ! Invalid value .. spec.containers
create -f typo.yaml | ! unknown field "date"
create -f typo.yaml --validate=warn | created .. unknown field "date"
create -f gang.yaml | created
get podgroups | ring .. Gang .. Pending
explain pod.spec.containers.resources | FIELDS: .. limits
explain deployment --recursive | strategy
explain {group}.spec | schedulingPolicy
get events | .
events | .
delete pod p1 --grace-period=0 --force | deleted
delete -f web.yaml | deleted .. deleted
delete job j1 --cascade=orphan --wait=false | deleted
delete job j2 --cascade=foreground --wait=false | deleted
delete job j2 --ignore-not-found --cascade=background --wait=false | .
delete deploy,svc,cm --all | deleted
delete secret s2 | deleted
get deploy missing | ! not found
get nonsense | ! the server doesn't have a resource type
delete node n1 | deleted
"""


class Kubectl:
    def __init__(self, binary: Path, folder: Path, server: Path) -> None:
        self.binary, self.folder = binary, folder
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "KUBECONFIG": str(server / "kubeconfig"),
            "EDITOR": "sed -i 's/replicas: 3/replicas: 7/'",
        }

    def __call__(self, *words: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.binary, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


PAIRS = [("1.37", "1.37"), ("1.36", "1.36"), ("1.35", "1.37")]  # kubectl, server


@pytest.fixture(params=PAIRS, ids=lambda pair: f"kubectl-{pair[0]}-on-{pair[1]}")
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Kubectl, str]]:
    client, minor = request.param
    require_binaries(client)
    assets = find(client)
    assert assets is not None
    data = tmp_path / "data"
    kohort = [sys.executable, "-m", "kohort.cli.main"]
    up = [*kohort, "up", "--bare", "--detach", "--port", "0", "--data-dir", str(data), "--kubernetes", minor]
    started = subprocess.run(up, capture_output=True, text=True, timeout=60, check=False)
    assert started.returncode == 0, started.stdout + started.stderr
    for name, text in {
        "web": WEB,
        "web2": WEB.replace("nginx:1", "nginx:2"),
        "web3": WEB.replace("nginx:1", "nginx:3"),
        "node": NODE,
        "gang": GANG if minor == "1.37" else GANG.replace("v1beta1", "v1alpha2"),
        "bad": BAD,
        "typo": LIST,
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    yield Kubectl(assets.path("kubectl"), tmp_path, data), minor
    stopped = subprocess.run([*kohort, "down", "--data-dir", str(data)], capture_output=True, text=True, check=False)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr


def _problem(done: subprocess.CompletedProcess[str], wanted: str) -> str:
    output = done.stdout + done.stderr
    wanted = "" if wanted == "." else wanted
    fails = wanted.startswith("!")
    if fails is (done.returncode == 0):
        return f"exit {done.returncode}: {output[-800:]}"
    at = 0
    for words in filter(None, (part.strip() for part in wanted.removeprefix("!").split(" .. "))):
        found = output.find(words, at)
        if found < 0:
            return f"no {words!r} in: {output[-800:]}"
        at = found + len(words)
    return ""


@pytest.mark.timeout(300)
def test_a_session_of_more_than_sixty_commands(kubectl: tuple[Kubectl, str]) -> None:
    run, minor = kubectl
    lines = SESSION.replace("{minor}", minor).replace("{group}", "podgroup").splitlines()
    assert len(lines) >= 60
    problems = []
    for line in lines:
        command, _, wanted = line.partition(" | ")
        words = [word.replace("_", " ") if "*/5" in word else word for word in command.split(" ")]
        done = run(*words)
        if "-w" in words or "logs" in words:  # they end with the time that they were given
            done.returncode = 0
        if problem := _problem(done, wanted.strip()):
            problems.append(f"kubectl {command}: {problem}")
    assert not problems, "\n".join(problems)


_SERVED = re.compile(r"\s((?:\S+/)?v\d\w*)\s+(?:true|false)\s+(\S+)\s")  # of a line of api-resources
_NOT_APPLIED = {("certificates.k8s.io/v1", "PodCertificateRequest")}  # only a kubelet can make one: it proves a key


def _kinds(text: str) -> set[tuple[str, str]]:
    return {(one["apiVersion"], one["kind"]) for one in yaml.safe_load_all(text)}


@pytest.mark.timeout(300)
def test_every_kind_is_applied_edited_compared_and_applied_by_the_server(kubectl: tuple[Kubectl, str]) -> None:
    run, minor = kubectl
    listed = run("api-resources", "--verbs=patch", "-o", "wide", "--no-headers")
    served = set(_SERVED.findall(listed.stdout))
    here = Path(__file__).parent
    every = [(here / name).read_text() for name in ("every_kind.yaml", "every_custom_kind.yaml")]
    parts = [part for text in every for part in text.split("\n---\n") if _kinds(part) <= served]
    missing = served - _kinds("\n---\n".join(parts)) - _NOT_APPLIED
    assert not missing or minor != "1.37", f"no manifest: {missing}"
    custom = [part for part in parts if part in every[1]]
    for name, chosen in (("", parts), ("custom-", custom)):
        first = "\n---\n".join(chosen)
        (run.folder / f"{name}first.yaml").write_text(first)
        (run.folder / f"{name}second.yaml").write_text(first.replace("first", "second").replace("101", "102"))
    for words, ending in (
        (("apply", "-f", "first.yaml"), "created"),
        (("apply", "-f", "second.yaml"), "configured"),
        (("diff", "-f", "second.yaml"), ""),
        # Lists by key, so that what the server filled in is nobody's: no conflict, and an edit is one, too.
        (("apply", "--server-side", "-f", "custom-second.yaml"), "serverside-applied"),
        (("apply", "--server-side", "-f", "custom-first.yaml"), "serverside-applied"),
        (("apply", "-f", "custom-second.yaml"), "configured"),
        (("apply", "--server-side", "--force-conflicts", "-f", "first.yaml"), "serverside-applied"),
        (("apply", "--server-side", "-f", "first.yaml"), "serverside-applied"),
    ):
        done = run(*words, "-n", "every", timeout=120)
        assert done.returncode == 0, f"{words}: {done.stdout[-1500:]}{done.stderr[-3000:]}"
        lines = done.stdout.splitlines()
        assert [line for line in lines if not line.endswith(f" {ending}")] == []
        assert len(lines) == (len(custom if "custom-" in words[-1] else parts) if ending else 0), words
    assert len(parts) > 60
    assert len(custom) > 8


@pytest.mark.timeout(120)
def test_a_watch_sees_changes_as_they_happen(kubectl: tuple[Kubectl, str]) -> None:
    run, _ = kubectl
    seen: list[str] = []
    watching = subprocess.Popen(
        [
            run.binary,
            "get",
            "cm",
            "-n",
            "default",
            "-w",
            "--no-headers",
            "--output-watch-events",
            "--field-selector=metadata.name=one",
            "-v=6",  # its requests
        ],
        env=run.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, requests = watching.stdout, watching.stderr
    assert output is not None
    assert requests is not None
    assert any("watch=true" in line for line in iter(requests.readline, "")), "it never began"
    readers = [
        threading.Thread(target=lambda: seen.extend(iter(output.readline, ""))),
        threading.Thread(target=requests.read),
    ]
    for reader in readers:
        reader.start()
    assert run("create", "configmap", "one", "-n", "default").returncode == 0
    assert run("label", "configmap", "one", "a=b", "-n", "default").returncode == 0
    assert run("delete", "configmap", "one", "-n", "default").returncode == 0
    end = time.monotonic() + 60
    while len(seen) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    watching.terminate()
    for reader in readers:
        reader.join()
    output.close()
    requests.close()
    watching.wait()
    assert [line.split()[0] for line in seen] == ["ADDED", "MODIFIED", "DELETED"]
