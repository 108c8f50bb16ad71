"""Storage: models, weights, constants and backups in files; everything that touches the disk.

Here: the form and the name of a file, saves that are all or nothing, external data and its one resolver, blobs,
constants as JSON, base64 and numpy files, objects at URLs, backups, the stores of what is kept in the user's folders,
and `load` and `save` of ``import onnxjson``.

Not here: the meaning of the bytes (`onnxjson.codecs`), files of git (`onnxjson.git`). Other rooms write files only
through `saving`.

Read first: `files` (models in files), `saving` (how a file is replaced), `external` (from a location to an open file).
"""
