"""Structural three-way merge (docs/merge.md): two changes of one base -> one model, or conflicts that name the slot.

`merge` is the way in. `sides` takes renames out of both sides, so that both changes speak of names of the base;
`records` and `lists` merge the two trees of changes slot by slot; `soundness` looks for what no slot shows, and
`restoring` gives the names back. `storing` and `resolving` are for files in which conflicts stand.
"""
