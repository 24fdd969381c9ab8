"""`kohort explain`: why something waits, or where it runs, asked of a cluster through its API or of a saved state."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from kohort.cli.common import UsageError, choice, friendly, out, write
from kohort.cli.explainprint import SHORT, WHOLE, page, waiting_table
from kohort.cli.following import Answer, follow_cluster
from kohort.cli.lines import columns
from kohort.cli.lookup import Found
from kohort.cli.targets import (
    FORMS,
    Question,
    Reply,
    as_data,
    ask_cluster,
    ask_state,
    finish,
    print_data,
    print_names,
    state_document,
)
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.rootstatus import RootStatus, reason_and_message, root_status
from kohort.scheduler.snapshot import SnapshotError, load


@friendly
def explain(question: Question, kubeconfig: str, context: str, state: str, output: str, *, watch: bool = False) -> int:
    choice("-o", output, FORMS)
    question.check()
    if state and (watch or question.filename):
        raise UsageError(f"--state: a saved state {'does not change' if watch else 'has no files'}; ask a cluster")

    def look(reply: Reply) -> Answer:
        return _named(reply, output) if question.named else _waiting(reply, output, everywhere=question.everywhere)

    if watch:
        return follow_cluster(question, kubeconfig, context, "kohort-explain", look, output)
    reply = ask_state(_core(state), question) if state else ask_cluster(question, kubeconfig, context, "kohort-explain")
    look(reply).show()
    return finish(reply, "not looked at, the answer may be wrong")


def _named(reply: Reply, output: str) -> Answer:
    answers = [(found, _answers(found)) for found in reply.found]
    data = [_data(*one) for one in answers]

    def show() -> None:
        if output in {"json", "yaml"}:
            if answers or not reply.missing:
                print_data(output, as_data(data, one=reply.one))
            return
        if output == "name":
            print_names(
                (one.kind, one.name) for _, statuses in answers for one in statuses if one.pending or one.missing
            )
            return
        if not answers and not reply.missing:
            out.print(f"nothing found {reply.where}")
        now, wide = datetime.now(UTC), output == "wide"
        for number, (found, statuses) in enumerate(answers):
            if number:
                out.print()
            out.to(wide=wide).print(page(found, statuses, now, WHOLE if wide else SHORT))

    return Answer(data, show)


def _answers(found: Found) -> list[RootStatus]:
    return [root_status(found.core, root, member) for root, member in found.roots]


def _data(found: Found, answers: list[RootStatus]) -> dict[str, Any]:
    answered = [asdict(one) for one in answers]
    return {"asked": found.asked, "note": found.note, "answers": answered, "preempted": found.preempted}


def _waiting(reply: Reply, output: str, *, everywhere: bool) -> Answer:
    assert reply.core is not None
    statuses = [root_status(reply.core, root, member) for root, member in reply.waiting]
    statuses += [one.status for one in reply.uncreated]
    statuses.sort(key=lambda one: (one.namespace, one.since or "~", one.name))
    data = [_waiting_data(one) for one in statuses]

    def show() -> None:
        if output in {"json", "yaml"}:
            print_data(output, {"items": data})
        elif output == "name":
            print_names((one.kind, one.name) for one in statuses)
        elif statuses:
            wide = output == "wide"
            table = waiting_table(statuses, datetime.now(UTC), everywhere=everywhere, wide=wide)
            write("\n".join(columns(table, out.to(wide=wide).width)))
        else:
            out.print(f"nothing waits {reply.where}")

    return Answer(data, show)


def _waiting_data(status: RootStatus) -> dict[str, Any]:
    reason, message = reason_and_message(status)
    whose = {"namespace": status.namespace, "kind": status.kind, "name": status.name}
    return {**whose, "reason": reason, "since": status.since, "pods": status.pending, "message": message}


def _core(path: str) -> SchedulerCore:
    try:
        core = load(state_document(path))
    except SnapshotError as error:
        raise UsageError(f"--state {path}: {error}") from None
    core.sync(0.0)
    return core
