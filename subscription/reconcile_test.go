// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// write is the UpdateStatus that changes a Subscription's status and its lastUpdated.
func write(sub *v1alpha1.Subscription, reason, message string, change func(*v1alpha1.SubscriptionStatus)) olmcore.Action {
	after := sub.DeepCopy()
	after.Status.LastUpdated = metav1.NewTime(now)
	change(&after.Status)
	return olmcore.UpdateStatusOf(sub, after, olmcore.Cause{Reason: reason, Message: message})
}

func step(sub olmcore.Object, from, to string, at metav1.Time, bound olmcore.Bound, certainty olmcore.Certainty, status metav1.ConditionStatus, reason string) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(sub).Unversioned(), Type: subscription.TransitionInstallPlan, From: from, To: to,
		Status: status, Reason: reason, At: at, Bound: bound, Certainty: certainty,
	}
}

func stateStep(sub olmcore.Object, from, to, reason string) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(sub).Unversioned(), Type: subscription.TransitionState, From: from, To: to,
		Status: metav1.ConditionTrue, Reason: reason, At: metav1.NewTime(now), Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}

// OLM's cases: a plan that is absent while its Subscription is UpgradePending; a resolution without changes.
func TestReconcile(t *testing.T) {
	plain := newSub("a")
	waiting := newSub("a", follows("p", "etcd.v1"))
	approving := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 6))
	running := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
	latest := newSub("a", follows("p", "etcd.v1"), installed)
	unlabelled := newSub("a", follows("p", "etcd.v1"), installed, func(s *v1alpha1.Subscription) { s.Labels = map[string]string{"mine": "x"} })
	bare := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = nil })
	deployment := &appsv1.Deployment{ObjectMeta: meta("etcd-operator")}
	deployment.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(newCSV("etcd.v1"))}

	labelled := func(o olmcore.Object, labels map[string]string) olmcore.Action {
		after := o.DeepCopyObject().(olmcore.Object)
		after.SetLabels(labels)
		return olmcore.UpdateOf(o, after, olmcore.Cause{Reason: "ComponentLabelMissing", Message: "the object belongs to the operator with the label " + labelKey})
	}
	request := func(reason string, subs ...*v1alpha1.Subscription) *subscription.ResolveRequest {
		r := &subscription.ResolveRequest{Namespace: ns, Reason: reason}
		for _, s := range subs {
			r.Subscriptions = append(r.Subscriptions, olmcore.FingerprintOf(s))
		}
		return r
	}

	for name, tc := range map[string]struct {
		in   subscription.Input
		gate subscription.Gate
		want subscription.Outcome
	}{
		"a namespace without Subscriptions needs nothing": {
			in: inputOf(), gate: subscription.GateNotNeeded, want: subscription.Outcome{},
		},
		"a new Subscription asks for a resolution": {
			in:   inputOf(plain),
			gate: subscription.GateNeeded, want: subscription.Outcome{Resolve: request("Unanswered", plain)},
		},
		"a Subscription that waits for approval needs nothing": {
			in:   inputOf(approving, newPlan("p", "RequiresApproval", manual(1))),
			gate: subscription.GateNotNeeded, want: subscription.Outcome{},
		},
		"an installed operator with an answer needs nothing": {
			in:   answered(inputOf(latest, newPlan("p", "Complete"), newCSV("etcd.v1"))),
			gate: subscription.GateAnswered, want: subscription.Outcome{},
		},
		"a plan that waits for approval sets the condition": {
			in:   inputOf(waiting, newPlan("p", "RequiresApproval", manual(1))),
			gate: subscription.GateDeferred, want: subscription.Outcome{Result: olmcore.Result{
				Actions: []olmcore.Action{write(waiting, "StatusObserved", "the InstallPlan is RequiresApproval", func(s *v1alpha1.SubscriptionStatus) {
					s.Conditions = []v1alpha1.SubscriptionCondition{condition(v1alpha1.SubscriptionInstallPlanPending, "RequiresApproval", "", 60)}
				})},
				Transitions: []olmcore.Transition{
					step(waiting, "NoPlan", "NotYetReconciled", second(2), olmcore.Exact, olmcore.CertaintyProven, "True", "InstallPlanNotYetReconciled"),
					step(waiting, "NotYetReconciled", "RequiresApproval", second(2), olmcore.NotBefore, olmcore.CertaintyObserved, "True", "RequiresApproval"),
				},
			}},
		},
		"an operator that arrives while its plan completes is at the latest known version": {
			in:   inputOf(running, newPlan("p", "Complete", started(3), done(30)), newCSV("etcd.v1")),
			gate: subscription.GateDeferred, want: subscription.Outcome{Result: olmcore.Result{
				Actions: []olmcore.Action{write(running, "StatusObserved", "the InstallPlan is Complete", func(s *v1alpha1.SubscriptionStatus) {
					s.Conditions, s.State, s.InstalledCSV = nil, "AtLatestKnown", "etcd.v1"
				})},
				Transitions: []olmcore.Transition{
					step(running, "Installing", "Complete", second(30), olmcore.Exact, olmcore.CertaintyObserved, "False", "InstallPlanComplete"),
					stateStep(running, "UpgradePending", "AtLatestKnown", "StatusObserved"),
				},
			}},
		},
		"a deleted plan clears the reference of a waiting Subscription": {
			in:   inputOf(running),
			gate: subscription.GateDeferred, want: subscription.Outcome{Result: olmcore.Result{
				Actions: []olmcore.Action{write(running, "InstallPlanReferenceCleared", "the referenced InstallPlan cannot install the operator any more", func(s *v1alpha1.SubscriptionStatus) {
					s.InstallPlanRef, s.Install, s.CurrentCSV, s.State, s.Conditions = nil, nil, "", "", nil
				})},
				Transitions: []olmcore.Transition{
					step(running, "Installing", "Missing", metav1.NewTime(now), olmcore.NotAfter, olmcore.CertaintyInferred, "True", "ReferencedInstallPlanNotFound"),
					stateStep(running, "UpgradePending", "", "InstallPlanReferenceCleared"),
				},
				Diagnostics: []olmcore.Diagnostic{{
					Severity: olmcore.Warning, Reason: olmcore.ReasonHistoryGap, Target: olmcore.RefOf(running).Unversioned(),
					Message: "DeletedBeforeObserved: the InstallPlan was deleted; its last stage after Installing was not observed",
				}},
			}},
		},
		"a deleted plan does not affect an installed operator": {
			in:   inputOf(latest, newCSV("etcd.v1")),
			gate: subscription.GateDeferred, want: subscription.Outcome{Result: olmcore.Result{
				Actions: []olmcore.Action{write(latest, "StatusObserved", "the InstallPlan is Missing", func(s *v1alpha1.SubscriptionStatus) {
					s.Conditions = []v1alpha1.SubscriptionCondition{condition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 60)}
				})},
				Transitions: []olmcore.Transition{
					step(latest, "Complete", "Missing", metav1.NewTime(now), olmcore.NotAfter, olmcore.CertaintyInferred, "True", "ReferencedInstallPlanNotFound"),
				},
			}},
		},
		"missing labels of an operator are added, one object at a time": {
			in:   answered(inputOf(unlabelled, newPlan("p", "Complete"), bare, deployment)),
			gate: subscription.GateAnswered, want: subscription.Outcome{Result: olmcore.Result{Actions: []olmcore.Action{
				labelled(bare, map[string]string{labelKey: ""}),
				labelled(unlabelled, map[string]string{labelKey: "", "mine": "x"}),
			}}},
		},
		"objects of a labelled CSV get its label": {
			in:   answered(inputOf(latest, newPlan("p", "Complete"), newCSV("etcd.v1"), deployment)),
			gate: subscription.GateAnswered, want: subscription.Outcome{Result: olmcore.Result{Actions: []olmcore.Action{
				labelled(deployment, map[string]string{labelKey: ""}),
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := reconcile(t, tc.in)
			require.Equal(t, tc.gate, gateOf(t, tc.in))
			require.Equal(t, got.Empty() && got.Resolve == nil, got.Checkpoint != nil)
			got.Checkpoint = nil
			if got.Resolve != nil {
				require.NotEmpty(t, got.Resolve.Fingerprint)
				got.Resolve.Fingerprint = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestPlanConditionReplacesEarlierOnes checks that the condition of an InstallPlan replaces the earlier conditions
// about plans, and is written once. TestPlanConditionMatchesOLM checks the condition of each plan.
//
// OLM's cases: each kind of plan after none, one and several conditions, and again.
func TestPlanConditionReplacesEarlierOnes(t *testing.T) {
	const pendingType, failedType = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed
	one := func(t v1alpha1.SubscriptionConditionType, reason, message string) []v1alpha1.SubscriptionCondition {
		return []v1alpha1.SubscriptionCondition{condition(t, reason, message, 60)}
	}
	for name, tc := range map[string]struct {
		plan *v1alpha1.InstallPlan
		want []v1alpha1.SubscriptionCondition
	}{
		"no phase yet":                    {newPlan("p", ""), one(pendingType, "InstallPlanNotYetReconciled", "")},
		"installing with a refused check": {newPlan("p", "Installing", installedIs("False", "InstallCheckFailed", "no group", 9)), one(pendingType, "Installing", "no group")},
		"failed for a reason":             {newPlan("p", "Failed", failed(9)), one(failedType, "InstallComponentFailed", "step broke")},
		"failed with an empty reason":     {newPlan("p", "Failed", installedIs("False", "", "oops", 9)), one(failedType, "InstallPlanFailed", "oops")},
		"complete":                        {newPlan("p", "Complete"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := condition(v1alpha1.SubscriptionCatalogSourcesUnhealthy, "X", "", 1)
			for _, before := range [][]v1alpha1.SubscriptionCondition{
				nil,
				{condition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 6), foreign},
				{foreign, condition(failedType, "Other", "x", 6), condition(pendingType, "Other", "x", 6)},
				{condition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 6), foreign, condition(failedType, "Other", "x", 6)},
				{condition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 6), condition(failedType, "Other", "x", 6), foreign, condition(pendingType, "Other", "x", 6)},
				{condition(pendingType, "Other", "old", 6), foreign, condition(pendingType, "Other", "new", 7)},
			} {
				sub := newSub("a", follows("p", "etcd.v1"))
				sub.Status.Conditions = before
				in := inputOf(sub, tc.plan)
				in.Live = true
				got := statusOf(t, in, reconcile(t, in), "a").Conditions
				var plans []v1alpha1.SubscriptionCondition
				kept := 0
				for _, c := range got {
					if c.Type == foreign.Type {
						kept++
						require.Equal(t, foreign, c, "another writer's condition")
					} else {
						plans = append(plans, c)
					}
				}
				require.Equal(t, tc.want, plans)
				require.Equal(t, len(before) > 0, kept == 1)

				sub = sub.DeepCopy()
				sub.Status = statusOf(t, in, reconcile(t, in), "a")
				in = inputOf(sub, tc.plan)
				in.Now = now.Add(time.Hour)
				again := reconcile(t, in)
				if tc.plan.Status.Phase != "Complete" { // a complete plan without its CSV is reported by then
					require.Empty(t, again.Actions, "written twice")
				}
			}
		})
	}
}

// TestPlanConditionMatchesOLM checks the condition for each phase and each condition Installed, with and without
// bundle lookups. It differs from OLM for unknown phases and where OLM writes an empty reason.
func TestPlanConditionMatchesOLM(t *testing.T) {
	lookups := []v1alpha1.BundleLookup{
		{Conditions: []v1alpha1.BundleLookupCondition{{Type: "BundleLookupPending", Status: "True", Message: "one"}, {Type: "Other", Status: "True", Message: "x"}}},
		{Conditions: []v1alpha1.BundleLookupCondition{{Type: "BundleLookupPending", Status: "Unknown", Message: "x"}, {Type: "BundleLookupPending", Status: "False"}}},
		{Conditions: []v1alpha1.BundleLookupCondition{{Type: "BundleLookupPending", Status: "False", Message: "two"}}},
	}
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "Planning", "RequiresApproval", "Installing", "Failed", "Complete", "Melting"} {
		for _, status := range []corev1.ConditionStatus{"", "True", "False", "Unknown"} {
			for _, reason := range []v1alpha1.InstallPlanConditionReason{"", "InstallComponentFailed", "InstallCheckFailed"} {
				for _, message := range []string{"", "said"} {
					for _, pending := range [][]v1alpha1.BundleLookup{nil, lookups} {
						plan := newPlan("p", phase)
						if status != "" {
							installedIs(status, reason, message, 9)(plan)
						}
						plan.Status.BundleLookups, plan.Status.Message = pending, "never shown"
						want := ""
						switch phase {
						case "":
							want = "InstallPlanPending/InstallPlanNotYetReconciled: "
						case "Planning", "RequiresApproval", "Installing":
							want = "InstallPlanPending/" + string(phase) + ": "
						case "Failed":
							want = "InstallPlanFailed/InstallPlanFailed: "
							if status == "False" && reason != "" {
								want = "InstallPlanFailed/" + string(reason) + ": "
							}
						case "Melting":
							want = "InstallPlanPending/Installing: as it was"
						}
						if phase != "Complete" && phase != "Melting" {
							if (status == "True" || status == "False") && message != "" {
								want += message
							} else if pending != nil {
								want += "one. two."
							}
						}
						in := inputOf(newSub("a", follows("p", "etcd.v1"), withCondition("InstallPlanPending", "Installing", "as it was", 6)), plan)
						got := ""
						for _, c := range statusOf(t, in, reconcile(t, in), "a").Conditions {
							require.Equal(t, corev1.ConditionTrue, c.Status)
							got += string(c.Type) + "/" + c.Reason + ": " + c.Message
						}
						require.Equal(t, want, got, "%s, Installed=%s %s %q", phase, status, reason, message)
					}
				}
			}
		}
	}
}

func TestNewestOfDuplicateConditionsIsKept(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), pending("RequiresApproval", 3), pending("Installing", 8), pending("Planning", 5))
	in := inputOf(sub, newPlan("p", "Installing"))
	out := reconcile(t, in)
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition(v1alpha1.SubscriptionInstallPlanPending, "Installing", "", 8)},
		statusOf(t, in, out, "a").Conditions)
	require.Empty(t, stages(out.Result), "the newest is what was published")

	for _, kept := range []v1alpha1.SubscriptionConditionType{"ResolutionFailed", "BundleUnpacking", "BundleUnpackFailed", "CatalogSourcesUnhealthy", "PackageDeprecated", "Deprecated"} {
		in := inputOf(newSub("a", withCondition(kept, "Old", "", 3), withCondition("Foreign", "X", "", 1), withCondition(kept, "New", "", 8), withCondition("Foreign", "Y", "", 1)))
		require.Equal(t, []v1alpha1.SubscriptionCondition{condition(kept, "New", "", 8), condition("Foreign", "X", "", 1), condition("Foreign", "Y", "", 1)},
			statusOf(t, in, reconcile(t, in), "a").Conditions, "what is not judged")
	}
}

func TestLastUpdatedNeverGoesBack(t *testing.T) {
	sub := newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(999) })
	in := inputOf(sub, newPlan("p", "Installing"))
	require.Equal(t, second(999), statusOf(t, in, reconcile(t, in), "a").LastUpdated)
}

func TestStateFollowsTheCSV(t *testing.T) {
	copied := func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "other"} }
	copiedReason := func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied }
	copiedAnnotation := func(c *v1alpha1.ClusterServiceVersion) {
		c.Annotations = map[string]string{"olm.operatorNamespace": "other"}
	}
	type csv = *v1alpha1.ClusterServiceVersion
	for name, tc := range map[string]struct {
		current, installedCSV string
		state                 v1alpha1.SubscriptionState
		csv                   csv
		plan                  *v1alpha1.InstallPlan
		forward               bool
		want                  v1alpha1.SubscriptionState
		wantInstalled         string
		reasons               string
	}{
		"no CSV yet":                            {"", "", "", nil, nil, false, "", "", ""},
		"an old state is kept":                  {"", "", "UpgradeAvailable", nil, nil, false, "UpgradeAvailable", "", ""},
		"the CSV exists":                        {"etcd.v1", "", "UpgradePending", newCSV("etcd.v1"), nil, false, "AtLatestKnown", "etcd.v1", ""},
		"installedCSV is stale":                 {"etcd.v1", "etcd.v0", "AtLatestKnown", newCSV("etcd.v1"), nil, false, "AtLatestKnown", "etcd.v1", ""},
		"the CSV exists and is not ready":       {"etcd.v1", "", "UpgradePending", newCSV("etcd.v1", func(c csv) { c.Status.Phase = "Installing" }), nil, false, "AtLatestKnown", "etcd.v1", "CSVNotSucceeded"},
		"a copied CSV by label":                 {"etcd.v1", "etcd.v0", "AtLatestKnown", newCSV("etcd.v1", copied), nil, false, "UpgradePending", "etcd.v0", "CopiedCSVReferenced"},
		"a copied CSV by reason":                {"etcd.v1", "", "", newCSV("etcd.v1", copiedReason), nil, false, "UpgradePending", "", "CopiedCSVReferenced"},
		"a copied CSV by annotation":            {"etcd.v1", "", "", newCSV("etcd.v1", copiedAnnotation), nil, false, "UpgradePending", "", "CopiedCSVReferenced"},
		"the CSV is gone":                       {"etcd.v1", "etcd.v1", "AtLatestKnown", nil, newPlan("p", "Complete"), false, "UpgradePending", "etcd.v1", ""},
		"the plan failed":                       {"etcd.v1", "", "UpgradePending", nil, newPlan("p", "Failed"), false, "UpgradePending", "", "FailedPlanWedge"},
		"the plan failed, failing forward":      {"etcd.v1", "", "UpgradePending", nil, newPlan("p", "Failed"), true, "UpgradeFailed", "", ""},
		"the plan runs, failing forward":        {"etcd.v1", "", "UpgradeFailed", nil, newPlan("p", "Installing"), true, "UpgradePending", "", ""},
		"the CSV exists though the plan failed": {"etcd.v1", "", "UpgradePending", newCSV("etcd.v1"), newPlan("p", "Failed"), true, "AtLatestKnown", "etcd.v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub := newSub("a", func(s *v1alpha1.Subscription) {
				if tc.plan != nil {
					follows("p", "")(s)
				}
				s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.State = tc.current, tc.installedCSV, tc.state
			})
			in := inputOf(sub)
			if tc.plan != nil {
				in = inputOf(sub, tc.plan)
			}
			if tc.csv != nil {
				in.ClusterServiceVersions.Items = []csv{tc.csv}
			}
			if tc.forward {
				in = failForward(in)
			}
			out := reconcile(t, in)
			got := statusOf(t, in, out, "a")
			require.Equal(t, tc.want, got.State)
			require.Equal(t, tc.wantInstalled, got.InstalledCSV)
			require.Equal(t, tc.reasons, reasons(out.Result))
		})
	}
}

// TestGeneratedSubscriptionAdoptsItsPlan checks when a Subscription that a step of an InstallPlan created
// references that plan.
func TestGeneratedSubscriptionAdoptsItsPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		installedCSV string
		plan         *v1alpha1.InstallPlan
		csv          bool
		forward      bool
		adopted      bool
		state        v1alpha1.SubscriptionState
		reasons      string
	}{
		"no phase":                         {"", newPlan("p", ""), false, false, true, "UpgradePending", ""},
		"waiting for approval":             {"", newPlan("p", "RequiresApproval"), false, false, true, "UpgradePending", ""},
		"installing":                       {"", newPlan("p", "Installing"), false, false, true, "UpgradePending", ""},
		"installing, installed before":     {"etcd.v0", newPlan("p", "Installing"), false, false, false, "", "GeneratedByStale"},
		"failed":                           {"", newPlan("p", "Failed"), false, false, false, "", "GeneratedByStale"},
		"failed, failing forward":          {"", newPlan("p", "Failed"), false, true, true, "UpgradeFailed", ""},
		"complete, the CSV exists":         {"", newPlan("p", "Complete"), true, false, true, "AtLatestKnown", ""},
		"complete, the CSV does not":       {"", newPlan("p", "Complete"), false, false, false, "", "GeneratedByStale"},
		"complete, installed before":       {"etcd.v0", newPlan("p", "Complete"), true, false, false, "", "GeneratedByStale"},
		"an unknown phase":                 {"", newPlan("p", "Melting"), true, false, false, "", "GeneratedByStale"},
		"the plan does not exist":          {"", newPlan("other", "Complete"), true, false, false, "", "GeneratedByDangling"},
		"the plan is being deleted":        {"", newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(9) }), false, false, false, "", "GeneratedByStale"},
		"a newer generation is taken over": {"", newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = 4 }), false, false, true, "UpgradePending", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub := newSub("d", func(s *v1alpha1.Subscription) {
				s.Annotations = map[string]string{"olm.generated-by": "p"}
				s.Spec.StartingCSV, s.Status.InstalledCSV = "etcd.v1", tc.installedCSV
			})
			in := inputOf(sub, tc.plan)
			if tc.csv {
				in.ClusterServiceVersions.Items = []*v1alpha1.ClusterServiceVersion{newCSV("etcd.v1")}
			}
			if tc.forward {
				in = failForward(in)
			}
			out := reconcile(t, in)
			got := statusOf(t, in, out, "d")
			require.Equal(t, tc.reasons, reasons(out.Result))
			require.Equal(t, tc.state, got.State)
			if !tc.adopted {
				require.Empty(t, out.Actions)
				return
			}
			require.Equal(t, refTo("p"), got.InstallPlanRef)
			require.Equal(t, v1alpha1.NewInstallPlanReference(refTo("p")), got.Install)
			require.Equal(t, "etcd.v1", got.CurrentCSV)
			require.Equal(t, tc.plan.Spec.Generation, got.InstallPlanGeneration)
			require.Equal(t, tc.state == "AtLatestKnown", got.InstalledCSV == "etcd.v1")
		})
	}
}

// TestPlanIsNotAdoptedWithoutAVersion checks that a Subscription without a version does not reference the
// InstallPlan that created it. It would wait endlessly.
func TestPlanIsNotAdoptedWithoutAVersion(t *testing.T) {
	for _, phase := range []v1alpha1.InstallPlanPhase{"", "RequiresApproval", "Installing", "Failed", "Complete"} {
		sub := newSub("d", func(s *v1alpha1.Subscription) { s.Annotations = map[string]string{"olm.generated-by": "p"} })
		in := failForward(inputOf(sub, newPlan("p", phase)))
		out := reconcile(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, "GeneratedByStale", reasons(out.Result))
		require.Equal(t, subscription.GateNeeded, gateOf(t, in))

		sub.Spec.StartingCSV = "etcd.v1"
		copied := newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels["olm.copiedFrom"] = "other" })
		if phase == "Complete" {
			require.Empty(t, reconcile(t, inputOf(sub, newPlan("p", phase), copied)).Actions, "nor for a copy")
		}
		sub.DeletionTimestamp = secondp(9)
		require.Empty(t, reconcile(t, failForward(inputOf(sub, newPlan("p", phase), newCSV("etcd.v1")))).Actions, "nor for one that goes")
	}
}

func TestStaleMirrorIsClearedBeforeAPlanIsAdopted(t *testing.T) {
	sub := newSub("d", func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{"olm.generated-by": "p"}
		s.Spec.StartingCSV, s.Status.Install = "etcd.v1", v1alpha1.NewInstallPlanReference(refTo("q"))
	})
	in := inputOf(sub, newPlan("p", "Installing"))
	for _, want := range []string{"RefMirrorMismatch", ""} {
		out := reconcile(t, in)
		require.Equal(t, want, reasons(out.Result))
		carryOut(&in, out)
	}
	require.Equal(t, refTo("p"), in.Subscriptions.Items[0].Status.InstallPlanRef)
}

func TestInconsistentPlanReferencesAreRepaired(t *testing.T) {
	t.Run("the mirror follows the reference", func(t *testing.T) {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6), func(s *v1alpha1.Subscription) { s.Status.Install = nil })
		in := inputOf(sub, newPlan("p", "Installing"))
		out := reconcile(t, in)
		require.Equal(t, v1alpha1.NewInstallPlanReference(refTo("p")), statusOf(t, in, out, "a").Install)
		require.Equal(t, "RefMirrorMismatch", reasons(out.Result))
	})
	t.Run("in every field", func(t *testing.T) {
		for _, change := range []func(*v1alpha1.InstallPlanReference){
			func(m *v1alpha1.InstallPlanReference) { m.UID = "x" }, func(m *v1alpha1.InstallPlanReference) { m.Name = "x" },
			func(m *v1alpha1.InstallPlanReference) { m.Kind = "x" }, func(m *v1alpha1.InstallPlanReference) { m.APIVersion = "x" },
		} {
			sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
			change(sub.Status.Install)
			in := inputOf(sub, newPlan("p", "Installing"))
			require.Equal(t, v1alpha1.NewInstallPlanReference(refTo("p")), statusOf(t, in, reconcile(t, in), "a").Install)
		}
	})
	t.Run("a restored plan is followed under its new UID", func(t *testing.T) {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
		in := inputOf(sub, newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.UID = "new" }))
		out := reconcile(t, in)
		require.Equal(t, types.UID("new"), statusOf(t, in, out, "a").InstallPlanRef.UID)
		require.Equal(t, "RefUIDMismatch", reasons(out.Result))
		require.Equal(t, "I>- ->N:Proven N>I", stages(out.Result))
		require.Equal(t, "ReplacedPlan", gaps(out.Result))
	})
	t.Run("a plan of another UID that is being deleted is not followed", func(t *testing.T) {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 55), func(s *v1alpha1.Subscription) { s.Status.LastUpdated = second(55) })
		in := inputOf(sub, newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.UID, p.DeletionTimestamp = "old", secondp(3) }))
		out := reconcile(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, "InstallPlanUnverified", reasons(out.Result))
	})
	t.Run("a higher generation is taken over, a lower one is not", func(t *testing.T) {
		for generation, want := range map[int]int{0: 1, 1: 1, 7: 7, -3: 1} {
			sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
			in := inputOf(sub, newPlan("p", "Installing", func(p *v1alpha1.InstallPlan) { p.Spec.Generation = generation }))
			require.Equal(t, want, statusOf(t, in, reconcile(t, in), "a").InstallPlanGeneration)
		}
	})
	t.Run("a reference without UID is matched by name", func(t *testing.T) {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6), func(s *v1alpha1.Subscription) {
			s.Status.InstallPlanRef.UID, s.Status.Install.UID = "", ""
		})
		out := reconcile(t, inputOf(sub, newPlan("p", "Installing")))
		require.True(t, out.Empty(), "%+v", out)
	})
	t.Run("an unknown phase keeps the condition", func(t *testing.T) {
		sub := newSub("a", follows("p", "etcd.v1"), pending("Installing", 6))
		out := reconcile(t, inputOf(sub, newPlan("p", "Melting")))
		require.Empty(t, out.Actions)
		require.Equal(t, "UnknownPhase", reasons(out.Result))
		require.Equal(t, 5*time.Minute, out.RequeueAfter)
	})
	t.Run("a condition without a reference is removed", func(t *testing.T) {
		for _, status := range []corev1.ConditionStatus{"True", "False", "Unknown"} {
			in := inputOf(newSub("a", pending("Installing", 6)))
			in.Subscriptions.Items[0].Status.Conditions[0].Status = status
			out := reconcile(t, in)
			require.Empty(t, statusOf(t, in, out, "a").Conditions)
			require.Equal(t, "ConditionWithoutRef", reasons(out.Result))
		}
	})
}

// TestReferenceToAnotherNamespaceIsIgnored checks that a reference to an InstallPlan of another namespace is
// ignored, because any user who can write the status can set it.
func TestReferenceToAnotherNamespaceIsIgnored(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Subscription){
		"another namespace": func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Namespace = "victim" },
		"another kind":      func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Kind = "Secret" },
		"no name":           func(s *v1alpha1.Subscription) { s.Status.InstallPlanRef.Name = "" },
	} {
		for _, plan := range []*v1alpha1.InstallPlan{newPlan("p", "Installing"), newPlan("p", "RequiresApproval", manual(1))} {
			in := inputOf(newSub("a", follows("p", "etcd.v1"), change), plan)
			in.Subscriptions.Items[0].Status.Install = v1alpha1.NewInstallPlanReference(in.Subscriptions.Items[0].Status.InstallPlanRef)
			out := reconcile(t, in)
			require.Empty(t, out.Actions, name)
			require.Empty(t, stages(out.Result), name)
			require.Equal(t, "RefInvalid", reasons(out.Result), name)
			require.Equal(t, subscription.GateNeeded, gateOf(t, in), name)
		}
	}
}

// TestRemainingCasesOfOLM covers the cases of OLM's tests that no other table contains.
func TestRemainingCasesOfOLM(t *testing.T) {
	const missing = "Missing/ReferencedInstallPlanNotFound"
	unhealthy := withCondition(v1alpha1.SubscriptionCatalogSourcesUnhealthy, "X", "", 1)
	latest := func(change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		return newSub("a", append([]func(*v1alpha1.Subscription){follows("p", "etcd.v1"), installed}, change...)...)
	}
	for name, tc := range map[string]struct {
		in     subscription.Input
		want   string // plan conditions
		others int    // conditions besides
		writes bool
	}{
		"an absent plan":               {inputOf(latest(), newCSV("etcd.v1")), missing, 0, true},
		"an absent plan, and no state": {inputOf(newSub("a", func(s *v1alpha1.Subscription) { follows("p", "")(s); s.Status.State = "" })), missing, 0, true},
		"an absent plan, all three conditions there": {inputOf(latest(withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 6), withCondition("InstallPlanFailed", "X", "", 6),
			pending("Installing", 6)), newCSV("etcd.v1")), missing, 0, true},
		"an absent plan that is known to be":       {inputOf(latest(withCondition("InstallPlanMissing", "ReferencedInstallPlanNotFound", "", 6)), newCSV("etcd.v1")), missing, 0, false},
		"an absent plan beside other conditions":   {inputOf(latest(unhealthy), newCSV("etcd.v1")), missing, 1, true},
		"no reference, no conditions":              {inputOf(newSub("a")), "", 0, false},
		"no reference, conditions of others":       {inputOf(newSub("a", unhealthy)), "", 1, false},
		"no reference, conditions of a plan":       {inputOf(newSub("a", unhealthy, pending("Installing", 6), withCondition("InstallPlanFailed", "X", "", 6))), "", 1, true},
		"a Subscription with nothing but its name": {inputOf(newSub("a", func(s *v1alpha1.Subscription) { s.Spec, s.Labels = &v1alpha1.SubscriptionSpec{}, nil })), "", 0, false},
		"a complete plan after a pending one":      {inputOf(latest(pending("Installing", 6)), newPlan("p", "Complete"), newCSV("etcd.v1")), "", 0, true},
		"a complete plan, nothing said":            {inputOf(latest(), newPlan("p", "Complete"), newCSV("etcd.v1")), "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := reconcile(t, tc.in)
			status := statusOf(t, tc.in, out, "a")
			require.Equal(t, tc.want, planConditions(status))
			wants := 0
			if tc.want != "" {
				wants = 1
			}
			require.Len(t, status.Conditions, wants+tc.others)
			require.Equal(t, tc.writes, len(out.Actions) > 0)
			require.Equal(t, tc.writes, status.LastUpdated.Time.Equal(now))
		})
	}
}
