// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"math/rand"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func TestDifferentContentHasDifferentDigests(t *testing.T) {
	first := func(list []resolution.Package) *resolution.Package { return &list[0] }
	change := map[string]func([]resolution.Package){
		"the default channel": func(l []resolution.Package) { first(l).DefaultChannel = "x" },
		"a channel's name":    func(l []resolution.Package) { first(l).Channels[0].Name = "x" },
		"replaces":            func(l []resolution.Package) { first(l).Channels[0].Entries[2].Replaces = "a1" },
		"a skip":              func(l []resolution.Package) { first(l).Channels[0].Entries[2].Skips = []string{"a1"} },
		"a skipRange":         func(l []resolution.Package) { first(l).Channels[0].Entries[2].SkipRange = "<3.0.0" },
		"an image":            func(l []resolution.Package) { first(l).Bundles[0].Image = "x" },
		"a property": func(l []resolution.Package) {
			first(l).Bundles[0].Properties = append(first(l).Bundles[0].Properties, provides("K"))
		},
		"a manifest": func(l []resolution.Package) {
			first(l).Bundles[0].Objects = []olmcore.Object{manifest("a1")}
		},
		"a deprecation": func(l []resolution.Package) { first(l).Deprecations = []resolution.Deprecation{{Message: "old"}} },
	}
	original, _ := resolution.Build(packages(chain()...))
	seen := map[string]string{original.Digest(): "nothing"}
	for what, f := range change {
		list := packages(chain()...)
		f(list)
		built, _ := resolution.Build(list)
		require.NotContains(t, seen, built.Digest(), what)
		seen[built.Digest()] = what
	}
	require.Len(t, original.Digest(), 64)
	require.Empty(t, (*resolution.Catalog)(nil).Digest())
}

func TestDifferentInputsHaveDifferentFingerprints(t *testing.T) {
	start := func() *world {
		return newWorld(chain()...).sub("a/stable", has("a2")).csv("a", "a1", nil).csv("a", "a2", nil, replacing("a1")).csv("", "b1", nil, bare, owns("K"), needsCRD("L"))
	}
	csv := func(change func(*v1alpha1.ClusterServiceVersion)) func(*world) {
		return func(w *world) { change(w.in.CSVs[2]) }
	}
	group := func(change func(*operatorsv1.OperatorGroup)) func(*world) { return func(w *world) { w.group(change) } }
	differs := map[string]func(*world){
		"an operator is gone":        func(w *world) { w.in.CSVs = w.in.CSVs[1:] },
		"an operator is another one": csv(func(c *v1alpha1.ClusterServiceVersion) { c.UID = "other" }),
		"an operator's phase":        csv(phase(v1alpha1.CSVPhaseReplacing)),
		"an operator's deletion":     csv(deleting),
		"what an operator replaces":  csv(replacing("x")),
		"an operator's version":      csv(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Version.Major = 9 }),
		"an operator's annotation": csv(func(c *v1alpha1.ClusterServiceVersion) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "operatorframework.io/properties", "{}")
		}),
		"an empty annotation": csv(func(c *v1alpha1.ClusterServiceVersion) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "operatorframework.io/properties", "")
		}),
		"an operator's owned CRDs":    csv(owns("M")),
		"an operator's required CRDs": csv(needsCRD("M")),
		"an operator's APIServices":   csv(servesAPI("M", false)),
		"APIServices that it needs":   csv(servesAPI("M", true)),
		"the strategy": group(func(g *operatorsv1.OperatorGroup) {
			g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
		}),
		"the targets": group(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{""} }),
		"the exclusion": group(func(g *operatorsv1.OperatorGroup) {
			g.Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
		}),
		"no OperatorGroup": func(w *world) { w.in.OperatorGroups = nil },
		"a failed plan": func(w *world) {
			w.in.Subscriptions[0].Status.SetCondition(v1alpha1.SubscriptionCondition{Type: v1alpha1.SubscriptionInstallPlanFailed, Status: corev1.ConditionTrue})
		},
		"a catalog's priority": func(w *world) { w.in.Catalogs[0].Priority = 1 },
		"a catalog's content":  func(w *world) { w.in.Catalogs[0].Content, _ = content(line("a/stable", "a1", "")) },
		"a catalog is gone":    func(w *world) { w.in.Catalogs[0].Content = nil },
		"a catalog is stale":   func(w *world) { w.in.Catalogs[0].Stale = true },
		"a catalog's problem":  func(w *world) { w.in.Catalogs[0].Problem = "x" },
		"another catalog":      func(w *world) { w.broken("ns/x", 0) },
	}
	want := start().in.Fingerprint()
	seen := map[string]string{want: "nothing"}
	for what, change := range differs {
		w := start()
		change(w)
		got := w.in.Fingerprint()
		require.NotContains(t, seen, got, what)
		seen[got] = what
	}
	for what, change := range map[string]func(*world){
		"nothing":        func(*world) {},
		"a Subscription": func(w *world) { w.in.Subscriptions[0].Status.CurrentCSV = "a3" },
		"a plan that waits": func(w *world) {
			w.in.Subscriptions[0].Status.SetCondition(v1alpha1.SubscriptionCondition{Type: v1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue})
		},
		"a copy": func(w *world) {
			w.csv("x", "x1", nil, func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })
		},
		"another namespace": func(w *world) {
			w.csv("x", "x1", nil, func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "other" })
		},
		"nothing where may be": func(w *world) {
			w.in.CSVs, w.in.OperatorGroups = append(w.in.CSVs, nil), append(w.in.OperatorGroups, nil)
		},
		"an operator's message":  csv(func(c *v1alpha1.ClusterServiceVersion) { c.Status.Message = "x" }),
		"the same content again": func(w *world) { w.in.Catalogs[0].Content, _ = content(chain()...) },
	} {
		w := start()
		change(w)
		require.Equal(t, want, w.in.Fingerprint(), what)
	}
}

// TestFailureEndsWhenTheMissingContentIsAdded: a failure lasts until what it lacked is there, and the fingerprint
// says when to ask again.
//
// OLM's case: a missing API appears.
func TestFailureEndsWhenTheMissingContentIsAdded(t *testing.T) {
	w := newWorld(line("a/s", "a1", "", requires("K"))).sub("a/s")
	before := w.in.Fingerprint()
	require.Equal(t, resolution.Unsatisfiable, resolution.Resolve(w.in).Outcome)
	w.catalog("ns/more", 0, line("b/s", "b1", "", provides("K")))
	require.NotEqual(t, before, w.in.Fingerprint())
	require.Equal(t, "Resolved\ninstall a1 from global/cat a/s for a\ninstall b1 from ns/more b/s required by a1\ngenerate b-s-more-ns: b/s at b1\na: nothing -> a1, currentCSV a1", describe(resolution.Resolve(w.in)))
}

func TestFingerprintsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		other := shuffledNamespace(rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed")))), n).input()
		if in.Fingerprint() != other.Fingerprint() {
			t.Fatal("another order has another fingerprint")
		}
	})
}
