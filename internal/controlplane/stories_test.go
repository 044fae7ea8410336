// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func requireSame(t *testing.T, fake, real recorded) {
	if diff := cmp.Diff(fake, real); diff != "" && !t.Failed() {
		t.Errorf("what the fake does (-) and what Kubernetes does (+) differ:\n%s", diff)
	}
}

// serving returns the nodes of the ready registry Pods that are not going.
func servingNodes(t testing.TB, w world) (nodes []string) {
	for _, pod := range list[*corev1.Pod](t, w, "olm") {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
	}
	return nodes
}

// The node of the catalog's Pod falls silent: the Pod is marked for deletion and
// stays, another one serves from another node, and the first is removed.
func TestACatalogSurvivesItsNode(t *testing.T) {
	fake, real := eachWorldWith(t, controlplane.Options{}, func(t *testing.T, w world) {
		namespaces(t, w, "olm")
		w.addNode("a")
		w.addNode("b")
		w.start(1)
		create(t, w, catalogSource())
		w.until("a Pod serves from a", func() bool { return slices.Equal(servingNodes(t, w), []string{"a"}) })
		first := list[*corev1.Pod](t, w, "olm")[0].Name

		w.failNode("a")
		w.until("the Pod is marked for deletion, and stays", func() bool {
			pod := get[*corev1.Pod](t, w, "olm", first)
			require.NotNil(t, pod, "no kubelet confirms that it ended")
			return pod.DeletionTimestamp != nil
		})
		w.until("a Pod serves from b", func() bool { return slices.Equal(servingNodes(t, w), []string{"b"}) })
		w.until("the stuck Pod is gone", func() bool { return get[*corev1.Pod](t, w, "olm", first) == nil })
		w.until("the status says that it serves", func() bool {
			cs := get[*v1alpha1.CatalogSource](t, w, "olm", "community")
			available := meta.FindStatusCondition(cs.Status.Conditions, "Available")
			return available != nil && available.Status == "True" && strings.Contains(available.Message, "(b;")
		})
	})
	requireSame(t, fake, real)
}

func subscriptionIs(t testing.TB, w world, namespace, name string, state v1alpha1.SubscriptionState, installed string) func() bool {
	return func() bool {
		s := get[*v1alpha1.Subscription](t, w, namespace, name)
		return s.Status.State == state && s.Status.InstalledCSV == installed
	}
}

// planIs returns the name of the plan that a Subscription refers to when that is
// in a phase, and the Subscription says so with a reason.
func planIs(t testing.TB, w world, phase v1alpha1.InstallPlanPhase, reason string, name *string) func() bool {
	return func() bool {
		s := get[*v1alpha1.Subscription](t, w, "ops", "alpha")
		if s.Status.InstallPlanRef == nil || s.Status.InstallPlanRef.Name == *name && phase == v1alpha1.InstallPlanPhaseRequiresApproval {
			return false
		}
		p := get[*v1alpha1.InstallPlan](t, w, "ops", s.Status.InstallPlanRef.Name)
		if p == nil || p.Status.Phase != phase {
			return false
		}
		for _, c := range s.Status.Conditions {
			if c.Reason == reason && c.Status == corev1.ConditionTrue {
				*name = p.Name
				return true
			}
		}
		return reason == ""
	}
}

// A Subscription is followed through every state of its plans. The failure of
// the second one happens faster than any watch is handled.
func TestASubscriptionFollowsItsPlan(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		publish(t, map[string]int{"alpha": 1, "beta": 1})
		namespaces(t, w, "olm", "ops")
		w.addNode("a")
		w.start(1)
		create(t, w, catalogSource(), operatorGroup("ops"), subscribe("ops", "alpha", v1alpha1.ApprovalManual))
		approve := func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }
		plan := ""
		w.until("the plan requires approval", planIs(t, w, v1alpha1.InstallPlanPhaseRequiresApproval, "RequiresApproval", &plan))
		edit(t, w, "ops", plan, approve)
		w.until("version 1 is installed", subscriptionIs(t, w, "ops", "alpha", v1alpha1.SubscriptionStateAtLatest, csvName("alpha", 1)))
		w.until("the plan is complete", planIs(t, w, v1alpha1.InstallPlanPhaseComplete, "", &plan))

		publish(t, map[string]int{"alpha": 2, "beta": 1})
		w.published()
		w.until("the next plan requires approval", planIs(t, w, v1alpha1.InstallPlanPhaseRequiresApproval, "RequiresApproval", &plan))
		w.stop()
		edit(t, w, "ops", plan, approve)
		editStatus(t, w, "ops", plan, func(p *v1alpha1.InstallPlan) { p.Status.Phase = v1alpha1.InstallPlanPhaseInstalling })
		editStatus(t, w, "ops", plan, func(p *v1alpha1.InstallPlan) {
			p.Status.Phase = v1alpha1.InstallPlanPhaseFailed
			now := olmcore.Timestamp(p.CreationTimestamp.Time)
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{{Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse,
				Reason: v1alpha1.InstallPlanReasonComponentFailed, Message: "a test failed it", LastUpdateTime: &now, LastTransitionTime: &now}}
		})
		w.start(1)
		w.until("the Subscription says that the plan failed, and why",
			planIs(t, w, v1alpha1.InstallPlanPhaseFailed, string(v1alpha1.InstallPlanReasonComponentFailed), &plan))

		w.stop()
		remove(t, w, get[*v1alpha1.InstallPlan](t, w, "ops", plan))
		w.until("the plan is gone, or held", func() bool {
			p := get[*v1alpha1.InstallPlan](t, w, "ops", plan)
			return p == nil || p.DeletionTimestamp != nil
		})
		w.start(1)
		w.until("the Subscription noticed that the plan is gone", func() bool {
			return slices.ContainsFunc(edges(w), func(e olmcore.Transition) bool {
				return e.Type == subscription.TransitionInstallPlan && e.Reason == "ReferencedInstallPlanNotFound"
			})
		})
		requireEveryEdge(t, edges(w))
	})
	requireSame(t, fake, real)
}

// edges returns the transitions of the Subscription in the order of their report.
func edges(w world) (edges []olmcore.Transition) {
	for _, r := range w.done() {
		for _, e := range r.result.Transitions {
			if r.controller == "subscription" {
				edges = append(edges, e)
			}
		}
	}
	return edges
}

// requireEveryEdge: each edge of the plan begins where the one before it ended, and none is missing.
func requireEveryEdge(t testing.TB, edges []olmcore.Transition) {
	state := string(subscription.StageNoPlan)
	var stages []string
	for _, e := range edges {
		if e.Type != subscription.TransitionInstallPlan {
			continue
		}
		require.Equal(t, state, e.From, "%s -> %s comes after %v", e.From, e.To, stages)
		state = e.To
		stages = append(stages, e.To)
		if len(stages) == 8 {
			require.NotEqual(t, olmcore.CertaintyObserved, e.Certainty, "the second plan was not observed while it installed")
		}
	}
	require.Equal(t, []string{
		"NotYetReconciled", "RequiresApproval", "Installing", "Complete", "NoPlan",
		"NotYetReconciled", "RequiresApproval", "Installing", "Failed", "Missing",
	}, stages[:min(10, len(stages))])
}

// A version is deleted while no manager runs. The finalizer holds it, the
// garbage collector does what it can, and the next manager does the rest.
func TestADeletedVersionIsCleanedUpAfterAnOutage(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		publish(t, map[string]int{"alpha": 1, "beta": 1})
		namespaces(t, w, "olm", "ops")
		w.addNode("a")
		w.start(1)
		create(t, w, catalogSource(), operatorGroup("ops"), subscribe("ops", "alpha", v1alpha1.ApprovalAutomatic))
		w.until("alpha is installed", func() bool {
			c := get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("alpha", 1))
			return c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded
		})
		w.until("the Subscription says so", subscriptionIs(t, w, "ops", "alpha", v1alpha1.SubscriptionStateAtLatest, csvName("alpha", 1)))
		operand := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Alpha", "metadata": map[string]any{"namespace": "ops", "name": "one"}, "spec": map[string]any{"size": int64(3)}}}
		create(t, w, operand)

		w.stop()
		remove(t, w, get[*v1alpha1.Subscription](t, w, "ops", "alpha"))
		version := get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("alpha", 1))
		remove(t, w, version)
		w.until("the Subscription is gone", func() bool { return get[*v1alpha1.Subscription](t, w, "ops", "alpha") == nil })
		w.until("the version is held", func() bool {
			return get[*v1alpha1.ClusterServiceVersion](t, w, "ops", version.Name).DeletionTimestamp != nil
		})
		held, err := w.Get(t.Context(), operand.GroupVersionKind(), "ops", "one")
		require.NoError(t, err)
		require.NotNil(t, held)

		w.start(1)
		w.until("the version is gone", func() bool { return get[*v1alpha1.ClusterServiceVersion](t, w, "ops", version.Name) == nil })
		w.until("the operand is gone", func() bool {
			_, err := w.Get(t.Context(), operand.GroupVersionKind(), "ops", "one")
			return olmcore.Classify(err) == olmcore.Gone
		})
		w.until("its permissions are gone", func() bool {
			return len(ofAlpha(list[*rbacv1.ClusterRole](t, w, "")))+len(ofAlpha(list[*rbacv1.ClusterRoleBinding](t, w, "")))+
				len(ofAlpha(list[*rbacv1.Role](t, w, "ops")))+len(ofAlpha(list[*rbacv1.RoleBinding](t, w, "ops"))) == 0
		})
		w.until("all else is gone", func() bool {
			return len(ofAlpha(list[*appsv1.Deployment](t, w, "ops")))+len(ofAlpha(list[*corev1.ServiceAccount](t, w, "ops")))+
				len(list[*v1alpha1.InstallPlan](t, w, "ops")) == 0
		})
	})
	requireSame(t, fake, real)
}

// ofAlpha keeps what is the operator's. The ClusterRoles for users of its API stay with the CRD.
func ofAlpha[T olmcore.Object](objects []T) []T {
	return slices.DeleteFunc(objects, func(o T) bool {
		return !strings.HasPrefix(o.GetName(), "alpha") || strings.HasPrefix(o.GetName(), "alphas.example.com-v1-")
	})
}

// Two managers work on the same Subscriptions. In two namespaces a Manual one exists when an Automatic one comes, or
// the other way round; in two both are there when the namespace can be resolved at last. Every plan ends with the union
// of its owners, and none is ever taken away; how many plans there are where both come at once is a matter of timing.
func TestTwoManagersEndWithTheUnionOfOwners(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		publish(t, map[string]int{"alpha": 1, "beta": 1})
		spaces := []string{"late-0", "late-1", "race-0", "race-1"}
		namespaces(t, w, append(spaces, "olm")...)
		w.addNode("a")
		w.start(2)
		create(t, w, catalogSource())
		for i, space := range spaces {
			first, second := subscribe(space, "alpha", v1alpha1.ApprovalManual), subscribe(space, "beta", v1alpha1.ApprovalAutomatic)
			if i%2 == 1 {
				first, second = second, first
			}
			if strings.HasPrefix(space, "late") {
				create(t, w, operatorGroup(space), first)
				w.until("the first has its plan in "+space, func() bool {
					ref := get[*v1alpha1.Subscription](t, w, space, first.Name).Status.InstallPlanRef
					return ref != nil && planSettled(get[*v1alpha1.InstallPlan](t, w, space, ref.Name))
				})
				create(t, w, second)
			} else {
				create(t, w, first, second, operatorGroup(space))
			}
		}
		w.until("everything is installed", func() bool {
			installed := 0
			for _, space := range spaces {
				for _, p := range list[*v1alpha1.InstallPlan](t, w, space) {
					if !p.Spec.Approved {
						edit(t, w, space, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })
					}
				}
				for _, name := range []string{"alpha", "beta"} {
					if subscriptionIs(t, w, space, name, v1alpha1.SubscriptionStateAtLatest, csvName(name, 1))() {
						installed++
					}
				}
			}
			return installed == 2*len(spaces)
		})
		w.settle()
		for _, space := range spaces {
			requireOwners(t, w, space)
		}
		if real, ok := w.(*realWorld); ok {
			real.requireNoOwnerLost()
		}
	})
	requireSame(t, fake.withoutPlans("race-"), real.withoutPlans("race-"))
}

// planSettled: only a person can move it on.
func planSettled(p *v1alpha1.InstallPlan) bool {
	return p != nil && (p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval || p.Status.Phase == v1alpha1.InstallPlanPhaseComplete)
}

// requireOwners: each plan is owned by every Subscription that it installs or
// that refers to it, and carries its package's label.
func requireOwners(t testing.TB, w world, space string) {
	for _, p := range list[*v1alpha1.InstallPlan](t, w, space) {
		for _, s := range list[*v1alpha1.Subscription](t, w, space) {
			refers := s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == p.UID
			if refers || slices.Contains(p.Spec.ClusterServiceVersionNames, csvName(s.Name, 1)) {
				require.True(t, olmcore.OwnedBy(p, s.UID), "%s/%s is not owned by %s", space, p.Name, s.Name)
				label, err := olmcore.ComponentLabelKey(s.Spec.Package, space)
				require.NoError(t, err)
				require.Contains(t, p.Labels, label)
			}
		}
		for _, ref := range p.OwnerReferences {
			require.NotNil(t, get[*v1alpha1.Subscription](t, w, space, ref.Name), "%s is owned by %s", p.Name, ref.Name)
		}
	}
}
