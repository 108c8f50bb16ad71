"""Makes the models of this folder with both exporters of PyTorch.

They are small networks with random weights, so that a test can hold what real exporters write: names, constants,
shapes that depend on a batch, metadata on every node, subgraphs. It takes more than the tests do:
``pip install torch==2.13.0 onnx onnxscript``, then ``python tests/models/make_models.py [FOLDER]``.
"""

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

SEED = 20


class SamePadding(nn.Module):
    """A convolution that pads by the size of what it gets, as networks that come from TensorFlow do."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, groups: int = 1) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.convolution = nn.Conv2d(channels, out, kernel, stride, groups=groups, bias=False)
        self.normalization = nn.BatchNorm2d(out)
        self.activation = nn.ReLU6()

    def _padding(self, size: int) -> tuple[int, int]:
        total = max((math.ceil(size / self.stride) - 1) * self.stride + self.kernel - size, 0)
        return total // 2, total - total // 2

    def forward(self, image: Tensor) -> Tensor:
        padding = [*self._padding(int(image.shape[-1])), *self._padding(int(image.shape[-2]))]
        padded = functional.pad(image, padding)
        return self.activation(self.normalization(self.convolution(padded)))


class InvertedResidual(nn.Module):
    """Expand, convolve by channel, reduce; added to what came in where the size stays."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        wide = channels * 3
        self.expand = SamePadding(channels, wide, 1, 1)
        self.depthwise = SamePadding(wide, wide, 3, stride, groups=wide)
        self.reduce = SamePadding(wide, out, 1, 1)
        self.residual = stride == 1 and channels == out

    def forward(self, image: Tensor) -> Tensor:
        reduced = self.reduce(self.depthwise(self.expand(image)))
        return image + reduced if self.residual else reduced


class Mobile(nn.Module):
    """A network of the MobileNet v2 kind for images of 32 by 32."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(8, 8, 1), (8, 12, 2), (12, 12, 1), (12, 16, 2), (16, 16, 1), (16, 16, 1)]
        self.stem = SamePadding(3, 8, 3, 2)
        self.blocks = nn.ModuleList([InvertedResidual(*size) for size in sizes])
        self.classifier = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        image = self.stem(image)
        for block in self.blocks:
            image = block(image)
        return self.classifier(image.mean((2, 3)))


class Attention(nn.Module):
    """Attention of several heads, written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def _split(self, states: Tensor) -> Tensor:
        return states.view(states.shape[0], states.shape[1], self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (self._split(part(states)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.width // self.heads) + mask
        mixed = (scores.softmax(-1) @ value).transpose(1, 2)
        return self.output(mixed.reshape(states.shape))


class Layer(nn.Module):
    """Attention and two dense layers, each added to what came in and normalised."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = self.attention_norm(states + self.attention(states, mask))
        return self.norm(states + self.narrow(functional.gelu(self.wide(states))))


class Encoder(nn.Module):
    """A network of the BERT kind: six layers over words and their positions, any batch and length."""

    def __init__(self, width: int = 24, heads: int = 4, words: int = 100) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(32, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(6)])

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(words.shape[1]).unsqueeze(0)
        states = self.norm(self.words(words) + self.positions(places))
        added = (1.0 - mask[:, None, None, :].to(states.dtype)) * -10000.0
        for layer in self.layers:
            states = layer(states, added)
        return states


class Decoder(nn.Module):
    """A network of the GPT kind: two layers over new words, with a cache of the keys and values of those before."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(50, width)
        self.positions = nn.Embedding(64, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(2)])
        self.head = nn.Linear(width, 50)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, past: list[Tensor]
    ) -> tuple[Tensor, ...]:
        states = self.words(input_ids) + self.positions(position_ids)
        places = torch.arange(attention_mask.shape[1])
        seen = (places[None, None, None, :] <= position_ids[:, None, :, None]) & attention_mask[:, None, None, :].bool()
        mask = torch.where(seen, 0.0, -10000.0)
        present = []
        for number, layer in enumerate(self.layers):
            attention = layer.attention
            parts = (attention.query, attention.key, attention.value)
            query, key, value = (attention._split(part(states)) for part in parts)
            key, value = torch.cat([past[2 * number], key], 2), torch.cat([past[2 * number + 1], value], 2)
            present += [key, value]
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + mask
            mixed = (scores.softmax(-1) @ value).transpose(1, 2)
            states = layer.attention_norm(states + attention.output(mixed.reshape(states.shape)))
            states = layer.norm(states + layer.narrow(functional.gelu(layer.wide(states))))
        return self.head(states), *present


class Branches(nn.Module):
    """Control flow that depends on the data: a loop around a condition."""

    def forward(self, numbers: Tensor, rounds: Tensor) -> Tensor:
        for turn in range(int(rounds)):
            if bool(numbers.sum() > 0):
                numbers = numbers * 0.5 - turn
            else:
                numbers = numbers.abs() + 1
        return numbers


def torchscript(model: nn.Module, inputs: tuple[Tensor, ...], path: Path, **options: object) -> None:
    """Export as TorchScript's exporter does."""
    torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=17, **options)


def dynamo(model: nn.Module, inputs: tuple[Tensor, ...], path: Path, **options: object) -> None:
    """Export as torch.export's exporter does; the paths in its stack traces begin at the package."""
    program = torch.onnx.export(model, inputs, dynamo=True, verbose=False, **options)
    proto = program.model_proto
    for props in (
        proto.metadata_props,
        proto.graph.metadata_props,
        *(node.metadata_props for node in proto.graph.node),
    ):
        for entry in props:
            entry.value = re.sub(r'(?<=File ")[^"\n]*?/(?=(?:torch|tests)/)', "", entry.value)
    path.write_bytes(proto.SerializeToString(deterministic=True))


def main(folder: Path) -> None:
    """Write every model into `folder`."""
    image = (torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32),)
    words = torch.arange(2 * 9).reshape(2, 9), torch.ones(2, 9, dtype=torch.int64)
    axes = {"words": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}
    named: dict[str, object] = {"input_names": ["words", "mask"], "output_names": ["states"]}
    sizes = {"words": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}
    cache = [f"past_key_values.{number}.{kind}" for number in range(2) for kind in ("key", "value")]
    tokens = torch.ones(2, 3, dtype=torch.int64)
    step = tokens, torch.ones(2, 8, dtype=torch.int64), torch.arange(5, 8) * tokens, [torch.ones(2, 2, 5, 8)] * 4
    new, before = {0: "batch", 1: "sequence"}, {0: "batch", 2: "past"}
    given = ["input_ids", "attention_mask", "position_ids"]
    decoding: dict[str, object] = {
        "input_names": given + cache,
        "output_names": ["logits", *[name.replace("past_key_values", "present") for name in cache]],
    }
    lengths = {**dict.fromkeys(given, new), "attention_mask": {0: "batch", 1: "total"}, **dict.fromkeys(cache, before)}
    nested = {**{name: lengths[name] for name in given}, "past": [before] * 4}
    makers: dict[str, Callable[[Path], None]] = {
        "mobile_ts.onnx": lambda path: torchscript(_fresh(Mobile), image, path, input_names=["image"]),
        "mobile_dynamo.onnx": lambda path: dynamo(_fresh(Mobile), image, path, input_names=["image"]),
        "encoder_ts.onnx": lambda path: torchscript(_fresh(Encoder), words, path, dynamic_axes=axes, **named),
        "encoder_dynamo.onnx": lambda path: dynamo(_fresh(Encoder), words, path, dynamic_shapes=sizes, **named),
        "decoders/decoder_ts.onnx": lambda path: torchscript(
            _fresh(Decoder), step, path, dynamic_axes=lengths, **decoding
        ),
        "decoders/decoder_dynamo.onnx": lambda path: dynamo(
            _fresh(Decoder), step, path, dynamic_shapes=nested, **decoding
        ),
        "branches_ts.onnx": lambda path: torchscript(
            torch.jit.script(Branches()), (torch.ones(3), torch.tensor(4)), path, input_names=["numbers", "rounds"]
        ),
    }
    (folder / "decoders").mkdir(exist_ok=True)
    for name, make in makers.items():
        make(folder / name)
        onnx.checker.check_model(folder / name, full_check=True)
        print(name, (folder / name).stat().st_size, "bytes")
    (folder / "pairs").mkdir(exist_ok=True)
    for name, activated in (("plain", False), ("activated", True)):
        torch.manual_seed(SEED)
        small = SmallEncoder(activated=activated).eval()
        torchscript(small, words, folder / "pairs" / f"{name}_ts.onnx", dynamic_axes=axes, **named)
        dynamo(small, words, folder / "pairs" / f"{name}_dynamo.onnx", dynamic_shapes=sizes, **named)


def _fresh(network: type[nn.Module]) -> nn.Module:
    torch.manual_seed(SEED)
    return network().eval()


class SmallEncoder(Encoder):
    """Four narrow layers; with `activated`, what goes into the first of them goes through GELU before."""

    def __init__(self, *, activated: bool) -> None:
        super().__init__(8, 2, 20)
        self.layers = nn.ModuleList([Layer(8, 2) for _ in range(4)])
        self.activated = activated

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(words.shape[1]).unsqueeze(0)
        states = self.norm(self.words(words) + self.positions(places))
        if self.activated:
            states = functional.gelu(states)
        added = (1.0 - mask[:, None, None, :].to(states.dtype)) * -10000.0
        for layer in self.layers:
            states = layer(states, added)
        return states


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
