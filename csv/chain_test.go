// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// link returns versions by name that replace each other as edges say: "a>b" is an a that replaces b. Later names are
// newer.
func link(edges ...string) map[string]*v1alpha1.ClusterServiceVersion {
	all := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, edge := range edges {
		name, replaces, _ := strings.Cut(edge, ">")
		c := operator(name, int(name[0]-'a'))
		c.Spec.CustomResourceDefinitions.Owned, c.Labels = nil, nil
		c.Spec.Replaces = replaces
		hold(c, pending, "RequirementsUnknown", "requirements not yet checked", time.Hour)
		all[name] = c
	}
	return all
}

// from is the Input of one of linked versions, with everything else met.
func from(all map[string]*v1alpha1.ClusterServiceVersion, name string) csv.Input {
	in := input(pending, "RequirementsUnknown", "")
	in.ClusterServiceVersion = all[name]
	for other, c := range all {
		if other != name {
			in.Neighbours.Items = append(in.Neighbours.Items, c)
		}
	}
	slices.SortFunc(in.Neighbours.Items, func(a, b *v1alpha1.ClusterServiceVersion) int { return strings.Compare(a.Name, b.Name) })
	return in
}

// predecessorIn names the version that one waits for, as its status says.
func predecessorIn(all map[string]*v1alpha1.ClusterServiceVersion, name string) string {
	a, _ := csv.Assess(from(all, name))
	rest, waits := strings.CutPrefix(a.Message, "requirements met; waiting for ")
	if !waits {
		return "" // nothing comes before it
	}
	predecessor, _, _ := strings.Cut(rest, " ")
	return predecessor
}

// OLM's cases: a self reference is no operator's predecessor or successor; circles of two and of one end; a line ends
// at its head; the chain of a self reference is itself; the chain of a mutual pair is both; the chain of a line is all
// of it; who is replaced: found, not found, not read.
func TestWhoComesBeforeWhom(t *testing.T) {
	for name, c := range map[string]struct {
		edges []string
		want  map[string]string
	}{
		"a line":                            {[]string{"a", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"itself":                            {[]string{"a>a"}, map[string]string{"a": ""}},
		"what does not exist":               {[]string{"b>a"}, map[string]string{"b": ""}},
		"two that replace one":              {[]string{"a", "b>a", "c>a"}, map[string]string{"a": "", "b": "a", "c": "a"}},
		"a circle of two":                   {[]string{"a>b", "b>a"}, map[string]string{"a": "", "b": "a"}},
		"a circle of three":                 {[]string{"a>c", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"a line that leads into a circle":   {[]string{"a>b", "b>a", "c>b"}, map[string]string{"a": "", "b": "a", "c": "b"}},
		"a line beside one that is its own": {[]string{"a>a", "b>a"}, map[string]string{"a": "", "b": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := link(c.edges...)
			got := map[string]string{}
			for v := range all {
				got[v] = predecessorIn(all, v)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestAnyReplacementsAreAForest: whatever spec.replaces says, walks end, each version has the predecessor that it
// names, and every circle loses just one edge.
// OLM's case: the chain of a self reference is itself.
func TestAnyReplacementsAreAForest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(1, 6).Draw(t, "n")]
		var edges []string
		named := map[string]string{}
		for _, name := range names {
			replaces := rapid.SampledFrom(append([]string{"", "gone"}, names...)).Draw(t, name)
			edges = append(edges, name+">"+replaces)
			if slices.Contains(names, replaces) && replaces != name {
				named[name] = replaces
			}
		}
		all := link(edges...)
		got := map[string]string{}
		for _, name := range names {
			if p := predecessorIn(all, name); p != "" {
				require.Equal(t, named[name], p)
				got[name] = p
			}
		}
		require.Equal(t, len(named)-circles(named), len(got), "each circle loses one edge: %v %v", named, got)
		require.Zero(t, circles(got))
	})
}

// circles counts the circles that a function on names has.
func circles(next map[string]string) (n int) {
	for start := range next {
		smallest := true
		at, steps := next[start], 0
		for ; at != "" && at != start && steps < 10; steps++ {
			smallest = smallest && start < at
			at = next[at]
		}
		if at == start && smallest {
			n++
		}
	}
	return n
}

// TestAVersionAlwaysRuns follows chains of versions that come in any order, all at once or one by one, with writes that
// get lost: from the first success on a version is there that runs or is being replaced, and none is deleted before a
// later one is Succeeded. In the end the head alone is there.
// OLM's case: several versions in between.
func TestAVersionAlwaysRuns(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		c, d := newWorld(csv.Config{})
		base, err := fromFiles("base.yaml", "v1.yaml")
		require.NoError(t, err)
		require.NoError(t, c.Create(base[:3]...))
		template := base[len(base)-1].(*v1alpha1.ClusterServiceVersion)
		n := rapid.IntRange(2, 5).Draw(t, "versions")
		together := rapid.Bool().Draw(t, "together")
		order := indices(n)
		if together {
			order = rapid.Permutation(order).Draw(t, "order")
		}
		w := watch{replacedBy: map[string]string{}}
		for i, v := range order {
			next := template.DeepCopy()
			next.Name, next.Spec.Version.Major = fmt.Sprintf("cool.v%d", v), uint64(v)
			if v > 0 {
				next.Spec.Replaces = fmt.Sprintf("cool.v%d", v-1)
				w.replacedBy[next.Spec.Replaces] = next.Name
			}
			require.NoError(t, c.Create(needs(next)[1:]...))
			require.NoError(t, c.Create(next))
			for range rapid.IntRange(0, 12).Draw(t, "rounds") {
				if together && i < n-1 {
					break
				}
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
					c.Inject(fake.Fault{Mode: fake.FailWithoutEffect, Nth: rapid.IntRange(1, 3).Draw(t, "nth")})
				}
				_, err := d.Round(ctx)
				require.NoError(t, err)
				w.check(t, c)
				require.NoError(t, c.RunFor(time.Second))
			}
		}
		c.Recover()
		for range 40 {
			_, err := d.Round(ctx)
			require.NoError(t, err)
			w.check(t, c)
			require.NoError(t, c.RunFor(20*time.Second))
		}
		require.NoError(t, d.RunUntilIdle(ctx, time.Hour))
		left := csvs(c)
		require.Len(t, left, 1, "%v", phases(left))
		require.Equal(t, []any{fmt.Sprintf("cool.v%d", n-1), succeeded}, []any{left[0].Name, left[0].Status.Phase})
	})
}

// watch remembers how a chain of versions was.
type watch struct {
	replacedBy map[string]string
	succeeded  map[string]bool // ever
}

func (w *watch) check(t *rapid.T, c *fake.Cluster) {
	if w.succeeded == nil {
		w.succeeded = map[string]bool{}
	}
	runs := false
	var leaving []string
	for _, v := range csvs(c) {
		w.succeeded[v.Name] = w.succeeded[v.Name] || v.Status.Phase == succeeded
		runs = runs || v.DeletionTimestamp == nil && (v.Status.Phase == succeeded || v.Status.Phase == replacing)
		if v.DeletionTimestamp != nil || v.Status.Phase == deleting {
			leaving = append(leaving, v.Name)
		}
	}
	require.True(t, runs || len(w.succeeded) == 0 || !anyTrue(w.succeeded), "nobody runs: %v", phases(csvs(c)))
	for _, name := range leaving {
		followed := false
		for s := w.replacedBy[name]; s != ""; s = w.replacedBy[s] {
			followed = followed || w.succeeded[s]
		}
		require.True(t, followed, "%s goes before a later version ran", name)
	}
}

func anyTrue(m map[string]bool) bool {
	for _, is := range m {
		if is {
			return true
		}
	}
	return false
}

// TestAFailingInstallationIsTriedEverMoreSeldom: the API server refuses the Deployment for ever.
func TestAFailingInstallationIsTriedEverMoreSeldom(t *testing.T) {
	cluster, driver := newWorld(csv.Config{})
	objects, err := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, err)
	require.NoError(t, cluster.Create(objects...))
	start := cluster.Now()
	var tries []time.Duration
	cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if target.Kind != "Deployment" {
			return nil
		}
		tries = append(tries, cluster.Now().Sub(start))
		return apierrors.NewInvalid(target.GVK().GroupKind(), target.Name, nil)
	}
	require.NoError(t, driver.RunFor(context.Background(), 3*time.Hour))
	require.Greater(t, len(tries), 8, "it never gives up")
	for i, at := range tries {
		require.LessOrEqual(t, i+1, 8+int(at/(5*time.Minute)), "try %d after %s: %v", i+1, at, tries)
	}
	v := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, reason("InstallComponentFailed"), v.Status.Reason)
}
