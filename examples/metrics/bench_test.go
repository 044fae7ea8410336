// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/olmcore"
)

// installed is a cluster at rest: in each namespace so many Subscriptions, each with a plan and a version.
func installed(t require.TestingT, namespaces, each int) *olmcore.Snapshot {
	var objects []olmcore.Object
	meta := func(namespace, name string) metav1.ObjectMeta {
		n := fmt.Sprint(len(objects))
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + n), ResourceVersion: n, CreationTimestamp: metav1.NewTime(noon)}
	}
	for n := range namespaces {
		namespace := fmt.Sprintf("ns-%03d", n)
		objects = append(objects, &corev1.Namespace{ObjectMeta: meta("", namespace)})
		g := group(namespace)
		g.ObjectMeta = meta(namespace, "group")
		objects = append(objects, g)
		for i := range each {
			name := fmt.Sprintf("operator-%03d-%02d", n, i)
			c := &v1alpha1.ClusterServiceVersion{ObjectMeta: meta(namespace, name+".v1")}
			c.Spec.Version = version.OperatorVersion{Version: semver.MustParse("1.0.0")}
			c.Status.Phase = v1alpha1.CSVPhaseSucceeded
			objects = append(objects, c)
			s := sub(namespace, name, v1alpha1.ApprovalAutomatic)
			s.ObjectMeta = meta(namespace, name)
			plan := &v1alpha1.InstallPlan{ObjectMeta: meta(namespace, "install-"+name)}
			plan.UID += "p"
			plan.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(s)}
			plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
			plan.Spec.ClusterServiceVersionNames = []string{c.Name}
			s.Status.State, s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.LastUpdated = v1alpha1.SubscriptionStateAtLatest, c.Name, c.Name, metav1.NewTime(noon)
			s.Status.InstallPlanRef = &corev1.ObjectReference{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: namespace, Name: plan.Name, UID: plan.UID}
			objects = append(objects, s, plan)
		}
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return snapshot
}

func over(r olmcore.Reader) *metrics.Metrics {
	m := metrics.New(&controllers.Options{})
	m.Now = func() time.Time { return noon.Add(time.Hour) }
	m.Read(r)
	return m
}

// collect is a scrape without what the registry makes of it.
func collect(m *metrics.Metrics) (n int) {
	ch := make(chan prometheus.Metric, 64)
	go func() {
		m.Collect(ch)
		close(ch)
	}()
	for range ch {
		n++
	}
	return n
}

// TestAScrapeAtRestCostsLittle: of a Subscription with its plan and version nothing is made anew, but for its counter.
func TestAScrapeAtRestCostsLittle(t *testing.T) {
	const namespaces, each = 20, 25
	m := over(installed(t, namespaces, each))
	first := collect(m)
	require.Greater(t, first, 2*namespaces*each/25)
	allocations := testing.AllocsPerRun(5, func() { require.Equal(t, first, collect(m)) })
	require.Less(t, allocations/(namespaces*each), 25.0, "for each Subscription, whose labels are its own")
}

// BenchmarkScrape is of 10,000 Subscriptions in 400 namespaces: the first one, one at rest, and with all that a
// registry does.
func BenchmarkScrape(b *testing.B) {
	snapshot := installed(b, 400, 25)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			collect(over(snapshot))
		}
	})
	b.Run("rest", func(b *testing.B) {
		m := over(snapshot)
		collect(m)
		b.ReportAllocs()
		for b.Loop() {
			collect(m)
		}
	})
	b.Run("gather", func(b *testing.B) {
		registry := prometheus.NewRegistry()
		require.NoError(b, registry.Register(over(snapshot)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := registry.Gather()
			require.NoError(b, err)
		}
	})
}
