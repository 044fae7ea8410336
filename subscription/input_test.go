// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"math"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

// result calls Reconcile with the signature that the laws need.
func result(in subscription.Input) (olmcore.Result, error) {
	out, err := subscription.Reconcile(in)
	return out.Result, err
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(*subscription.Input){
		"Now":                                          func(in *subscription.Input) { in.Now = time.Time{} },
		"Namespace":                                    func(in *subscription.Input) { in.Namespace = "" },
		"Subscriptions[0]":                             func(in *subscription.Input) { in.Subscriptions.Items[0] = nil },
		"Subscriptions[0].metadata.name":               func(in *subscription.Input) { in.Subscriptions.Items[0].Name = "" },
		"Subscriptions[0].metadata.namespace":          func(in *subscription.Input) { in.Subscriptions.Items[0].Namespace = "x" },
		"Subscriptions[0].metadata.uid":                func(in *subscription.Input) { in.Subscriptions.Items[0].UID = "" },
		"Subscriptions[1]":                             func(in *subscription.Input) { in.Subscriptions.Items = append(in.Subscriptions.Items, newSub("a")) },
		"InstallPlans[0]":                              func(in *subscription.Input) { in.InstallPlans.Items[0] = nil },
		"InstallPlans[0].metadata.name":                func(in *subscription.Input) { in.InstallPlans.Items[0].Name = "" },
		"InstallPlans[1]":                              func(in *subscription.Input) { in.InstallPlans.Items = append(in.InstallPlans.Items, newPlan("p", "")) },
		"ClusterServiceVersions[0]":                    func(in *subscription.Input) { in.ClusterServiceVersions.Items[0] = nil },
		"ClusterServiceVersions[0].metadata.namespace": func(in *subscription.Input) { in.ClusterServiceVersions.Items[0].Namespace = "" },
		"ClusterServiceVersions[1]": func(in *subscription.Input) {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, newCSV("etcd.v1"))
		},
		"OperatorGroups[1]":                    func(in *subscription.Input) { in.OperatorGroups.Items = append(in.OperatorGroups.Items, nil) },
		"Components[0]":                        func(in *subscription.Input) { in.Components = []olmcore.Object{(*corev1.Pod)(nil)} },
		"OperatorGroups[0].metadata.namespace": func(in *subscription.Input) { in.OperatorGroups.Items[0].Namespace = "x" },
		"OperatorGroups[1] is ops/group, as is OperatorGroups[0]": func(in *subscription.Input) {
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, in.OperatorGroups.Items[0])
		},
		"Decisions contains a twice": func(in *subscription.Input) {
			in.Resolution = bring(*in, "etcd.v1", "a")
			in.Resolution.Resolution.Decisions = append(in.Resolution.Resolution.Decisions, in.Resolution.Resolution.Decisions[0])
		},
		"Subscriptions were not read": func(in *subscription.Input) { in.Subscriptions = olmcore.Observed[*v1alpha1.Subscription]{} },
		"InstallPlans were not read":  func(in *subscription.Input) { in.InstallPlans = olmcore.Observed[*v1alpha1.InstallPlan]{} },
		"ClusterServiceVersions were not read": func(in *subscription.Input) {
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		},
		"OperatorGroups were not read":   func(in *subscription.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} },
		"Catalogs.Sources were not read": func(in *subscription.Input) { in.Catalogs = &subscription.Catalogs{} },
		"Observations[0].Plan":           func(in *subscription.Input) { in.Observations = []subscription.Observation{{}} },
		"Resolution.Attempts":            func(in *subscription.Input) { in.Resolution = &subscription.Resolved{Attempts: -1} },
		"Resolution.Parts[1].Subscriptions": func(in *subscription.Input) {
			in.Resolution = &subscription.Resolved{Parts: []subscription.Part{{Subscriptions: []string{"a"}}, {Subscriptions: []string{"b", "a"}}}}
		},
		"Catalogs.Sources[2]": func(in *subscription.Input) { // as it was handed in, not as it is sorted
			in.Catalogs = sources(newCatalog("olm", "b", true), newCatalog("olm", "a", true), newCatalog("olm", "", true))
		},
		"Catalogs.Sources[1]": func(in *subscription.Input) { in.Catalogs = sources(newCatalog("olm", "b", true), nil) },
		"Config.MissingGrace": func(in *subscription.Input) { in.Config.MissingGrace = -1 },
	} {
		in := inputOf(newSub("a", follows("p", "etcd.v1")), newPlan("p", ""), newCSV("etcd.v1"))
		change(&in)
		_, err := subscription.Reconcile(in)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, field)
		require.ErrorContains(t, err, field)
		_, assessErr := subscription.Assess(in)
		require.Equal(t, err, assessErr)
	}
}

// oddInputs contains invalid or unusual inputs that must not cause harm.
var oddInputs = map[string]func(*subscription.Input){
	"no spec":             func(in *subscription.Input) { in.Subscriptions.Items[0].Spec = nil },
	"an empty spec":       func(in *subscription.Input) { in.Subscriptions.Items[0].Spec = &v1alpha1.SubscriptionSpec{} },
	"an unknown approval": func(in *subscription.Input) { in.Subscriptions.Items[0].Spec.InstallPlanApproval = "Perhaps" },
	"a reference to nothing": func(in *subscription.Input) {
		in.Subscriptions.Items[0].Status.InstallPlanRef = &corev1.ObjectReference{}
	},
	"only the mirror":       func(in *subscription.Input) { in.Subscriptions.Items[0].Status.InstallPlanRef = nil },
	"a plan with nil steps": func(in *subscription.Input) { in.InstallPlans.Items[0].Status.Plan = []*v1alpha1.Step{nil} },
	"a plan without anything": func(in *subscription.Input) {
		in.InstallPlans.Items[0].Spec, in.InstallPlans.Items[0].Status = v1alpha1.InstallPlanSpec{}, v1alpha1.InstallPlanStatus{}
	},
	"a plan without creation time": func(in *subscription.Input) {
		in.InstallPlans.Items[0].CreationTimestamp = second(0)
		in.InstallPlans.Items[0].CreationTimestamp.Time = time.Time{}
	},
	"a plan from the future": func(in *subscription.Input) {
		in.InstallPlans.Items[0].CreationTimestamp = second(9999)
		started(99999)(in.InstallPlans.Items[0])
		done(3)(in.InstallPlans.Items[0])
	},
	"a plan being deleted":         func(in *subscription.Input) { in.InstallPlans.Items[0].DeletionTimestamp = secondp(9) },
	"a Subscription being deleted": func(in *subscription.Input) { in.Subscriptions.Items[0].DeletionTimestamp = secondp(9) },
	"a CSV being deleted":          func(in *subscription.Input) { in.ClusterServiceVersions.Items[0].DeletionTimestamp = secondp(9) },
	"owner references with holes": func(in *subscription.Input) {
		in.InstallPlans.Items[0].OwnerReferences = append(in.InstallPlans.Items[0].OwnerReferences, in.InstallPlans.Items[0].OwnerReferences...)
		in.InstallPlans.Items[0].OwnerReferences[0].UID = ""
	},
	"a huge generation": func(in *subscription.Input) { in.InstallPlans.Items[0].Spec.Generation = 1 << 53 },
	"a huge message": func(in *subscription.Input) {
		installedIs("False", "X", strings.Repeat("x", 1<<20), 9)(in.InstallPlans.Items[0])
		in.InstallPlans.Items[0].Status.Phase = "Failed"
	},
	"invalid UTF-8": func(in *subscription.Input) {
		in.Subscriptions.Items[0].Spec.Package = "\xff\xfe"
		in.InstallPlans.Items[0].Status.Phase = "\xff"
	},
	"conditions without times": func(in *subscription.Input) {
		in.Subscriptions.Items[0].Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: "InstallPlanPending", Status: "True"}, {Type: "InstallPlanPending"}, {}}
	},
	"a nil catalog reference": func(in *subscription.Input) {
		in.Subscriptions.Items[0].Status.CatalogHealth = []v1alpha1.SubscriptionCatalogHealth{{}}
	},
	"no last update": func(in *subscription.Input) { in.Subscriptions.Items[0].Status.LastUpdated.Time = time.Time{} },
	"a history of the future": func(in *subscription.Input) {
		h := known(subscription.StageFailed)
		h.LastAt, h.PublishedAt, h.SuspectStage, h.SuspectSince = second(9999).Time, second(9999).Time, "Complete", second(9999).Time
		h.MissingSince, h.MissingPlan = second(9999).Time, "p-uid"
		in.Histories = map[types.UID]subscription.History{"a-uid": h}
	},
	"an empty history": func(in *subscription.Input) { in.Histories = map[types.UID]subscription.History{"a-uid": {}} },
	"observations of other namespaces and plans": func(in *subscription.Input) {
		other := newPlan("p", "Failed")
		other.Namespace = "x"
		in.Observations = []subscription.Observation{{Plan: other}, {Plan: newPlan("q", "Failed")}, {Plan: &v1alpha1.InstallPlan{}, Deleted: true}}
	},
	"a resolution of nothing": func(in *subscription.Input) { in.Resolution = &subscription.Resolved{} },
	"decisions about other Subscriptions": func(in *subscription.Input) {
		in.Resolution = bring(*in, "x", "a")
		in.Resolution.Resolution.Decisions[0].Name = "unrelated"
	},
	"a part of other Subscriptions": func(in *subscription.Input) {
		in.Resolution = bring(*in, "x", "a")
		in.Resolution.Parts = []subscription.Part{{Subscriptions: []string{"unrelated"}, PlanProgress: in.Resolution.PlanProgress}}
	},
	"a part that is empty": func(in *subscription.Input) {
		in.Resolution = bring(*in, "x", "a")
		in.Resolution.Parts, in.SeparatePlans = []subscription.Part{{}}, true
	},
	"plans that are separate, and no answer": func(in *subscription.Input) { in.SeparatePlans = true },
	"a decision for an empty CSV":            func(in *subscription.Input) { in.Resolution = bring(*in, "", "a") },
	"a failure without words": func(in *subscription.Input) {
		in.Resolution = bring(*in, "x", "a")
		in.Resolution.Resolution.Failure = &olmcore.ResolutionFailure{}
	},
	"two Subscriptions of one UID, the first without a spec": func(in *subscription.Input) {
		twin := newSub("b")
		twin.UID = "a-uid"
		in.Subscriptions.Items[0].Spec = nil
		in.Subscriptions.Items = append(in.Subscriptions.Items, twin)
	},
	"two Subscriptions of one UID, the second without a spec": func(in *subscription.Input) {
		twin := newSub("b", func(s *v1alpha1.Subscription) { s.Spec = nil })
		twin.UID = "a-uid"
		in.Subscriptions.Items = append(in.Subscriptions.Items, twin)
	},
	"a component of no kind": func(in *subscription.Input) { in.Components = append(in.Components, newPlan("x", "")) },
	"two components of one name": func(in *subscription.Input) {
		in.Components = []olmcore.Object{newPlan("x", ""), newPlan("x", "Failed")}
	},
	"the longest durations": func(in *subscription.Input) {
		const longest = time.Duration(math.MaxInt64)
		in.Config = subscription.Config{MissingGrace: longest}
	},
	"the first day":   func(in *subscription.Input) { in.Now = time.Time{}.Add(time.Second) },
	"another version": func(in *subscription.Input) { in.Subscriptions.Items[0].Status.CurrentCSV = "etcd.v2" },
	"two thousand conditions": func(in *subscription.Input) {
		for range 1000 {
			in.Subscriptions.Items[0].Status.Conditions = append(in.Subscriptions.Items[0].Status.Conditions,
				condition("Foreign", "X", "", 1), condition("InstallPlanFailed", "X", "", 2))
		}
	},
	"an OperatorGroup with a strategy": func(in *subscription.Input) {
		in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategy("Wild")
	},
}

func TestLawsHoldForOddInputs(t *testing.T) {
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "RequiresApproval", "Installing", "Complete", "Failed"} {
		for name, change := range oddInputs {
			t.Run(name+" "+string(phase), func(t *testing.T) {
				in := inputOf(newSub("a", follows("p", "etcd.v1"), pending("Installing", 6)), newPlan("p", phase, started(3)), newCSV("etcd.v1"))
				change(&in)
				require.NoError(t, invariant.Laws(result, in))
				checkSafety(t, in)
				assess(t, in)
				_, err := audit.Find(in)
				require.NoError(t, err)
				_, err = subscription.PlanDeletion(in)
				require.NoError(t, err)
			})
		}
	}
}

func TestSubscriptionWithoutSpecIsReportedAndNotChanged(t *testing.T) {
	in := inputOf(newSub("a", func(s *v1alpha1.Subscription) { s.Spec = nil }), newSub("b", follows("p", "x")), newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences[0] = olmcore.OwnerReferenceTo(newSub("b"))
	}))
	out := reconcile(t, in)
	require.Equal(t, "InvalidSpec", reasons(out.Result))
	require.Len(t, out.Actions, 1, "the other one goes on")
}

func TestAssessAgreesWithReconcile(t *testing.T) {
	in := inputOf(newSub("a", follows("p", "etcd.v1")), newSub("b"), newPlan("p", "Failed", failed(9)))
	got, out := assess(t, in), reconcile(t, in)
	require.Equal(t, subscription.GateDeferred, got.Gate)
	require.Len(t, got.Decisions, 2)
	a, b := got.Decisions[0], got.Decisions[1]
	require.Equal(t, []bool{true, true, false, false}, []bool{a.Waits, a.Writes, b.Waits, b.Writes})
	require.Equal(t, []subscription.Stage{subscription.StageFailed, subscription.StageNoPlan}, []subscription.Stage{a.Plan.Stage, b.Plan.Stage})
	want := statusOf(t, in, out, "a")
	want.LastUpdated = a.Status.LastUpdated
	require.Equal(t, want, a.Status)
	require.Equal(t, out.Transitions, a.Transitions)
	require.Equal(t, out.Diagnostics, a.Diagnostics)
}

// TestUnusualInputsConvergeAfterOneWrite checks what is reported and written for inputs that no correct writer
// creates.
func TestUnusualInputsConvergeAfterOneWrite(t *testing.T) {
	latest := func(change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return newSub("a", append([]func(*v1alpha1.Subscription){follows("p", "etcd.v1"), installed}, change...)...)
	}
	complete, csv := newPlan("p", "Complete"), newCSV("etcd.v1")
	strange := newPlan("p", "Complete")
	strange.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		in      subscription.Input
		change  func(*subscription.Input)
		reasons string
		writes  bool
	}{
		"an unknown approval is Automatic": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = "Perhaps" }), complete, csv)},
		"no package":                       {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.Package, s.Labels = "", nil }), complete, csv), reasons: "InvalidSpec"},
		"no source":                        {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.CatalogSource = "" }), complete, csv), reasons: "InvalidSpec"},
		"no source's place":                {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Spec.CatalogSourceNamespace = "" }), complete, csv), reasons: "InvalidSpec"},
		"catalogs without UID": {in: inputOf(latest(records(newCatalog("olm", "cool", true)), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)), complete, csv), change: func(in *subscription.Input) {
			in.Catalogs = sources(newCatalog("olm", "cool", true))
			in.Catalogs.Sources.Items[0].UID, in.Subscriptions.Items[0].Status.CatalogHealth[0].CatalogSourceRef.UID = "", ""
		}},
		"two catalogs of one UID": {in: inputOf(latest(records(newCatalog("olm", "cool", true), newCatalog(ns, "cool", true)), saysHealth("False", "AllCatalogSourcesHealthy", allHealthy)), complete, csv),
			change: func(in *subscription.Input) {
				in.Catalogs = sources(newCatalog("olm", "cool", true), newCatalog(ns, "cool", true))
			}},
		"a clock that went back": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(9999) }), complete, csv)},
		"observations of another namespace": {in: inputOf(latest(), complete, csv), change: func(in *subscription.Input) {
			in.Histories, in.Observations = historyOf(subscription.StageComplete), []subscription.Observation{{At: second(50).Time, Plan: strange}}
		}, reasons: "ObservationIgnored"},
		"a history of another plan": {in: inputOf(latest(), complete, csv), change: func(in *subscription.Input) {
			h := known(subscription.StageComplete)
			h.PlanUID, h.PlanName = "old", "old"
			in.Histories = map[types.UID]subscription.History{"a-uid": h}
		}},
		"a plan with nil steps": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Status.Plan = []*v1alpha1.Step{nil} }), csv)},
		"a plan of versions that were not asked for": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
			p.Spec.ClusterServiceVersionNames = append(p.Spec.ClusterServiceVersionNames, "lib.v1")
		}), csv)},
		"the highest generation":         {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = math.MaxInt }), csv), writes: true},
		"a negative generation":          {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = -1 }), csv)},
		"a Subscription that is deleted": {in: inputOf(latest(func(s *v1alpha1.Subscription) { s.DeletionTimestamp, s.Labels = secondp(9), nil }, pending("Installing", 6)), complete, csv), writes: true},
		"a plan that is deleted": {in: inputOf(newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6)), newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) {
			p.DeletionTimestamp, p.OwnerReferences = secondp(9), nil
		})), writes: true},
		"owner references without flags": {in: inputOf(latest(), newPlan("p", "Complete", func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences[0].Controller, p.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		}), csv)},
		"an empty list of OperatorGroups": {in: inputOf(newSub("a",
			withCondition("ResolutionFailed", "OperatorGroupCount", "found 0 operatorGroups, expected 1", 6))),
			change: func(in *subscription.Input) { in.OperatorGroups.Items = []*operatorsv1.OperatorGroup{} }, reasons: "OperatorGroupCount"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.in)
			}
			out := reconcile(t, tc.in)
			require.Equal(t, tc.reasons, reasons(out.Result))
			require.Equal(t, tc.writes, len(out.Actions) > 0, "%+v", out.Actions)
			carryOut(&tc.in, out)
			require.Empty(t, reconcile(t, tc.in).Actions, "written twice")
		})
	}
}
