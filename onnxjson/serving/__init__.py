"""Other programs at the door: models shown and changed for coding agents, over the Model Context Protocol.

Here: tools with bounded answers, and the server that offers them.

Not here: what the tools do (the rooms below), and the command that starts the server (`onnxjson.cli`).

Read first: `answers` (what a tool returns), `tools` (what there is to call), `agents` (the server).
"""
