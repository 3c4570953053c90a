"""Steps of a scripted node that are about who may ask, for what, and how often."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import LABEL, NAME, TOKEN, TRACK, Word, table

KINDS = (
    "subscribe",
    "fetch",
    "track-status",
    "subscribe-namespace",
    "subscribe-tracks",
    "publish-namespace",
    "publish",
)
"""The requests of MOQT."""

SHAPES = {
    "publication": "all five fields of the publication's namespace",
    "another": "a new publication of the same token prefix",
    "another-anchor": "a new publication whose Anchor Key differs in the last octet",
    "neighbour-publication": "the publication in the scope that differs in the last octet",
    "other-publication": "the publication in another scope",
    "four-fields": "the first four fields of the publication's namespace",
    "six-fields": "the publication's namespace and one field more",
    "scope": "its first two fields",
    "neighbour-scope": "two fields, with the scope that differs in the last octet",
    "version": "its first field",
    "everything": "no field at all",
}
"""Namespaces and prefixes, made from the publication's."""

_SHAPE = {"enum": list(SHAPES)}
_AS = {"token": TOKEN, **LABEL}

STEPS: dict[str, Word] = table(
    Word(
        "ask",
        "make requests of these kinds about the publication, `times` over: SUBSCRIBE and FETCH "
        "from {0,0} and TRACK_STATUS of `track` (default k.raw.s0), SUBSCRIBE_NAMESPACE and "
        "SUBSCRIBE_TRACKS of its scope, PUBLISH_NAMESPACE of new publications of its prefix and "
        "PUBLISH of a Track of one; under `token` in place of the node's own",
        {
            "anyOf": [
                {"const": "everything"},
                {"type": "array", "minItems": 1, "items": {"enum": list(KINDS)}},
            ]
        },
        {"times": {"type": "integer", "minimum": 1, "maximum": 1000}, "track": TRACK, **_AS},
    ),
    Word(
        "announce",
        "PUBLISH_NAMESPACE of these namespaces: "
        + "; ".join(f"`{name}`: {text}" for name, text in SHAPES.items()),
        {"type": "array", "minItems": 1, "items": _SHAPE},
        _AS,
    ),
    Word(
        "list",
        "SUBSCRIBE_NAMESPACE of a prefix, named as for `announce`",
        _SHAPE,
        _AS,
    ),
    Word(
        "withdraw",
        "cancel the requests of the step with this label",
        NAME,
        LABEL,
    ),
    Word(
        "renew",
        "REQUEST_UPDATE of the requests of the step with this label, with the token; `fill` asks "
        "for everything from {0,0}, `prefix` moves a discovery request",
        NAME,
        {"fill": {"const": True}, "prefix": _SHAPE, **_AS},
    ),
)
