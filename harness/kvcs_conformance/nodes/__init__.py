"""The nodes of a run: one module per kind, each behind the interface of `node.Node`."""
