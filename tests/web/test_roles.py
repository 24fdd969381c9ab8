"""deploy/rbac-dashboard.yaml is enough for all that the dashboard reads and asks."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.web import stage
from tests.web.access import reader

from kohort.kube.client import Client
from kohort.kube.wire import User
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.web.access import Reviewed, Sight
from kohort.web.details import one_object
from kohort.web.following import Following

ROLES = Path(__file__).parents[2] / "deploy" / "rbac-dashboard.yaml"
ACCOUNT = User("system:serviceaccount:kohort-system:kohort", groups=("system:serviceaccounts", "system:authenticated"))


async def test_the_role_is_enough(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, stage.full(8, 10))
        async with Client.within(server.api, clock=server.clock) as admin:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kohort-system"}}
            await stage.create(admin, space, *yaml.safe_load_all(ROLES.read_text()))
            token = await reader(admin, "lab", "ana")
        async with Client.within(server.api, ACCOUNT, clock=server.clock) as client:
            following = Following(client)
            async with following.view() as view:
                assert view.follower.unread == []
                assert len(view.nodes) == 8
                shown = await one_object(client, "scheduling.k8s.io/v1beta1", "PodGroup", "gang-0", "lab")
                assert "minCount" in shown["yaml"]
                access, sight = Reviewed(client), Sight()
                user = await access.user(token)
                assert user is not None
                assert user["username"] == "system:serviceaccount:lab:ana"
                await access.look(sight, user, ["lab", "default"])
                assert sight.namespaces == {"lab": True, "default": False}
            await following.close()
