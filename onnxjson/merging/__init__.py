"""Structural three-way merge (docs/merge.md): two changes of one base become one model, or conflicts at their slots.

Here: `sides` and `pairing` give both sides the names of the base; `records` and `lists` merge the two trees of changes
slot by slot; `consistency` and `additions` find damage that no single slot shows, and `naming` restores the names.
`conflicts` has what was found at its place in the merged model, `conflict_text` says it in words, `resolving` and
`conflicted_files` are for files with conflicts.

Not here: the record of a conflict (`onnxjson.model.conflicts`), reading conflicts from a text
(`onnxjson.codecs`), the merge driver of git (`onnxjson.git`).

Read first: `merge` (the entry), `sides` (how a side is prepared), `records` (the merge of one record).
"""
