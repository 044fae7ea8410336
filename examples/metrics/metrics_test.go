// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func (w *world) context() context.Context { return context.Background() }

// expose returns the metrics of a registry as text; what depends on the real clock is left out.
func expose(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, f := range families {
		for _, m := range f.Metric {
			if s := m.GetSummary(); s != nil {
				s.SampleSum, s.Quantile = new(0.0), nil
			}
		}
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	return text.String()
}

// requireGolden compares with a file, or writes it with OLMCORE_UPDATE=1.
func requireGolden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("OLMCORE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("another exposition than %s; OLMCORE_UPDATE=1 writes it (-want +got):\n%s", path, diff)
	}
}

// troubled is a world with the four problems, and more: a node failed under a catalog, another catalog cannot work; a
// Subscription tells what is not so; a deleted version is held up; a plan belongs to none. One plan waits for approval,
// and one operator was upgraded.
func troubled(t *testing.T) *world {
	w := newWorld(t)
	require.NoError(t, w.Create(
		sub("ops", "alpha", v1alpha1.ApprovalAutomatic), sub("ops", "gamma", v1alpha1.ApprovalAutomatic),
		sub("apps", "beta", v1alpha1.ApprovalManual),
		sub("none", "delta", v1alpha1.ApprovalAutomatic), // a namespace without an OperatorGroup
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "wrong"}, Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "no-port"},
		},
	))
	w.run(t, time.Minute)
	w.publish(t, 2)
	w.run(t, time.Minute)

	operand := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "gamma"}}
	operand.SetNamespace("ops")
	operand.SetName("precious")
	operand.SetFinalizers([]string{"example.com/keep"})
	require.NoError(t, w.Create(operand))
	require.NoError(t, w.Delete(olmcore.RefOf(fake.Find[*v1alpha1.Subscription](w.Cluster, "ops", "gamma")).Unversioned()))
	gone := fake.Find[*v1alpha1.ClusterServiceVersion](w.Cluster, "ops", "gamma.v2.0.0")
	require.NoError(t, w.Delete(olmcore.RefOf(gone).Unversioned()))
	require.NoError(t, w.Node("a").Fail())
	require.NoError(t, w.Node("b").Fail())
	w.run(t, 2*time.Minute)

	// What no controller looks at before the scrape.
	stray := fake.Find[*v1alpha1.InstallPlan](w.Cluster, "apps", planOf(w, "apps")).DeepCopy()
	stray.ObjectMeta = metav1.ObjectMeta{Namespace: "apps", Name: "install-stray"}
	require.NoError(t, w.Create(stray))
	stray.Status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
	require.NoError(t, w.UpdateStatus(stray))
	require.NoError(t, fake.Edit(w.Cluster, "ops", "alpha", func(s *v1alpha1.Subscription) {
		s.Status.SetCondition(v1alpha1.SubscriptionCondition{Type: v1alpha1.SubscriptionInstallPlanFailed, Status: "True", Reason: "InstallComponentFailed"})
	}))
	w.Advance(11 * time.Minute)
	return w
}

func planOf(w *world, namespace string) string {
	for _, o := range w.Objects() {
		if p, is := o.(*v1alpha1.InstallPlan); is && p.Namespace == namespace {
			return p.Name
		}
	}
	return ""
}

func TestWhatAScrapeOfATroubledWorldSays(t *testing.T) {
	w := troubled(t)
	requireGolden(t, "testdata/troubled.prom", w.text(t))
	requireGolden(t, "testdata/troubled.prom", w.text(t)) // what is remembered says the same
}

// TestWhatAScrapeOfASoundWorldSays: two operators, one of them upgraded, and a catalog that serves.
func TestWhatAScrapeOfASoundWorldSays(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.Create(sub("ops", "alpha", v1alpha1.ApprovalAutomatic), sub("apps", "beta", v1alpha1.ApprovalAutomatic)))
	w.run(t, time.Minute)
	w.publish(t, 2)
	w.run(t, time.Minute)
	requireGolden(t, "testdata/sound.prom", w.text(t))
}

// TestTheNamesFollowPrometheusHabits but for those that are OLM's.
func TestTheNamesFollowPrometheusHabits(t *testing.T) {
	problems, err := testutil.CollectAndLint(troubled(t).metrics)
	require.NoError(t, err)
	for _, p := range problems {
		require.Contains(t, []string{"csv_upgrade_count", "csv_count", "install_plan_count", "subscription_count", "catalog_source_count"}, p.Metric, p.Text)
	}
}

// TestAnAnswerThatIsNotKnownYetIsNoResolution, as at each start until the content of catalogs was read.
func TestAnAnswerThatIsNotKnownYetIsNoResolution(t *testing.T) {
	var answer olmcore.Resolution
	var problem error
	o := controllers.Options{Resolve: func(context.Context, olmcore.Reader, subscription.ResolveRequest) (olmcore.Resolution, error) {
		return answer, problem
	}}
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics.New(&o)))
	resolve := func(a olmcore.Resolution, err error) {
		answer, problem = a, err
		got, gotErr := o.Resolve(t.Context(), nil, subscription.ResolveRequest{})
		require.Equal(t, a, got)
		require.Equal(t, err, gotErr)
	}
	resolve(olmcore.Resolution{}, fmt.Errorf("olm/community: %w", controllers.ErrPending))
	require.NotContains(t, expose(t, registry), "olm_resolution_duration_seconds")
	resolve(olmcore.Resolution{Failure: &olmcore.ResolutionFailure{}}, nil)
	resolve(olmcore.Resolution{}, errors.New("the API server is away"))
	resolve(olmcore.Resolution{}, nil)
	text := expose(t, registry)
	require.Contains(t, text, `olm_resolution_duration_seconds_count{outcome="failed"} 2`)
	require.Contains(t, text, `olm_resolution_duration_seconds_count{outcome="succeeded"} 1`)
}
