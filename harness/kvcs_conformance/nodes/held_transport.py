"""A transport below a session of ours that can hold back single streams."""

from __future__ import annotations

from collections.abc import Callable

from moqt.session import Transport


class HeldTransport:
    """Everything goes through; what is sent on a held stream waits until it is let go."""

    def __init__(self, below: Transport) -> None:
        self._below = below
        self._held: dict[int, list[tuple[bytes, bool]]] = {}

    def hold(self, stream_id: int) -> Callable[[], None]:
        """Hold a stream back until the returned function is called."""
        self._held[stream_id] = []

        def let_go() -> None:
            for data, fin in self._held.pop(stream_id, []):
                self._below.send(stream_id, data, fin)

        return let_go

    def open_stream(self, *, unidirectional: bool) -> int | None:
        """As below."""
        return self._below.open_stream(unidirectional=unidirectional)

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        """At once, or when the stream is let go."""
        if stream_id in self._held:
            self._held[stream_id].append((bytes(data), fin))
        else:
            self._below.send(stream_id, data, fin)

    def room(self, stream_id: int) -> int:
        """As below."""
        return self._below.room(stream_id)

    def reset(self, stream_id: int, code: int) -> None:
        """At once; what is held is dropped."""
        self._held.pop(stream_id, None)
        self._below.reset(stream_id, code)

    def stop_sending(self, stream_id: int, code: int) -> None:
        """As below."""
        self._below.stop_sending(stream_id, code)

    def pause(self, stream_id: int) -> None:
        """As below."""
        self._below.pause(stream_id)

    def resume(self, stream_id: int) -> None:
        """As below."""
        self._below.resume(stream_id)

    def all_acknowledged(self, stream_id: int) -> bool:
        """As below, but never while something is held."""
        return not self._held.get(stream_id) and self._below.all_acknowledged(stream_id)

    def send_datagram(self, data: bytes) -> bool:
        """As below."""
        return self._below.send_datagram(data)

    def close(self, code: int, reason: str) -> None:
        """As below."""
        self._below.close(code, reason)
