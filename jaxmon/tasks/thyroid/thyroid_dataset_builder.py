"""The 2,138 thyroid patients as a tensorflow-datasets builder: array_record files, no TensorFlow needed.

    builder = Builder(data_dir=...)       # downloads; or Builder(path="/my/thyroid0387.data", data_dir=...)
    builder.download_and_prepare()
    source = builder.as_data_source(split="patients")  # random access; examples hold bytes

Knows: where the archive file comes from and what an example holds. Does not know: sentences (wording.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import tensorflow_datasets as tfds
from etils import epath

from jaxmon.tasks.thyroid.raw import ATTRIBUTES, MORE_THAN, SHA256, URL, Patient, read, select

PATIENCE = 20.0  # seconds to wait for the archive's host
SPLIT = "patients"  # the study uses every record; it has no training set


@dataclasses.dataclass
class ThyroidConfig(tfds.core.BuilderConfig):
    """The checksum a raw file must have, and the size a class must exceed to be kept."""

    sha256: str = SHA256
    more_than: int = MORE_THAN


def other_file(path: str | Path, more_than: int) -> ThyroidConfig:
    """For another file in the archive's format: its content names its folder, so it is never served as the archive."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ThyroidConfig(name=f"file_{digest[:12]}_{more_than}", sha256=digest, more_than=more_than)


class Builder(tfds.core.GeneratorBasedBuilder):
    """Thyroid patients: id, diagnosis (one letter) and 22 attributes as text, "" where the value is not known."""

    # Set here since the inherited look-up needs a package that tensorflow-datasets 4.9.10 does not install.
    code_path = epath.Path(__file__)
    pkg_dir_path = epath.Path(__file__).parent
    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012  (the interface's own declaration)
    BUILDER_CONFIGS = [ThyroidConfig(name="archive")]  # noqa: RUF012

    def __init__(self, *, path: str | Path | None = None, file_format: str = "array_record", **kwargs: Any):
        """As every builder, and `path`: a local raw file in place of the download; its checksum must fit too."""
        super().__init__(file_format=file_format, **kwargs)
        self._path = path

    def _info(self) -> tfds.core.DatasetInfo:
        names = ("id", "diagnosis", *ATTRIBUTES)
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict({name: tfds.features.Text() for name in names}),
            homepage="https://archive.ics.uci.edu/dataset/102/thyroid+disease",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> Mapping[str, Any]:
        path = self._path or dl_manager.download(URL)
        return {SPLIT: self._generate_examples(path)}

    def _generate_examples(self, path: str | Path) -> Iterator[tuple[int, dict[str, str]]]:
        config = self.builder_config
        for i, patient in enumerate(select(read(path, config.sha256), config.more_than)):
            values = {name: patient.values.get(name, "") for name in ATTRIBUTES}
            yield i, {"id": patient.id, "diagnosis": patient.diagnosis, **values}


def patients(examples: Iterable[Mapping[str, bytes]]) -> list[Patient]:
    """A data source's examples as patients again."""
    found = []
    for example in examples:
        text = {name: value.decode() for name, value in example.items()}
        values = {name: text[name] for name in ATTRIBUTES if text[name]}
        found.append(Patient(text["id"], text["diagnosis"], values))
    return found


def download(data_dir: str | Path | None = None) -> list[Patient]:
    """The archive's patients, downloaded once and kept in `data_dir` (None: tensorflow-datasets' default).

    Raises:
      ValueError: what came is not the archive's file.
      OSError: the download failed.
    """
    builder = Builder(data_dir=data_dir)
    try:
        if not builder.is_prepared():
            requests.head(URL, timeout=PATIENCE)  # without a network the downloader would try for minutes
            builder.download_and_prepare()
    except tfds.download.download_manager.NonMatchingChecksumError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except (requests.RequestException, tfds.download.DownloadError) as error:
        raise OSError(
            f"{URL} cannot be downloaded; put the file there yourself and name it in JAXMON_THYROID"
        ) from error
    return patients(builder.as_data_source(split=SPLIT))
