"""The nodes of a run: roles of the reference, peers under test, and scripted ones."""
