// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/metrics"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

// sample is a series: its name and labels as text.
func samplesOf(t require.TestingT, g prometheus.Gatherer) map[string]float64 {
	families, err := g.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += "," + l.GetName() + "=" + l.GetValue()
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[name] = m.GetCounter().GetValue()
			case dto.MetricType_SUMMARY:
				all[name] = float64(m.GetSummary().GetSampleCount())
			default:
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// of returns the series of one metric, by what follows its name.
func of(all map[string]float64, metric string) map[string]float64 {
	found := map[string]float64{}
	for name, value := range all {
		if rest, is := strings.CutPrefix(name, metric+","); is {
			found[rest] = value
		} else if name == metric {
			found[""] = value
		}
	}
	return found
}

// scrape returns what Metrics over a Reader say.
func scrape(t require.TestingT, o controllers.Options, r olmcore.Reader, change ...func(*metrics.Metrics)) map[string]float64 {
	m := metrics.New(&o)
	m.Now = func() time.Time { return noon }
	for _, c := range change {
		c(m)
	}
	m.Read(r)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	return samplesOf(t, registry)
}

// TestAKindThatWasNotReadHasNoMetrics: for each kind that is left out of a snapshot, no row of the table that needs it
// has a series, and all others are as with it.
func TestAKindThatWasNotReadHasNoMetrics(t *testing.T) {
	w := troubled(t)
	whole, err := w.Snapshot()
	require.NoError(t, err)
	now := func(m *metrics.Metrics) { m.Now = w.Now }
	everything := scrape(t, controllers.Options{}, whole, now)
	for _, kind := range []string{"CatalogSource", "Subscription", "InstallPlan", "ClusterServiceVersion", "OperatorGroup", "Namespace"} {
		t.Run(kind, func(t *testing.T) {
			some := scrape(t, controllers.Options{}, without{whole, kind, nil}, now)
			for _, f := range metrics.Families() {
				if containsString(f.Reads, kind) {
					require.Empty(t, of(some, f.Name), f.Name)
				}
			}
			for name, value := range some {
				if strings.HasPrefix(name, "olm_objects_not_assessed") {
					continue
				}
				require.Equal(t, everything[name], value, name)
			}
			require.NotContains(t, some, "olm_kind_readable,kind="+kind)
			broken := scrape(t, controllers.Options{}, without{whole, kind, errors.New("no connection")}, now)
			require.Zero(t, broken["olm_kind_readable,kind="+kind])
			require.Contains(t, broken, "olm_kind_readable,kind="+kind)
		})
	}
	require.NotContains(t, scrape(t, controllers.Options{}, nil), "csv_count")
}

func containsString(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// without is a Reader that did not read a kind, or could not.
type without struct {
	olmcore.Reader
	kind string
	err  error
}

func (r without) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if gvk.Kind != r.kind {
		return r.Reader.Get(ctx, gvk, namespace, name)
	}
	return nil, r.failure(gvk, namespace)
}

func (r without) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if gvk.Kind != r.kind {
		return r.Reader.List(ctx, gvk, namespace, selector)
	}
	return nil, r.failure(gvk, namespace)
}

func (r without) failure(gvk schema.GroupVersionKind, namespace string) error {
	if r.err != nil {
		return r.err
	}
	return &olmcore.NotReadError{Kind: gvk, Namespace: namespace}
}

// TestTheGaugesAreWhatIsCounted: in random worlds each gauge is what a plain count over the objects gives, what is
// remembered says the same as what is made anew, and no counter goes down.
func TestTheGaugesAreWhatIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		head, last := 1, map[string]float64{}
		steps := map[string]func(*rapid.T){
			"subscribe": func(t *rapid.T) {
				namespace := rapid.SampledFrom([]string{"ops", "apps", "none"}).Draw(t, "namespace")
				name := rapid.SampledFrom([]string{"alpha", "beta", "gamma"}).Draw(t, "package")
				approval := rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual}).Draw(t, "approval")
				_ = w.Create(sub(namespace, name, approval)) // it may be there
			},
			"publish": func(t *rapid.T) { head = min(head+1, 3); w.publish(t, head) },
			"approve": func(t *rapid.T) {
				for _, o := range w.Objects() {
					if p, is := o.(*v1alpha1.InstallPlan); is {
						_ = fake.Edit(w.Cluster, p.Namespace, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
					}
				}
			},
			"delete": func(t *rapid.T) {
				var some []olmcore.Object
				for _, o := range w.Objects() {
					switch o.(type) {
					case *v1alpha1.Subscription, *v1alpha1.InstallPlan, *v1alpha1.ClusterServiceVersion, *v1alpha1.CatalogSource:
						some = append(some, o)
					}
				}
				if len(some) > 0 {
					_ = w.Delete(olmcore.RefOf(rapid.SampledFrom(some).Draw(t, "object")).Unversioned())
				}
			},
			"fail a node": func(t *rapid.T) { _ = w.Node(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")).Fail() },
			"heal nodes":  func(t *rapid.T) { _, _ = w.Node("a").Heal(), w.Node("b").Heal() },
			"go on":       func(t *rapid.T) { w.run(t, 5*time.Second) },
			"wait":        func(t *rapid.T) { w.run(t, time.Minute) },
		}
		steps[""] = func(t *rapid.T) {
			now := samplesOf(t, w.registry)
			requireCounted(t, w, now)
			anew := scrape(t, controllers.Options{}, w.Cluster, func(m *metrics.Metrics) { m.Now = w.Now })
			for _, f := range metrics.Families() {
				switch {
				case f.Type == metrics.Gauge:
					require.Equal(t, of(anew, f.Name), of(now, f.Name), f.Name)
				case f.Name == "subscription_sync_total":
					require.Len(t, of(now, f.Name), len(of(anew, f.Name)), f.Name)
					fallthrough
				default:
					for name, before := range of(last, f.Name) {
						if value, is := of(now, f.Name)[name]; is {
							require.GreaterOrEqual(t, value, before, f.Name+name)
						}
					}
				}
			}
			last = now
		}
		t.Repeat(steps)
	})
}

// requireCounted counts the objects of a world plainly.
func requireCounted(t require.TestingT, w *world, now map[string]float64) {
	want := map[string]map[string]float64{
		"catalog_source_count": {"": 0}, "subscription_count": {"": 0}, "install_plan_count": {"": 0}, "csv_count": {"": 0},
		"csv_succeeded": {}, "csv_abnormal": {}, "olm_install_plans": {}, "olm_csv_cleanup_timestamp_seconds": {}, "olm_install_plan_waiting_timestamp_seconds": {},
	}
	perNamespace, catalogSources := map[string]float64{}, 0
	for _, o := range w.Objects() {
		switch o := o.(type) {
		case *v1alpha1.CatalogSource:
			want["catalog_source_count"][""]++
			catalogSources++
		case *v1alpha1.Subscription:
			want["subscription_count"][""]++
			perNamespace[o.Namespace]++
		case *v1alpha1.InstallPlan:
			want["install_plan_count"][""]++
			want["olm_install_plans"]["namespace="+o.Namespace+",phase="+string(o.Status.Phase)]++
			if key := "namespace=" + o.Namespace; o.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !o.Spec.Approved && o.DeletionTimestamp == nil {
				created := float64(o.CreationTimestamp.Unix())
				if before, is := want["olm_install_plan_waiting_timestamp_seconds"][key]; !is || created < before {
					want["olm_install_plan_waiting_timestamp_seconds"][key] = created
				}
			}
		case *v1alpha1.ClusterServiceVersion:
			want["csv_count"][""]++
			name, isFine := fmt.Sprintf("name=%s,namespace=%s", o.Name, o.Namespace), 0.0
			if o.Status.Phase == v1alpha1.CSVPhaseSucceeded {
				isFine = 1
			} else {
				want["csv_abnormal"][fmt.Sprintf("%s,phase=%s,reason=%s,version=%s", name, o.Status.Phase, o.Status.Reason, o.Spec.Version)] = 1
			}
			want["csv_succeeded"][name+",version="+o.Spec.Version.String()] = isFine
		}
	}
	for metric, series := range want {
		got := of(now, metric)
		if metric == "olm_csv_cleanup_timestamp_seconds" { // not each deletion needs a cleanup
			require.LessOrEqual(t, len(got), int(want["csv_count"][""]))
			continue
		}
		require.Equal(t, series, got, metric)
	}
	require.Len(t, of(now, "catalogsource_ready"), catalogSources)
	inAll := map[string]float64{}
	for labels, n := range of(now, "olm_subscriptions") {
		inAll[strings.SplitN(labels, "namespace=", 2)[1]] += n
	}
	require.Equal(t, perNamespace, inAll, "each Subscription has one health")
}

// TestAScrapeWhileEverythingGoesOn: scrapes and reports at the same time, from Readers that change.
func TestAScrapeWhileEverythingGoesOn(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.Create(sub("ops", "alpha", v1alpha1.ApprovalAutomatic), sub("apps", "beta", v1alpha1.ApprovalManual)))
	read := func() {
		snapshot, err := w.Snapshot()
		require.NoError(t, err)
		w.metrics.Read(snapshot)
	}
	w.metrics.Now = func() time.Time { return noon }
	read()
	done := make(chan struct{})
	var scrapes sync.WaitGroup
	for range 4 {
		scrapes.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					if n > 0 {
						return
					}
				default:
				}
				_, err := w.registry.Gather()
				if err != nil {
					t.Error(err)
					return
				}
				w.content.Put(resolution.CatalogState{Key: types.NamespacedName{Namespace: "olm", Name: "another"}})
			}
		})
	}
	for range 12 {
		w.run(t, 5*time.Second)
		read()
	}
	close(done)
	scrapes.Wait()
	require.Equal(t, map[string]float64{"name=alpha.v1.0.0,namespace=ops,version=1.0.0": 1}, of(samplesOf(t, w.registry), "csv_succeeded"))
}

// TestOneTenantsNamesStayWithinBounds: of what stands in one namespace there are MaxSeries series of a metric at most,
// others have all of theirs, and the number of what is left out is told.
func TestOneTenantsNamesStayWithinBounds(t *testing.T) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	for i := range 30 {
		require.NoError(t, c.Create(versionNamed("tenant", fmt.Sprintf("x%02d.v1", i)), sub("tenant", fmt.Sprintf("x%02d", i), "")))
	}
	require.NoError(t, c.Create(versionNamed("victim", "y.v1"), sub("victim", "y", "")))
	got := scrape(t, controllers.Options{}, c, func(m *metrics.Metrics) { m.MaxSeries = 10 })
	for _, metric := range []string{"csv_succeeded", "csv_abnormal", "subscription_sync_total"} {
		require.Len(t, of(got, metric), 11, metric)
		require.Equal(t, 20.0, got["olm_metrics_series_left_out,metric="+metric])
	}
	require.Contains(t, of(got, "csv_succeeded"), "name=y.v1,namespace=victim,version=0.0.0")
	require.Equal(t, 31.0, got["csv_count"], "counts are of all")
}

func versionNamed(namespace, name string) *v1alpha1.ClusterServiceVersion {
	return &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestAShardTellsOfItsNamespaces alone.
func TestAShardTellsOfItsNamespaces(t *testing.T) {
	w := troubled(t)
	all := scrape(t, controllers.Options{}, w.Cluster)
	for _, name := range []string{"ops", "apps", "olm"} {
		for series := range scrape(t, controllers.Options{Namespaces: []string{name, name}}, w.Cluster) {
			require.True(t, !strings.Contains(series, "namespace=") || strings.Contains(series, "namespace="+name), series)
		}
	}
	sum := 0.0
	for _, name := range []string{"ops", "apps", "olm", "none"} {
		sum += scrape(t, controllers.Options{Namespaces: []string{name}}, w.Cluster)["install_plan_count"]
	}
	require.Equal(t, all["install_plan_count"], sum)
}

// TestCountersOfSubscriptionsShareASeries when their labels are equal: it goes down never, and goes with the last of
// them.
func TestCountersOfSubscriptionsShareASeries(t *testing.T) {
	w := newWorld(t)
	const series = "subscription_sync_total,approval=Manual,channel=stable,installed=,name=beta,package=beta"
	require.NoError(t, w.Create(sub("ops", "beta", v1alpha1.ApprovalManual), sub("apps", "beta", v1alpha1.ApprovalManual)))
	require.Equal(t, 2.0, samplesOf(t, w.registry)[series])
	w.run(t, time.Minute)
	both := samplesOf(t, w.registry)[series]
	require.Greater(t, both, 2.0)
	require.NoError(t, w.Delete(olmcore.RefOf(fake.Find[*v1alpha1.Subscription](w.Cluster, "ops", "beta")).Unversioned()))
	require.Equal(t, both, samplesOf(t, w.registry)[series])
	require.NoError(t, w.Delete(olmcore.RefOf(fake.Find[*v1alpha1.Subscription](w.Cluster, "apps", "beta")).Unversioned()))
	require.NotContains(t, samplesOf(t, w.registry), series)
}

// TestWarningsOfPlansAlone: what an API server says of the work of other controllers is not counted.
func TestWarningsOfPlansAlone(t *testing.T) {
	w := newWorld(t)
	for _, r := range w.runners {
		r.Reconcile = func(ctx context.Context, _ olmcore.Reader, _ types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			w.metrics.HandleWarningHeaderWithContext(ctx, 299, "-", "policy/v1beta1 is deprecated")
			w.metrics.HandleWarningHeaderWithContext(ctx, 199, "-", "another code")
			return olmcore.Result{}, nil
		}
		_, err := r.Run(t.Context(), types.NamespacedName{Name: "x"}, noon)
		require.NoError(t, err)
	}
	require.Equal(t, 1.0, samplesOf(t, w.registry)["installplan_warnings_total"])
}

// TestWhatFailedIsNotCountedAsDone, and a transition whose write failed counts when it comes again.
func TestWhatFailedIsNotCountedAsDone(t *testing.T) {
	w := newWorld(t)
	target := olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "ops", Name: "x"}
	object := versionNamed("ops", "x")
	action := olmcore.UpdateStatus{Target: target, Before: object, After: object}
	report := controller.Report{Controller: controllers.CSV, Result: olmcore.Result{
		Actions:     []olmcore.Action{action},
		Transitions: []olmcore.Transition{{Target: target, Type: "Phase", From: "Succeeded", To: "Replacing", Certainty: olmcore.CertaintyObserved}},
	}}
	before := samplesOf(t, w.registry)
	report.Err = &olmcore.ActionError{Action: action, Err: errors.New("no connection")}
	w.metrics.OnReport(report)
	failed := samplesOf(t, w.registry)
	require.Equal(t, before["csv_upgrade_count"], failed["csv_upgrade_count"])
	require.Empty(t, of(failed, "olm_transitions_total"))
	require.Equal(t, map[string]float64{"class=Transient,controller=csv": 1}, of(failed, "olm_action_errors_total"))
	report.Err = nil
	w.metrics.OnReport(report)
	done := samplesOf(t, w.registry)
	require.Equal(t, 1.0, done["csv_upgrade_count"])
	require.Equal(t, map[string]float64{"certainty=Observed,kind=ClusterServiceVersion,to=Replacing,type=Phase": 1}, of(done, "olm_transitions_total"))
}

// FuzzNoObjectBreaksAScrape: whatever stands in the fields that become labels, all others are told.
func FuzzNoObjectBreaksAScrape(f *testing.F) {
	f.Add("stable", "Succeeded", "InstallSucceeded", "READY")
	f.Add("\xff\xfe", strings.Repeat("x", 300), "a b\n\"", "\x00")
	f.Fuzz(func(t *testing.T, channel, phase, reason, state string) {
		s, c := sub("ops", "alpha", v1alpha1.Approval(state)), versionNamed("ops", "x")
		s.Spec.Channel, s.Spec.Package, s.Status.InstalledCSV, s.UID = channel, reason, phase, "1"
		c.Status.Phase, c.Status.Reason = v1alpha1.ClusterServiceVersionPhase(phase), v1alpha1.ConditionReason(reason)
		source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "c", UID: "2"}}
		source.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{Address: channel, LastObservedState: state}
		snapshot, err := olmcore.NewSnapshot([]olmcore.Object{s, c, source}, olmcore.Everything)
		require.NoError(t, err)
		got := scrape(t, controllers.Options{}, snapshot)
		require.Equal(t, 1.0, got["csv_count"])
		require.Len(t, of(got, "subscription_sync_total"), 1)
	})
}

// TestWhatIsRememberedEndsWithWhatItIsMadeOf: with the time, and with what is read.
func TestWhatIsRememberedEndsWithWhatItIsMadeOf(t *testing.T) {
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-x", UID: "2", ResourceVersion: "2", CreationTimestamp: metav1.NewTime(noon)}}
	s := sub("ops", "alpha", "")
	s.UID, s.ResourceVersion, s.CreationTimestamp = "1", "1", plan.CreationTimestamp
	s.Status.State, s.Status.CurrentCSV, s.Status.LastUpdated = v1alpha1.SubscriptionStateUpgradePending, "alpha.v1", plan.CreationTimestamp
	s.Status.InstallPlanRef = &corev1.ObjectReference{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: plan.Name, UID: plan.UID}
	g := group("ops")
	g.UID, g.ResourceVersion = "3", "3"
	whole, err := olmcore.NewSnapshot([]olmcore.Object{s, plan, g}, olmcore.Everything)
	require.NoError(t, err)

	now := noon.Add(time.Second)
	m := metrics.New(&controllers.Options{})
	m.Now = func() time.Time { return now }
	m.Read(whole)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	healthIs := func(want string) {
		t.Helper()
		require.Equal(t, map[string]float64{"health=" + want + ",namespace=ops": 1}, of(samplesOf(t, registry), "olm_subscriptions"))
	}
	healthIs("Installing")
	healthIs("Installing")
	now = noon.Add(time.Hour)
	healthIs("Stuck")
	m.Read(without{whole, "ClusterServiceVersion", nil}) // there is none, and that is not known any more
	require.Empty(t, of(samplesOf(t, registry), "olm_subscriptions"))
	m.Read(whole)
	healthIs("Stuck")
}

// TestAConnectionThatIsNone: a status that names a state which no client has is as good as none.
func TestAConnectionThatIsNone(t *testing.T) {
	w := newWorld(t)
	w.run(t, time.Minute)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "community", func(c *v1alpha1.CatalogSource) { c.Status.GRPCConnectionState.LastObservedState = "SPLENDID" }))
	got := samplesOf(t, w.registry)
	require.Empty(t, of(got, "olm_objects_not_assessed"))
	require.Equal(t, map[string]float64{"name=community,namespace=olm": 0}, of(got, "catalogsource_ready"))
	require.Empty(t, of(got, "olm_catalog_source_not_serving_timestamp_seconds"), "its Pod serves")
}

// TestASelectionTellsOfWhatItRuns: each metric of what is there comes from the selection that runs its controller, as
// with all of them, and from no other; nothing is read that the selection's cache does not hold.
func TestASelectionTellsOfWhatItRuns(t *testing.T) {
	w := troubled(t)
	o := controllers.Options{Sweeps: true, Operators: true}
	now := func(m *metrics.Metrics) { m.Now = w.Now }
	all := scrape(t, o, w.Cluster, now)
	for _, c := range controllers.New(&o).Controllers {
		watched := o.Watched(c.Name)
		var lacks []string
		for gvk := range o.Watched() {
			if _, is := watched[gvk]; !is {
				lacks = append(lacks, gvk.Kind)
			}
		}
		var r olmcore.Reader = w.Cluster
		for _, kind := range lacks {
			r = without{r, kind, errors.New("forbidden")}
		}
		m := metrics.New(&o, c.Name)
		now(m)
		m.Read(r)
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(m))
		got := samplesOf(t, registry)
		for _, f := range metrics.Families() {
			switch {
			case f.Controller == c.Name:
				require.Equal(t, of(all, f.Name), of(got, f.Name), f.Name)
			case f.Controller != "":
				require.Empty(t, of(got, f.Name), "%s of %s", f.Name, c.Name)
			}
		}
		for kind, readable := range of(got, "olm_kind_readable") {
			require.EqualValues(t, 1, readable, "%s for %s", kind, c.Name)
		}
		require.Empty(t, of(got, "olm_objects_not_assessed"), c.Name)
	}
}
