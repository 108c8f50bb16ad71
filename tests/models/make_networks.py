"""Makes twelve networks with both exporters of PyTorch, to measure the diff on models that no test depends on.

They are small and have random weights: ``pip install torch==2.13.0 transformers onnx onnxscript``, then
``python tests/models/make_networks.py FOLDER [NAME ...]``.
"""

import itertools
import sys
import warnings
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn

SEED = 7

Network = tuple[nn.Module, tuple[Tensor, ...]]
"""A module and its inputs."""


class Fields(nn.Module):
    """A model of transformers that returns some fields of its result as a tuple."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], fields: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.inputs, self.fields = model, inputs, fields

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        result = self.model(**dict(zip(self.inputs, inputs, strict=True)))
        return tuple([result[name] for name in self.fields])


def _image(model: nn.Module, size: int = 64, field: str = "last_hidden_state") -> Network:
    return Fields(model, ("pixel_values",), (field,)), (torch.rand(1, 3, size, size),)


def _tokens(model: nn.Module, field: str = "last_hidden_state") -> Network:
    ids = torch.randint(3, 90, (2, 12))
    return Fields(model, ("input_ids", "attention_mask"), (field,)), (ids, torch.ones_like(ids))


def convnext() -> Network:
    t = transformers
    return _image(t.ConvNextModel(t.ConvNextConfig(hidden_sizes=[16, 32, 64, 128], depths=[2, 2, 4, 2])))


def resnet() -> Network:
    t = transformers
    config = t.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 96], depths=[2, 2, 2, 2], layer_type="basic")
    return _image(t.ResNetModel(config))


def efficientnet() -> Network:
    t = transformers
    return _image(
        t.EfficientNetModel(
            t.EfficientNetConfig(width_coefficient=0.35, depth_coefficient=0.6, hidden_dim=448, image_size=64)
        )
    )


def vit() -> Network:
    t = transformers
    config = t.ViTConfig(
        hidden_size=48, num_hidden_layers=4, num_attention_heads=4, intermediate_size=96, image_size=64, patch_size=16
    )
    return _image(t.ViTModel(config))


def mobilevit() -> Network:
    t = transformers
    config = t.MobileViTConfig(
        hidden_sizes=[24, 32, 48], neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 96], image_size=64, num_attention_heads=4
    )
    return _image(t.MobileViTModel(config))


def segformer() -> Network:
    t = transformers
    config = t.SegformerConfig(
        depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 48, 64], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=32
    )
    return _image(t.SegformerForSemanticSegmentation(config), field="logits")


def distilbert() -> Network:
    t = transformers
    config = t.DistilBertConfig(
        vocab_size=100, dim=48, n_layers=4, n_heads=4, hidden_dim=96, max_position_embeddings=64
    )
    return _tokens(t.DistilBertModel(config))


def deberta() -> Network:
    t = transformers
    config = t.DebertaV2Config(
        vocab_size=100,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=96,
        relative_attention=True,
        position_buckets=16,
        max_position_embeddings=64,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
    )
    return _tokens(t.DebertaV2Model(config))


def llama() -> Network:
    t = transformers
    config = t.LlamaConfig(
        vocab_size=100,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
    )
    return _tokens(t.LlamaForCausalLM(config), "logits")


def whisper() -> Network:
    t = transformers
    config = t.WhisperConfig(
        d_model=48,
        encoder_layers=3,
        encoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_layers=1,
        decoder_attention_heads=4,
        num_mel_bins=16,
        max_source_positions=32,
        vocab_size=100,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return Fields(model, ("input_features",), ("last_hidden_state",)), (torch.rand(1, 16, 64),)


class Double(nn.Sequential):
    """Two convolutions with normalization."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(
            nn.Conv2d(channels, out, 3, padding=1),
            nn.BatchNorm2d(out),
            nn.SiLU(),
            nn.Conv2d(out, out, 3, padding=1),
            nn.GroupNorm(4, out),
            nn.GELU(),
        )


class UNet(nn.Module):
    """A small U-Net."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [8, 16, 32]
        self.first = Double(3, 8)
        self.down = nn.ModuleList([Double(a, b) for a, b in itertools.pairwise(sizes)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in itertools.pairwise(sizes)][::-1])
        self.after = nn.ModuleList([Double(2 * a, a) for a in sizes[:-1]][::-1])
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        kept = [self.first(image)]
        for block in self.down:
            kept.append(block(nn.functional.max_pool2d(kept[-1], 2)))
        found = kept.pop()
        for up, after in zip(self.up, self.after, strict=True):
            found = after(torch.cat([kept.pop(), up(found)], 1))
        return nn.functional.interpolate(self.head(found), scale_factor=2.0, mode="bilinear").softmax(1)


class Tagger(nn.Module):
    """Characters by convolution, a bidirectional GRU, an LSTM, attention, and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 24)
        self.wide = nn.Conv1d(24, 24, 3, padding=1)
        self.narrow = nn.Conv1d(24, 24, 1)
        self.gru = nn.GRU(24, 16, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(32, 32, num_layers=2, batch_first=True)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.tags = nn.Linear(32, 9)
        self.whole = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Dropout(), nn.Linear(16, 3))

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        embedding = self.embedding(ids)
        across = embedding.transpose(1, 2)
        embedding = embedding + torch.relu(self.wide(across)).transpose(1, 2) * torch.sigmoid(
            self.narrow(across)
        ).transpose(1, 2)
        embedding = self.lstm(self.gru(embedding)[0])[0]
        embedding = self.norm(embedding + self.attention(embedding, embedding, embedding, need_weights=False)[0])
        return self.tags(embedding).log_softmax(-1), self.whole(embedding.mean(1))


def unet() -> Network:
    return UNet(), (torch.rand(1, 3, 32, 32),)


def tagger() -> Network:
    return Tagger(), (torch.randint(0, 100, (2, 10)),)


NETWORKS = (
    convnext, resnet, efficientnet, vit, mobilevit, segformer, distilbert, deberta, llama, whisper, unet, tagger,
)  # fmt: skip


def main(arguments: list[str]) -> None:
    folder, wanted = Path(arguments[0]), set(arguments[1:])
    for network in NETWORKS:
        if wanted and network.__name__ not in wanted:
            continue
        for kind in ("ts", "dynamo"):
            torch.manual_seed(SEED)
            module, inputs = network()
            for each in module.state_dict().values():
                if each.is_floating_point() and bool((each == 1).all()):
                    nn.init.uniform_(each, 0.7, 1.3)  # optimizers remove a product with ones
                elif each.is_floating_point() and each.dim() > 1:
                    nn.init.kaiming_normal_(each)  # so that values of deep networks do not vanish
            path = folder / f"{network.__name__}_{kind}.onnx"
            try:
                if kind == "ts":
                    torch.onnx.export(module.eval(), inputs, path, dynamo=False, opset_version=18)
                else:
                    torch.onnx.export(module.eval(), inputs, path, dynamo=True, external_data=False, verbose=False)
                print(path.name, path.stat().st_size, flush=True)
            except Exception as error:
                print(path.name, "FAILED", type(error).__name__, str(error)[:300], flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
