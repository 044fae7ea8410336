# SPDX-License-Identifier: Apache-2.0
"""What the site needs of Markdown that is written for GitHub: links out of docs, and code in lists."""
import posixpath
import re

LINK = re.compile(r"(\]\()(\.\./[^)\s]*)(\))")


def on_page_markdown(markdown, page, config, files):
    def absolute(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[2]))
        return f"{match[1]}{config['repo_url']}/blob/main/{path}{match[3]}"

    return in_lists(LINK.sub(absolute, markdown))


def in_lists(markdown):
    """Python-Markdown wants four spaces before what goes on in a list, and knows no fences there."""
    lines, top, inner = [], False, False
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        if line.startswith("```"):
            top = not top
        elif not top and text.startswith("```"):
            inner = not inner
            continue
        elif inner:
            line = " " * 8 + text
        elif not top and line.startswith("   ") and not line.startswith("    "):
            line = " " + line
        lines.append(line)
    return "\n".join(lines)
