// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

func TestIncompleteSubscriptions(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*v1alpha1.Subscription)
	}{
		{"subscription a has no package", func(s *v1alpha1.Subscription) { s.Spec.Package = "" }},
		{"subscription a has no catalog", func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" }},
		{"subscription a has no catalog", func(s *v1alpha1.Subscription) { s.Spec.CatalogSourceNamespace = "" }},
	} {
		res := resolution.Resolve(newWorld(chain()...).sub("a/stable", c.change).sub("a/stable", named("b")).in)
		require.Equal(t, resolution.Resolved, res.Outcome)
		require.Len(t, res.Cores, 1)
		require.Contains(t, res.Cores[0].Message, c.want)
		require.Equal(t, []string{"b"}, res.Operators[0].For)
	}
	nameless := newWorld(chain()...).sub("a/stable", named(""))
	require.NotPanics(t, func() { resolution.Resolve(nameless.in) })
}

// TestCatalogWithoutContentOrProblemIsReported checks that a catalog without content is reported even if its
// Problem is empty.
//
// OLM's case: content in parallel, stale, and gone.
func TestCatalogWithoutContentOrProblemIsReported(t *testing.T) {
	w := newWorld(chain()...).broken("ns/empty", 0).sub("a/stable", from("ns/empty"))
	w.in.Catalogs[1].Problem = ""
	res := resolution.Resolve(w.in)
	require.Equal(t, "error using catalogsource ns/empty: no content", res.Failure.Message)
	require.Equal(t, resolution.ReasonCatalogUnavailable, res.Diagnostics[0].Reason)
}

// OLM's case: content in parallel, stale, and gone.
func TestStaleContentIsUsedUnlessThePolicyForbidsIt(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	w.in.Catalogs[0].Stale, w.in.Catalogs[0].Problem = true, "registry does not answer"
	require.Equal(t, "Resolved\ninstall a3 from global/cat a/stable replacing a2 for a\na: nothing -> a3, currentCSV a3\nStaleCatalog cat", describe(resolution.Resolve(w.in)))
	w.in.Policy.RefuseStaleContent = true
	require.Equal(t, resolution.Failed, resolution.Resolve(w.in).Outcome)
}

func TestGlobalCatalogsAreHiddenOnlyByTheValueTrue(t *testing.T) {
	for _, value := range []string{"1", "TRUE", " true"} {
		w := newWorld(chain()...).sub("a/stable").group(func(g *operatorsv1.OperatorGroup) {
			g.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": value}
		})
		res := resolution.Resolve(w.in)
		require.Equal(t, resolution.Resolved, res.Outcome, value)
		require.Equal(t, resolution.ReasonUnknownExclusion, res.Diagnostics[0].Reason, value)
	}
}

func TestFirstChannelByNameIsUsedWithoutADefaultChannel(t *testing.T) {
	list := packages(line("a/z", "a1", ""), line("a/b", "a2", ""))
	list[0].DefaultChannel = ""
	built, diagnostics := resolution.Build(list)
	require.Equal(t, []string{"b", "z"}, built.Channels("a"))
	require.Len(t, diagnostics, 1)
	require.Equal(t, resolution.ReasonInvalidContent, diagnostics[0].Reason)
}

func TestBundlesThatReplaceThemselvesAreReported(t *testing.T) {
	built, diagnostics := content(entry{in: "a/s", name: "a1", version: "1.0.0", replaces: "a1", skips: []string{"a1"}})
	require.Equal(t, []string{"a1"}, built.Chain("a", "s"))
	require.NotEmpty(t, diagnostics)
	for _, d := range diagnostics {
		require.Equal(t, resolution.ReasonInvalidContent, d.Reason)
		require.Contains(t, d.Message, "a1")
	}
}

func TestGeneratedNamesHaveAtMost253Characters(t *testing.T) {
	long := strings.Repeat("n", 253)
	w := newWorld(line("a/s", "a1", "", requiresPackage(long, ">=0.0.0")), entry{in: long + "/" + long, name: long, version: "1.0.0"}).sub("a/s")
	res := resolution.Resolve(w.in)
	require.Equal(t, resolution.Resolved, res.Outcome)
	require.Len(t, res.Generated, 1)
	require.Len(t, res.Generated[0].Name, 253)
}

// TestProjectedPropertiesMatchTheBundle has a case of OLM.
//
// OLM's case: a catalog's bundle: properties, default channel.
func TestProjectedPropertiesMatchTheBundle(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", property("olm.maxOpenShiftVersion", `"4.20"`), property(resolution.PropertyBundleObject, `{"data":"e30="}`))).sub("a/s")
	var types []string
	for _, p := range resolution.Resolve(w.in).Operators[0].Bundle.Properties {
		types = append(types, p.Type)
	}
	require.Equal(t, []string{resolution.PropertyPackage, "olm.maxOpenShiftVersion"}, types, "unknown ones are carried along, manifests are not")
}

func TestChannelsOfOnePackageAreIndependent(t *testing.T) {
	good := []entry{line("a/good", "a1", ""), line("a/good", "a2", "a1")}
	w := newWorld(append(good, line("a/bad", "a1", ""), line("a/bad", "a2", ""))...).sub("a/good")
	res := resolution.Resolve(w.in)
	require.Equal(t, "a2", res.Operators[0].Name)
	_, diagnostics := content(append(good, line("a/bad", "a1", ""), line("a/bad", "a2", ""))...)
	require.True(t, hasReason(diagnostics, resolution.ReasonMalformedChannel))
}

func hasReason(list []olmcore.Diagnostic, reason string) bool {
	for _, d := range list {
		if d.Reason == reason {
			return true
		}
	}
	return false
}

// byName ignores the order of bundles, which means nothing.
var byName = cmpopts.SortSlices(func(a, b resolution.Bundle) bool { return a.Name < b.Name })

func TestWrittenCatalogsAreReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range drawNamespace(t, small).catalogs {
			var text bytes.Buffer
			if err := fbc.Write(&text, c.packages); err != nil {
				t.Fatal(err)
			}
			again, diagnostics, err := fbc.Read("again", &text, fbc.Options{Strict: true})
			if err != nil || len(diagnostics) > 0 {
				t.Fatal(err, diagnostics)
			}
			if diff := cmp.Diff(c.packages, again, cmpopts.EquateEmpty(), byName); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}
