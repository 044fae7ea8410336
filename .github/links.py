# SPDX-License-Identifier: Apache-2.0
"""Makes links of documents to files outside of docs links to the repository."""
import posixpath
import re

LINK = re.compile(r"(\]\()(\.\./[^)\s]*)(\))")


def on_page_markdown(markdown, page, config, files):
    def absolute(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[2]))
        return f"{match[1]}{config['repo_url']}/blob/main/{path}{match[3]}"

    return LINK.sub(absolute, markdown)
