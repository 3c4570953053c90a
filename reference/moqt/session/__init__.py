"""Session: one MOQT connection as a state machine without I/O (MOQT-22 §3 to §9)."""
