"""Who may do what: grants by token and namespace prefix (MOQT-22 §7.4, §7.6, §15.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from moqt.session import Request, RequestKind
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import TrackNamespace, is_prefix
from moqt.wire.tokens import Token


class Verb(Enum):
    """The two sides of a Track."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"


BOTH_VERBS = frozenset(Verb)

_VERBS = {
    RequestKind.PUBLISH: Verb.PUBLISH,
    RequestKind.PUBLISH_NAMESPACE: Verb.PUBLISH,
    RequestKind.SUBSCRIBE: Verb.SUBSCRIBE,
    RequestKind.FETCH: Verb.SUBSCRIBE,
    RequestKind.TRACK_STATUS: Verb.SUBSCRIBE,
    RequestKind.SUBSCRIBE_NAMESPACE: Verb.SUBSCRIBE,
    RequestKind.SUBSCRIBE_TRACKS: Verb.SUBSCRIBE,
}


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to `verbs` on every namespace that starts with the fields of `prefix`."""

    verbs: frozenset[Verb]
    prefix: TrackNamespace

    def covers(self, verb: Verb, namespace: TrackNamespace) -> bool:
        """Whether the right reaches `namespace`; a shorter one than `prefix` it never does."""
        return verb in self.verbs and is_prefix(self.prefix, namespace)


class ScopePolicy:
    """Grants by (Token Type, Token Value); `everyone` holds those that need no token.

    A request may use the tokens that it carries and those of its session's SETUP. Each request is
    judged by its own namespace, field by field: a right to one Track or prefix gives none beside
    or above it (R208, R213, R214, R232).
    """

    def __init__(
        self,
        grants: Mapping[tuple[int, bytes], Iterable[Grant]],
        everyone: Iterable[Grant] = (),
    ) -> None:
        self._grants = {token: tuple(granted) for token, granted in grants.items()}
        self._everyone = tuple(everyone)

    def __call__(self, request: Request) -> None:
        """Raises RequestRefused unless a grant covers the request: MALFORMED_AUTH_TOKEN when it
        carries a token that nobody was given (R104), else UNAUTHORIZED."""
        namespace = request.namespace if request.track is None else request.track.namespace
        verb = _VERBS[request.kind]
        if not any(grant.covers(verb, namespace or ()) for grant in self._held(request)):
            if any(_key(token) not in self._grants for token in request.tokens):
                raise RequestRefused(
                    "a token of this request is not valid", RequestErrorCode.MALFORMED_AUTH_TOKEN
                )
            raise RequestRefused(
                f"no token of this request allows to {verb.value} there",
                RequestErrorCode.UNAUTHORIZED,
            )

    def _held(self, request: Request) -> Iterable[Grant]:
        yield from self._everyone
        for token in request.tokens + request.session.peer_tokens:
            yield from self._grants.get(_key(token), ())


def _key(token: Token) -> tuple[int, bytes]:
    return (token.token_type or 0, token.value or b"")
