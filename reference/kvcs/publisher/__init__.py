"""The publisher of KV caches (KVCS 3 to 6)."""
