"""Tests of the MOQT codec."""
