"""One module per subcommand of `kvcs`."""
