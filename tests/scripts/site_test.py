"""scripts/site_pages.py: every page is in the site, and links lead to pages."""

import json
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from calls import run

ROOT = Path(__file__).resolve().parents[2]


class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)

    def test_every_page_is_listed_and_links_lead_to_pages(self):
        run(sys.executable, ROOT / "scripts/site_pages.py", self.work)
        pages = self.work / "pages"
        listed = set(re.findall(r'"([^"]+\.md)"', json.dumps(json.loads(
            (self.work / "mkdocs.yml").read_text())["nav"])))
        there = {str(path.relative_to(pages)) for path in pages.rglob("*.md")}
        self.assertEqual(there, listed)
        self.assertGreater(len(there), 60)
        readme = (pages / "index.md").read_text()
        self.assertIn("](surgery.md)", readme)
        self.assertNotIn("](docs/", readme)
        self.assertIn("](adr/index.md)", (pages / "architecture.md").read_text())

    def test_a_link_that_leads_nowhere_is_refused(self):
        copy = self.work / "copy"
        for name in ("scripts", "docs"):
            shutil.copytree(ROOT / name, copy / name)
        for beside in ROOT.iterdir():
            if not (copy / beside.name).exists():
                (copy / beside.name).symlink_to(beside)
        (copy / "docs/gone.md").write_text("# Gone\n\n[there](nowhere.md)\n")
        with self.assertRaisesRegex(AssertionError, r"\[there\]\(nowhere.md\) leads nowhere"):
            run(sys.executable, copy / "scripts/site_pages.py", self.work / "out")


if __name__ == "__main__":
    unittest.main()
