"""KVCS (KV Cache Streaming) on top of MOQT: names, payloads, manifests, publisher and consumer."""
