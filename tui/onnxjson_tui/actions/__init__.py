"""Everything that a key, a word after ``:`` or the palette can ask for: one table, one module a kind of action."""
