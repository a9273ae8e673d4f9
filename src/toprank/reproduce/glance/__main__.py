"""Print the page: ``python -m toprank.reproduce.glance > docs/papers.md``."""

from toprank.reproduce.glance import papers_page

print(papers_page(), end="")
