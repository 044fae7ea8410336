// SPDX-License-Identifier: Apache-2.0

package path_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/realdata"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/path"
)

func newStory(t testing.TB) *story {
	s := &story{t: t, in: resolution.Input{Namespace: "ns", GlobalCatalogNamespace: "global"}, packages: map[string]*resolution.Bundle{}}
	s.in.OperatorGroups = []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}}}
	return s
}

// TestUpgradePathMatchesOLM compares the ways through the channels of the published community catalog with those
// that OLM took.
func TestUpgradePathMatchesOLM(t *testing.T) {
	s := newStory(t)
	require.NoError(t, s.load(filepath.Join(realdata.Dir(t), "catalogs", "community-prod-ocp4.19.fbc.jsonl.gz")))
	f, err := os.Open(filepath.Join(realdata.Dir(t), "golden", "community-prod-ocp4.19.expected.jsonl.gz"))
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines, hops := bufio.NewScanner(unzipped), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var want struct {
			Package, Channel, PathFrom string
			UpgradePath                []string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &want))
		if want.PathFrom == "" {
			continue
		}
		s.in.Subscriptions, s.in.CSVs = nil, nil
		require.NoError(t, s.subscribe([]string{"s", want.Package, want.Channel, "has=" + want.PathFrom}))
		found, err := path.Find(path.Question{Input: s.in, Subscription: "s"})
		require.NoError(t, err)
		var got []string
		for _, hop := range found.Hops {
			require.Len(t, hop.Moves, 1)
			got = append(got, hop.Moves[0].To)
		}
		if diff := cmp.Diff(want.UpgradePath, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", want.Package, want.Channel, diff)
		}
		hops += len(got)
	}
	require.NoError(t, lines.Err())
	require.Greater(t, hops, 100)
}

// serve lets the catalog have some documents.
func (s *story) serve(documents string) {
	packages, _, err := fbc.Read("f", strings.NewReader(documents), fbc.Options{Strict: true})
	require.NoError(s.t, err)
	content, _ := resolution.Build(packages)
	s.in.Catalogs = []resolution.CatalogState{{Key: community, Content: content}}
}

// drawChain draws a package of two channels with edges of all kinds.
func drawChain(t *rapid.T) resolution.Package {
	p := resolution.Package{Name: "p", DefaultChannel: "c0"}
	n := rapid.IntRange(1, 6).Draw(t, "bundles")
	for i := range n {
		version := fmt.Sprintf("%d.0.0", i+1)
		b := resolution.Bundle{Name: "p" + version}
		b.Image = "i"
		b.Properties = []olmcore.Property{{Type: resolution.PropertyPackage, Value: json.RawMessage(`{"packageName":"p","version":"` + version + `"}`)}}
		p.Bundles = append(p.Bundles, b)
	}
	for c := range 2 {
		ch := resolution.Channel{Name: fmt.Sprintf("c%d", c)}
		previous := ""
		for i := range n {
			if !rapid.Bool().Draw(t, "in") {
				continue
			}
			e := resolution.ChannelEntry{Name: p.Bundles[i].Name, Replaces: previous}
			if rapid.Bool().Draw(t, "range") {
				e.SkipRange = rapid.SampledFrom([]string{">=1.0.0", "<3.0.0", ">=2.0.0 <5.0.0"}).Draw(t, "skipRange")
			}
			ch.Entries = append(ch.Entries, e)
			previous = e.Name
		}
		p.Channels = append(p.Channels, ch)
	}
	return p
}

// TestEveryHopIsTheAnswerOfResolve: the first hop is the answer now, and the rest is the way from there; where the
// way ends, Resolve has nothing for the Subscription. What Find is given stays as it is.
func TestEveryHopIsTheAnswerOfResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content, _ := resolution.Build([]resolution.Package{drawChain(t)})
		s := &story{in: resolution.Input{Namespace: "ns", OperatorGroups: []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}}}}
		s.in.GlobalCatalogNamespace = "global"
		s.in.Catalogs = []resolution.CatalogState{{Key: community, Content: content}}
		s.in.Policy.AllowBackwardSkipRange = rapid.Bool().Draw(t, "backward")
		if err := s.subscribe([]string{"s", "p", rapid.SampledFrom([]string{"", "c0", "c1"}).Draw(t, "channel")}); err != nil {
			t.Fatal(err)
		}
		q := path.Question{Input: s.in, Subscription: "s", AcrossChannels: rapid.Bool().Draw(t, "across")}
		before := s.in.Subscriptions[0].DeepCopy()
		found, err := path.Find(q)
		if diff := cmp.Diff(before, s.in.Subscriptions[0]); diff != "" {
			t.Fatal(diff)
		}
		if err != nil {
			return // the default channel has no head
		}
		for _, text := range []string{found.String(), found.Mermaid(), found.DOT()} {
			if text == "" {
				t.Fatal("there is no text")
			}
		}
		res := resolution.Resolve(s.in)
		switch {
		case q.AcrossChannels:
			if found.Reached && found.Stops[0].At != found.Target {
				t.Fatalf("it ends at %s: %s", found.Stops[0].At, found)
			}
		case len(found.Hops) == 0 && len(res.Operators) > 0, len(found.Hops) > 0 && found.Hops[0].Moves[0].To != res.Operators[0].Name:
			t.Fatalf("Resolve answers %v, the way is %s", res.Operators, found)
		}
	})
}

func TestUnresolvableNamespaceHasNoPath(t *testing.T) {
	s := newStory(t)
	require.NoError(t, s.load("testdata/small.yaml"))
	require.NoError(t, s.subscribe([]string{"cool", "cool", "slow"}))
	s.in.OperatorGroups = nil
	found, err := path.Find(path.Question{Input: s.in})
	require.NoError(t, err)
	require.Equal(t, "The Subscriptions of namespace ns: 0 hops\ncool ends at nothing: Unresolved: found 0 operatorGroups, expected 1\n", found.String())
	require.False(t, found.Reached)
}

func TestObjectsOfOtherNamespacesAreIgnored(t *testing.T) {
	s := newStory(t)
	require.NoError(t, s.load("testdata/small.yaml"))
	require.NoError(t, s.subscribe([]string{"cool", "cool", "slow"}))
	want, err := path.Find(path.Question{Input: s.in})
	require.NoError(t, err)
	foreign := s.in.Subscriptions[0].DeepCopy()
	foreign.Namespace, foreign.Status.InstalledCSV = "other", "cool.v1.1.0"
	s.in.Subscriptions = append([]*v1alpha1.Subscription{nil, foreign, {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "without"}}}, s.in.Subscriptions...)
	s.in.CSVs = []*v1alpha1.ClusterServiceVersion{nil, {ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "cool.v1.1.0"}}}
	got, err := path.Find(path.Question{Input: s.in})
	require.NoError(t, err)
	require.Equal(t, want, got)

	require.NoError(t, s.subscribe([]string{"lost", "unheard-of", "slow"}))
	s.in.Subscriptions[4].Status.InstalledCSV = "lost.v1.0.0"
	got, err = path.Find(path.Question{Input: s.in})
	require.NoError(t, err)
	require.Equal(t, append(want.Stops, path.Stop{Subscription: "lost", At: "lost.v1.0.0", Code: resolution.Unresolved, Summary: got.Stops[1].Summary}), got.Stops)
}

func TestHopOfTwoSubscriptionsReplacesTheInstalledVersion(t *testing.T) {
	s := newStory(t)
	require.NoError(t, s.load("testdata/small.yaml"))
	require.NoError(t, s.subscribe([]string{"cool", "cool", "slow", "has=cool.v1.0.0"}))
	require.NoError(t, s.subscribe([]string{"later", "cool", "slow"}))
	found, err := path.Find(path.Question{Input: s.in})
	require.NoError(t, err)
	require.Len(t, found.Hops, 1)
	move := found.Hops[0].Moves[0]
	require.Equal(t, []string{"cool.v1.0.0", "cool.v1.1.0", "cool,later"}, []string{move.From, move.To, strings.Join(move.Subscriptions, ",")})
}

func TestBuildMetadataOfATargetIsIgnored(t *testing.T) {
	s := newStory(t)
	s.serve(`
{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p3","replaces":"p2"},{"name":"p2","replaces":"p1"},{"name":"p1"}]}
{"schema":"olm.bundle","package":"p","name":"p1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p2","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0-1+build.5"}}]}
{"schema":"olm.bundle","package":"p","name":"p3","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.0.0"}}]}`)
	require.NoError(t, s.subscribe([]string{"s", "p", "c"}))
	found, err := path.Find(path.Question{Input: s.in, Subscription: "s", Target: "p2"})
	require.NoError(t, err)
	require.True(t, found.Reached, found)
	require.Equal(t, "p2", found.Hops[0].Moves[0].To)
}

func TestCircularPathEnds(t *testing.T) {
	s := newStory(t)
	s.serve(`
{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p2","replaces":"p1"},{"name":"p1","skipRange":">=1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p2","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}`)
	s.in.Policy.AllowBackwardSkipRange = true
	require.NoError(t, s.subscribe([]string{"s", "p", "c"}))
	found, err := path.Find(path.Question{Input: s.in, Subscription: "s"})
	require.NoError(t, err)
	require.Equal(t, path.Endless, found.Stops[0].Code)
	require.False(t, found.Reached)
}

func TestNamesAreEscapedInDiagrams(t *testing.T) {
	p := path.Path{Hops: []path.Hop{{Moves: []path.Move{{To: "a\"];b", Channel: "c|\n<d>"}}}}}
	require.Equal(t, "flowchart LR\n  n0[\"nothing installed\"] -->|\"1: c|#10;#60;d#62;\"| n1[\"a#34;]#59;b\"]\n", p.Mermaid())
	require.Equal(t, "digraph path {\n  rankdir=LR;\n  \"nothing installed\" -> \"a\\\"];b\" [label=\"1: c|\\n<d>\"];\n}\n", p.DOT())
}

func ExampleFind() {
	f, err := os.Open("testdata/small.yaml")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	packages, _, err := fbc.Read("small.yaml", f, fbc.Options{})
	if err != nil {
		panic(err)
	}
	content, _ := resolution.Build(packages)
	in := resolution.Input{
		Namespace: "ns", GlobalCatalogNamespace: "global",
		OperatorGroups: []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}}},
		Catalogs:       []resolution.CatalogState{{Key: community, Content: content}},
		Subscriptions: []*v1alpha1.Subscription{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"},
			Spec:       &v1alpha1.SubscriptionSpec{Package: "cool", Channel: "slow", CatalogSource: community.Name, CatalogSourceNamespace: community.Namespace},
		}},
	}
	found, err := path.Find(path.Question{Input: in, Subscription: "cool"})
	if err != nil {
		panic(err)
	}
	fmt.Print(found)
	// Output:
	// Subscription ns/cool: 1 hop
	//   1. cool.v1.1.0 from channel slow of catalog global/community for cool
	//      deprecated: The channel slow ends with 1.1.0.
	// cool ends at cool.v1.1.0: Head: no newer version is offered
}
