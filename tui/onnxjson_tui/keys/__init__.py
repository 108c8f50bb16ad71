"""Keys: the declaration of an action, the parser of key sequences, the order of key events, and the key list.

Here: the declaration of an action, and all code that reads the table of actions. Not here: the actions themselves
(`onnxjson_tui.actions`).

Read first: `action` (an entry of the table, the parser of keys and their lists), `key_order` (the queue of keys).
"""
