"""Workers of a local Dask cluster with an accelerator each; needs Dask."""

from typing import Any

from distributed import WorkerPlugin

from softcvi.sweeps._devices import use_own


class OwnDevice(WorkerPlugin):
    """Lets each worker see one device alone, also after a restart.

    Args:
        devices: Names of all devices.
    """

    name = "softcvi-device"

    def __init__(self, devices: list[str]):
        self.devices = devices

    def setup(self, worker: Any) -> None:
        use_own(self.devices, int(worker.name))
