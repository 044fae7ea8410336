// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

const (
	community    = "community-prod-ocp4.19.fbc.jsonl.gz"
	communityAll = "community-prod-all.fbc.jsonl.gz"
	certified    = "certified-ocp4.19.fbc.jsonl.gz"
)

// published is a published catalog, ready to resolve against.
type published struct {
	packages []resolution.Package
	content  *resolution.Catalog
	byName   map[string]*resolution.Package
}

func readCatalog(t testing.TB, file string) []resolution.Package {
	t.Helper()
	f, err := os.Open(filepath.Join(realdata.Dir(t), "catalogs", file))
	require.NoError(t, err)
	defer f.Close()
	packages, diagnostics, err := fbc.Read(file, f, fbc.Options{Strict: true})
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	return packages
}

// publishedCatalogs are the catalogs that were read, by file. A test changes none of them.
var publishedCatalogs sync.Map

func publishedCatalog(t testing.TB, file string) *published {
	t.Helper()
	if c, known := publishedCatalogs.Load(file); known {
		return c.(*published)
	}
	c := &published{packages: readCatalog(t, file), byName: map[string]*resolution.Package{}}
	c.content, _ = resolution.Build(c.packages)
	for i := range c.packages {
		c.byName[c.packages[i].Name] = &c.packages[i]
	}
	publishedCatalogs.Store(file, c)
	return c
}

// world is the namespace "ns" with the catalog "global/community".
func (c *published) world() resolution.Input {
	return resolution.Input{
		Namespace: "ns", GlobalCatalogNamespace: "global", OperatorGroups: oneGroup("ns"),
		Catalogs: []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "global", Name: "community"}, Content: c.content}},
	}
}

func (c *published) bundle(pkg, name string) *resolution.Bundle {
	p := c.byName[pkg]
	i := slices.IndexFunc(p.Bundles, func(b resolution.Bundle) bool { return b.Name == name })
	return &p.Bundles[i]
}

// installed is the ClusterServiceVersion of a published bundle.
func (c *published) installed(t testing.TB, pkg, name string) *v1alpha1.ClusterServiceVersion {
	b := c.bundle(pkg, name)
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"operatorframework.io/properties": annotation(t, b.Properties)}}}
	csv.Spec.Version.Version = versionOf(t, b)
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	return csv
}

func versionOf(t testing.TB, b *resolution.Bundle) semver.Version {
	for _, p := range b.Properties {
		if p.Type == resolution.PropertyPackage {
			var v struct{ Version string }
			unmarshal(t, p.Value, &v)
			version, err := semver.ParseTolerant(v.Version)
			require.NoError(t, err)
			return version
		}
	}
	return semver.Version{}
}

type channelGolden struct {
	Package, Channel string
	Satisfiable      bool
	Install          []install
	PathFrom         string
	UpgradePath      []string
	UpstreamMessage  string
}

func TestEveryChannelOfTheCommunityCatalogResolvesAsInOLM(t *testing.T) {
	c := publishedCatalog(t, community)
	count, hops := 0, 0
	var differs []string
	eachLine(t, "golden/community-prod-ocp4.19.expected.jsonl.gz", func(g channelGolden) {
		count++
		for name, policy := range map[string]resolution.Policy{"our policy": {}, "OLM's policy": resolution.UpstreamPolicy()} {
			in := c.world()
			in.Policy = policy
			in.Subscriptions = []*v1alpha1.Subscription{subscription("ns", g.Package, g.Package, g.Channel, "global/community")}
			res := resolution.Resolve(in)
			compareGolden(t, g.Package+" "+g.Channel+" under "+name, res, g.Satisfiable, g.Install)
			if !g.Satisfiable && len(res.Cores) == 1 && res.Cores[0].Message != g.UpstreamMessage {
				differs = append(differs, g.Package)
				otherwise(t, in, g.UpstreamMessage, anotherReason)
			}
		}
		if g.PathFrom != "" {
			got := c.upgradePath(t, g.Package, g.Channel, g.PathFrom)
			hops += len(got)
			if diff := cmp.Diff(g.UpgradePath, got); diff != "" {
				t.Errorf("%s %s: upgrade path (-want +got):\n%s", g.Package, g.Channel, diff)
			}
		}
	})
	t.Logf("%d channels, %d upgrades", count, hops)
	// It lacks two APIs: OLM names one of them, we name the other.
	require.Equal(t, []string{"awss3-operator-registry", "awss3-operator-registry"}, differs, "under both policies")
}

// upgradePath installs one bundle after the other until nothing changes.
func (c *published) upgradePath(t testing.TB, pkg, channel, from string) []string {
	var path []string
	sub := subscription("ns", pkg, pkg, channel, "global/community")
	for current := from; ; {
		in := c.world()
		sub.Status.InstalledCSV, sub.Status.CurrentCSV = current, current
		in.Subscriptions = []*v1alpha1.Subscription{sub}
		in.CSVs = []*v1alpha1.ClusterServiceVersion{c.installed(t, pkg, current)}
		res := resolution.Resolve(in)
		if res.Outcome == resolution.Unchanged {
			return path
		}
		if res.Outcome != resolution.Resolved || len(res.Operators) != 1 || res.Operators[0].Replaces != current || len(path) > 200 {
			t.Fatalf("%s %s at %s: %+v", pkg, channel, current, res)
		}
		current = res.Operators[0].Name
		path = append(path, current)
	}
}

// lacking are the channels of the published catalogs that need what their catalog does not have; stopping are those
// where the oldest bundle that can be installed does not get as far as the head, and why.
var (
	lacking = map[string][]string{
		community: {
			"awss3-operator-registry alpha", "l5-operator alpha", "lib-bucket-provisioner alpha", "node-healthcheck-operator alpha",
			"shipwright-operator alpha", "special-resource-operator alpha",
		},
		communityAll: {"l5-operator alpha", "node-healthcheck-operator alpha", "shipwright-operator alpha", "special-resource-operator alpha"},
		certified: {
			"alloydb-omni-operator-certified stable", "app-insights-operator stable", "edb-hcp-operator stable", "edb-hcp-operator alpha",
			"edb-hcp-operator innovation", "edb-hcp-operator lts-v1.3", "kubedb-installer stable", "openshift-fusion-access-operator stable-v1",
			"operator-certification-operator alpha", "pg4k-pgd stable", "pg4k-pgd candidate", "pg4k-pgd stable-v2",
		},
	}
	stopping = map[string][]string{
		community: {
			"eclipse-che stable: RequirementUnmet",               // newer ones need a package that is not there
			"gitlab-operator-kubernetes stable: NoUpgradeEdge",   // what replaces it is skipped
			"gitlab-operator-kubernetes unstable: NoUpgradeEdge", //
			"kuadrant-operator stable: RequirementUnmet",         // of several versions at once, an upgrade at a time
		},
		communityAll: {"eclipse-che stable: RequirementUnmet", "gitlab-operator-kubernetes stable: NoUpgradeEdge", "gitlab-operator-kubernetes unstable: NoUpgradeEdge"},
	}
)

// TestEveryChannelInstallsAndUpgradesToItsHead takes each channel of the published catalogs from its oldest bundle to
// its head, in a namespace that has what the bundles require.
//
// OLM's case: startingCSV, then upgrades one by one.
func TestEveryChannelInstallsAndUpgradesToItsHead(t *testing.T) {
	for _, file := range []string{community, communityAll, certified} {
		t.Run(file, func(t *testing.T) {
			c := publishedCatalog(t, file)
			channels, upgrades := 0, 0
			var lacks, stops []string
			for _, pkg := range c.content.Packages() {
				for _, channel := range c.content.Channels(pkg) {
					channels++
					n, ok, stop := c.life(t, pkg, channel)
					upgrades += n
					switch {
					case !ok:
						lacks = append(lacks, pkg+" "+channel)
					case stop != "":
						stops = append(stops, pkg+" "+channel+": "+string(stop))
					}
				}
			}
			t.Logf("%d packages, %d channels, %d upgrades", len(c.packages), channels, upgrades)
			require.Equal(t, lacking[file], lacks)
			require.Equal(t, stopping[file], stops)
		})
	}
}

// life installs the oldest bundle that can be installed, and upgrades as long as there is something to do. ok: there
// was one; stop is why it did not get to the head.
func (c *published) life(t *testing.T, pkg, channel string) (rounds int, ok bool, stop resolution.HeldBackCode) {
	chain := c.content.Chain(pkg, channel)
	require.NotEmpty(t, chain, "%s %s", pkg, channel)
	sub := subscription("ns", pkg, pkg, channel, "global/community")
	in := c.world()
	in.Subscriptions = []*v1alpha1.Subscription{sub}
	fresh := resolution.Resolve(in)
	if fresh.Outcome == resolution.Unsatisfiable {
		require.NotEmpty(t, fresh.Cores[0].Summary)
		require.True(t, fresh.Cores[0].Minimal)
		return 0, false, ""
	}
	require.Equal(t, resolution.Resolved, fresh.Outcome, "%s %s", pkg, channel)
	require.True(t, fresh.Targets[0].Target == chain[0] || len(fresh.HeldBack) == 1, "%s %s", pkg, channel)

	for i := len(chain) - 1; i >= 0; i-- {
		sub.Spec.StartingCSV = chain[i]
		start := resolution.Resolve(in)
		if start.Outcome != resolution.Resolved {
			continue
		}
		w := &walk{in}
		w.apply(t, start)
		res := resolution.Resolve(w.in)
		for ; res.Outcome != resolution.Unchanged; res = resolution.Resolve(w.in) {
			require.Equal(t, resolution.Resolved, res.Outcome, "%s %s: %+v", pkg, channel, res.Failure)
			w.apply(t, res)
			rounds++
			require.Less(t, rounds, 200, "%s %s", pkg, channel)
		}
		if got := w.subscription(sub.Name).Status.InstalledCSV; got == chain[0] {
			return rounds, true, ""
		}
		h := slices.IndexFunc(res.HeldBack, func(h resolution.HeldBack) bool { return h.Subscription == sub.Name && h.Summary != "" })
		require.GreaterOrEqual(t, h, 0, "%s %s stops, and nothing says why", pkg, channel)
		return rounds, true, res.HeldBack[h].Code
	}
	return 0, false, ""
}

// walk is a namespace in which results come true at once.
type walk struct {
	in resolution.Input
}

func (w *walk) subscription(name string) *v1alpha1.Subscription {
	for _, s := range w.in.Subscriptions {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// apply installs operators, deletes what they replace, creates the generated Subscriptions and writes every status.
func (w *walk) apply(t require.TestingT, res resolution.Result) {
	var subs []*v1alpha1.Subscription
	for _, s := range append(slices.Clone(w.in.Subscriptions), res.Generated...) {
		subs = append(subs, s.DeepCopy())
	}
	csvs := slices.Clone(w.in.CSVs)
	for _, target := range res.Targets {
		if target.Current != "" && target.Current != target.Target {
			csvs = slices.DeleteFunc(csvs, func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == target.Current })
		}
	}
	for _, op := range res.Operators {
		csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.in.Namespace, Name: op.Name, Annotations: map[string]string{"operatorframework.io/properties": annotation(t, op.Bundle.Properties)}}}
		if op.Version != "" {
			csv.Spec.Version.Version = semver.MustParse(op.Version)
		}
		csv.Spec.Replaces = op.Replaces
		csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
		csvs = append(csvs, csv)
	}
	for _, s := range subs {
		for _, d := range res.Decisions {
			if d.Name == s.Name && d.CurrentCSV != "" {
				s.Status.CurrentCSV, s.Status.InstalledCSV = d.CurrentCSV, d.CurrentCSV
			}
		}
		if slices.ContainsFunc(res.Generated, func(g *v1alpha1.Subscription) bool { return g.Name == s.Name }) {
			s.Status.CurrentCSV, s.Status.InstalledCSV = s.Spec.StartingCSV, s.Spec.StartingCSV
		}
	}
	w.in.Subscriptions, w.in.CSVs = subs, csvs
}
