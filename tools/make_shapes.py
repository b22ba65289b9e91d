"""Writes tests/golden/shapes.json from a folder of published configs and tensor lists.

    python -m tools.make_shapes --models=FOLDER

FOLDER/NAME.json is a config.json, FOLDER/shapes/NAME.text.json (and NAME.full.json, of the multimodal checkpoint) the
shape of every tensor by name. Of the multimodal lists the names of other towers are cut to one of a kind.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from absl import app, flags

from tests.shape_facts import FILE, compress

FLAGS = flags.FLAGS
_OTHER = re.compile(r"(model\.(?:vision_tower|audio_tower|embed_vision|embed_audio))\.")


def rows(folder: Path) -> dict[str, Any]:
    """What the file holds, by model and kind of checkpoint."""
    found = {}
    for file in sorted((folder / "shapes").glob("*.json")):
        name, kind, _ = file.name.rsplit(".", 2)
        kept, towers = {}, set[str]()
        for tensor, shape in json.loads(file.read_text()).items():
            other = _OTHER.match(tensor)
            if other is None or other[1] not in towers:
                kept[tensor] = shape
                towers |= {other[1]} if other else set()
        config = folder / f"{name}.json"
        if kind == "text" and (folder / f"{name}.text.json").exists():
            config = folder / f"{name}.text.json"
        found[f"{name} {kind}"] = {"config": json.loads(config.read_text()), "tensors": compress(kept)}
    return found


def main(argv: list[str]) -> None:
    del argv
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows(Path(FLAGS.models)).items())
    FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    flags.DEFINE_string("models", None, "folder with the configs and shapes/", required=True)
    app.run(main)
