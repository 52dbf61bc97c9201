"""JAX's programs on disk, written whole or not at all."""

import functools
import itertools
import os
from typing import Any

_NUMBERS = itertools.count()


@functools.cache  # once in a process
def write_programs_whole() -> None:
    """Give a program its name in JAX's cache on disk only once all of it is written.

    Where JAX has another cache than the one known here, it stays as it is. A cache with
    a limit of its own (``jax_compilation_cache_max_size``) does, too: it has a lock.
    """
    try:
        from jax._src import lru_cache

        cache, suffix, put = (
            lru_cache.LRUCache,
            lru_cache._CACHE_SUFFIX,
            lru_cache.LRUCache.put,
        )
    except (ImportError, AttributeError):
        return

    @functools.wraps(put)
    def put_whole(self: Any, key: str, value: bytes) -> None:
        if self.eviction_enabled:
            return put(self, key, value)
        path = self.path / f"{key}{suffix}"
        if not path.exists():
            unfinished = f"{key}.{os.getpid()}.{next(_NUMBERS)}"
            put(self, unfinished, value)
            os.replace(self.path / f"{unfinished}{suffix}", path)
        return None

    cache.put = put_whole
