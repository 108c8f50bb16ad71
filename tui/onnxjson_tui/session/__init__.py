"""Session on one model: everything about viewing and editing except the screen.

Here: the session, its history, journal and recovery, the selection, the index that follows changes. Not here:
anything that uses rows, keys or widgets; no module of this room imports Textual or another room.

Read first: `session` (the entry), `edited_model` (the model and its index), `journal` (steps kept on disk).
"""
