// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"os"
	"path/filepath"
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
		path := filepath.Join(root, "docs", name)
		if os.Getenv("OLMCORE_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s is not current; OLMCORE_UPDATE=1 go test ./internal/reference writes it again:\n%s", name, diff)
		}
	}
}

func TestEveryEdgeOfAGraphIsShown(t *testing.T) {
	page := reference.States()
	for _, want := range []string{
		"    [*] --> Installing\n",
		"    Installing --> Failed: Failing, Superseded\n",
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
