"""A workload kind that does not come with Kohort: a Band of musicians that start together or not at all.

All of it is here: type, rules, settings, compiler, controller, roles. docs/adding-a-kind.md walks through this file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from kohort.api.bundle import MANAGE, READ, UPDATE, Bundle, ControllerGroup, FeatureGate, PolicyRule
from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Column, Context, Kind, Object
from kohort.api.objects import namespace_or_default
from kohort.api.schema import Int, Obj, Str
from kohort.controllers import writes
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, key_of
from kohort.controllers.groups import GroupPolicy, GroupsOutcome
from kohort.controllers.groups import reconcile as reconcile_groups
from kohort.controllers.reconcile import Reconcile, Result, Step, Write, must
from kohort.gang import tree
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.render import pod_links, render
from kohort.gang.settings import KindSettings, about
from kohort.gang.stand_in import uid_of
from kohort.kinds.controllers import Maker, Setup

# ---- constants: names that people see

GROUP: Final = "toys.example.com"
API_VERSION: Final = f"{GROUP}/v1"
KIND: Final = "Band"
LABEL: Final = f"{GROUP}/band"
HERE: Final = __name__

# ---- api: schema, defaults, validation


def _default(band: Object, ctx: Context) -> None:
    band.setdefault("spec", {}).setdefault("musicians", 4)


def _validate(band: Object, ctx: Context) -> list[FieldError]:
    count = band["spec"]["musicians"]
    return [invalid("spec.musicians", count, "a band of one is a soloist: at least 2")] if count < 2 else []


SPEC: Final = Obj(fields={"musicians": Int(minimum=1), "image": Str(required=True)}, required=True)
BAND: Final = Kind(
    group=GROUP,
    version="v1",
    kind=KIND,
    plural="bands",
    singular="band",
    schema=Obj(fields={"spec": SPEC, "status": Obj(fields={"playing": Int()})}),
    columns=(Column("Playing", "integer", ".status.playing"),),
    default=_default,
    validate=_validate,
)
KINDS: Final = (BAND,)

# ---- settings


@dataclass(frozen=True, slots=True, kw_only=True)
class BandSettings(KindSettings):
    kind: ClassVar[str] = "band"

    soloists: bool = field(default=False, metadata=about("Musicians start one by one."))


SETTINGS: Final = BandSettings

# ---- compile: one gang of all musicians


def compile_object(band: Object, ctx: CompileContext) -> Compilation:
    name, count = str(band["metadata"]["name"]), int(band["spec"]["musicians"])
    least = None if ctx.settings.of(BandSettings).soloists else count
    owner = tree.Owner(api_version=API_VERSION, kind=KIND, name=name, uid=uid_of(band), controller=True)
    plan = tree.Plan(
        workload=name,
        namespace=namespace_or_default(band),
        controller=tree.Controller(api_group=GROUP, kind=KIND, name=name),
        templates=(tree.Template(name="musicians", minimum=least),),
        groups=(tree.Group(name=name, template="musicians", owners=(owner,)),),
        members=(tree.Member(source=f"Band {name}", count=count, group=name),),
        owners=(owner,),
    )
    return Compilation(plans=(plan,))


# ---- control: groups before pods, the status last


def _controller(setup: Setup) -> Controller:
    release = setup.ctx.release

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        band = reader.get(KIND, key)
        groups = {kind: reader.get(kind, key) for kind in ("Workload", "PodGroup")}
        return _reconcile(band, groups, reader.indexed("Pod", "band", key), setup.ctx)

    watches = (
        Watch(API_VERSION, KIND, _own),
        Watch("v1", "Pod", _of_part, {"band": _bands}),
        Watch(release.api_version, "Workload", _of_part),
        Watch(release.api_version, "PodGroup", _of_part),
    )
    return Controller(name="band", watches=watches, reconcile=reconcile_key)


def _reconcile(
    band: Object | None, groups: Mapping[str, Object | None], pods: Sequence[Object], ctx: CompileContext
) -> Reconcile:
    if band is None or band["metadata"].get("deletionTimestamp"):
        return Result()
    (plan,) = compile_object(band, ctx).plans
    known = [group for group in groups.values() if group is not None]
    outcome: GroupsOutcome = yield from reconcile_groups(
        GroupPolicy(owner=band, resize=ctx.release.min_count_mutable), render(plan, ctx.release).objects, known
    )
    outcome.raise_for()
    there = {pod["metadata"]["name"] for pod in pods}
    (link,) = pod_links(plan, ctx.release).values()
    wanted = [_pod(band, index, link) for index in range(band["spec"]["musicians"])]
    yield from _all([writes.create(pod) for pod in wanted if pod["metadata"]["name"] not in there])
    playing = sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)
    if (band.get("status") or {}).get("playing") != playing:
        yield from _all([writes.patch(band, {"status": {"playing": playing}}, "status")])
    return Result()


def _all(wanted: Sequence[Write]) -> Reconcile:
    if wanted:
        answers = yield Step(wanted)
        for write, answer in zip(wanted, answers, strict=True):
            must(write, answer)
    return Result()


def _pod(band: Object, index: int, link: Object) -> Object:
    meta = band["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{index}",
            "namespace": meta["namespace"],
            "labels": {LABEL: meta["name"]},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "musician", "image": band["spec"]["image"]}], **link},
    }


def _own(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    if new is not None:
        yield Enqueue(key_of(new))


def _bands(part: Object) -> Iterable[Hashable]:
    owners = part["metadata"].get("ownerReferences") or ()
    return [Key(part["metadata"]["namespace"], one["name"]) for one in owners if one["kind"] == KIND]


def _of_part(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    return [Enqueue(key) for part in (old, new) if part is not None for key in _bands(part) if isinstance(key, Key)]


MAKERS: Final[Mapping[str, Maker]] = {"band": _controller}

# ---- the bundle

BUNDLE: Final = Bundle(
    name="toy",
    api={GROUP: HERE},
    compilers={(GROUP, KIND): HERE},
    settings=HERE,
    gates=(FeatureGate("BandRehearsal", False, KIND, "bands may rehearse"),),
    makers=HERE,
    controllers=(
        ControllerGroup(
            name="band",
            controllers=("band",),
            manages=(GROUP, KIND),
            leases=("band-operator",),
            rules=(
                PolicyRule((GROUP,), ("bands",), READ),
                PolicyRule((GROUP,), ("bands/status",), UPDATE),
                PolicyRule(("",), ("pods",), MANAGE),
            ),
        ),
    ),
    explained=(KIND,),
    ranks=((f"{GROUP}/chair",),),
)
