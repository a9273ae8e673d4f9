"""Print the page: ``python -m toprank.reproduce.glance > docs/evidence/papers.md``."""

from toprank.reproduce.glance import papers_page

print(papers_page(), end="")
