// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

func TestAWrongFlagIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--no-such-flag":                "flag provided but not defined: -no-such-flag (--help lists the flags)",
		"argument":                      `the argument "argument" is not known (--help lists the flags)`,
		"--namespaces a,,b":             `invalid value "a,,b" for flag -namespaces: there is nothing between two commas, or at an end (--help lists the flags)`,
		"--namespaces Ops":              `for flag -namespaces: "Ops" is no name of a namespace: `,
		"--only catalog,":               `invalid value "catalog," for flag -only: there is nothing between two commas, or at an end (--help lists the flags)`,
		"--only catlog":                 `--only: "catlog" is no controller: did you mean "catalog"? There are catalog, subscription, `,
		"--ignore-checks olm,crd":       `--ignore-checks: "crd" is no check: did you mean "crds"? There are version, crds, rights, olm`,
		"--only sweep --sweeps=false":   `--only: "sweep" is switched off: set Sweeps`,
		"--catalog community":           `for flag -catalog: `,
		"--catalog-replicas 6":          `invalid value "6" for flag -catalog-replicas: it must be a number from 1 to 5 (--help lists the flags)`,
		"--catalog-replicas many":       `invalid value "many" for flag -catalog-replicas: it must be a number from 1 to 5 (--help lists the flags)`,
		"--node-unreachable-grace -1s":  `invalid value "-1s" for flag -node-unreachable-grace: it must be a time of more than 0, such as 30s (--help lists the flags)`,
		"--node-not-ready-grace 10":     `invalid value "10" for flag -node-not-ready-grace: it must be a time of more than 0, such as 30s (--help lists the flags)`,
		"--sweeps=perhaps":              `invalid boolean value "perhaps" for -sweeps: `,
		"--field-validation strict":     `invalid value "strict" for flag -field-validation: it must be one of Ignore, Warn, Strict (--help lists the flags)`,
		"--global-catalog-namespace":    "flag needs an argument: -global-catalog-namespace (--help lists the flags)",
		"--opm-image i --util-image":    "flag needs an argument: -util-image (--help lists the flags)",
		"--version=perhaps --operators": `invalid boolean value "perhaps" for -version: `,
	} {
		f := New()
		f.FieldValidation()
		var out, report bytes.Buffer
		err := f.Parse(strings.Fields(args), &out)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, 1, exit(err, &report))
		require.Equal(t, "olm: "+err.Error()+"\n", report.String())
		require.Empty(t, out.String(), args)
	}
}

// TestAnErrorTextForgesNoLine checks that an error text which contains line ends adds no lines to stderr.
func TestAnErrorTextForgesNoLine(t *testing.T) {
	var report bytes.Buffer
	require.Equal(t, 1, exit(errors.Join(errors.New("a\nolm: forged"), errors.New("b\rc")), &report))
	require.Equal(t, "olm: a olm: forged\nolm: b c\n", report.String())
}

func TestFlags(t *testing.T) {
	parsed := func(args ...string) (*Flags, string) {
		f := New()
		validation := f.FieldValidation()
		f.Files = true
		require.NoError(t, f.Parse(args, nil))
		return f, *validation
	}
	f, validation := parsed()
	require.Empty(t, validation)
	require.True(t, f.Options.Sweeps && f.Options.Operators && f.Judge)
	require.Equal(t, controllers.DefaultGlobalNamespace, f.Options.GlobalNamespace)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte("{schema: olm.package, name: alpha, defaultChannel: stable}\n"), 0o600))
	f, validation = parsed("--namespaces", "a, b", "--only=catalog,csv", "--ignore-checks", "olm", "--catalog-replicas", "3", "--node-unreachable-grace", "10s",
		"--node-not-ready-grace=20s", "--opm-image", "o", "--util-image", "u", "--sweeps=false", "--sweep-delete", "--judge=false",
		"--field-validation", "Warn", "--catalog", "olm/c="+dir, "file")
	require.Equal(t, "Warn", validation)
	require.Equal(t, []string{"a", "b"}, f.Options.Namespaces)
	require.Equal(t, []string{"catalog", "csv"}, f.Only)
	require.Equal(t, []string{"olm"}, f.Ignore)
	require.Equal(t, 3, f.Options.Catalog.Replicas)
	require.Equal(t, 10*time.Second, f.Options.Catalog.NodeUnreachableGrace)
	require.Equal(t, 20*time.Second, f.Options.Catalog.NodeNotReadyGrace)
	require.Equal(t, "o u", f.Options.InstallPlan.OPMImage+" "+f.Options.InstallPlan.UtilImage)
	require.False(t, f.Options.Sweeps || f.Judge)
	require.True(t, f.Options.CSV.Cleanup.SweepDelete)
	require.NotNil(t, f.Options.Resolve)
	require.Equal(t, []string{"file"}, f.Args())
	f, _ = parsed("--namespaces=", "--only=")
	require.Empty(t, f.Options.Namespaces)
	require.Empty(t, f.Only)
}

func TestVersionAndHelpEndTheCommand(t *testing.T) {
	for flag, want := range map[string]string{"--version": "olm ", "--help": "-ignore-checks CHECKS", "-h": "-namespaces NAMESPACES"} {
		var out, report bytes.Buffer
		err := New().Parse([]string{flag}, &out)
		require.Error(t, err)
		require.Zero(t, exit(err, &report))
		require.Empty(t, report.String())
		require.Contains(t, out.String(), want)
	}
	require.Zero(t, exit(nil, nil))
}

// TestAKubeconfigThatIsMissingIsNamed, and not what client-go says where it finds none.
func TestAKubeconfigThatIsMissingIsNamed(t *testing.T) {
	const says = "which cluster to use is not known: set KUBECONFIG or --kubeconfig, or run it in a Pod: "
	found := errors.New("no configuration: KUBERNETES_MASTER")
	a, b, empty := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	list := func(paths ...string) string { return strings.Join(paths, string(filepath.ListSeparator)) }
	missing := func(path string) string { return "KUBECONFIG: stat " + path + ": no such file or directory" }
	for name, tt := range map[string]struct {
		kubeconfig, want string
		args             []string
	}{
		"none":                {"", found.Error(), nil},
		"one":                 {a, missing(a), nil},
		"two":                 {list(a, b), missing(a) + "\n" + missing(b), nil},
		"one of two is there": {list(a, empty), found.Error(), nil},
		"another was given":   {a, found.Error(), []string{"--kubeconfig", empty}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.kubeconfig)
			f := New()
			f.String("kubeconfig", os.Getenv("KUBECONFIG"), "")
			require.NoError(t, f.Parse(tt.args, nil))
			require.EqualError(t, f.NoCluster(found), says+tt.want)
		})
	}
}

// TestARefusalSaysHowToStartAllTheSame, in one line each.
func TestARefusalSaysHowToStartAllTheSame(t *testing.T) {
	empty, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	check := func(allowed bool, args ...string) error {
		f := New()
		require.NoError(t, f.Parse(append(args, "--only=catalog"), nil))
		return f.Check(t.Context(), empty, func(context.Context, authorizationv1.ResourceAttributes) (bool, error) { return allowed, nil }, nil)
	}
	require.NoError(t, check(true, "--ignore-checks=crds"))
	require.NoError(t, check(false, "--ignore-checks=crds,rights"))
	var report bytes.Buffer
	require.Equal(t, 1, exit(check(false), &report))
	lines := strings.Split(strings.TrimSpace(report.String()), "\n")
	require.Len(t, lines, 2)
	for i, name := range []string{"crds", "rights"} {
		require.True(t, strings.HasPrefix(lines[i], "olm: the "), lines[i])
		require.True(t, strings.HasSuffix(lines[i], " (to start all the same: --ignore-checks="+name+")"), lines[i])
	}
	f := New()
	require.NoError(t, f.Parse([]string{"--ignore-checks=crds"}, nil))
	failed := f.Check(t.Context(), empty, func(context.Context, authorizationv1.ResourceAttributes) (bool, error) {
		return false, errors.New("no answer")
	}, nil)
	require.Empty(t, cmp.Diff("the check rights failed: no answer", failed.Error()))
}

// TestACheckThatCouldNotLookSaysSo, and does not keep the command from starting.
func TestACheckThatCouldNotLookSaysSo(t *testing.T) {
	unread, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	f := New()
	require.NoError(t, f.Parse([]string{"--ignore-checks=crds"}, nil))
	var warnings bytes.Buffer
	require.NoError(t, f.Check(t.Context(), unread, nil, &warnings))
	require.Equal(t, `olm: the check olm could not look: list ClusterRoleBinding in "": ClusterRoleBinding objects were not read`+"\n", warnings.String())
}

// FuzzParse: whatever the arguments, there is an answer.
func FuzzParse(f *testing.F) {
	f.Add("--only catalog --namespaces a,b --catalog-replicas 2")
	f.Add("--node-not-ready-grace 1h -- x")
	f.Fuzz(func(t *testing.T, args string) {
		if strings.Contains(args, "=/") || strings.Contains(args, "=.") {
			return // it would read this machine's folders
		}
		var out bytes.Buffer
		flags := New()
		if flags.Parse(strings.Fields(args), &out) == nil && flags.NArg() > 0 {
			t.Error("arguments that are not known")
		}
	})
}
