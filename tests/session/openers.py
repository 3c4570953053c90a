"""The seven messages that open a request stream, as octets (MOQT-22 §9)."""

from __future__ import annotations

NAME = "01 04 6c697665 05 766964656f"
NAMESPACE = "01 04 6c697665"

OPENERS: dict[str, str] = {
    "SUBSCRIBE": f"03 000e ID {NAME} 00",
    "PUBLISH": f"1d 000f ID {NAME} 01 00",
    "FETCH": f"16 000e ID {NAME} 00",
    "TRACK_STATUS": f"0d 000e ID {NAME} 00",
    "PUBLISH_NAMESPACE": f"06 0008 ID {NAMESPACE} 00",
    "SUBSCRIBE_NAMESPACE": f"50 0008 ID {NAMESPACE} 00",
    "SUBSCRIBE_TRACKS": f"51 0008 ID {NAMESPACE} 00",
}


def opener(kind: str, request_id: int = 0) -> str:
    """The message as hex text."""
    return OPENERS[kind].replace("ID", f"{request_id:02x}")
