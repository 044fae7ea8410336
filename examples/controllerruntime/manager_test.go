// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/examples/internal/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

func init() { log.SetLogger(logr.Discard()) }

// heard is what managers did and said.
type heard struct {
	mu          sync.Mutex
	transitions []olmcore.Transition
	failures    []error
}

func (h *heard) observe(_ string, _ types.NamespacedName, result olmcore.Result, runErr error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.transitions = append(h.transitions, result.Transitions...)
	if runErr != nil {
		h.failures = append(h.failures, runErr)
	}
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
func start(t *testing.T, config *rest.Config, o olmruntime.Options) (stop func()) {
	mgr, err := olmruntime.NewManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(5 * time.Second), Logger: logr.Discard(),
	}, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(5 * time.Second):
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

// until waits for a state of the cluster.
func until(t *testing.T, s *apiserver.Server, what string, condition func(c *fake.Cluster) bool) {
	t.Helper()
	met := false
	for deadline := time.Now().Add(15 * time.Second); !met && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		require.NoError(t, s.With(func(c *fake.Cluster) error { met = condition(c); return nil }))
	}
	require.True(t, met, "not yet: %s", what)
}

// atRest waits until nobody asked for anything for a while.
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
	s, config := serve(t, newCluster(t, time.Now()))
	live(t, s)
	var h heard
	o := olmruntime.Options{Observe: h.observe}
	o.Resolve, o.Sweeps, o.Operators = catalogs(t).Resolve, true, true
	o.Catalog.NodeUnreachableGrace, o.Catalog.NodeNotReadyGrace = time.Second, time.Second
	stop := start(t, config, o)

	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
	until(t, s, "alpha is installed", succeeded("alpha"))
	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("beta", v1alpha1.ApprovalManual)) })
	until(t, s, "beta waits for approval", func(c *fake.Cluster) bool {
		ref := fake.Find[*v1alpha1.Subscription](c, "ops", "beta").Status.InstallPlanRef
		return ref != nil && fake.Find[*v1alpha1.InstallPlan](c, "ops", ref.Name).Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval
	})
	atRest(t, s)
	do(t, s, func(c *fake.Cluster) error {
		ref := fake.Find[*v1alpha1.Subscription](c, "ops", "beta").Status.InstallPlanRef
		return fake.Edit(c, "ops", ref.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
	})
	until(t, s, "beta is installed", succeeded("beta"))
	require.Equal(t, []string{"UpgradePending", "AtLatestKnown"}, h.states("Subscription", "beta", "State"))
	require.Equal(t, []string{"Pending", "InstallReady", "Installing", "Succeeded"}, h.states("ClusterServiceVersion", "beta.v1.0.0", "Phase"))

	on := ""
	do(t, s, func(c *fake.Cluster) error { on = serving(c); return c.NotReadyNode(on, "KubeletNotReady") })
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
	start(t, config, o)
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
