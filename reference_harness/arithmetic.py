"""The float64 arithmetic of a fit: NumPy and SciPy on the CPU, or torch on a device.

`newton` is written once against this. What is here are the operations that the two libraries spell
differently; `xp` is the module that has all others under one name.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .matrix import AnyMatrix

Matrix = npt.NDArray[np.float64]
"""Of the library in use: NumPy's type stands for torch's tensors of float64, too."""
Targets = npt.NDArray[np.int64]

PASS_BYTES = 1 << 20
"""Size of a block in float64 that is multiplied by vectors. It stays in the cache between its
conversion and its two products: a pass over 32,378 x 768 features takes a fifth of the time that
blocks of 32 MiB take, which all go through memory three times."""
BLOCK_BYTES = 32 << 20
"""Size of a block of features in float64 whose Hessian is summed: large enough for BLAS, small
beside one task."""
HELD_BYTES = 128 << 20
"""Size of features in float32 up to which rows that are converted when they are read are held: from
float16 each pass takes more than twice as long."""
DEVICE_BYTES = 256 << 20
"""Size of either block on a device: few kernels to start, and small beside its memory. Chosen, not
measured."""


class SingularError(Exception):
    """A matrix has no Cholesky factor; the message is the library's."""


class HostArithmetic:
    """NumPy and SciPy."""

    xp: Any = np

    @property
    def pass_bytes(self) -> int:
        """Return the size of a block, in float64, that is multiplied by vectors."""
        return PASS_BYTES

    @property
    def block_bytes(self) -> int:
        """Return the size of a block, in float64, whose Hessian is summed."""
        return BLOCK_BYTES

    def held(self, x: AnyMatrix) -> AnyMatrix:
        """Return (n, d) features as they are read block by block, of their own floating type."""
        if not isinstance(x, np.ndarray) and x.size * 4 <= HELD_BYTES:
            return np.asarray(x, dtype=np.float32)  # as it gives its rows
        return x

    def span(self, x: AnyMatrix) -> tuple[Matrix, Matrix]:
        """Return an orthonormal basis (d, n) of n < d rows, and the rows (n, n) in it."""
        basis, triangle = np.linalg.qr(np.asarray(x, dtype=np.float64).T)
        return basis, np.ascontiguousarray(triangle.T)

    def wide(self, block: Any, room: Matrix | None = None) -> Matrix:
        """Return a block in float64: itself, or a copy, in `room` where that is given."""
        if room is None or block.dtype == np.float64:
            return np.asarray(block, dtype=np.float64)
        converted = room[: len(block)]
        converted[:] = block
        return converted

    def targets(self, targets: Targets) -> Targets:
        """Return the (n,) targets where the features are."""
        return targets

    def arange(self, count: int) -> npt.NDArray[np.int64]:
        """Return 0 to count - 1, to index with."""
        return np.arange(count)

    def empty(self, *shape: int) -> Matrix:
        """Return an array whose values are not set."""
        return np.empty(shape)

    def zeros(self, *shape: int) -> Matrix:
        """Return zeros."""
        return np.zeros(shape)

    def softplus(self, z: Matrix) -> Matrix:
        """Return log(1 + exp(z))."""
        values: Matrix = np.logaddexp(0.0, z)
        return values

    def logistic(self, z: Matrix) -> Matrix:
        """Return 1 / (1 + exp(-z))."""
        from scipy.special import expit  # slow to import, see `probe`

        values: Matrix = expit(z)
        return values

    def factor(self, matrix: Matrix) -> Any:
        """Return the Cholesky factor of a symmetric matrix, whose memory it may take.

        Raises SingularError where it has none.
        """
        from scipy.linalg import LinAlgError, cho_factor  # see `logistic`

        try:
            return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except (LinAlgError, ValueError) as error:
            raise SingularError(str(error)) from error

    def eased(self, factor: Any, right: Matrix) -> Matrix:
        """Return the solution of a system of which `factor` gave the factor."""
        from scipy.linalg import cho_solve  # see `logistic`

        solution: Matrix = cho_solve(factor, right, check_finite=False)
        return solution

    def copy(self, array: Matrix) -> Matrix:
        """Return a copy."""
        return array.copy()

    def numpy(self, array: Matrix) -> Matrix:
        """Return an array of NumPy."""
        return array


HOST = HostArithmetic()


class DeviceArithmetic(HostArithmetic):
    """torch on a device. Features are sent once and stay there, in their own floating type."""

    def __init__(self, device: str) -> None:
        import torch  # a second to import, and needed here alone

        self.xp = torch
        self._device = torch.device(device)

    @property
    def pass_bytes(self) -> int:
        """Return the size of a block, in float64, that is multiplied by vectors."""
        return DEVICE_BYTES

    @property
    def block_bytes(self) -> int:
        """Return the size of a block, in float64, whose Hessian is summed."""
        return DEVICE_BYTES

    def held(self, x: AnyMatrix) -> Any:
        """Return (n, d) features on the device, sent block by block."""
        if isinstance(x, self.xp.Tensor):
            return x
        first = np.ascontiguousarray(x[:1])
        features = self.xp.empty(
            tuple(x.shape), dtype=self.xp.from_numpy(first).dtype, device=self._device
        )
        step = max(1, DEVICE_BYTES // (8 * x.shape[1]))
        for start in range(0, x.shape[0], step):
            block = np.require(x[start : start + step], requirements=["C", "W"])
            features[start : start + step] = self.xp.from_numpy(block)
        return features

    def span(self, x: AnyMatrix) -> tuple[Matrix, Matrix]:
        """Return an orthonormal basis (d, n) of n < d rows, and the rows (n, n) in it."""
        basis, triangle = self.xp.linalg.qr(self.held(x).to(self.xp.float64).T)
        return basis, triangle.T.contiguous()

    def wide(self, block: Any, room: Matrix | None = None) -> Matrix:
        """Return a block in float64: itself, or a copy, in `room` where that is given."""
        if room is None or block.dtype == self.xp.float64:
            widened: Matrix = block.to(self.xp.float64)
            return widened
        converted = room[: len(block)]
        converted[:] = block
        return converted

    def targets(self, targets: Targets) -> Targets:
        """Return the (n,) targets where the features are."""
        on_device: Targets = self.xp.asarray(targets, device=self._device)
        return on_device

    def arange(self, count: int) -> npt.NDArray[np.int64]:
        """Return 0 to count - 1, to index with."""
        indices: npt.NDArray[np.int64] = self.xp.arange(count, device=self._device)
        return indices

    def empty(self, *shape: int) -> Matrix:
        """Return an array whose values are not set."""
        array: Matrix = self.xp.empty(shape, dtype=self.xp.float64, device=self._device)
        return array

    def zeros(self, *shape: int) -> Matrix:
        """Return zeros."""
        array: Matrix = self.xp.zeros(shape, dtype=self.xp.float64, device=self._device)
        return array

    def softplus(self, z: Matrix) -> Matrix:
        """Return log(1 + exp(z))."""
        values: Matrix = self.xp.logaddexp(self.xp.zeros_like(z), z)
        return values

    def logistic(self, z: Matrix) -> Matrix:
        """Return 1 / (1 + exp(-z))."""
        values: Matrix = self.xp.sigmoid(z)
        return values

    def factor(self, matrix: Matrix) -> Any:
        """Return the Cholesky factor of a symmetric matrix.

        Raises SingularError where it has none.
        """
        triangle, info = self.xp.linalg.cholesky_ex(matrix)
        if int(info):
            msg = f"the leading minor of order {int(info)} is not positive definite"
            raise SingularError(msg)
        return triangle

    def eased(self, factor: Any, right: Matrix) -> Matrix:
        """Return the solution of a system of which `factor` gave the factor."""
        solution: Matrix = self.xp.cholesky_solve(right, factor)
        return solution

    def copy(self, array: Any) -> Matrix:
        """Return a copy."""
        copied: Matrix = array.clone()
        return copied

    def numpy(self, array: Any) -> Matrix:
        """Return an array of NumPy."""
        on_host: Matrix = array.cpu().numpy()
        return on_host
