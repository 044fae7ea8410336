// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// oddValues are property values that mean little or nothing.
var oddValues = []string{
	``, `null`, `{}`, `[]`, `"x"`, `{`, `{"packageName":"","version":""}`, `{"packageName":"p0","version":"1"}`, `{"packageName":"p1","version":"1.0.0"}`,
	`{"group":"g","kind":"K0","version":"v1"}`, `{"group":1}`, `{"packageName":"p0","versionRange":">1.0.0 || || <0.1.0"}`, `{"packageName":"p0","versionRange":"^1"}`,
	`{"label":""}`, `{"gvk":{},"package":{}}`, `{"any":{"constraints":[]}}`, `{"not":{"constraints":[null]}}`, `{"all":{"constraints":[{"all":{"constraints":[{}]}}]}}`, `{"cel":{"rule":"panic"}}`,
}

func drawOddProperty(t *rapid.T) olmcore.Property {
	kinds := []string{
		resolution.PropertyPackage, resolution.PropertyPackageRequired, resolution.PropertyGVK, resolution.PropertyGVKRequired, resolution.PropertyConstraint,
		resolution.PropertyLabel, resolution.PropertyLabelRequired, resolution.PropertyDeprecated, resolution.PropertyBundleObject, resolution.PropertyCSVMetadata, "", "odd",
	}
	return olmcore.Property{Type: rapid.SampledFrom(kinds).Draw(t, "type"), Value: []byte(rapid.SampledFrom(oddValues).Draw(t, "value"))}
}

var oddNames = []string{"", "x0", "x1", "x2", "x3", "a/b", "名"}

// drawOddPackage has names twice, edges to anywhere, and properties that cannot be read.
func drawOddPackage(t *rapid.T) resolution.Package {
	name := rapid.SampledFrom(oddNames)
	p := resolution.Package{Name: rapid.SampledFrom([]string{"p0", "p1", "p2", ""}).Draw(t, "package"), DefaultChannel: name.Draw(t, "default")}
	for range rapid.IntRange(0, 3).Draw(t, "channels") {
		ch := resolution.Channel{Name: name.Draw(t, "channel")}
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			ch.Entries = append(ch.Entries, resolution.ChannelEntry{
				Name: name.Draw(t, "entry"), Replaces: name.Draw(t, "replaces"), Skips: rapid.SliceOfN(name, 0, 3).Draw(t, "skips"),
				SkipRange: rapid.SampledFrom([]string{"", "x", ">=0.0.0", "<0.0.0", "||", ">1.0.0 || || <0.1.0", "1.0.0 1.0.0"}).Draw(t, "skipRange"),
			})
		}
		p.Channels = append(p.Channels, ch)
	}
	for range rapid.IntRange(0, 5).Draw(t, "bundles") {
		b := resolution.Bundle{Name: name.Draw(t, "bundle")}
		if rapid.Bool().Draw(t, "right package") {
			b.Properties = append(b.Properties, packageProperty(p.Name, rapid.SampledFrom([]string{"1.0.0", "2.0.0", "v1"}).Draw(t, "version")))
		}
		for range rapid.IntRange(0, 3).Draw(t, "properties") {
			b.Properties = append(b.Properties, drawOddProperty(t))
		}
		p.Bundles = append(p.Bundles, b)
	}
	return p
}

func drawOddInput(t *rapid.T) (in resolution.Input, diagnostics []olmcore.Diagnostic, known map[string]bool) {
	in = resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns"), CEL: evaluator{}}
	known = map[string]bool{}
	for i := range rapid.IntRange(1, 2).Draw(t, "catalogs") {
		var list []resolution.Package
		for range rapid.IntRange(0, 3).Draw(t, "packages") {
			list = append(list, drawOddPackage(t))
			known[list[len(list)-1].Name] = true
		}
		content, more := resolution.Build(list)
		diagnostics = append(diagnostics, more...)
		in.Catalogs = append(in.Catalogs, resolution.CatalogState{Key: types.NamespacedName{Namespace: "global", Name: fmt.Sprintf("cat%d", i)}, Content: content})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "subscriptions") {
		s := subscription("ns", fmt.Sprintf("s%d", i), rapid.SampledFrom([]string{"p0", "p1", "p2", ""}).Draw(t, "follows"), rapid.SampledFrom(oddNames).Draw(t, "in"), "global/cat0")
		s.Spec.StartingCSV, s.Status.InstalledCSV = rapid.SampledFrom(oddNames).Draw(t, "starting"), rapid.SampledFrom(oddNames).Draw(t, "installed")
		in.Subscriptions = append(in.Subscriptions, s)
	}
	for range rapid.IntRange(0, 3).Draw(t, "csvs") {
		c := drawless(rapid.SampledFrom(oddNames).Draw(t, "csv"), rapid.SampledFrom(oddValues).Draw(t, "annotation"))
		c.Spec.Replaces = rapid.SampledFrom(oddNames).Draw(t, "csv replaces")
		c.Status.Phase = rapid.SampledFrom([]v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseNone}).Draw(t, "phase")
		if rapid.Bool().Draw(t, "without annotation") {
			c.Annotations = nil
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: rapid.SampledFrom([]string{"", ".", "ks.g"}).Draw(t, "crd"), Kind: "K0", Version: "v1"}}
		}
		in.CSVs = append(in.CSVs, c)
	}
	return in, diagnostics, known
}

// TestBrokenContentIsReportedAndResolved: whatever a catalog says, what Build complains about can be found in it,
// and Resolve answers, under any policy.
//
// OLM's case: properties without type, value, or JSON.
func TestBrokenContentIsReportedAndResolved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, diagnostics, known := drawOddInput(t)
		for _, d := range diagnostics {
			rest, ok := strings.CutPrefix(d.Path, `packages["`)
			name, _, closed := strings.Cut(rest, `"]`)
			if !ok || !closed || !known[name] || d.Reason == "" || d.Message == "" {
				t.Fatalf("diagnostic %+v names none of %v", d, known)
			}
		}
		if rapid.Bool().Draw(t, "fail forward") {
			in.OperatorGroups = (&world{in: in}).failForward().in.OperatorGroups
		}
		for _, policy := range []resolution.Policy{{}, {AdoptSameBundle: true, AllOrNothing: true}, resolution.UpstreamPolicy()} {
			in.Policy = policy
			in.Policy.MaxSteps = 10_000
			res := resolution.Resolve(in)
			same(t, res, resolution.Resolve(in))
			if (res.Failure != nil) != (res.Outcome != resolution.Resolved && res.Outcome != resolution.Unchanged) || (res.Failure != nil && len(res.Operators) > 0) {
				t.Fatal(describe(res))
			}
			names := map[string]bool{}
			for _, op := range res.Operators {
				if names[op.Name] || op.Name == "" || op.Bundle.Properties == nil {
					t.Fatal(describe(res))
				}
				names[op.Name] = true
			}
			for _, name := range oddNames {
				resolution.Explain(in, "", name)
			}
		}
	})
}
