"""The command line, through click's runner and as processes."""
