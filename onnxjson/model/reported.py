"""Methods of results that have reports: the same texts as those of the commands (`onnxjson.rendering.reports`)."""

import onnxjson


class Reported:
    """A result with a report for other programs."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the JSON text that the command prints."""
        return onnxjson.report_text(self, "json")


class ReportedPage(Reported):
    """A result that also has a Markdown text and an HTML page, which notebooks show."""

    __slots__ = ()

    def to_markdown(self) -> str:
        """Return the text for a pull request."""
        return onnxjson.report_text(self, "markdown")

    def to_html(self) -> str:
        """Return the page with drawings."""
        return onnxjson.report_text(self, "html")

    def _repr_html_(self) -> str:
        import html

        # In a frame, the styles of the page do not reach the notebook, nor those of the notebook the page.
        style = "width: 100%; height: 40em; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.to_html())}"></iframe>'
