"""Twenty tasks of a coding agent, done by a script through the tools: ``python -m tests.serving.agent_tasks``.

Prints the number of calls and the bytes of the answers of each task. A task ends with what the agent would report.
"""

import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio

MODELS: Final = Path(__file__).parents[1] / "models"
ATTENTION: Final = "MatMul(Softmax($s), $v)"

Task = Callable[["Agent"], Awaitable[object]]


class Agent:
    """A client in a folder with copies of the models; counts its calls and the bytes of the answers."""

    def __init__(self, client: Any, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.calls = self.bytes = 0

    async def ask(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; return the data of its answer. File names are those in the folder."""
        for key in ("model", "before", "after", "output"):
            if key in arguments:
                arguments[key] = str(self.folder / arguments[key])
        result = await self.client.call_tool(tool, arguments)
        text = str(result.content[0].text)
        self.calls += 1
        self.bytes += len(text.encode())
        words, _, data = text.partition("\n```json\n")
        assert not result.is_error, text
        assert words != "Refused.", text
        return json.loads(data.removesuffix("\n```"))

    async def change(self, model: str, *edits: dict[str, Any], output: str = "new.onnx") -> list[Any]:
        """Plan edits, look at the plan, and save the result."""
        plan = await self.ask("plan_edit", model=model, edits=list(edits))
        await self.ask("apply", model=model, edits=list(edits), output=output)
        return list(plan["changes"]["events"])


async def find_unfused_attention(agent: Agent) -> object:
    return len(await agent.ask("find", model="encoder_ts.onnx", pattern=ATTENTION))


async def rename_an_input(agent: Agent) -> object:
    name = (await agent.ask("show", model="mobile_ts.onnx"))["inputs"][0]["name"]
    await agent.change("mobile_ts.onnx", {"edit": "rename", "kind": "tensor", "from": name, "to": "pixels"})
    return (await agent.ask("show", model="new.onnx"))["inputs"][0]["name"]


async def change_the_batch(agent: Agent) -> object:
    await agent.change("mobile_ts.onnx", {"edit": "set-batch-size", "size": 8})
    return (await agent.ask("show", model="new.onnx"))["inputs"][0]["type"]


async def explain_a_regression(agent: Agent) -> object:
    node = (await agent.ask("read_nodes", model="encoder_ts.onnx", selector="op:Softmax"))[0]["address"]
    edit = {"edit": "set-attribute", "node": f"@{node}", "attribute": "axis", "value": 2}
    await agent.ask("apply", model="encoder_ts.onnx", edits=[edit], output="bad.onnx")
    found = await agent.ask("locate", before="encoder_ts.onnx", after="bad.onnx")
    return found["location"]["places"][0]["base"] == [node]


async def name_what_changed(agent: Agent) -> object:
    await agent.change("mobile_ts.onnx", {"edit": "set-doc", "text": "second"})
    changed = await agent.ask("diff", before="mobile_ts.onnx", after="new.onnx")
    return [each["kind"] for each in changed["events"]]


async def find_the_most_expensive_node(agent: Agent) -> object:
    sizes = {"batch": 1, "length": 8}
    return (await agent.ask("cost", model="encoder_dynamo.onnx", dims=sizes))["nodes"][0]["operator"]


async def count_parameters(agent: Agent) -> object:
    return (await agent.ask("cost", model="encoder_dynamo.onnx"))["parameters"] > 10_000


async def check_with_onnx(agent: Agent) -> object:
    return [each["code"] for each in await agent.ask("check", model="encoder_dynamo.onnx", deep=True)]


async def explain_why_a_pattern_fails(agent: Agent) -> object:
    found = await agent.ask("find_why", model="encoder_ts.onnx", pattern="Softmax(Relu($x))")
    return bool(found["misses"] or found["absent_operators"])


async def remove_identities(agent: Agent) -> object:
    await agent.ask("optimize", model="encoder_ts.onnx", passes=["onnxoptimizer"], output="new.onnx")
    return (await agent.ask("verify", before="encoder_ts.onnx", after="new.onnx"))["equal"]


async def tell_what_a_pass_did(agent: Agent) -> object:
    steps = await agent.ask("optimize", model="encoder_ts.onnx", passes=["onnxoptimizer"])
    return steps[0]["nodes"][0] > steps[0]["nodes"][1]


async def convert_the_opset(agent: Agent) -> object:
    before = (await agent.ask("show", model="branches_ts.onnx"))["opsets"][0]["version"]
    await agent.change("branches_ts.onnx", {"edit": "convert-opset", "version": before + 1})
    return (await agent.ask("show", model="new.onnx"))["opsets"][0]["version"] - before


async def expose_a_hidden_value(agent: Agent) -> object:
    node = (await agent.ask("read_nodes", model="encoder_ts.onnx", selector="op:Softmax"))[0]
    await agent.change("encoder_ts.onnx", {"edit": "add-output", "tensor": node["outputs"][0]["name"]})
    return len((await agent.ask("show", model="new.onnx"))["outputs"])


async def change_an_attribute(agent: Agent) -> object:
    edit = {"edit": "set-attribute", "node": "op:Softmax", "attribute": "axis", "value": -1}
    await agent.change("encoder_ts.onnx", edit)
    nodes = await agent.ask("read_nodes", model="new.onnx", selector="op:Softmax")
    return {each["attributes"][0]["value"] for each in nodes} == {-1}


async def read_a_weight(agent: Agent) -> object:
    nodes = await agent.ask("read_nodes", model="mobile_ts.onnx", selector="op:Conv")
    node = (await agent.ask("read_nodes", model="mobile_ts.onnx", selector=f"@{nodes[0]['address']}"))[0]
    weight = await agent.ask("read_nodes", model="mobile_ts.onnx", selector=node["inputs"][1]["name"])
    return weight["dtype"]


async def lint_by_a_family(agent: Agent) -> object:
    return len(await agent.ask("check", model="encoder_ts.onnx", select="all")) > 0


async def page_through_nodes(agent: Agent) -> object:
    pages = [
        await agent.ask("read_nodes", model="encoder_dynamo.onnx", selector="*", page=number) for number in (1, 2, 3)
    ]
    return len({each["address"] for page in pages for each in page})


async def write_a_text_and_back(agent: Agent) -> object:
    nothing = [{"edit": "set-doc", "text": "as text"}]
    await agent.ask("apply", model="mobile_ts.onnx", edits=nothing, output="m.onnx.json")
    await agent.ask("apply", model="m.onnx.json", edits=[], output="new.onnx")
    return (await agent.ask("verify", before="mobile_ts.onnx", after="new.onnx"))["equal"]


async def compare_two_exporters(agent: Agent) -> object:
    return len((await agent.ask("diff", before="mobile_ts.onnx", after="mobile_dynamo.onnx"))["events"]) > 0


async def cut_out_a_part(agent: Agent) -> object:
    node = (await agent.ask("read_nodes", model="encoder_ts.onnx", selector="op:Softmax"))[0]
    edit = {"edit": "extract", "outputs": [node["outputs"][0]["name"]]}
    await agent.change("encoder_ts.onnx", edit)
    return (await agent.ask("check", model="new.onnx", deep=True)) == []


TASKS: Final[dict[Task, object]] = {
    find_unfused_attention: 6, rename_an_input: "pixels", change_the_batch: "float32[8,3,32,32]",
    explain_a_regression: True, name_what_changed: ["metadata-changed"], find_the_most_expensive_node: "MatMul",
    count_parameters: True, check_with_onnx: [], explain_why_a_pattern_fails: True, remove_identities: True,
    tell_what_a_pass_did: True, convert_the_opset: 1, expose_a_hidden_value: 2, change_an_attribute: True,
    read_a_weight: "float32", lint_by_a_family: True, page_through_nodes: 150, write_a_text_and_back: True,
    compare_two_exporters: True,
    cut_out_a_part: True,
}  # fmt: skip
"""The tasks with what the agent finds out."""


async def done(task: Task) -> tuple[object, int, int]:
    """What a task finds out, the number of its calls, and the bytes of their answers."""
    from mcp import Client

    from onnxjson.serving.permissions import Permissions
    from onnxjson.serving.tools import server

    with tempfile.TemporaryDirectory() as folder:
        for path in MODELS.glob("*.onnx"):
            shutil.copy(path, folder)
        async with Client(server(Permissions(writable=Path(folder)))) as client:
            agent = Agent(client, Path(folder))
            return await task(agent), agent.calls, agent.bytes


def main() -> None:
    """Print a table."""
    total = [0, 0]
    for task, expected in TASKS.items():
        found, calls, size = anyio.run(done, task)
        total = [total[0] + calls, total[1] + size]
        failed = "" if found == expected else f"  FAILED: {found!r}"
        print(f"{task.__name__.replace('_', ' '):<32} {calls:>3} calls {size:>8,} bytes{failed}")
    print(f"{'all':<32} {total[0]:>3} calls {total[1]:>8,} bytes")


if __name__ == "__main__":
    main()
