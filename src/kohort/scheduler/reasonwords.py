"""Why a root waits, in the words that people read, the same in the terminal and in the browser."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.api.scheduling.constants import REASON_SCHEDULER_ERROR
from kohort.place.demand import Reason
from kohort.place.explain import Explanation
from kohort.scheduler.rootstatus import RootStatus

FITS_NOW = "nothing is in its way: it would fit now"


def reason_and_message(status: RootStatus) -> tuple[str, str]:
    """As short as it can be said."""
    if status.explanation is not None:
        return str(status.explanation.reason), _in_short(status.explanation, status)
    if status.scheduler_error:
        return REASON_SCHEDULER_ERROR, status.scheduler_error.partition("\n")[0]
    return str(status.state), FITS_NOW


def _in_short(explanation: Explanation, status: RootStatus) -> str:
    """The reason in a line; where no node suits, what keeps its pods off them."""
    detail = named(explanation.detail, status.names).partition("\n")[0]
    away = explanation.culprit().exclusions() if explanation.reason is Reason.NO_MATCHING_NODE else ""
    return f"{detail.removesuffix(f'; {status.note}')}: {away}" if away else detail


def remedies(explanation: Explanation, names: Mapping[str, str], *, steps: bool) -> list[str]:
    """What would make it fit; `steps`: what comes before anybody knows."""
    return [named(str(one), names) for one in explanation.remedies if one.is_step is steps]


def named(text: str, names: Mapping[str, str]) -> str:
    """Keys of groups inside a text, as the API calls them; the longest first, for one may be a part of another."""
    for key in sorted(names, key=len, reverse=True):
        text = text.replace(key, names[key])
    return text
