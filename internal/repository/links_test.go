// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)(?: +#+)?$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinksOfDocumentsLead follows every link between files of the repository: files, folders and headings.
func TestLinksOfDocumentsLead(t *testing.T) {
	links := 0
	for _, path := range documents(t) {
		n, problems := checkLinks(path, string(read(t, path)))
		links += n
		for _, problem := range problems {
			t.Error(problem)
		}
	}
	if links < 70 {
		t.Errorf("only %d links", links)
	}
}

func TestLinksThatLeadNowhereAreNamed(t *testing.T) {
	text := strings.Join([]string{
		"# A heading, `quoted`", "## twice", "## twice",
		"[here](#a-heading-quoted) [again](#twice-1) [elsewhere](https://example.com/none) [there](../../README.md#embed-it)",
		"[lost](#none) and [gone](none.md) and [there](../../README.md#none)",
		"```", "# no heading", "[no](link.md)", "```",
		"[no heading](#no-heading) `[quoted](code.md)`",
	}, "\n")
	_, got := checkLinks("here.md", text)
	want := []string{
		"here.md:5: there is no heading #none in here.md",
		"here.md:5: there is no none.md",
		"here.md:5: there is no heading #none in ../../README.md",
		"here.md:10: there is no heading #no-heading in here.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkLinks returns how many links of a document stay in the repository, and which of them lead nowhere.
func checkLinks(path, text string) (links int, problems []string) {
	for i, line := range prose(text) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			links++
			if problem := lead(path, text, match[1]); problem != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s", path, i+1, problem))
			}
		}
	}
	return links, problems
}

// lead says why a link of a document leads nowhere.
func lead(path, text, target string) string {
	file, anchor, _ := strings.Cut(target, "#")
	to := path
	if file != "" {
		to = filepath.Join(filepath.Dir(path), file)
		other, err := os.ReadFile(to)
		if _, missing := os.Stat(to); missing != nil {
			return "there is no " + file
		}
		if err != nil || !strings.HasSuffix(to, ".md") { // a folder, or code, whose lines have anchors of their own
			return ""
		}
		text = string(other)
	}
	if anchor != "" && !slices.Contains(anchors(text), anchor) {
		return fmt.Sprintf("there is no heading #%s in %s", anchor, to)
	}
	return ""
}

// prose returns the lines of a document, empty where they are code.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			lines[i] = ""
		}
	}
	return lines
}

// anchors returns the names by which GitHub links to the headings of a document.
func anchors(text string) (names []string) {
	seen := map[string]int{}
	for _, line := range prose(text) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(link.ReplaceAllString(match[1], "")), ""), " ", "-")
		if n := seen[name]; n > 0 {
			names = append(names, fmt.Sprintf("%s-%d", name, n))
		} else {
			names = append(names, name)
		}
		seen[name]++
	}
	return names
}

// TestEveryDocumentIsInTheNavigation of the site, and in the index that readers on GitHub have.
func TestEveryDocumentIsInTheNavigation(t *testing.T) {
	var site struct{ Nav any }
	if err := yaml.Unmarshal(read(t, filepath.Join(root, "mkdocs.yml")), &site); err != nil {
		t.Fatal(err)
	}
	navigation := leaves(site.Nav)
	index := string(read(t, filepath.Join(root, "docs", "README.md")))
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) < 8 {
		t.Fatal(paths, err)
	}
	var names []string
	for _, path := range paths {
		name := filepath.Base(path)
		names = append(names, name)
		if name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
	slices.Sort(navigation)
	if !slices.Equal(navigation, names) {
		t.Errorf("mkdocs.yml has %q, docs has %q", navigation, names)
	}
}

// leaves returns the strings of a tree of maps and lists.
func leaves(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			all = append(all, leaves(item)...)
		}
	case map[string]any:
		for _, item := range v {
			all = append(all, leaves(item)...)
		}
	}
	return all
}

// TestDependabotKnowsEveryModule of the repository.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(root, ".github", "dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			got = append(got, update.Directories...)
		}
	}
	if want := moduleFolders(t); !slices.Equal(got, want) {
		t.Errorf("the directories of gomod are\n%q, expected\n%q", got, want)
	}
}

// moduleFolders returns the folders with a go.mod, sorted, as paths from the root of the repository.
func moduleFolders(t *testing.T) (folders []string) {
	for _, path := range files(t, func(name string) bool { return name == "go.mod" }) {
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, filepath.Join("/", folder))
	}
	slices.Sort(folders)
	return folders
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
