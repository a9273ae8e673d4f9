"""The start of the command line: it does not walk through all of scikit-learn to read a model."""

import subprocess
import sys

import pytest


@pytest.mark.more
def test_a_model_is_shown_without_loading_what_it_does_not_need(model):
    code = (
        "import sys\n"
        f"sys.argv = ['toprank', 'show', {str(model)!r}]\n"
        "from toprank.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "import sklearn.utils\n"
        "assert sklearn.utils.all_estimators.__name__ == 'all_estimators'\n"
        "heavy = ('torch', 'skops', 'skrub', 'matplotlib', 'numba', 'toprank.models.fit')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
    assert "at the top" in done.stdout


@pytest.mark.more
def test_a_fit_in_a_process_of_its_own_leaves_scikit_learn_as_it_was(train, tmp_path):
    arguments = ["toprank", "fit", str(train), "-y", "bought", "--id", "customer", "--p", "2"]
    arguments += ["--model", "pnorm", "-q", "-o", str(tmp_path / "m")]
    code = (
        f"import sys\nsys.argv = {arguments!r}\n"
        "from toprank.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "import sklearn.utils\n"
        "assert sklearn.utils.all_estimators.__name__ == 'all_estimators'\n"
        "assert 'skops.io' in sys.modules and 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m").exists()


def test_a_fit_that_is_quiet_prints_nothing(train, tmp_path, invoke):
    options = ["--id", "customer", "--p", "2", "--jobs", "2", "-q", "-o", tmp_path / "m"]
    answer = invoke("fit", train, "-y", "bought", *options)
    assert answer.exit_code == 0 and answer.output == ""
    assert (tmp_path / "m").exists()
