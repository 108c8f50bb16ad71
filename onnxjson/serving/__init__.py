"""Servers for other programs: coding agents (Model Context Protocol) and editors (Language Server Protocol).

Here: tools with bounded answers, texts while they are edited, and the servers that offer them.

Not here: what the tools do (the rooms below), and the command that starts the server (`onnxjson.cli`).

Read first: `tools` (what there is to call, and the answers), `edited_text` (a text while it is edited),
`language_server` (what editors ask).
"""
