"""The role programs: one click command per module, imported only when it is called."""
