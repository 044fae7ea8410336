// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// golden is one namespace with the answer of OLM's own resolver.
type golden struct {
	ID              string
	Namespace       string
	GlobalNamespace string
	Catalogs        []struct {
		Name, Namespace string
		Priority        int
		FBC             []json.RawMessage
	}
	CSVs []struct {
		Name, Version string
		Properties    []olmcore.Property
	}
	Subscriptions []struct {
		Name, Package, Channel, Source, SourceNamespace, StartingCSV, InstalledCSV string
	}
	Satisfiable     bool
	Install         []install
	UpstreamMessage string
	// Ours is the answer where a skipRange would lead back: never followed unless the policy says so.
	Ours *struct {
		Satisfiable bool
		Install     []install
	}
}

type install struct {
	Name, Package, Channel, Catalog, CatalogNamespace, Replaces string
}

func (g *golden) input(t testing.TB) resolution.Input {
	in := resolution.Input{Namespace: g.Namespace, GlobalCatalogNamespace: g.GlobalNamespace, OperatorGroups: oneGroup(g.Namespace)}
	for _, c := range g.Catalogs {
		packages, diagnostics, err := fbc.Read(c.Name, bytes.NewReader(bytes.Join(rawLines(c.FBC), []byte("\n"))), fbc.Options{Strict: true})
		require.NoError(t, err)
		require.Empty(t, diagnostics)
		content, _ := resolution.Build(packages)
		in.Catalogs = append(in.Catalogs, resolution.CatalogState{Key: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, Priority: c.Priority, Content: content})
	}
	for _, c := range g.CSVs {
		csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: c.Name, Annotations: map[string]string{"operatorframework.io/properties": annotation(t, c.Properties)}}}
		csv.Spec.Version.Version = semver.MustParse(c.Version)
		in.CSVs = append(in.CSVs, csv)
	}
	for _, s := range g.Subscriptions {
		sub := subscription(g.Namespace, s.Name, s.Package, s.Channel, s.SourceNamespace+"/"+s.Source)
		sub.Spec.StartingCSV = s.StartingCSV
		sub.Status.InstalledCSV = s.InstalledCSV
		in.Subscriptions = append(in.Subscriptions, sub)
	}
	return in
}

func rawLines(raw []json.RawMessage) [][]byte {
	lines := make([][]byte, len(raw))
	for i, r := range raw {
		lines[i] = r
	}
	return lines
}

func annotation(t require.TestingT, properties []olmcore.Property) string {
	text, err := json.Marshal(map[string]any{"properties": properties})
	require.NoError(t, err)
	return string(text)
}

func oneGroup(namespace string) []*operatorsv1.OperatorGroup {
	return []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}}}
}

// subscription follows a package of the catalog "namespace/name".
func subscription(namespace, name, pkg, channel, catalog string) *v1alpha1.Subscription {
	catalogNamespace, catalogName, _ := strings.Cut(catalog, "/")
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       &v1alpha1.SubscriptionSpec{Package: pkg, Channel: channel, CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace},
	}
}

func installs(res resolution.Result) []install {
	var list []install
	for _, op := range res.Operators {
		list = append(list, install{op.Name, op.Package, op.Channel, op.Catalog.Name, op.Catalog.Namespace, op.Replaces})
	}
	return list
}

func eachLine[T any](t testing.TB, file string, visit func(T)) {
	t.Helper()
	f, err := os.Open(filepath.Join(realdata.Dir(t), file))
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		visit(v)
	}
	require.NoError(t, lines.Err())
}

// The deviations that the golden data shows, as docs/deviations.md begins their rows. Operators and verdicts differ
// by the first one alone.
const (
	backwardSkipRange = "A skipRange may lead to the installed version itself, or back to an older one."
	anotherReason     = "A failure names some rules that contradict each other: another set each time, and not always a smallest."
	replacesItself    = "With a skipRange that holds its own version an operator replaces itself."
	copiesInAnyOrder  = "A bundle in several channels has copies in random order for a Subscription without a channel."
)

// ofThePart says what differs in the part of the random namespaces that is published: how often, by deviation.
var ofThePart = map[string]int{backwardSkipRange: 7, anotherReason: 8, copiesInAnyOrder: 3, replacesItself: 6}

func TestEveryRandomNamespaceResolvesAsInOLM(t *testing.T) {
	cases, differs := 0, map[string]int{}
	eachLine(t, "golden/resolution-golden.jsonl.gz", func(g golden) {
		cases++
		in := g.input(t)
		in.Policy = resolution.UpstreamPolicy()
		res := resolution.Resolve(in)
		compareGolden(t, g.ID+" under OLM's policy", res, g.Satisfiable, notItself(g.Install, res, differs))
		if !g.Satisfiable && !slices.ContainsFunc(res.Cores, func(c resolution.Core) bool { return c.Message == g.UpstreamMessage }) {
			why := anotherReason
			if slices.ContainsFunc(in.Subscriptions, func(s *v1alpha1.Subscription) bool { return s.Spec.Channel == "" }) && sameCandidates(res, g.UpstreamMessage) {
				why = copiesInAnyOrder
			}
			differs[why]++
			otherwise(t, in, g.UpstreamMessage, why)
		}

		in.Policy = resolution.Policy{AllOrNothing: true}
		satisfiable, want := g.Satisfiable, g.Install
		if g.Ours != nil {
			satisfiable, want = g.Ours.Satisfiable, g.Ours.Install
			differs[backwardSkipRange]++
		}
		compareGolden(t, g.ID+" under our policy", resolution.Resolve(in), satisfiable, want)
	})
	require.NotZero(t, cases)
	t.Logf("%d namespaces, differences %v", cases, differs)
	if cases == 368 {
		require.Equal(t, ofThePart, differs)
	}
	for why := range differs {
		requireDeviation(t, why)
	}
}

// notItself is what OLM installs; where something is to replace itself, it has what we say that it replaces, which is
// not itself.
func notItself(theirs []install, res resolution.Result, differs map[string]int) []install {
	theirs = slices.Clone(theirs)
	for i, x := range theirs {
		at := slices.IndexFunc(res.Operators, func(op olmcore.Operator) bool { return op.Name == x.Name && op.Package == x.Package })
		if x.Replaces == x.Name && at >= 0 && res.Operators[at].Replaces != x.Name {
			theirs[i].Replaces = res.Operators[at].Replaces
			differs[replacesItself]++
		}
	}
	return theirs
}

// requireDeviation looks a deviation up where they are written down.
func requireDeviation(t *testing.T, row string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/deviations.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "| "+row)
}

// otherwise justifies that a failure is worded in another way than in OLM: it is a failure by OLM's own rules, and no
// word of it can be left out.
func otherwise(t *testing.T, in resolution.Input, theirs, why string) {
	t.Helper()
	require.True(t, strings.HasPrefix(theirs, "constraints not satisfiable: "))
	rules, err := resolution.CheckCore(in)
	require.NoError(t, err)
	require.NotZero(t, rules)
	requireDeviation(t, why)
}

// sameCandidates reports whether a core of the result has the words of OLM's message, which may list candidates in
// another order, more than once, and with their copies in other channels.
func sameCandidates(res resolution.Result, message string) bool {
	words := func(text string) []string {
		list := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
		slices.Sort(list)
		return slices.Compact(list)
	}
	return slices.ContainsFunc(res.Cores, func(c resolution.Core) bool {
		ours := words(c.Message)
		return !slices.ContainsFunc(ours, func(word string) bool { return !slices.Contains(words(message), word) })
	})
}

func compareGolden(t *testing.T, name string, res resolution.Result, satisfiable bool, want []install) {
	t.Helper()
	got := res.Outcome == resolution.Resolved || res.Outcome == resolution.Unchanged
	if got != satisfiable {
		message := ""
		if res.Failure != nil {
			message = res.Failure.Message
		}
		t.Errorf("%s: %s, want satisfiable=%v: %s", name, res.Outcome, satisfiable, message)
		return
	}
	list := installs(res)
	slices.SortFunc(list, func(a, b install) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	slices.SortFunc(want, func(a, b install) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if len(list)+len(want) > 0 {
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func unmarshal(t testing.TB, data []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, into))
}
