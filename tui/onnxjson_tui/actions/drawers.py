"""The drawer: a key for each of its pages, which closes it again."""

from typing import TYPE_CHECKING, Final

from onnxjson_tui.action import Action, Given, Run

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def page_opener(name: str) -> Run:
    """Opens a page and goes there; where it is open, closes the drawer."""

    def run(bench: "Workbench", given: Given) -> None:
        if bench.drawer.page is bench.drawer.pages[name]:
            close(bench, given)
        else:
            bench.drawer.open(name)
            bench.call_after_refresh(bench.focus_pane, "drawer")

    return run


def close(bench: "Workbench", given: Given) -> None:
    """Closes the drawer."""
    bench.drawer.close()
    bench.focus_pane("nodes")


ACTIONS: Final = (
    Action("problems", "what is wrong with the model", ("f5",), page_opener("problems"), "See"),
    Action("changes", "what is changed since the model was saved", ("f6",), page_opener("diff"), "See"),
    Action("tensor-page", "the tensor page of the drawer", ("f7",), page_opener("tensor"), "See"),
    Action("history", "the steps so far", ("f8",), page_opener("history"), "See"),
    Action("close-drawer", "close the drawer", ("f9",), close, "See"),
)
