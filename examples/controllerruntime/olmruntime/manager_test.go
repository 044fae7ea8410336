// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

func init() { log.SetLogger(logr.Discard()) }

// heard is what managers did and said.
type heard struct {
	mu          sync.Mutex
	results     int
	transitions []olmcore.Transition
	failures    []error
}

func (h *heard) told(report controller.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.results++
	h.transitions = append(h.transitions, report.Result.Transitions...)
	if report.Err != nil {
		h.failures = append(h.failures, report.Err)
	}
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.results
}

// states returns the states that an object went through, as reported.
func (h *heard) states(kind, name, machine string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []string
	for _, t := range h.transitions {
		if t.Target.Kind == kind && t.Target.Name == name && t.Type == machine {
			states = append(states, t.To)
		}
	}
	return slices.Compact(states) // the reason may change and the state stay
}

// start runs a manager; stop ends it and waits until it has.
func start(t *testing.T, config *rest.Config, o controllers.Options, h *heard) (stop func()) {
	return startWith(t, config, ctrl.Options{}, o, h)
}

func startWith(t *testing.T, config *rest.Config, m ctrl.Options, o controllers.Options, h *heard) (stop func()) {
	m.Metrics, m.GracefulShutdownTimeout, m.Logger = server.Options{BindAddress: "0"}, new(5*time.Second), logr.Discard()
	mgr, err := olmruntime.New(config, m, olmruntime.Options{Options: o, OnReport: h.told})
	require.NoError(t, err)
	return run(t, mgr)
}

// run starts a manager; stop ends it and waits until it has.
func run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(30 * time.Second):
			t.Error("the manager does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// live lets the simulated cluster go on during a test.
func live(t *testing.T, s *apiserver.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Live(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// until waits for a state of the cluster; how long, matters on a busy machine only.
func until(t *testing.T, s *apiserver.Server, what string, condition func(c *fake.Cluster) bool) {
	t.Helper()
	met := false
	for deadline := time.Now().Add(2 * time.Minute); !met && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		require.NoError(t, s.With(func(c *fake.Cluster) error { met = condition(c); return nil }))
	}
	require.True(t, met, "not yet: %s", what)
}

// atRest waits until no reconcile asked for anything for a while.
func atRest(t *testing.T, s *apiserver.Server) {
	t.Helper()
	var asked map[string]int
	for range 50 {
		s.Requests()
		time.Sleep(1500 * time.Millisecond) // longer than a look after writes
		if asked = s.Requests(); len(asked) == 0 {
			return
		}
	}
	require.Failf(t, "it never comes to rest", "%v", asked)
}

func do(t *testing.T, s *apiserver.Server, use func(c *fake.Cluster) error) {
	t.Helper()
	require.NoError(t, s.With(use))
}

func succeeded(name string) func(c *fake.Cluster) bool {
	return func(c *fake.Cluster) bool {
		csv := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", name+".v1.0.0")
		sub := fake.Find[*v1alpha1.Subscription](c, "ops", name)
		return csv != nil && csv.Status.Phase == v1alpha1.CSVPhaseSucceeded && sub.Status.State == v1alpha1.SubscriptionStateAtLatest
	}
}

// TestAManagerLivesTheLifeOfOperators installs two, loses a node, and removes one
// of them after an outage; between these it rests.
func TestAManagerLivesTheLifeOfOperators(t *testing.T) {
	t.Parallel()
	s, config := serve(t, newCluster(t, time.Now()))
	live(t, s)
	var h heard
	o := controllers.Options{Resolve: catalogs(t).Resolve, Sweeps: true, Operators: true}
	o.Catalog.NodeUnreachableGrace, o.Catalog.NodeNotReadyGrace = time.Second, time.Second
	stop := start(t, config, o, &h)

	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
	until(t, s, "alpha is installed", succeeded("alpha"))
	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("beta", v1alpha1.ApprovalManual)) })
	until(t, s, "beta waits for approval", func(c *fake.Cluster) bool {
		ref := fake.Find[*v1alpha1.Subscription](c, "ops", "beta").Status.InstallPlanRef
		return ref != nil && fake.Find[*v1alpha1.InstallPlan](c, "ops", ref.Name).Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval
	})
	atRest(t, s)
	// What changes nothing costs nothing: every controller looks, at its cache alone.
	do(t, s, func(c *fake.Cluster) error {
		touch := map[string]string{"touched": "yes"}
		return errors.Join(
			fake.Edit(c, "", "ops", func(n *corev1.Namespace) { n.Annotations = touch }),
			fake.Edit(c, "", "alphas.example.com", func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations["touched"] = "yes" }),
			fake.Edit(c, "ops", "alpha", func(s *v1alpha1.Subscription) { s.Annotations = touch }))
	})
	time.Sleep(500 * time.Millisecond)
	require.Empty(t, s.Requests())
	do(t, s, func(c *fake.Cluster) error {
		ref := fake.Find[*v1alpha1.Subscription](c, "ops", "beta").Status.InstallPlanRef
		return fake.Edit(c, "ops", ref.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
	})
	until(t, s, "beta is installed", succeeded("beta"))
	until(t, s, "that has been reported", func(*fake.Cluster) bool {
		phases := h.states("ClusterServiceVersion", "beta.v1.0.0", "Phase")
		return slices.Contains(phases, "Succeeded") && slices.Contains(h.states("Subscription", "beta", "State"), "AtLatestKnown")
	})
	require.Equal(t, []string{"UpgradePending", "AtLatestKnown"}, h.states("Subscription", "beta", "State"))
	require.Equal(t, []string{"Pending", "InstallReady", "Installing", "Succeeded"}, h.states("ClusterServiceVersion", "beta.v1.0.0", "Phase"))

	until(t, s, "it is an Event too", func(c *fake.Cluster) bool {
		events, err := c.List(t.Context(), schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, "ops", nil)
		require.NoError(t, err)
		return slices.ContainsFunc(events, func(o olmcore.Object) bool {
			m := o.(*unstructured.Unstructured).Object
			return m["note"] == "Phase Installing -> Succeeded: install strategy completed with no errors" && m["regarding"].(map[string]any)["name"] == "beta.v1.0.0"
		})
	})

	on := ""
	do(t, s, func(c *fake.Cluster) error { on = serving(c); return c.Node(on).SetNotReady("KubeletNotReady") })
	until(t, s, "the catalog moves", func(c *fake.Cluster) bool { now := serving(c); return now != "" && now != on })

	stop()
	do(t, s, func(c *fake.Cluster) error {
		for _, o := range []olmcore.Object{fake.Find[*v1alpha1.Subscription](c, "ops", "alpha"), fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "alpha.v1.0.0")} {
			if err := c.Delete(olmcore.RefOf(o).Unversioned()); err != nil {
				return err
			}
		}
		return nil
	})
	start(t, config, o, &h)
	until(t, s, "alpha is cleaned up", func(c *fake.Cluster) bool {
		return !slices.ContainsFunc(c.Objects(), func(o olmcore.Object) bool {
			return olmcore.GVKOf(o).Kind != "CustomResourceDefinition" && o.GetLabels()["olm.owner"] == "alpha.v1.0.0"
		}) && fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "alpha.v1.0.0") == nil
	})
	atRest(t, s)
}

// serving is the node of the ready registry Pod.
func serving(c *fake.Cluster) string {
	pods, _ := olmcore.List[*corev1.Pod](context.Background(), c, "olm", nil)
	for _, p := range pods {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && p.DeletionTimestamp == nil {
			return p.Spec.NodeName
		}
	}
	return ""
}

func group(namespace string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}
}

// done reports whether the OperatorGroup of a namespace was taken care of.
func done(namespace string) func(*fake.Cluster) bool {
	return func(c *fake.Cluster) bool {
		return !fake.Find[*operatorsv1.OperatorGroup](c, namespace, "group").Status.LastUpdated.IsZero()
	}
}

func TestAShardLeavesOtherNamespacesAlone(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(group("a"), group("b")))
	s, config := serve(t, c)
	start(t, config, controllers.Options{Namespaces: []string{"b"}}, &heard{})
	until(t, s, "the shard's group is done", done("b"))
	atRest(t, s)
	do(t, s, func(c *fake.Cluster) error {
		require.False(t, done("a")(c))
		return fake.Edit(c, "a", "group", func(g *operatorsv1.OperatorGroup) { g.Labels = map[string]string{"changed": "yes"} })
	})
	atRest(t, s)
	do(t, s, func(c *fake.Cluster) error { require.False(t, done("a")(c)); return nil })
}

// TestOneManagerLeads has a second one wait, which takes over as soon as the first one ends.
func TestOneManagerLeads(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}, group("a")))
	s, config := serve(t, c)
	m := ctrl.Options{LeaderElection: true, LeaderElectionID: "olm", LeaderElectionNamespace: "olm",
		LeaderElectionReleaseOnCancel: true, RetryPeriod: new(50 * time.Millisecond)}
	var first, second heard
	stop := startWith(t, config, m, controllers.Options{}, &first)
	until(t, s, "the first one works", done("a"))
	s.Requests()
	startWith(t, config, m, controllers.Options{}, &second)
	for s.Requests()["get"] == 0 { // of the Lease, by the one that waits
		time.Sleep(5 * time.Millisecond)
	}
	do(t, s, func(c *fake.Cluster) error { return c.Create(group("b")) })
	until(t, s, "the first one goes on", done("b"))
	require.Zero(t, second.count())
	stop()
	do(t, s, func(c *fake.Cluster) error { return c.Create(group("c")) })
	until(t, s, "the second one takes over", done("c"))
	until(t, s, "the second one says so", func(*fake.Cluster) bool { return second.count() > 0 })
}

// TestConflictsAndFailuresAreTriedAgain has every third write refused, in ways that pass.
func TestConflictsAndFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, time.Now())
	for nth := range 10 {
		c.Faults().Inject(fake.Fault{Nth: 6*nth + 2, Mode: fake.Conflict})
		c.Faults().Inject(fake.Fault{Nth: 6*nth + 5, Mode: fake.FailAfterEffect})
	}
	s, config := serve(t, c)
	live(t, s)
	var h heard
	startWith(t, config, ctrl.Options{Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 4}}, controllers.Options{Resolve: catalogs(t).Resolve}, &h)
	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
	until(t, s, "alpha is installed all the same", succeeded("alpha"))
	h.mu.Lock()
	defer h.mu.Unlock()
	require.True(t, slices.ContainsFunc(h.failures, func(err error) bool { return errors.Is(err, olmcore.ErrStale) }))
	require.True(t, slices.ContainsFunc(h.failures, func(err error) bool { return !errors.Is(err, olmcore.ErrStale) }))
}

// TestAnOutageOfTheAPIServerPasses cuts all connections; nothing is done on the
// word of a server that does not answer, and all that was missed afterwards.
func TestAnOutageOfTheAPIServerPasses(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(group("a")))
	s, config, front := serveBy(t, c)
	start(t, config, controllers.Options{}, &heard{})
	until(t, s, "the first group is done", done("a"))
	atRest(t, s)
	s.Break(true)
	front.CloseClientConnections()
	version := ""
	do(t, s, func(c *fake.Cluster) error {
		err := c.Create(group("b"))
		version = c.ResourceVersion()
		return err
	})
	time.Sleep(time.Second)
	do(t, s, func(c *fake.Cluster) error { require.Equal(t, version, c.ResourceVersion()); return nil })
	s.Break(false)
	until(t, s, "the second group is done", done("b"))
}
