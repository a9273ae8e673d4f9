"""Values as JSON has them."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NaN becomes null, what else JSON does not have words.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"p": np.inf, "shares": np.array([0.5, np.nan])})
    {'p': 'inf', 'shares': [0.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (int, float)):
        return None if value != value else value if np.isfinite(value) else str(value)
    return repr(value)
