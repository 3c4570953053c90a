"""Verdicts, reason codes and exit codes: closed lists, each entry with its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """What the evidence of one case says."""

    PASS = "pass"
    PASS_NONSTRICT = "pass-nonstrict"
    FAIL = "fail"
    ADVISE = "advise"
    UNSUPPORTED = "unsupported"
    INCONCLUSIVE = "inconclusive"
    BLOCKED = "blocked"
    NOT_RUN = "not-run"
    HARNESS_ERROR = "harness-error"
    NOT_APPLICABLE = "not-applicable"


WORST_FIRST: tuple[Verdict, ...] = (
    Verdict.FAIL,
    Verdict.HARNESS_ERROR,
    Verdict.INCONCLUSIVE,
    Verdict.BLOCKED,
    Verdict.NOT_RUN,
    Verdict.ADVISE,
    Verdict.UNSUPPORTED,
    Verdict.PASS_NONSTRICT,
    Verdict.PASS,
    Verdict.NOT_APPLICABLE,
)
"""Of several verdicts on one case the first of these stands."""

FAILS: frozenset[Verdict] = frozenset({Verdict.FAIL, Verdict.ADVISE})
"""The evidence contradicts a clause."""

GOOD: frozenset[Verdict] = frozenset({Verdict.PASS, Verdict.PASS_NONSTRICT})
"""The evidence speaks for every clause."""


class Level(StrEnum):
    """The keyword of a requirement; STATED is declarative text that a peer depends on."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    MAY = "MAY"
    STATED = "STATED"


CONTRADICTED: dict[Level, Verdict] = {
    Level.MUST: Verdict.FAIL,
    Level.MUST_NOT: Verdict.FAIL,
    Level.STATED: Verdict.FAIL,
    Level.SHOULD: Verdict.ADVISE,
    Level.MAY: Verdict.PASS_NONSTRICT,
}
"""The verdict that contradicting evidence leads to, by the level of the clause."""

SEVERITY: tuple[Level, ...] = (
    Level.MUST,
    Level.MUST_NOT,
    Level.STATED,
    Level.SHOULD,
    Level.MAY,
)
"""Levels from the one that binds most to the one that binds least."""


class Reason(StrEnum):
    """Why a case did not pass."""

    NO_EVENT = "timeout.no-event"
    NO_EVIDENCE = "evidence.absent"
    ORDER_LAYERS = "order.layers"
    ORDER_OBJECTS = "order.objects"
    ORDER_MANIFEST = "order.manifest-late"
    ORDER_URGENCY = "order.urgency"
    ORDER_LATE = "order.late"
    LIMIT_EXCEEDED = "limit.exceeded"
    NOT_STOPPED = "publication.not-stopped"
    TRACK_NAME = "track.name"
    MARK_GROUP = "mark.end-of-group"
    MARK_TRACK = "mark.end-of-track"
    NAMESPACE_SHAPE = "namespace.shape"
    NAMESPACE_LEAKED = "namespace.leaked"
    NAMESPACE_IDENTITY = "namespace.identity"
    NAMESPACE_ABSENT = "namespace.absent"
    OBJECT_MISSING = "object.missing"
    OBJECT_DUPLICATE = "object.duplicate"
    OBJECT_CHANGED = "object.changed"
    OBJECT_UNEXPECTED = "object.unexpected"
    OBJECT_SUBGROUP = "object.subgroup"
    PAYLOAD_DIGEST = "payload.digest-mismatch"
    PAYLOAD_FIELD = "payload.field-mismatch"
    PAYLOAD_LENGTH = "payload.length-mismatch"
    PRIORITY = "priority.not-derived"
    PRIORITY_ORDER = "priority.not-heeded"
    PROPERTY_FORBIDDEN = "property.forbidden"
    PROPERTY_ABSENT = "property.absent"
    MANIFEST_SHAPE = "manifest.shape"
    MANIFEST_INCONSISTENT = "manifest.inconsistent"
    MANIFEST_VERSIONS = "manifest.versions"
    MANIFEST_SEGMENTS = "manifest.segments"
    MANIFEST_SIGNATURE = "manifest.signature"
    REQUEST_SHAPE = "request.shape"
    REQUEST_ORDER = "request.order"
    REQUEST_REFUSED = "request.wrongly-refused"
    REQUEST_CODE = "request.wrong-code"
    AUTH_ABSENT = "authorisation.absent"
    AUTH_LEAKED = "authorisation.leaked"
    UPSTREAM_REPEATED = "relay.asked-upstream-again"
    USED_BAD_OBJECT = "consumer.used-bad-object"
    DROPPED_GOOD_OBJECT = "consumer.dropped-good-object"
    USED_BAD_PUBLICATION = "consumer.used-bad-publication"
    MIXED_PUBLICATIONS = "consumer.mixed-publications"
    TENSORS = "consumer.wrong-tensors"
    USED_IMPLAUSIBLE = "consumer.used-implausible-object"
    COUNTED_TWICE = "consumer.counted-object-twice"
    WRONG_REUSE = "consumer.wrong-reuse"
    WAITED = "consumer.waited-too-long"
    NOT_RECOVERED = "consumer.not-recovered"
    OBJECT_MODE = "object.delivery-mode"
    OBJECT_EXPIRED = "object.expired"
    PROPERTY_CHANGED = "property.changed"
    STREAM_FLAG = "stream.wrong-flag"
    STREAM_HOLE = "stream.hole"
    STREAM_SECOND = "stream.unexpected"
    STREAM_END = "stream.wrong-end"
    STREAM_CODE = "stream.wrong-code"
    DONE_COUNT = "done.wrong-count"
    DONE_EARLY = "done.too-early"
    DONE_ABSENT = "done.absent"
    DONE_CODE = "done.wrong-code"
    ANSWER_NUMBER = "answer.not-one"
    ANSWER_EARLY = "answer.too-early"
    ANSWER_LATE = "answer.too-late"
    ALIAS_SHARED = "answer.alias-shared"
    LARGEST = "answer.wrong-largest"
    RANGE_UNMARKED = "range.wrong-state"
    FILL_STREAMS = "fill.wrong-streams"
    MALFORMED_KEPT = "track.malformed-kept"
    UPSTREAM_SILENT = "relay.did-not-ask-upstream"
    UPSTREAM_FORWARD = "relay.wrong-forward"
    STREAMS_FEW = "limits.too-few-streams"
    CLOSE_UNEXPECTED = "close.unexpected"
    CLOSE_ABSENT = "close.absent"
    CLOSE_CODE = "close.wrong-code"
    ANSWER_REPEATED = "request.answered-twice"
    END_WRONG = "request.wrong-end"
    LIMIT_ABSENT = "limit.absent"
    VERSION = "version.mismatch"
    REPORT = "report.malformed"
    PEER_EXITED = "peer.exited"
    SETUP_FAILED = "setup.failed"
    TWIN_FAILED = "twin.failed"
    UNSUPPORTED = "feature.unsupported"
    HARNESS = "harness.internal"


REASONS: dict[Reason, str] = {
    Reason.NO_EVENT: "an awaited event did not come within its time",
    Reason.NO_EVIDENCE: "nothing that was seen speaks about the clause",
    Reason.ORDER_LAYERS: "an Object of a later layer came before the end of an earlier one",
    Reason.ORDER_OBJECTS: "Objects of a Group did not come in ascending order",
    Reason.ORDER_MANIFEST: "data came clearly before the first manifest",
    Reason.ORDER_URGENCY: "what is less urgent was sent before what is more urgent",
    Reason.ORDER_LATE: "what could be published was held back",
    Reason.LIMIT_EXCEEDED: "more was taken on at once than the limit allows",
    Reason.NOT_STOPPED: "a publication with an error in it did not end as one",
    Reason.TRACK_NAME: "a track has a name that it must not have",
    Reason.MARK_GROUP: "End of Group is absent or at a wrong Location",
    Reason.MARK_TRACK: "End of Track is absent or at a wrong Location",
    Reason.NAMESPACE_SHAPE: "a namespace has not the five fields that it needs",
    Reason.NAMESPACE_LEAKED: "a namespace was shown to someone who did not ask for it or may not",
    Reason.NAMESPACE_IDENTITY: "a namespace has not the identity of its content, or no ID of its "
    "own",
    Reason.NAMESPACE_ABSENT: "a namespace that matches was not shown",
    Reason.OBJECT_MISSING: "an Object that exists was not delivered",
    Reason.OBJECT_DUPLICATE: "an Object was delivered twice to one request",
    Reason.OBJECT_CHANGED: "Objects at one Location differ in content, Subgroup or priority",
    Reason.OBJECT_UNEXPECTED: "an Object outside of what was asked or can exist was delivered",
    Reason.OBJECT_SUBGROUP: "an Object is in another Subgroup than 0",
    Reason.PAYLOAD_DIGEST: "Data Digest is not the SHA-256 of Data",
    Reason.PAYLOAD_FIELD: "a field of the payload header has a wrong value",
    Reason.PAYLOAD_LENGTH: "header and Data Length do not account for the payload",
    Reason.PRIORITY_ORDER: "what is less urgent was sent first",
    Reason.PRIORITY: "Publisher Priority is not what the layer gives",
    Reason.PROPERTY_FORBIDDEN: "a property is set that must not be",
    Reason.PROPERTY_ABSENT: "a property that is wanted is not set",
    Reason.MANIFEST_SHAPE: "a manifest is not the JSON object that it must be",
    Reason.MANIFEST_INCONSISTENT: "a manifest contradicts the namespace or the Objects",
    Reason.MANIFEST_VERSIONS: "manifest versions are not numbered or frequent as they must be",
    Reason.MANIFEST_SEGMENTS: "a manifest's segments are not those of the prompt",
    Reason.MANIFEST_SIGNATURE: "a manifest is not signed as it must be",
    Reason.REQUEST_SHAPE: "a request does not carry what the procedure says",
    Reason.REQUEST_ORDER: "requests came in another order than the procedure says",
    Reason.REQUEST_REFUSED: "a request that is allowed was refused",
    Reason.REQUEST_CODE: "a request was refused with another code than the rule gives",
    Reason.AUTH_ABSENT: "a request does not carry the authorisation that it needs",
    Reason.AUTH_LEAKED: "someone without authorisation got an answer or content",
    Reason.UPSTREAM_REPEATED: "the publisher was asked again for what the relay had",
    Reason.USED_BAD_OBJECT: "an Object that fails a check was used",
    Reason.DROPPED_GOOD_OBJECT: "an Object that passes every check was not used",
    Reason.USED_BAD_PUBLICATION: "a publication that must be discarded was used",
    Reason.MIXED_PUBLICATIONS: "Objects of two publications were combined without both promises",
    Reason.TENSORS: "the tensors that came out differ from those that were published",
    Reason.OBJECT_MODE: "an Object came in the other Delivery Mode",
    Reason.OBJECT_EXPIRED: "an Object was served from a cache that had to let it go",
    Reason.PROPERTY_CHANGED: "properties differ from those that were published",
    Reason.STREAM_FLAG: "a bit of a subgroup header is not as it must be",
    Reason.STREAM_HOLE: "a subgroup stream leaves out or reorders Objects",
    Reason.STREAM_SECOND: "a data stream was opened that must not be",
    Reason.STREAM_END: "a data stream ended otherwise than it must",
    Reason.STREAM_CODE: "a data stream was reset with another code than the rule gives",
    Reason.DONE_COUNT: "PUBLISH_DONE counts other streams than there were",
    Reason.DONE_EARLY: "PUBLISH_DONE came before all streams were closed",
    Reason.DONE_ABSENT: "a subscription ended without PUBLISH_DONE",
    Reason.DONE_CODE: "PUBLISH_DONE has another code than the rule gives",
    Reason.ANSWER_NUMBER: "a request got no answer or several",
    Reason.ANSWER_LATE: "an answer or end waited for something that it must not wait for",
    Reason.ANSWER_EARLY: "an answer or Object came before what it depends on was known",
    Reason.ALIAS_SHARED: "two Tracks were given one Track Alias",
    Reason.LARGEST: "LARGEST_OBJECT is not the largest Location that is known",
    Reason.RANGE_UNMARKED: "a range is reported in another state than it has",
    Reason.MALFORMED_KEPT: "a malformed Track was not cancelled, or its Objects were kept",
    Reason.FILL_STREAMS: "a fill opened a stream that it must not, or none",
    Reason.UPSTREAM_SILENT: "the publisher was not asked for what is wanted",
    Reason.UPSTREAM_FORWARD: "the publisher was asked with another Forward State",
    Reason.USED_IMPLAUSIBLE: "an Object was used that cannot be right, though no check is demanded",
    Reason.COUNTED_TWICE: "an Object that came twice was accepted twice",
    Reason.WRONG_REUSE: "the tokens reported as reused are not those that can be",
    Reason.WAITED: "a wait was longer than its bound",
    Reason.NOT_RECOVERED: "what was missing was not asked for where it was to be had",
    Reason.STREAMS_FEW: "a peer may not open the streams that the layers under way need",
    Reason.CLOSE_UNEXPECTED: "a session was closed that should have lived on",
    Reason.CLOSE_ABSENT: "a session went on that the rule closes",
    Reason.CLOSE_CODE: "a session was closed with another code than the rule gives",
    Reason.ANSWER_REPEATED: "a request or an update was answered more than once",
    Reason.END_WRONG: "a request did not come to the end that the rule gives it",
    Reason.LIMIT_ABSENT: "one session was let ask for more than the limit",
    Reason.VERSION: "another draft than the one under test was negotiated",
    Reason.REPORT: "the peer reported something that does not follow the schema of reports",
    Reason.PEER_EXITED: "the peer ended before its work did",
    Reason.SETUP_FAILED: "a step before the judged behaviour failed",
    Reason.TWIN_FAILED: "the same steps without the illegal one fail too",
    Reason.UNSUPPORTED: "the peer says that it lacks an optional feature",
    Reason.HARNESS: "the harness or its environment is at fault",
}


class ExitCode(IntEnum):
    """What a command tells the shell."""

    PASS = 0
    FAIL = 1
    ERROR = 2
    INCOMPLETE = 3


INCOMPLETE: frozenset[Verdict] = frozenset({Verdict.INCONCLUSIVE, Verdict.BLOCKED, Verdict.NOT_RUN})


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """The exit code of a run: a proven failure outweighs a harness error, that an open case."""
    seen = set(verdicts)
    if Verdict.FAIL in seen:
        return ExitCode.FAIL
    if Verdict.HARNESS_ERROR in seen:
        return ExitCode.ERROR
    if seen & INCOMPLETE:
        return ExitCode.INCOMPLETE
    return ExitCode.PASS
