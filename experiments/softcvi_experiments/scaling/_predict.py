"""What a step would take on many devices. Networks and accelerators are assumptions."""

import abc
import dataclasses
import math

from softcvi_experiments.scaling._costs import BLOCK, Case, Costs

_ROWS = ("reads", "terms", "products")


@dataclasses.dataclass(frozen=True)
class Network:
    """What an all-reduce takes; both numbers are assumed, not measured.

    Args:
        latency: Seconds of one message.
        bandwidth: Bytes per second of each device.

    Example:
        >>> Network().seconds(64, devices=1)
        0.0
    """

    latency: float = 20e-6
    bandwidth: float = 12.5e9

    def seconds(self, size: float, devices: int) -> float:
        """Time of an all-reduce along a tree, up and down.

        Args:
            size: Bytes that are reduced.
            devices: Devices that take part.
        """
        rounds = 2 * math.ceil(math.log2(devices))
        share = 2 * (devices - 1) / devices
        return rounds * self.latency + share * size / self.bandwidth


class AbstractDevice(abc.ABC):
    """How long a device takes for its own part of a step."""

    @abc.abstractmethod
    def seconds_rows(self, case: Case) -> float:
        """Time of the rows that the device has.

        Args:
            case: Sizes, with the rows of this device.
        """

    @abc.abstractmethod
    def block(self, rows: int) -> int:
        """Rows that ``DataTarget`` takes at a time by default.

        Args:
            rows: Rows of the whole data set.
        """

    @abc.abstractmethod
    def seconds_rest(self, case: Case) -> float:
        """Time of what every device does: particles, guide and update.

        Args:
            case: Sizes.
        """


@dataclasses.dataclass(frozen=True)
class Core(AbstractDevice):
    """One core as it was measured.

    Args:
        costs: Coefficients in seconds.

    Example:
        >>> core = Core(Costs({"step": 1.0, "terms": 2.0}))
        >>> core.seconds_rows(Case("mean-field", 8, 10, rows=3))
        48.0
    """

    costs: Costs

    def seconds_rows(self, case: Case) -> float:
        return self.costs.of(case, _ROWS)

    def block(self, rows: int) -> int:
        return BLOCK

    def seconds_rest(self, case: Case) -> float:
        rest = [name for name in self.costs.each if name not in _ROWS]
        return self.costs.of(case, rest)


@dataclasses.dataclass(frozen=True)
class Accelerator(AbstractDevice):
    """An accelerator whose memory is the limit; all numbers are assumed.

    Args:
        step: Seconds of a step without rows, as one H200 has for small models.
        bandwidth: Bytes per second at which rows and guide are read: half of what the
            maker of an H200 says.

    Example:
        >>> round(Accelerator().seconds_rows(Case("mean-field", 8, 20, rows=10**8)), 4)
        0.0035
    """

    step: float = 30e-6
    bandwidth: float = 2.4e12

    def seconds_rows(self, case: Case) -> float:
        return row_bytes(case) / self.bandwidth

    def block(self, rows: int) -> int:
        return min(max(rows // 64, BLOCK), 1 << 17)

    def seconds_rest(self, case: Case) -> float:
        counts = case.counts()
        # Guide, gradient and two moments, and the particles once each.
        floats = 4 * counts["parameters"] + counts["entries"]
        return self.step + 4 * floats / self.bandwidth


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A step on so many devices.

    Attributes:
        devices: How many.
        rows: Seconds of the rows of one device.
        rest: Seconds of what every device repeats.
        exchange: Seconds of the all-reduce.
        bytes: Of the rows of one device.
    """

    devices: int
    rows: float
    rest: float
    exchange: float
    bytes: float

    @property
    def seconds(self) -> float:
        """Time of the step."""
        return self.rows + self.rest + self.exchange

    @property
    def efficiency(self) -> float:
        """Time of one device over the device time of all.

        Example:
            >>> Prediction(10, 3.0, 1.0, 1.0, 0.0).efficiency
            0.62
        """
        return (self.devices * self.rows + self.rest) / (self.devices * self.seconds)


def row_bytes(case: Case) -> float:
    """Bytes of the rows in single precision.

    Args:
        case: Sizes.

    Example:
        >>> row_bytes(Case("mean-field", 8, 20, rows=10))
        840.0
    """
    return 4 * case.counts()["data"]


def seconds_exchange(
    way: str, network: Network, case: Case, devices: int, blocks: int
) -> float:
    """Time of the all-reduces of a step whose rows are spread.

    Labels need K log densities, each with what its sum lost. The ELBO needs gradients
    in the particles as well, and its program reduces them after every block of rows.

    Args:
        way: ``"SoftCVI"`` or another.
        network: What joins the devices.
        case: Sizes.
        devices: How many.
        blocks: Blocks of rows of one device.

    Example:
        >>> case = Case("mean-field", 8, 20, rows=10)
        >>> seconds_exchange("SoftCVI", Network(1e-6, 1e9), case, 2, 1) < 3e-6
        True
    """
    values = network.seconds(8.0 * case.particles, devices)
    if way == "SoftCVI":
        return values
    gradients = network.seconds(4.0 * case.particles * case.dimension, devices)
    return values + blocks * gradients


def predict(
    device: AbstractDevice,
    network: Network,
    case: Case,
    devices: int,
    way: str = "SoftCVI",
) -> Prediction:
    """A step with its rows spread over devices, as ``DataTarget(devices=...)`` does.

    Args:
        device: One of them.
        network: What joins them.
        case: Sizes of the whole.
        devices: How many.
        way: Whose gradients are exchanged.

    Example:
        >>> core = Core(Costs({"step": 1e-5, "products": 1e-10}))
        >>> case = Case("mean-field", 8, 20, rows=10**9)
        >>> predict(core, Network(), case, 8).seconds < 3
        True
    """
    own = dataclasses.replace(case, rows=-(-case.rows // devices))
    blocks = -(-own.rows // device.block(case.rows))
    return Prediction(
        devices,
        device.seconds_rows(own),
        device.seconds_rest(own),
        seconds_exchange(way, network, case, devices, blocks),
        row_bytes(own),
    )
