// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"fmt"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// writer is one of several controllers that write the same statuses, each with its own reads and its own memory.
type writer struct {
	knows func(*subscription.Input)
	read  *subscription.Input
}

func (w *writer) gather(t require.TestingT, c *fake.Cluster) {
	in, err := subscription.Gather(context.Background(), c, ns, subscription.Config{})
	require.NoError(t, err)
	in.Now, in.Live = c.Now(), true
	w.knows(&in)
	w.read = &in
}

// act runs the actions that follow from the last read. They may be rejected as stale.
func (w *writer) act(t require.TestingT, c *fake.Cluster) (writes int) {
	out, err := subscription.Reconcile(*w.read)
	require.NoError(t, err)
	_ = olmcore.Run(context.Background(), c, out.Actions) // what is refused or lost is tried again
	c.Faults().RestartController()
	return len(out.Actions)
}

// TestConcurrentWritersKeepEachOthersChanges runs three of our writers and another writer in any order, each with
// reads of any age. It checks that no writer reverts the changes of another.
func TestConcurrentWritersKeepEachOthersChanges(t *testing.T) {
	phases := []v1alpha1.InstallPlanPhase{"", "RequiresApproval", "Installing", "Failed", "Complete"}
	rapid.Check(t, func(t *rapid.T) {
		c := fake.NewCluster(epoch)
		c.AutoCreateNamespaces = true
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}
		require.NoError(t, c.Load(newSub("a", follows("p", "etcd.v1")), vault("b"), newPlan("p", ""), newCatalog("olm", "cool", true), group))
		catalogs := func(in *subscription.Input) { in.Catalogs = sources(newCatalog("olm", "cool", true)) }
		solver := func(in *subscription.Input) {
			*in = answered(*in)
			in.Resolution.Resolution.Failure = &olmcore.ResolutionFailure{Unsatisfiable: true, Message: "no"}
		}
		writers := []*writer{{knows: catalogs}, {knows: solver}, {knows: func(*subscription.Input) {}}}
		foreign := 0
		for _, w := range writers {
			w.gather(t, c)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w := rapid.SampledFrom(writers).Draw(t, "writer")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 6:
				injectFault(t, c, "Subscription")
			case 0, 1:
				w.gather(t, c)
			case 2, 3:
				w.act(t, c)
			case 4:
				foreign++
				require.NoError(t, fake.Edit(c, ns, "a", func(s *v1alpha1.Subscription) {
					s.Status.Conditions = append(foreignOf(nil), s.Status.Conditions...)
					s.Status.SetCondition(v1alpha1.SubscriptionCondition{Type: "Foreign", Status: "True", Message: fmt.Sprint(foreign)})
					s.Status.Reason = v1alpha1.ConditionReason(fmt.Sprint(foreign))
				}))
			case 5:
				require.NoError(t, fake.Edit(c, ns, "p", func(p *v1alpha1.InstallPlan) {
					p.Status.Phase, p.Status.Plan = rapid.SampledFrom(phases).Draw(t, "phase"), []*v1alpha1.Step{{Resolving: "etcd.v1"}}
				}))
			}
			checkForeign(t, c, foreign)
		}
		c.Faults().Clear()
		for round := 0; ; round++ {
			require.Less(t, round, 10, "not at rest")
			writes := 0
			for _, w := range writers {
				w.gather(t, c)
				writes += w.act(t, c)
			}
			if writes == 0 {
				break
			}
		}
		checkForeign(t, c, foreign)
		status := fake.Find[*v1alpha1.Subscription](c, ns, "a").Status
		require.Equal(t, corev1.ConditionFalse, status.GetCondition("CatalogSourcesUnhealthy").Status)
		require.Len(t, status.CatalogHealth, 1)
		require.Equal(t, "ConstraintsNotSatisfiable", status.GetCondition("ResolutionFailed").Reason)
		want := map[v1alpha1.InstallPlanPhase]string{
			"": "Pending/InstallPlanNotYetReconciled", "RequiresApproval": "Pending/RequiresApproval", "Installing": "Pending/Installing", "Failed": "Failed/InstallPlanFailed",
		}[fake.Find[*v1alpha1.InstallPlan](c, ns, "p").Status.Phase]
		require.Equal(t, want, planConditions(status))
	})
}

// injectFault lets one of the next writes of a kind fail.
func injectFault(t *rapid.T, c *fake.Cluster, kinds ...string) {
	c.Faults().Inject(fake.Fault{
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Nth: rapid.IntRange(1, 3).Draw(t, "nth"), Mode: rapid.SampledFrom(faultModes).Draw(t, "mode"),
	})
}

func checkForeign(t require.TestingT, c *fake.Cluster, count int) {
	status := fake.Find[*v1alpha1.Subscription](c, ns, "a").Status
	if count > 0 {
		require.Equal(t, fmt.Sprint(count), status.GetCondition("Foreign").Message)
		require.Equal(t, fmt.Sprint(count), string(status.Reason))
	}
}

// TestTwoWorkersOnOneNamespaceCreateNoDuplicatePlans runs two workers with caches of different ages in any order.
// They may lose their memory. A Manual Subscription waits, an Automatic one is added, and the Manual one may be
// deleted and created again. It checks that every InstallPlan has the owner reference and the label of each
// Subscription that references it, that no two unfinished plans have the same content, and that both operators are
// installed in the end.
func TestTwoWorkersOnOneNamespaceCreateNoDuplicatePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fake.NewCluster(epoch)
		c.AutoCreateNamespaces = true
		subscribe := func(name string, approval v1alpha1.Approval) error {
			s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: &v1alpha1.SubscriptionSpec{
				Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm", InstallPlanApproval: approval,
			}}
			return c.Create(s)
		}
		require.NoError(t, c.Load(&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{ns}, LastUpdated: new(second(0))},
		}))
		require.NoError(t, subscribe("manual", v1alpha1.ApprovalManual))
		type worker struct {
			olm   olm.OLM
			all   []controller.Controller
			cache olmcore.Reader
		}
		workers := [2]*worker{{}, {}}
		read := func(w *worker) {
			snapshot, err := c.Snapshot()
			require.NoError(t, err)
			w.cache = snapshot
		}
		for _, w := range workers {
			w.olm.Resolve = (&past{heads: map[string]int{"manual": 1, "automatic": 1}}).resolve
			for _, controller := range w.olm.Controllers() {
				if controller.Name == controllers.Subscription || controller.Name == controllers.InstallPlan {
					w.all = append(w.all, controller)
				}
			}
			read(w)
		}
		work := func(w *worker, one controller.Controller) (writes int) {
			keys, err := one.Keys(context.Background(), w.cache)
			require.NoError(t, err)
			for _, key := range keys {
				result, err := one.Reconcile(context.Background(), w.cache, key, c.Now(), nil)
				require.NoError(t, err)
				writes += len(result.Actions)
				_ = olmcore.Run(context.Background(), c, result.Actions) // what is refused is tried again
			}
			return writes
		}
		added, again := false, false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w := workers[rapid.IntRange(0, 1).Draw(t, "worker")]
			switch step := rapid.IntRange(0, 10).Draw(t, "step"); {
			case step == 10:
				injectFault(t, c, "Subscription", "InstallPlan")
			case step < 4:
				work(w, w.all[rapid.IntRange(0, 1).Draw(t, "controller")])
			case step < 7:
				read(w)
			case step == 7 && !added:
				added = true
				require.NoError(t, subscribe("automatic", v1alpha1.ApprovalAutomatic))
			case step == 8 && added && !again:
				again = true
				require.NoError(t, c.Delete(olmcore.RefOf(fake.Find[*v1alpha1.Subscription](c, ns, "manual")).Unversioned()))
				require.NoError(t, subscribe("manual", v1alpha1.ApprovalManual))
			case step == 9:
				w.olm.Forget()
			}
			if c.Faults().Crashed() {
				c.Faults().RestartController()
				w.olm.Forget()
			}
			checkSameContent(t, c)
		}
		c.Faults().Clear()
		if !added {
			require.NoError(t, subscribe("automatic", v1alpha1.ApprovalAutomatic))
		}
		for round := 0; ; round++ {
			require.Less(t, round, 40, "not at rest")
			writes := 0
			for _, w := range workers {
				for _, controller := range w.all {
					read(w)
					writes += work(w, controller)
				}
			}
			for _, o := range c.Objects() {
				if p, ok := o.(*v1alpha1.InstallPlan); ok && p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved {
					writes++
					require.NoError(t, fake.Edit(c, ns, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
				}
			}
			c.Advance(2 * 1e9)
			if writes == 0 {
				break
			}
		}
		checkSameContent(t, c)
		for _, name := range []string{"manual", "automatic"} {
			s := fake.Find[*v1alpha1.Subscription](c, ns, name)
			require.Equal(t, name+".v1", s.Status.InstalledCSV)
			require.NotNil(t, s.Status.InstallPlanRef)
			p := fake.Find[*v1alpha1.InstallPlan](c, ns, s.Status.InstallPlanRef.Name)
			require.NotNil(t, p)
			require.True(t, olmcore.OwnedBy(p, s.UID), "%s does not own %s", name, p.Name)
			require.Contains(t, p.Labels, "operators.coreos.com/"+name+".ops")
		}
	})
}

// checkSameContent checks that no two unfinished plans have the same content.
func checkSameContent(t require.TestingT, c *fake.Cluster) {
	seen := map[string]string{}
	for _, o := range c.Objects() {
		p, ok := o.(*v1alpha1.InstallPlan)
		if !ok || p.DeletionTimestamp != nil || p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
			continue
		}
		if hash := p.Annotations["olmcore/content-hash"]; hash != "" {
			require.Empty(t, seen[hash], "%s has the content of %s", p.Name, seen[hash])
			seen[hash] = p.Name
		}
	}
}
