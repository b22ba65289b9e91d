"""An object store in memory, as fsspec sees one: keys and whole objects, listings by prefix, no directories, no rename,
no append; a PUT may be exclusive. `fakestore://BUCKET/KEY` once `register` has been called.
"""

from __future__ import annotations

from typing import Any, ClassVar

import fsspec
from fsspec.spec import AbstractFileSystem

SCHEME = "fakestore"


class ObjectStore(AbstractFileSystem):
    """Attributes of the class: objects, key -> bytes; puts, keys in the order they were written; fail_at, the number of
    the PUT (from 0) from which on the store is full."""

    protocol = SCHEME
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    puts: ClassVar[list[str]] = []
    fail_at: ClassVar[int | None] = None

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        key = self._strip_protocol(path)
        if mode == "create" and key in self.objects:
            raise FileExistsError(key)
        if self.fail_at is not None and len(self.puts) >= self.fail_at:
            raise OSError(28, "No space left on device")
        self.puts.append(key)
        self.objects[key] = bytes(value)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        try:
            return self.objects[self._strip_protocol(path)][start:end]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if mode != "rb":
            raise NotImplementedError("objects are written by one PUT")
        import io

        return io.BytesIO(self.cat_file(path))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        key = self._strip_protocol(path).rstrip("/")
        if key in self.objects:
            return [self._file(key)] if detail else [key]
        inside = [k for k in self.objects if k.startswith(f"{key}/")]
        if not inside:
            raise FileNotFoundError(path)
        here = sorted({f"{key}/" + k[len(key) + 1 :].split("/")[0] for k in inside})
        found = [self._file(k) if k in self.objects else {"name": k, "size": 0, "type": "directory"} for k in here]
        return found if detail else here

    def _file(self, key: str) -> dict[str, Any]:
        return {"name": key, "size": len(self.objects[key]), "type": "file"}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        key = self._strip_protocol(path).rstrip("/")
        if key in self.objects:
            return self._file(key)
        if any(k.startswith(f"{key}/") for k in self.objects):
            return {"name": key, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def rm_file(self, path: str) -> None:
        del self.objects[self._strip_protocol(path)]


def register() -> type[ObjectStore]:
    """An empty store under the scheme."""
    fsspec.register_implementation(SCHEME, ObjectStore, clobber=True)
    ObjectStore.objects.clear()
    ObjectStore.puts.clear()
    ObjectStore.fail_at = None
    return ObjectStore
