"""MOQT (Media over QUIC Transport) endpoint and relay: a sans-I/O core with thin drivers."""
