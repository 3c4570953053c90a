"""Tracks: what an endpoint knows of the Objects of a Track, and how it serves them."""
