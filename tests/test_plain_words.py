"""Plain words: a list of words we do not use, in pages, docstrings and messages."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: A word or phrase, and what to write instead.
INSTEAD = {
    # words of another century
    r"dear(er|est)?": "costly, expensive, slow",
    r"kin": "metrics like it; others of its kind",
    r"lest": "so that ... not",
    r"afresh": "again, from nothing",
    r"by heart": "remember",
    r"whence|thence|hither(to)?|thither|hereto(fore)?|herein|hereby|thereof|wherein": "where",
    r"albeit|notwithstanding|perchance|nought|aught|unto|amongst|whilst": "although, nothing, to",
    # riddles that readers have met here
    r"stands? differently": "are ranked differently",
    r"open to nobody": "keeps its permissions",
    r"everything is possible": "no interval: and why",
    r"(one|two|ten|hundred) an? (p|row|second|minute|day|fold|group|class)": "per",
    # words that make the reader feel slow
    r"simply|obviously|trivially|needless to say|just (use|call|pass|add)": "nothing",
    # words that sell
    r"leverag(e|es|ed|ing)|utili[sz](e|es|ed|ing)": "use",
    r"seamless(ly)?|powerful|blazing(ly)?|cutting-edge|state-of-the-art|world-class": "a number",
    r"robust and scalable|holistic|synerg\w+|paradigm|game.chang\w+|delve|unlock(s|ing)?": "a fact",
    r"performant|functionalit(y|ies)|facilitat(e|es|ing)": "fast; what it does; help",
    # long ways round
    r"in order to": "to",
    r"due to the fact that": "because",
    r"at this point in time": "now",
    r"it should be noted that|note that it is": "leave it out",
    r"aforementioned|the former|the latter": "name it",
    r"e\.g\.|i\.e\.|viz\.|inter alia|ceteris paribus|a priori|a posteriori|ad hoc": "English",
}
WORDS = re.compile("|".join(rf"\b(?:{word})(?!\w)" for word in INSTEAD), re.IGNORECASE)
#: What a build of the site writes among its sources.
BUILT = {"_build", "gallery", "generated", "by_job"}
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages():
    """The pages of the site and of the repository's root, without their code."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if BUILT.isdisjoint(path.relative_to(ROOT).parts):
            yield path, CODE.sub("", path.read_text(encoding="utf-8"))


def strings_of_code():
    """Docstrings and messages of the package, and the texts of tutorials and examples."""
    for folder in ("src", "tutorials", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not WORDS.search(text):  # parsing takes longer than looking
                continue
            said = [node.value for node in ast.walk(ast.parse(text))
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip
            if folder != "src":
                said += re.findall(r"^# (.*)$", text, re.MULTILINE)
            yield path, CODE.sub("", "\n".join(said))


@pytest.mark.parametrize("source", [pages, strings_of_code], ids=lambda source: source.__name__)
def test_we_write_in_plain_words(source):
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]!r}, write: {instead(hit[0])}"
        for path, text in source()
        for hit in WORDS.finditer(text)
    ]
    assert not found, "\n".join(found)


def instead(word):
    """What the list says to write in place of a word."""
    return next(better for bad, better in INSTEAD.items() if re.fullmatch(bad, word, re.IGNORECASE))


@pytest.mark.parametrize("word", ["dear", "ten a second", "utilizing", "e.g."])
def test_a_word_of_the_list_is_found(word):
    assert WORDS.search(f"This {word} is found") and instead(word)
    assert not WORDS.search("a deadline, kindness, per second, used")


@pytest.mark.more
def test_words_are_spelled_as_others_spell_them():
    codespell = shutil.which(
        "codespell", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if codespell is None:
        pytest.skip("codespell is not installed")
    pages = [path.name for path in ROOT.glob("*.md")]
    places = [*pages, "docs", "src", "tutorials", "examples", "benchmarks"]
    done = subprocess.run(
        [codespell, *places], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
