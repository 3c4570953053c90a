"""The consumer of KV caches: an End Subscriber that speaks KVCS (KVCS 7)."""

from kvcs.consumer.request import Budgets, ConsumeRequest, Mode
from kvcs.consumer.result import Result
from kvcs.consumer.role import Consumer

__all__ = ["Budgets", "ConsumeRequest", "Consumer", "Mode", "Result"]
