"""What a session is told once, when it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from moqt.wire.drafts import DRAFT_22, Draft
from moqt.wire.messages import SetupOptions

Trace: TypeAlias = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """Options and limits of a session; sizes in octets, times in seconds.

    `setup` is what our SETUP says. `max_object_size`: a larger Object's stream is stopped.
    `max_open_requests`: more from the peer are refused with EXCESSIVE_LOAD; so are more fills, and
    a request with more updates that wait is cancelled. `max_announced`: our SUBSCRIBE_NAMESPACE
    is cancelled with EXCESSIVE_LOAD when more namespaces are in view at once. `early_data_budget`:
    data held for Track Aliases that nothing bound yet, or that came before SETUP.
    `subscriber_budget`: backlog at which a subscription ends TOO_FAR_BEHIND; `stall_timeout`: the
    same for a backlog that does not move that long. `done_timeout`: how long a subscription waits
    for the streams that PUBLISH_DONE counted, since it last made progress.
    `control_message_timeout`: how long a control message may stay incomplete, SETUP be awaited.
    `data_stream_timeout`: how long the header of a data stream may stay incomplete; a publisher
    may have begun it and then have more urgent streams to write. `fill_count`: nested parameters
    are sent with their number (MOQT-22 §9.20.15). `understood_properties`: Mandatory Track
    Properties that the application knows (MOQT-22 §3.7). `session_class`: the subclass of Session
    that drivers run, for tools that must write or forgive what a session does not.
    """

    draft: Draft = DRAFT_22
    setup: SetupOptions = field(default_factory=SetupOptions)
    max_object_size: int = 64 << 20
    max_open_requests: int = 1024
    max_announced: int = 16384
    early_data_budget: int = 1 << 20
    subscriber_budget: int | None = None
    done_timeout: float = 5.0
    control_message_timeout: float = 10.0
    data_stream_timeout: float = 30.0
    stall_timeout: float | None = None
    fill_count: bool = True
    understood_properties: frozenset[int] = frozenset()
    session_class: type[Any] | None = None
    trace: Trace | None = None
