"""The program, its main screen, and the ways into it from the command line.

Here: `start` turns arguments into the first screen, `app` is the Textual program, `screen` the workbench with panes,
drawer and prompt, `key_page` prints the page of keys. Not here: anything that can be used without them.

Read first: `start` (the entry), `screen` (the workbench), `app` (the program).
"""
