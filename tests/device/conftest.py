"""Where the tests of tensors run: on the host always, on a GPU where there is one."""

import pytest


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    return torch.device(request.param)


@pytest.fixture
def gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU here")
    return torch.device("cuda")
