"""An executor on Dask: a cluster of local processes, or any scheduler."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from softcvi.sweeps._devices import accelerators
from softcvi.sweeps._executors import (
    THREAD_LIMITS,
    AbstractExecutor,
    Outcome,
    describe,
    worker_died,
)

_RETRIES = 2
_CONNECT_SECONDS = 15


class DaskExecutor(AbstractExecutor):
    """Batches as tasks of Dask; a batch whose worker dies is run again elsewhere.

    Args:
        scheduler: Address such as ``tcp://host:8786``; without it a cluster of local
            processes is started, and stopped at the end.
        workers: Processes of a local cluster; by default one for each GPU that JAX
            would use, which that process alone sees, or else for each core.

    Example:
        >>> from softcvi.sweeps import DaskExecutor
        >>> DaskExecutor(workers=2).scheduler is None
        True
    """

    def __init__(self, scheduler: str | None = None, workers: int | None = None):
        if scheduler is not None and workers is not None:
            raise ValueError(
                "workers: a scheduler that is given has its own workers. Leave it out."
            )
        self.scheduler = scheduler
        self.devices = accelerators() if scheduler is None else []
        self.workers = workers or len(self.devices) or os.cpu_count() or 1

    def run(
        self, function: Callable[[Any], Any], batches: Sequence[Any]
    ) -> Iterator[Outcome]:
        from distributed import KilledWorker, as_completed

        with self._client() as client:
            futures = {
                client.submit(function, batch, pure=False, retries=_RETRIES): index
                for index, batch in enumerate(batches)
            }
            for future in as_completed(futures):
                error = future.exception()
                if error is None:
                    yield Outcome(futures[future], future.result())
                elif isinstance(error, KilledWorker):
                    times = error.allowed_failures + 1
                    yield Outcome(futures[future], error=worker_died(times))
                else:
                    yield Outcome(futures[future], error=describe(error))

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            import dask
            from distributed import Client, LocalCluster
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "executor: Dask is not installed; pip install 'softcvi[sweep]'."
            ) from error
        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout=_CONNECT_SECONDS)
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"scheduler: {self.scheduler} cannot be reached within "
                    f"{_CONNECT_SECONDS} s ({describe(error)}). Check the address, or "
                    "leave it out for a local cluster."
                ) from error
            with client:
                yield client
            return
        # Before a worker starts, since JAX reads these when it is imported.
        settings = {"distributed.nanny.pre-spawn-environ": THREAD_LIMITS}
        with (
            dask.config.set(settings),
            LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                processes=True,
                # Any free port: several sweeps on one machine must not meet at one.
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster) as client,
        ):
            if self.devices:
                from softcvi.sweeps._dask_devices import OwnDevice

                client.register_plugin(OwnDevice(self.devices))
            yield client
