"""A transport below a session of ours that can hold back single streams, or let them trickle."""

from __future__ import annotations

from collections.abc import Callable

from moqt.session import Transport


class HeldTransport:
    """Everything goes through; what is sent on a held stream waits until it is let go."""

    def __init__(self, below: Transport) -> None:
        self._below = below
        self._held: dict[int, list[tuple[bytes, bool]]] = {}
        self._drip: Callable[[Callable[[], None]], None] | None = None

    def hold(self, stream_id: int) -> Callable[[], None]:
        """Hold a stream back until the returned function is called."""
        self._held[stream_id] = []

        def let_go() -> None:
            for data, fin in self._held.pop(stream_id, []):
                self._below.send(stream_id, data, fin)

        return let_go

    def trickle(self, drip: Callable[[Callable[[], None]], None]) -> None:
        """Let every data stream that is opened from now on go out octet by octet; `drip` does
        something when the next octet's time has come."""
        self._drip = drip

    def open_stream(self, *, unidirectional: bool) -> int | None:
        """As below."""
        stream_id = self._below.open_stream(unidirectional=unidirectional)
        if unidirectional and stream_id is not None and self._drip is not None:
            self._held[stream_id] = []
            self._let_drop(stream_id, self._drip)
        return stream_id

    def _let_drop(self, stream_id: int, drip: Callable[[Callable[[], None]], None]) -> None:
        waiting = self._held.get(stream_id)
        if waiting is None:
            return
        if waiting:
            data, fin = waiting.pop(0)
            self._below.send(stream_id, data[:1], fin and len(data) <= 1)
            if len(data) > 1:
                waiting.insert(0, (data[1:], fin))
        drip(lambda: self._let_drop(stream_id, drip))

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
