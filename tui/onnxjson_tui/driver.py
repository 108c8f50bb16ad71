"""The way to the terminal: at most one frame waits to be written.

Textual keeps up to thirty frames for a slow line; after a key was held they still have to be drawn when the person has
let go of it long ago. With one, the program waits for the line, and draws what is there to see then.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.driver import Driver


def driver_class() -> "type[Driver] | None":
    """Textual's driver with a queue of one frame; None, for Textual to choose, where there are no POSIX terminals."""
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class OneFrameDriver(LinuxDriver):
        """Textual's driver, with a queue of one frame."""

        def start_application_mode(self) -> None:
            """Take the terminal over."""
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if self._writer_thread is not None:
                # queue.Queue looks at maxsize whenever something is put.
                self._writer_thread._queue.maxsize = 1

    return OneFrameDriver
