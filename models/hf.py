"""Reads a Hugging Face model folder: config.json, safetensors, tokenizer.json, generation_config.json.

Knows: the layout of such a folder, single files and shards with an index (the index decides; other shards are not
read). Does not know: any model family. Executes nothing from the folder: pickled weights are refused.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from models.checkpoint import Checkpoint, CheckpointError, Tensor

DTYPES = ("F32", "F16", "BF16")
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def open_folder(folder: Path) -> Checkpoint:
    """Reads everything but the tensors' data.

    Raises:
      CheckpointError: a missing or broken file, a shard that is named but absent, a tensor type that is not a float.
    """
    config_file, tokenizer_file = folder / "config.json", folder / "tokenizer.json"
    config = _json(config_file)
    settings_file, generation_file = folder / "tokenizer_config.json", folder / "generation_config.json"
    settings = _json(settings_file) if settings_file.exists() else {}
    generation = _json(generation_file) if generation_file.exists() else {}
    converted = (folder / "params").is_dir()
    if converted:
        from models import orbax_folder

        tensors, weight_files = orbax_folder.tensors(folder)
    else:
        tensors, weight_files = _tensors(folder)
    tokenizer = _tokenizer(tokenizer_file)
    _same_added_tokens(tokenizer, settings, settings_file)
    template, template_files = _template(folder, settings)
    small = (config_file, tokenizer_file, settings_file, generation_file, *template_files)
    return Checkpoint(
        naming="ours" if converted else "hf",
        config=config,
        tensors=tensors,
        tokenizer=tokenizer,
        eos=_eos(tokenizer, {config_file: config, generation_file: generation}, settings, settings_file),
        generation=generation,
        chat_template=template,
        files=tuple(f for f in (*small, *weight_files) if f.exists()),
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{file}: no such file") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file}: not readable as JSON ({error})") from None
    if not isinstance(fields, dict):
        raise CheckpointError(f"{file}: holds {type(fields).__name__}, not an object")
    return fields


def _tensors(folder: Path) -> tuple[dict[str, Tensor], list[Path]]:
    index_file = folder / INDEX
    if index_file.exists():
        places = _json(index_file).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(p, str) for p in places.values()):
            raise CheckpointError(f"{index_file}: field weight_map must map tensor names to file names")
        if outside := sorted({p for p in places.values() if Path(p).name != p}):
            raise CheckpointError(f"{index_file}: shard {outside[0]!r} is not a plain file name")
        shards = sorted(set(places.values()))
        if absent := [s for s in shards if not (folder / s).exists()]:
            raise CheckpointError(f"{index_file}: names shards that are not there: {', '.join(absent)}")
        tensors: dict[str, Tensor] = {}
        for shard in shards:
            held = _one_file(folder / shard)
            named = [n for n, p in places.items() if p == shard]
            if lacking := sorted(set(named) - set(held)):
                raise CheckpointError(f"{folder / shard}: lacks tensors the index places there: {', '.join(lacking)}")
            tensors |= {n: held[n] for n in named}
        return tensors, [index_file, *(folder / s for s in shards)]
    if (folder / SINGLE).exists():
        return _one_file(folder / SINGLE), [folder / SINGLE]
    if found := sorted(f.name for f in folder.glob("*.safetensors")):
        raise CheckpointError(f"{folder}: has {', '.join(found)} but neither {SINGLE} nor {INDEX}")
    if pickled := sorted(f.name for pattern in ("*.bin", "*.pt", "*.pth") for f in folder.glob(pattern)):
        raise CheckpointError(f"{folder}: only pickled weights ({pickled[0]}), which could run code; want safetensors")
    raise CheckpointError(f"{folder}: no weights ({SINGLE} or {INDEX})")


def _one_file(file: Path) -> dict[str, Tensor]:
    def reader(name: str) -> np.ndarray:
        with safe_open(file, "numpy") as handle:
            return handle.get_tensor(name)

    def part(index: tuple[slice, ...], name: str) -> np.ndarray:
        with safe_open(file, "numpy") as handle:  # closed at once: no page of the file stays mapped
            return handle.get_slice(name)[index]

    tensors = {}
    try:
        with safe_open(file, "numpy") as handle:
            for name in handle.keys():  # noqa: SIM118 (a safetensors handle is not a mapping)
                stored = handle.get_slice(name)
                if stored.get_dtype() not in DTYPES:
                    want = ", ".join(DTYPES)
                    raise CheckpointError(f"{file}: tensor {name} is {stored.get_dtype()}, not one of {want}")
                tensors[name] = Tensor(
                    tuple(stored.get_shape()),
                    functools.partial(reader, name),
                    str(file),
                    functools.partial(part, name=name),
                )
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file}: broken or truncated safetensors file ({error})") from None
    return tensors


def _tokenizer(file: Path) -> Tokenizer:
    if not file.exists():
        raise CheckpointError(f"{file}: no such file (a tokenizers JSON file is needed)")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the tokenizers library raises bare Exception
        raise CheckpointError(f"{file}: not a tokenizer ({error})") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _same_added_tokens(tokenizer: Tokenizer, settings: Mapping[str, Any], file: Path) -> None:
    for key, token in settings.get("added_tokens_decoder", {}).items():
        if tokenizer.token_to_id(token["content"]) != int(key):
            raise CheckpointError(f"{file}: added token {token['content']!r} has id {key}, tokenizer.json disagrees")


def _template(folder: Path, settings: Mapping[str, Any]) -> tuple[str | None, list[Path]]:
    file = folder / "chat_template.jinja"
    if file.exists():
        return file.read_text(encoding="utf-8"), [file]
    template = settings.get("chat_template")
    if isinstance(template, list):  # several named templates
        template = next((t["template"] for t in template if t.get("name") == "default"), None)
    return template, []


def _eos(
    tokenizer: Tokenizer, configs: Mapping[Path, Mapping[str, Any]], settings: Mapping[str, Any], file: Path
) -> frozenset[int]:
    ids: set[int] = set()
    for source, fields in configs.items():
        given = fields.get("eos_token_id")
        listed = given if isinstance(given, list) else [] if given is None else [given]
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in listed):
            raise CheckpointError(f"{source}: field eos_token_id must be a token id or a list of them, got {given!r}")
        ids |= set(listed)
    token = settings.get("eos_token")
    if token is not None:
        text = token["content"] if isinstance(token, dict) else token
        number = tokenizer.token_to_id(text)
        if number is None:
            raise CheckpointError(f"{file}: eos_token {text!r} is not in tokenizer.json")
        ids.add(number)
    return frozenset(ids)
