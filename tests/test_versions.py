"""The versions toprank says it works with are the versions it is tested with."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OLDEST = ROOT / "constraints" / "oldest.txt"


def requirements_of(lines):
    """The requirements of other projects; toprank[extra] stands for those of the extra."""
    for line in lines:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for extra in requirement.extras:
                yield from requirements_of(EXTRAS[extra])
        else:
            yield requirement


def floor_of(requirement):
    (specifier,) = requirement.specifier
    assert specifier.operator == ">=", f"{requirement} has no floor"
    return Version(specifier.version)


def pins_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    for line in filter(None, (line.partition("#")[0].strip() for line in lines)):
        (specifier,) = Requirement(line).specifier
        assert specifier.operator == "==", f"{path.name}: {line} is not one exact version"
        yield canonicalize_name(Requirement(line).name), Version(specifier.version)


def floors_of(*groups):
    requirements = [one for lines in groups for one in requirements_of(lines)]
    return [(canonicalize_name(one.name), floor_of(one)) for one in requirements]


def test_every_floor_of_the_tests_is_the_version_of_the_oldest_run():
    floors = dict(floors_of(PROJECT["dependencies"], EXTRAS["test"]))
    pins = dict(pins_of(OLDEST))
    assert {name: pins.get(name) for name in floors} == floors


def test_no_library_is_pinned_twice():
    names = [name for name, _ in pins_of(OLDEST)]
    assert len(names) == len(set(names))


def test_a_library_has_one_floor_in_all_extras():
    floors = floors_of(PROJECT["dependencies"], *EXTRAS.values())
    assert len(set(floors)) == len({name for name, _ in floors})


def test_no_extra_replaces_an_xgboost_that_is_there():
    # pip takes xgboost-cpu for another project, and writes it over the files of xgboost
    small = [
        extra
        for extra, lines in EXTRAS.items()
        if "xgboost-cpu" in {one.name for one in requirements_of(lines)}
    ]
    assert small == ["xgboost-cpu"]
    assert [one.name for one in requirements_of(EXTRAS["xgboost"])] == ["xgboost"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_oldest_python_and_the_constraints(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')}" in text
    assert "constraints/oldest.txt" in text


def test_the_classifiers_start_at_the_oldest_python():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    oldest = Version(PROJECT["requires-python"].removeprefix(">="))
    assert [Version(python).minor for python in named] == list(
        range(oldest.minor, oldest.minor + len(named))
    )
