"""What the dataset builders share: tensorflow-datasets with array_record and no TensorFlow; every example is text.

A task's builder says which columns its rows have, which files it needs, and how files become rows:

    builder = Builder(data_dir=...)       # downloads; or Builder(paths={"patients": "/my/file"}, data_dir=...)
    builder.download_and_prepare()
    source = builder.as_data_source(split=SPLIT)  # random access; examples hold bytes

Knows: tensorflow-datasets. Does not know: what rows mean.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import requests
import tensorflow_datasets as tfds

PATIENCE = 20.0  # seconds to wait for a host
SPLIT = "records"  # the study uses every record; it has no training set (and "all" is a reserved name)


@dataclasses.dataclass
class FilesConfig(tfds.core.BuilderConfig):
    """Which files a builder reads: their checksums (None accepts any), and how its rows are chosen."""

    sha256: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    choice: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class RowBuilder(tfds.core.GeneratorBasedBuilder):
    """A builder of rows of text. Subclasses set the four constants and `rows`.

    Subclasses also set `code_path` and `pkg_dir_path`, since the inherited look-up needs a package
    (importlib_resources) that tensorflow-datasets 4.9.10 does not install.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES: ClassVar[dict[str, str]] = {"1.0.0": "First release."}
    COLUMNS: ClassVar[Sequence[str]] = ()
    URLS: ClassVar[Mapping[str, str]] = {}
    HOMEPAGE: ClassVar[str] = ""
    VARIABLE: ClassVar[str] = ""  # the environment variable that names a local copy

    def __init__(
        self, *, paths: Mapping[str, str | Path] | None = None, file_format: str = "array_record", **kwargs: Any
    ):
        """As every builder, and `paths`: local raw files in place of the download; their checksums must fit too."""
        super().__init__(file_format=file_format, **kwargs)
        self._paths = paths

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict({name: tfds.features.Text() for name in self.COLUMNS}),
            homepage=self.HOMEPAGE,
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> Mapping[str, Any]:
        return {SPLIT: self._generate_examples(self._paths or dl_manager.download(dict(self.URLS)))}

    def _generate_examples(self, paths: Mapping[str, str | Path]) -> Iterator[tuple[int, dict[str, str]]]:
        for i, row in enumerate(self.rows(paths, self.builder_config)):
            yield i, dict(row)

    @abc.abstractmethod
    def rows(self, paths: Mapping[str, str | Path], config: FilesConfig) -> Iterable[Mapping[str, str]]:
        """The rows of the raw files, in a stable order; every one has exactly the columns.

        Raises:
          ValueError: a file is not the one expected, or a row of it cannot be read.
        """


def texts(examples: Iterable[Mapping[str, bytes]]) -> list[dict[str, str]]:
    """A data source's examples as rows of text again."""
    return [{name: value.decode() for name, value in example.items()} for example in examples]


def download(builder: type[RowBuilder], data_dir: str | Path | None = None) -> list[dict[str, str]]:
    """The rows of a builder's own files, downloaded once and kept in `data_dir` (None: the library's default).

    Raises:
      ValueError: what came is not the file expected.
      OSError: the download failed.
    """
    made = builder(data_dir=data_dir)
    first = next(iter(builder.URLS.values()))
    try:
        if not made.is_prepared():
            requests.head(first, timeout=PATIENCE)  # without a network the downloader would try for minutes
            made.download_and_prepare()
    except tfds.download.download_manager.NonMatchingChecksumError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except (requests.RequestException, tfds.download.DownloadError) as error:
        raise OSError(
            f"{first} cannot be downloaded; put the file there yourself and name it in {builder.VARIABLE}"
        ) from error
    return texts(made.as_data_source(split=SPLIT))
