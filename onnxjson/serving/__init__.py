"""Servers for other programs: coding agents (Model Context Protocol) and editors (Language Server Protocol).

Here: tools with bounded answers, texts while they are edited, and the servers that offer them.

Not here: what the tools do (the rooms below), and the command that starts the server (`onnxjson.cli`).

Read first: `answers` (what a tool returns), `tools` (what there is to call), `language_server` (what editors ask).
"""
