"""MOQT octets: pure encoding and decoding, no state beyond one stream (MOQT-22 §8 to §13)."""
