"""The push in torch: `PushLoss`, and batches that always hold positives.

The package can be imported without torch; using it then says what to install.
"""

from toprank.interop.torch.loss import PushLoss
from toprank.interop.torch.sampler import PositiveBatchSampler

__all__ = ["PositiveBatchSampler", "PushLoss"]
