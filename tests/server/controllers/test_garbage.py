"""The garbage collector on a real store: background, foreground, orphan, absent owners, circles."""

from tests.server.controllers.world import World, reference

CMS = "/api/v1/namespaces/ns/configmaps"


async def test_background_takes_the_whole_tree() -> None:
    async with World() as world:
        root = await world.config_map("root")
        child = await world.config_map("child", root)
        await world.config_map("leaf", child)
        await world.config_map("free")
        await world.delete(f"{CMS}/root")
        await world.quiet()
        assert await world.names() == {"free"}


async def test_one_owner_that_is_left_is_enough_and_the_lost_one_is_forgotten() -> None:
    async with World() as world:
        one, other = await world.config_map("one"), await world.config_map("other")
        await world.config_map("child", one, other)
        await world.delete(f"{CMS}/one")
        await world.quiet()
        child = await world.get(f"{CMS}/child")
        assert child is not None
        assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["other"]
        await world.delete(f"{CMS}/other")
        await world.quiet()
        assert await world.names() == set()


async def test_foreground_waits_for_dependents_that_block() -> None:
    async with World() as world:
        root = await world.config_map("root")
        await world.config_map("held", root, block=True, finalizers=["a.io/hold"])
        await world.config_map("free", root, block=True)
        answer = await world.delete(f"{CMS}/root", "Foreground")
        assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
        await world.quiet()
        assert await world.names() == {"root", "held"}
        await world.patch(f"{CMS}/held", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.names() == set()


async def test_foreground_does_not_wait_for_others() -> None:
    async with World() as world:
        root = await world.config_map("root")
        await world.config_map("held", root, finalizers=["a.io/hold"])
        await world.delete(f"{CMS}/root", "Foreground")
        await world.quiet()
        assert await world.names() == {"held"}
        held = await world.get(f"{CMS}/held")
        assert held is not None
        assert held["metadata"]["deletionTimestamp"]


async def test_foreground_goes_down_the_tree() -> None:
    async with World() as world:
        root = await world.config_map("root")
        child = await world.config_map("child", root, block=True)
        await world.config_map("leaf", child, block=True, finalizers=["a.io/hold"])
        await world.delete(f"{CMS}/root", "Foreground")
        await world.quiet()
        assert await world.names() == {"root", "child", "leaf"}
        found = await world.get(f"{CMS}/child")
        assert found is not None
        assert found["metadata"]["finalizers"] == ["foregroundDeletion"]
        await world.patch(f"{CMS}/leaf", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.names() == set()


async def test_orphans_stay_and_forget_their_owner() -> None:
    async with World() as world:
        root = await world.config_map("root")
        await world.config_map("child", root)
        await world.delete(f"{CMS}/root", "Orphan")
        await world.quiet()
        assert await world.names() == {"child"}
        child = await world.get(f"{CMS}/child")
        assert child is not None
        assert "ownerReferences" not in child["metadata"]


async def test_an_owner_that_never_was_counts_as_gone() -> None:
    async with World() as world:
        ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "0-0"}}
        await world.config_map("child", ghost)
        await world.quiet()
        assert await world.names() == set()


async def test_an_owner_is_known_by_its_uid() -> None:
    async with World() as world:
        await world.config_map("root")
        impostor = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "root", "uid": "other"}}
        await world.config_map("child", impostor)
        await world.quiet()
        assert await world.names() == {"root"}


async def test_an_owner_made_anew_is_another() -> None:
    async with World() as world:
        root = await world.config_map("root")
        await world.config_map("child", root)
        await world.controllers.stop()
        await world.delete(f"{CMS}/root")
        await world.config_map("root")
        world.controllers = type(world.controllers)(world.api, world.clock)
        world.controllers.start()  # after a restart all it has is what is stored
        await world.quiet()
        assert await world.names() == {"root"}


async def test_an_owner_in_another_namespace_is_none() -> None:
    async with World() as world:
        await world.post("/api/v1/namespaces", {"metadata": {"name": "far"}})
        far = await world.config_map("root", namespace="far")
        await world.config_map("child", far)
        await world.quiet()
        assert await world.names() == set()
        assert await world.names(namespace="far") == {"root"}


async def test_a_cluster_wide_owner() -> None:
    async with World() as world:
        node = await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await world.config_map("child", node)
        await world.quiet()
        assert await world.names() == {"child"}
        await world.delete("/api/v1/nodes/n")
        await world.quiet()
        assert await world.names() == set()


async def test_what_is_cluster_wide_cannot_belong_to_a_namespace_and_stays() -> None:
    async with World() as world:
        owner = await world.config_map("root")
        body = {"metadata": {"name": "n", "ownerReferences": [reference(owner)]}}
        await world.post("/api/v1/nodes", body)
        await world.delete(f"{CMS}/root")
        await world.quiet()
        assert await world.get("/api/v1/nodes/n") is not None


async def test_an_owner_of_a_kind_that_is_not_served_is_left_alone() -> None:
    async with World() as world:
        owner = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "1"}}
        await world.config_map("child", owner)
        await world.quiet()
        assert await world.names() == {"child"}


async def test_a_circle_ends() -> None:
    async with World() as world:
        first = await world.config_map("first")
        second = await world.config_map("second", first, block=True)
        references = [reference(second, block=True)]
        await world.patch(f"{CMS}/first", {"metadata": {"ownerReferences": references}})
        await world.delete(f"{CMS}/first", "Foreground")
        await world.quiet()
        assert await world.names() == set()


async def test_a_dependent_that_is_told_of_its_owner_late() -> None:
    async with World() as world:
        root = await world.config_map("root")
        await world.config_map("child")
        await world.delete(f"{CMS}/root")
        await world.patch(f"{CMS}/child", {"metadata": {"ownerReferences": [reference(root)]}})
        await world.quiet()
        assert await world.names() == set()
