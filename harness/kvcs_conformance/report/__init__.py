"""What is written and shown of a run; `results.json` is the source of all of it."""
