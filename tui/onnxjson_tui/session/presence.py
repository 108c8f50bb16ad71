"""Notices about other sessions on the same file: each holds the lock of an entry of a store while it runs."""

import os
from contextlib import suppress
from typing import Final

from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.store import Store, discard, take_entry

_STORE: Final = Store("state", "editing", bytes_in_all=10**6, entries_a_key=64)


class Presence:
    """The entry of one session; without a home folder there is none."""

    def __init__(self, key: str) -> None:
        """Register a session on a model, and count the other processes that have it open."""
        self.others = 0
        self._entry = None
        with suppress(OSError, OnnxJsonError):
            for entry in _STORE.entries(key):
                descriptor = take_entry(entry)
                if descriptor is not None:
                    discard(entry, descriptor)  # of a session that ended
                elif f"-{os.getpid()}-" not in entry.name:
                    self.others += 1
            self._entry = _STORE.create(key)

    @property
    def notice(self) -> str:
        """What the user should know about the others; "" without any."""
        if not self.others:
            return ""
        return "another onnxjson has this file open for editing; whoever saves second is asked to merge"

    def end(self) -> None:
        """Remove the entry."""
        entry, self._entry = self._entry, None
        if entry is not None:
            discard(*entry)
