"""The consumer of KV caches (KVCS 7)."""
