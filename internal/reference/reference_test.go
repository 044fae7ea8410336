// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmcore/olm/internal/reference"
)

const root = "../.."

func TestThePagesAreCurrent(t *testing.T) {
	reasons, err := reference.Reasons(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"states.md": reference.States(), "kinds.md": reference.Kinds(), "reasons.md": reasons} {
		requireCurrent(t, filepath.Join(root, "docs", name), want)
	}
}

// TestQuotedCodeIsCurrent in all documents of docs.
func TestQuotedCodeIsCurrent(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	quotes := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		current, n, err := reference.Quotes(root, string(text))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		quotes += n
		requireCurrent(t, path, current)
	}
	if quotes < 10 {
		t.Errorf("only %d quotes", quotes)
	}
}

// TestNoCodeIsWrittenByHand in documents that quote code: what is longer than a line comes from the repository.
func TestNoCodeIsWrittenByHand(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?m)^(.*)\n```go\n(?:.*\n)((?:.*\n)*?)```$")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if m[2] != "" && !strings.HasPrefix(m[1], "<!-- code: ") {
				t.Errorf("%s: not quoted:\n%s", path, m[2])
			}
		}
	}
}

// requireCurrent compares a document with what it should be, or writes that with OLMCORE_UPDATE=1.
func requireCurrent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err == nil && string(got) == want {
		return
	}
	if os.Getenv("OLMCORE_UPDATE") != "" {
		err = os.WriteFile(path, []byte(want), 0o644)
	} else if err == nil {
		t.Errorf("%s is not current; OLMCORE_UPDATE=1 go test ./internal/reference writes it again:\n%s", path, cmp.Diff(want, string(got)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestQuotes(t *testing.T) {
	dir := t.TempDir()
	code := "package a\n\nfunc ExampleA() {\n\ta := 1\n\tif a > 0 {\n\t\tfmt.Println(a)\n\t}\n\t// Output:\n\t// 1\n}\n\n" +
		"// It.\nfunc TestC(t *testing.T) {\n\tt.Log()\n}\n\nfunc ExampleB() {\n\t_ = func(t *testing.T) { // func TestB(t *testing.T)\n\t\tt.Log()\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ document, want, err string }{
		"code":       {"<!-- code: a_test.go ExampleA -->\n```go\nold\n```\n", "<!-- code: a_test.go ExampleA -->\n```go\na := 1\nif a > 0 {\n\tfmt.Println(a)\n}\n```\n", ""},
		"output":     {"<!-- output: a_test.go ExampleA -->\n```text\n```\n", "<!-- output: a_test.go ExampleA -->\n```text\n1\n```\n", ""},
		"as a test":  {"<!-- code: a_test.go ExampleB -->\n```go\n```\n", "<!-- code: a_test.go ExampleB -->\n```go\nfunc TestB(t *testing.T) {\n\tt.Log()\n}\n```\n", ""},
		"a test":     {"<!-- code: a_test.go TestC -->\n```go\n```\n", "<!-- code: a_test.go TestC -->\n```go\nfunc TestC(t *testing.T) {\n\tt.Log()\n}\n```\n", ""},
		"no Example": {"<!-- code: a_test.go ExampleC -->\n```go\n```\n", "", "a_test.go has no ExampleC"},
		"no file":    {"<!-- code: b_test.go ExampleC -->\n```go\n```\n", "", "no such file"},
		"no block":   {"a\n<!-- code: a_test.go ExampleA -->\na\n", "", "1 of 1 quotes are not followed by a code block"},
		"no quote":   {"a\n```go\nb\n```\n", "a\n```go\nb\n```\n", ""},
	} {
		got, _, err := reference.Quotes(dir, c.document)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestEveryEdgeOfAGraphIsShown(t *testing.T) {
	page := reference.States()
	for _, want := range []string{
		"    [*] --> Installing\n",
		"    Installing --> Failed: Superseded, Failing\n",
		"    RequiresApproval --> Installing: approved\n",
		"    Replacing --> Pending: SuccessorGone\n",
		"| Cleanup | Deleting | none, Pending, InstallReady, Installing, Succeeded, Failed, Replacing, Deleting |\n",
		"| Deleting | it is the last |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("not shown: %q", want)
		}
	}
}

func TestReasonsOfWhatIsNotThere(t *testing.T) {
	if _, err := reference.Reasons(t.TempDir()); err == nil {
		t.Error("expected an error")
	}
}
