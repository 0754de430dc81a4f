"""Lays the pages of the site and mkdocs' settings in a folder, for scripts/site.

README.md is the first page. Links between pages stay; those to what is no page become text.
"""

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
# What a newcomer reads first; all other pages follow by name.
FIRST = ("python.md", "cli.md", "runs.md", "surgery.md", "adapting.md", "losses.md",
         "parameter_groups.md", "inference.md", "any_model.md", "glossary.md", "architecture.md")


def title(path):
    """The first heading."""
    return re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]


def with_links_of(text, page, pages):
    """The text with links that lead from `page`, a path below the folder of pages, to other pages. Fails
    for one that leads nowhere."""
    is_top = page.name in ("index.md", *BESIDE) and page.parent == Path(".")
    origin = ROOT if is_top else ROOT / "docs" / page.parent

    def link(match):
        name, target, anchor = match[1], match[2], match[3] or ""
        if not (origin / target).exists():
            sys.exit(f"{page}: [{name}]({target}) leads nowhere")
        target = target.removeprefix("docs/") if is_top else target
        target += "index.md" if target.endswith("adr/") else ""
        return f"[{name}]({target}{anchor})" if (pages / page.parent / target).is_file() else name

    # Not in code, where [] and () belong to the language.
    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    pattern = r"\[([^\[\]]+)\]\((?!https?:)([^()#\s]+)(#[^()\s]*)?\)"
    return "".join(part if part.startswith("`") else re.sub(pattern, link, part) for part in parts)


def lay_pages(pages):
    shutil.copytree(ROOT / "docs", pages)
    shutil.copy(ROOT / "README.md", pages / "index.md")
    for name in BESIDE:
        shutil.copy(ROOT / name, pages)
    records = sorted((pages / "adr").glob("*.md"))
    listed = "".join(f"- [{title(path)}]({path.name})\n" for path in records)
    (pages / "adr/index.md").write_text(f"# Decisions\n\n{listed}", encoding="utf-8")
    for path in pages.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_links_of(text, path.relative_to(pages), pages), encoding="utf-8")


def settings(pages):
    """mkdocs.yml; JSON is YAML."""
    names = sorted(path.name for path in pages.glob("*.md"))
    rest = [name for name in names if name not in (*FIRST, *BESIDE, "index.md")]
    records = [{title(path): f"adr/{path.name}"} for path in sorted((pages / "adr").glob("0*.md"))]
    nav = [{"Graft": "index.md"}, *({title(pages / name): name} for name in (*FIRST, *rest)),
           {"C++ reference": "/api/index.html"},
           *({title(pages / name): name} for name in BESIDE),
           {"Decisions": ["adr/index.md", *records]}]
    return json.dumps({
        "site_name": "Graft", "docs_dir": str(pages), "use_directory_urls": False,
        "theme": {"name": "readthedocs", "highlightjs": False}, "plugins": ["search"], "nav": nav,
        "markdown_extensions": ["tables", "fenced_code"],
        "validation": {"absolute_links": "ignore", "nav": {"absolute_links": "ignore"},
                       "links": {"anchors": "warn"}},
    })


def main(folder):
    pages = folder / "pages"
    lay_pages(pages)
    (folder / "mkdocs.yml").write_text(settings(pages), encoding="utf-8")


main(Path(sys.argv[1]))
