"""The builder of KEP-6089: resolve, check, compile (spec job 5.3, T-88 to T-94)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kohort.api.errors import ErrorKind
from kohort.gang.compile.builder import Builder, BuilderError, Config, Item, compile_item, resolve
from kohort.gang.tree import Owner, Plan

OWNER = Owner(api_version="lab.example/v1", kind="FleetJob", name="f1", uid="u-1", controller=True)
POLICIES, MODES = ("basic", "gang"), ("single", "all")


def builder(root: Item, **more: Any) -> Builder:
    return Builder(root, "fleet", "lab", OWNER, **{"allowed_policies": POLICIES, "allowed_modes": MODES, **more})


def gang(least: int | None = None, counter: str = "minCount") -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {} if least is None else {counter: least}}}


def test_t_88_the_user_replaces_the_default() -> None:
    default = Config(priority_class="batch-high", topology="example.com/rack")
    item = Item(name="a", default=default, leaf=gang(2))
    template = compile_item(item)
    assert (template.minimum, template.priority_class, template.topology) == (2, "batch-high", "example.com/rack")
    assert default == Config(priority_class="batch-high", topology="example.com/rack")


def test_t_88_an_empty_block_leaves_the_default() -> None:
    default = Config(gang=True, minimum=4, topology="example.com/rack", disruption="all")
    empty: dict[str, Any] = {"schedulingPolicy": {}, "schedulingConstraints": {"topology": []}, "resourceClaims": []}
    assert resolve(Item(name="a", default=default, leaf=empty)) == default


def test_t_88_callbacks_work_on_a_copy() -> None:
    block = gang()
    before = deepcopy(block)

    def five(config: Config) -> None:
        config.minimum = 5

    assert compile_item(Item(name="a", leaf=block, callbacks=(five,))).minimum == 5
    assert block == before


def test_t_89_a_gang_of_how_many() -> None:
    with pytest.raises(BuilderError, match="nothing says of how many"):
        builder(Item(name="a", leaf=gang())).build_workload()


@pytest.mark.parametrize(
    ("root", "words"),
    [
        (Item(name="a", children=(Item(name="b"), Item(name="b"))), "two items"),
        (Item(name="a", children=(Item(name="b", children=(Item(name="a"),)),)), "two items"),
        (Item(name="a", leaf=gang(1), children=(Item(name="b"),)), "the block of a leaf"),
        (Item(name="a", branch=gang(1, "minGroupCount")), "the block of a branch"),
        (Item(name="a", children=(None,)), "holds items"),  # type: ignore[arg-type]
        (Item(name="", leaf={}), "no name"),
    ],
)
@pytest.mark.parametrize("rules", [True, False])
def test_t_90_mistakes_of_the_caller_come_first(root: Item, words: str, rules: bool) -> None:
    made = builder(root, run_block_rules=rules)
    with pytest.raises(BuilderError, match=words):
        made.validate()
    with pytest.raises(BuilderError, match=words):
        made.build_workload()


@pytest.mark.parametrize("policy", [{"basic": {}}, {"gang": {"minCount": 1}}])
def test_t_91_an_empty_list_allows_nothing(policy: dict[str, Any]) -> None:
    root = Item(name="a", path="spec.scheduling", leaf={"schedulingPolicy": policy})
    (error,) = builder(root, allowed_policies=()).validate()
    assert (error.kind, error.field) == (ErrorKind.FORBIDDEN, "spec.scheduling.schedulingPolicy")
    assert builder(root).validate() == []


def test_t_92_a_tree() -> None:
    inner = Item(
        name="decode", branch=gang(1, "minGroupCount"), children=(Item(name="lead"), Item(name="rank", leaf=gang(4)))
    )
    root = Item(name="all", branch=gang(2, "minGroupCount"), children=(Item(name="router", leaf=gang(1)), inner))
    plan = builder(root).build_workload()
    (top,) = plan.templates
    assert [(one.name, one.minimum, one.is_leaf) for one in top.walk()] == [
        ("all", 2, False),
        ("router", 1, True),
        ("decode", 1, False),
        ("lead", None, True),
        ("rank", 4, True),
    ]
    assert plan.controller is not None
    assert (plan.controller.api_group, plan.controller.kind, plan.controller.name) == ("lab.example", "FleetJob", "f1")
    assert plan.owners == (OWNER,)


def test_t_92_leaves_beneath_branches_can_be_made() -> None:
    """Upstream's library only knows the leaves at the top."""
    root = Item(name="all", branch=gang(1, "minGroupCount"), children=(Item(name="router", leaf=gang(1)),))
    made = builder(root)
    assert made.new_composite_pod_group("all-0", "all").parent is None
    assert made.new_pod_group("router-0", "router", "all-0").parent == "all-0"
    with pytest.raises(BuilderError, match='no template "all"'):
        made.new_pod_group("x", "all")


def test_t_93_from_an_existing_workload() -> None:
    plan: Plan = builder(Item(name="a", leaf=gang(2))).build_workload()
    made = Builder.from_existing(plan, OWNER)
    with pytest.raises(BuilderError, match="nothing to compile"):
        made.build_workload()
    with pytest.raises(BuilderError, match="nothing to validate"):
        made.validate()
    group = made.new_pod_group("g", "a")
    assert (group.name, group.template, group.owners) == ("g", "a", (OWNER,))


def test_t_94_built_once() -> None:
    made = builder(Item(name="a"))
    assert made.build_workload() is made.build_workload()


def test_a_workload_needs_an_owner() -> None:
    with pytest.raises(BuilderError, match="needs an owner"):
        Builder(Item(name="a"), "w", "lab", None).build_workload()


def test_block_rules_at_the_users_paths() -> None:
    root = Item(
        name="a", path="spec.gang", paths={"disruptionMode": "spec.mode"}, leaf=gang(0) | {"disruptionMode": {}}
    )
    assert [error.field for error in builder(root).validate()] == [
        "spec.gang.schedulingPolicy.gang.minCount",
        "spec.mode",
    ]
    assert builder(root, run_block_rules=False).validate() == []


def test_update_rules_by_name_and_level() -> None:
    old = Item(name="a", path="spec", leaf=gang(2))
    assert builder(Item(name="a", path="spec", leaf=gang(3))).validate(old) == []
    (error,) = builder(Item(name="a", path="spec", leaf={})).validate(old)
    assert error.field == "spec.schedulingPolicy"
    assert builder(Item(name="b", path="spec", leaf={})).validate(old) == []  # another item: new


def test_basic_and_all_exclude_each_other() -> None:
    mode: dict[str, Any] = {"disruptionMode": {"all": {}}}
    assert [error.field for error in builder(Item(name="a", leaf=mode)).validate()] == ["disruptionMode"]
    assert builder(Item(name="a", leaf=mode | gang(2))).validate() == []
    assert builder(Item(name="a", default=Config(gang=True, minimum=2), leaf=mode)).validate() == []
