"""Manifests explained, plain and signed (KVCS 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvcs.cbor import Item, Major, read_cbor
from kvcs.cose import Algorithm, Label, PublicKey, Sign1, read_sign1, verify
from kvcs.descriptor import check_descriptor, unknown_members
from kvcs.errors import JsonError, KvcsError, ManifestError, SignatureError
from kvcs.identity import P0
from kvcs.inspection.report import Report
from kvcs.manifest import parse_manifest
from kvcs.strict_json import parse_json

_MEANINGS = {
    "$.kvcs": "version of KVCS",
    "$.compat": "Compatibility Descriptor: what the tensors fit",
    "$.layers": "layers, one Group each in every data track",
    "$.block_tokens": "tokens per block, one Object each",
    "$.deterministic": "whether any other production gives the same octets",
    "$.segments": "ranges of blocks, in order",
    "$.segments[].segment": "number, the N of sN in its Track Names",
    "$.segments[].first_block": "absolute index of its first block",
    "$.segments[].blocks": "blocks, the Objects of each Group",
    "$.segments[].block_keys_sha256": "SHA-256 over its Block Keys: confirms the tokens",
    "$.segments[].tracks": "data tracks that carry it",
    "$.segments[].complete": "whether every Object of it is published",
    "$.segments[].object_digests": "Data Digests per track, per completed Group",
}
_INDEX = re.compile(r"\[\d+\]")


def explain_manifest(octets: bytes) -> Report:
    """The JSON text of a manifest, member by member."""
    report = Report("KVCS manifest (JSON)", octets)
    try:
        document = parse_json(octets)
    except JsonError:
        document = None
    if isinstance(document, Mapping):
        _walk(report, "$", document)
        _explain_descriptor(report, document.get("compat"))
    try:
        manifest = parse_manifest(octets)
    except ManifestError as error:
        report.defects += error.defects
        return report
    report.notes += [f"{remark}" for remark in manifest.remarks]
    if not any(segment.object_digests for segment in manifest.segments):
        report.notes.append("a segment entry should carry object_digests (KVCS-5-8)")
    return report


def _walk(report: Report, path: str, value: Any, depth: int = 0) -> None:
    for name, member in value.items() if isinstance(value, Mapping) else enumerate(value):
        inner = f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}"
        pattern = _INDEX.sub("[]", inner)
        meaning = _MEANINGS.get(pattern, "")
        if not meaning and re.fullmatch(r"\$\.\w+|\$\.segments\[\]\.\w+", pattern):
            meaning = "not a member that KVCS defines: ignored"
        if pattern == "$.segments[].object_digests" and isinstance(member, Mapping):
            report.add(inner, "", meaning, depth=depth)
            for track, groups in member.items():
                count = len(groups) if isinstance(groups, list) else "?"
                report.add(f"{inner}[{track!a}]", f"{count} Groups", "", depth=depth)
        elif isinstance(member, Mapping) or (
            isinstance(member, list) and any(isinstance(item, Mapping) for item in member)
        ):
            report.add(inner, "", meaning, depth=depth)
            _walk(report, inner, member, depth)
        else:
            report.add(inner, _short(member), meaning, depth=depth)


def _short(value: Any) -> str:
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    if isinstance(value, list):
        text = ", ".join(_short(item) for item in value[:8])
        return f"[{text}{', ...' if len(value) > 8 else ''}]"
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _explain_descriptor(report: Report, compat: Any) -> None:
    if not isinstance(compat, Mapping):
        return
    try:
        report.notes.append(f"Compatibility ID of compat by kvsp-p0: {P0.compat_id(compat).hex()}")
    except KvcsError as error:
        report.notes.append(f"no Compatibility ID by kvsp-p0: {error.reason}")
    defects = check_descriptor(compat, "$.compat")
    if defects:
        report.notes.append(
            f"compat is no kvsp-p0 descriptor, which another KVSP profile may allow: {defects[0]}"
        )
    elif unknown := unknown_members(compat):
        names = ", ".join(unknown)
        report.notes.append(f"members that a consumer must know to use the cache: {names}")


def explain_cose(octets: bytes, keys: Mapping[bytes, PublicKey] | None = None) -> Report:
    """A signed manifest: COSE_Sign1 octet by octet, then the JSON that it holds."""
    report = Report("KVCS manifest (COSE_Sign1)", octets)
    try:
        tree = read_cbor(octets)
        _tree(report, tree, "", 0)
        message = read_sign1(octets)
    except SignatureError as error:
        report.defects += error.defects
        return report
    _signature(report, octets, message, keys)
    inner = explain_manifest(message.payload)
    report.lines += inner.lines
    report.defects += inner.defects
    report.notes += inner.notes
    return report


def _signature(
    report: Report, octets: bytes, message: Sign1, keys: Mapping[bytes, PublicKey] | None
) -> None:
    names = {algorithm.value: algorithm.name for algorithm in Algorithm}
    name = names.get(message.algorithm, "not one that KVCS allows")
    kid = "none" if message.kid is None else message.kid.hex()
    report.notes.append(f"algorithm {message.algorithm} ({name}), kid {kid}")
    if keys is None:
        report.notes.append("the signature was not verified: no producer key was given")
        return
    try:
        verify(octets, keys)
    except SignatureError as error:
        report.defects += error.defects
    else:
        report.notes.append("the signature is right")


_SIGN1 = ("protected header", "unprotected header", "payload", "signature")
_LABELS = {label.value: label.name.lower().replace("_", " ") for label in Label}


def _tree(report: Report, item: Item, name: str, depth: int) -> None:
    """Lines for a CBOR item: its head where it holds others, all of it where it does not."""
    match item.major:
        case Major.TAG:
            known = "COSE_Sign1" if item.number == 18 else "not COSE_Sign1, which is 18"
            report.add(name or "tag", item.number, known, item.start, item.body, depth)
            _tree(report, item.items[0], "", depth)
        case Major.ARRAY:
            label = name or ("COSE_Sign1" if depth == 0 else "array")
            report.add(label, f"array of {len(item.items)}", "", item.start, item.body, depth)
            for index, inner in enumerate(item.items):
                known = _SIGN1[index] if depth == 0 and index < len(_SIGN1) else ""
                _tree(report, inner, known, depth + 1)
        case Major.MAP:
            label = f"map of {len(item.pairs)}"
            report.add(name or "map", label, "", item.start, item.body, depth)
            for key, value in item.pairs:
                known = _LABELS.get(key.number, "") if key.major is Major.UNSIGNED else ""
                report.add("label", key.value, known, key.start, key.end, depth + 1)
                _tree(report, value, known or "value", depth + 1)
        case Major.OCTETS:
            _octets(report, item, name, depth)
        case Major.SIMPLE:
            report.add(
                name or "value",
                "null" if item.is_null else "simple or float",
                "",
                item.start,
                item.end,
                depth,
            )
        case _:
            report.add(name or "value", item.value, "", item.start, item.end, depth)


def _octets(report: Report, item: Item, name: str, depth: int) -> None:
    size = item.end - item.body
    if name == "protected header" and size:
        report.add(name, f"{size} octets", "", item.start, item.body, depth)
        _tree(report, read_cbor(report.octets, item.body, item.end), "", depth + 1)
        return
    value = item.octets.hex() if size <= 32 else f"{size} octets"
    meaning = "the manifest, see below" if name == "payload" else ""
    report.add(name or "octets", value, meaning, item.start, item.end, depth)
