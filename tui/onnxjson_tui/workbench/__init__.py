"""The program, and the ways into it from the command line.

Here: `start` turns arguments into the first screen, `app` is the Textual program and puts actions and pages into the
workbench. Not here: anything that can be used without them.

Read first: `start` (the entry), `app` (the program, the table of all actions).
"""
