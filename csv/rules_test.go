// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// writes lists the actions that create or change an object other than the CSV and its OperatorGroup.
func writes(actions []olmcore.Action) (list []string) {
	for _, a := range actions {
		verb, target, _ := a.Describe()
		if verb != olmcore.VerbDelete && target.Kind != "ClusterServiceVersion" && target.Kind != "OperatorGroup" {
			list = append(list, string(verb)+" "+target.Kind+" "+target.Name)
		}
	}
	return list
}

// TestRealisticTransitionsFollowTheGraph checks that only edges of the table are taken in realistic worlds. No edge
// leads from Deleting. From Replacing, edges lead only to Deleting and Pending.
func TestRealisticTransitionsFollowTheGraph(t *testing.T) {
	edges := csv.Edges()
	rapid.Check(t, func(t *rapid.T) {
		out, err := csv.Reconcile(anyWorld(t))
		if err != nil {
			return
		}
		for _, x := range out.Transitions {
			from, to := phaseName(x.From), phaseName(x.To)
			if !slices.Contains(knownPhases[:8], from) {
				from = none
			}
			require.True(t, edges.Allows(from, to), "%s -> %s", from, to)
			require.False(t, from == deleting && to != deleting)
			require.False(t, from == replacing && to != deleting && to != pending)
		}
	})
}

// TestReplacedVersionInstallsNothing checks that no earlier version of the chain writes an object of its installation
// after a later version is Succeeded.
func TestReplacedVersionInstallsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		in.Neighbours.Items, in.Neighbours.Complete = nil, true
		in.ClusterServiceVersion.Spec.Replaces = ""
		previous := in.ClusterServiceVersion.Name
		distance := rapid.IntRange(1, 3).Draw(t, "distance")
		for i := range distance {
			s := operator([]string{"cool.v2", "cool.v3", "cool.v4"}[i], i+2)
			s.Spec.Replaces, previous = previous, s.Name
			hold(s, phaseOf(t, "phase"), "x", "", time.Minute)
			if i == distance-1 {
				hold(s, succeeded, "InstallSucceeded", "", time.Minute)
			}
			in.Neighbours.Items = append(in.Neighbours.Items, s)
		}
		out := reconciled(t, in)
		require.Empty(t, writes(out.Actions), assess(t, in).Rule)
	})
}

func TestRequirementsAreMetIfAllEntriesAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		if in.ClusterServiceVersion.Status.Phase != none {
			in.ClusterServiceVersion.Status.Phase = rapid.SampledFrom([]phaseName{pending, succeeded, failed}).Draw(t, "again")
		}
		if of := []string{
			"the CRD is gone", "the CRD version is gone", "the CRD is not established", "the CRD is being deleted", "the account is gone", "the account belongs to another CSV", "the role is gone", "a new cluster is asked",
		}; rapid.Bool().Draw(t, "lacking") {
			oddities[rapid.SampledFrom(of).Draw(t, "what")](t, &in)
		}
		a := assess(t, in)
		if len(a.Requirements) == 0 {
			return
		}
		unmet := slices.ContainsFunc(a.Requirements, func(r v1alpha1.RequirementStatus) bool { return r.Status != "Present" && r.Status != "DeploymentFound" })
		require.Equal(t, unmet, slices.Contains([]string{"RequirementsNotMet", "UpgradeBegan", "NeverRan"}, a.Rule), a.Rule)
	})
}

// TestConditionsForInstallReady checks that a CSV is InstallReady after Pending only if all requirements are met, no
// other CSV owns its CRDs, and its predecessor is Replacing.
func TestConditionsForInstallReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		c := in.ClusterServiceVersion
		c.Status.Phase, c.Status.Reason = pending, "RequirementsUnknown"
		switch rapid.IntRange(0, 3).Draw(t, "beside") {
		case 0:
			oddities["a predecessor"](t, &in)
		case 1:
			oddities["another operator owns the same CRD"](t, &in)
		}
		in = distinct(in)
		a := assess(t, in)
		if a.Phase != installReady {
			return
		}
		for _, r := range a.Requirements {
			require.Contains(t, []string{"Present", "DeploymentFound"}, string(r.Status))
		}
		for _, n := range in.Neighbours.Items {
			require.NotEqual(t, "rival.v1", n.Name, "a stranger has the CRD")
			if n.Name == c.Spec.Replaces && n.Spec.Replaces != c.Name {
				require.Equal(t, replacing, n.Status.Phase)
			}
		}
	})
}

// TestConditionsForSucceeded checks that a CSV is Succeeded only if each Deployment of the strategy exists, is owned by
// the CSV, is available and has the desired spec.
func TestConditionsForSucceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		c := in.ClusterServiceVersion
		c.Status.Phase, c.Status.Reason = rapid.SampledFrom([]phaseName{installing, failed}).Draw(t, "from"), "InstallWaiting"
		in.Neighbours.Items = nil
		if of := []string{
			"the Deployment is not available", "the Deployment has a new generation", "old replicas", "no hash label", "another hash label", "no template annotations", "an annotation",
		}; rapid.Bool().Draw(t, "ill") {
			oddities[rapid.SampledFrom(of).Draw(t, "with")](t, &in)
		}
		out := reconciled(t, in)
		after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		if !written || after.Status.Phase != succeeded {
			return
		}
		for _, s := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			i := slices.IndexFunc(in.Deployments.Items, func(d *appsv1.Deployment) bool { return d.Name == s.Name })
			require.GreaterOrEqual(t, i, 0)
			d := in.Deployments.Items[i]
			require.Equal(t, "cool.v1", d.Labels["olm.owner"])
			require.LessOrEqual(t, d.Generation, d.Status.ObservedGeneration)
			require.LessOrEqual(t, d.Status.Replicas, d.Status.UpdatedReplicas)
			require.Contains(t, d.Status.Conditions, appsv1.DeploymentCondition{Type: "Available", Status: corev1.ConditionTrue})
			require.Equal(t, wantedHash(t, in), d.Labels["olm.deployment-spec-hash"])
			for key, value := range c.Annotations {
				require.Equal(t, value, d.Spec.Template.Annotations[key])
			}
		}
	})
}

// wantedHash returns the hash that a new installation would write.
func wantedHash(t require.TestingT, in csv.Input) string {
	fresh := input(installReady, "AllRequirementsMet", "")
	c := in.ClusterServiceVersion
	fresh.ClusterServiceVersion.Spec.InstallStrategy, fresh.ClusterServiceVersion.Annotations = c.Spec.InstallStrategy, c.Annotations
	out := reconciled(t, fresh)
	require.NotEmpty(t, out.Actions)
	return out.Actions[0].(olmcore.Create).Object.GetLabels()["olm.deployment-spec-hash"]
}

func TestInstallTimeoutIsExactlyFiveMinutes(t *testing.T) {
	for age, late := range map[time.Duration]bool{
		0: false, time.Minute: false, 5*time.Minute - time.Nanosecond: false, 5 * time.Minute: true, 5*time.Minute + time.Nanosecond: true, time.Hour: true,
		-time.Hour: false,
	} {
		in := input(installing, "InstallWaiting", "installing: missing deployment with name=cool")
		in.ClusterServiceVersion.Status.LastTransitionTime = ago(age)
		if late {
			check(t, in, moves(in, failed, "InstallCheckFailed", "install timeout"))
			continue
		}
		check(t, in, olmcore.Result{RequeueAfter: 5*time.Minute - max(0, age)})
	}
}

// TestUnreadListsDecideNothing checks, for each phase and each list, that an unread list either does not matter or
// keeps the status.
// OLM's cases: the predecessor is found, not found, or not read; the successor is found, not found, or not read; a
// failed read decides nothing, a failed deletion is repeated.
func TestUnreadListsDecideNothing(t *testing.T) {
	held := map[string]int{}
	for list := range unreadable(&csv.Input{}) {
		for _, phase := range knownPhases {
			in := input(phase, "SomeReason", "words")
			in.Deployments.Items = []*appsv1.Deployment{installed()}
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(competitor(failed, time.Hour))
			want, err := outcome(in)
			require.NoError(t, err)
			unreadable(&in)[list]()
			got, err := outcome(in)
			require.NoError(t, err)
			if cmp.Equal(want, got) {
				continue
			}
			held[list]++
			if after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](got.Actions); written {
				require.Equal(t, []any{pending, "Deployments"}, []any{phase, list}, "only the requirements were found out before")
				require.Equal(t, in.ClusterServiceVersion.Status.Conditions, after.Status.Conditions)
				got.Actions = got.Actions[1:]
			}
			require.Empty(t, got.Actions, "%s in %s", list, phase)
			got.Actions = nil
			require.Equal(t, notRead(in, list), got.Result)
		}
	}
	require.Len(t, held, len(unreadable(&csv.Input{})), "each list matters somewhere: %v", held)
}

func TestInstallationNeedsExactlyOneOperatorGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		in.OperatorGroups.Items = nil
		for _, name := range rapid.SampledFrom([][]string{nil, {"a", "b"}, {"a", "b", "c"}}).Draw(t, "groups") {
			g := group()
			g.Name, g.UID = name, typesUID(olmcore.Ref{Name: name})
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, g)
		}
		out := reconciled(t, in)
		require.Empty(t, writes(out.Actions), assess(t, in).Rule)
	})
}

// TestCreatedObjectsHaveTheirOwner checks that created objects have an owner reference in the namespace of the CSV, and
// the three owner labels outside of it.
func TestCreatedObjectsHaveTheirOwner(t *testing.T) {
	created := map[string]bool{}
	for _, phase := range []phaseName{pending, installReady} {
		in := input(phase, "RequirementsUnknown", "")
		s := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
		s.ClusterPermissions = s.Permissions
		in.ServiceAccounts.Items, in.Roles.Items, in.RoleBindings.Items = nil, nil, nil
		out := reconciled(t, in)
		for _, a := range slices.Concat(out.Actions, out.Repair) {
			create, ok := a.(olmcore.Create)
			if !ok {
				continue
			}
			o := create.Object
			created[create.Target.Kind] = true
			if o.GetNamespace() == "ns" {
				require.Equal(t, []string{"ClusterServiceVersion cool.v1 uid-cool.v1"}, ownersOf(o))
				continue
			}
			require.Empty(t, o.GetOwnerReferences())
			require.Subset(t, o.GetLabels(), ours("").Labels)
			require.Equal(t, "uid-cool.v1", o.GetLabels()["olm.owner.uid"])
		}
	}
	require.Len(t, created, 6, "%v", created)
}

func ownersOf(o olmcore.Object) (list []string) {
	for _, r := range o.GetOwnerReferences() {
		list = append(list, r.Kind+" "+r.Name+" "+string(r.UID))
	}
	return list
}

// TestRowsOfSeveralPhases checks the rows of the transition table that are the same in each phase that needs the
// strategy or the account of the group.
func TestRowsOfSeveralPhases(t *testing.T) {
	unknown := func(in *csv.Input) { in.ClusterServiceVersion.Spec.InstallStrategy.StrategyName = "helm" }
	badRule := func(in *csv.Input) {
		in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = []rbacv1.PolicyRule{{Resources: []string{"pods"}}}
	}
	noAccount := func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.ServiceAccountName = "limited" }
	const unrecognized = "install strategy invalid: unrecognized install strategy"
	const noVerbs = "install strategy invalid: rule invalid: policy rule must have at least one verb"
	const waits = "waiting for OperatorGroup service account limited"
	for name, c := range map[string]struct {
		phase  phaseName
		reason reason
		change func(in *csv.Input)
		want   csv.Assessment
	}{
		"Pending, unknown strategy":      {pending, "RequirementsUnknown", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"InstallReady, unknown strategy": {installReady, "AllRequirementsMet", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Installing, unknown strategy":   {installing, "InstallSucceeded", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Succeeded, unknown strategy":    {succeeded, "InstallSucceeded", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Failed, unknown strategy":       {failed, "ComponentUnhealthy", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Pending, rule without verbs":    {pending, "RequirementsUnknown", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"Succeeded, rule without verbs":  {succeeded, "InstallSucceeded", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"Failed, rule without verbs":     {failed, "ComponentUnhealthy", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"InstallReady, no account":       {installReady, "AllRequirementsMet", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: installReady, Reason: "AllRequirementsMet", Message: waits, RequeueAfter: 10 * time.Second}},
		"Installing, no account":         {installing, "InstallSucceeded", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: installing, Reason: "InstallSucceeded", Message: waits, RequeueAfter: 10 * time.Second}},
		"Succeeded, no account":          {succeeded, "InstallSucceeded", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: succeeded, Reason: "InstallSucceeded", Message: waits, RequeueAfter: 10 * time.Second}},
		"Failed, no account":             {failed, "ComponentUnhealthy", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: failed, Reason: "ComponentUnhealthy", Message: waits, RequeueAfter: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.phase, c.reason, "before")
			c.change(&in)
			got := assess(t, in)
			got.Requirements = nil
			require.Equal(t, c.want, got)
			out := reconciled(t, in)
			require.Equal(t, c.want.RequeueAfter, out.RequeueAfter)
			for _, a := range out.Actions {
				verb, target, _ := a.Describe()
				require.Equal(t, olmcore.VerbUpdateStatus, verb, "%s", target)
			}
		})
	}
}

// TestOldVersionThatRanIsReplacedAfterCRDChange checks an upgrade that removed the CRD version that the old CSV
// describes. The history shows whether the old CSV ran. If the entry was dropped from the history, its Deployment shows
// it.
func TestOldVersionThatRanIsReplacedAfterCRDChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *csv.Input)
		rule   string
	}{
		"the history contains Succeeded": {func(in *csv.Input) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded, Reason: "InstallSucceeded"}}, s.Conditions...)
		}, "UpgradeBegan"},
		"its Deployment is available": {func(in *csv.Input) { deploy(t, in) }, "UpgradeBegan"},
		"its Deployment is not available": {func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Status.Conditions[0].Status = corev1.ConditionFalse
		}, "RequirementsNotMet"},
		"the Deployment is another's": {func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].OwnerReferences = nil
		}, "RequirementsNotMet"},
		"it never ran": {func(*csv.Input) {}, "RequirementsNotMet"},
		"another requirement is missing too": {func(in *csv.Input) {
			deploy(t, in)
			in.ServiceAccounts.Items = nil
		}, "RequirementsNotMet"},
		"no CSV replaces it": {func(in *csv.Input) {
			deploy(t, in)
			in.Neighbours.Items = nil
		}, "RequirementsNotMet"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsNotMet", "requirements not met")
			successorOf(&in, pending)
			c.change(&in)
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
			a := assess(t, in)
			require.Equal(t, c.rule, a.Rule)
			if c.rule == "UpgradeBegan" {
				require.Equal(t, replacing, a.Phase)
				require.Equal(t, "being replaced by csv: cool.v2", a.Message)
			}
		})
	}
}

// TestMiddleVersionWithoutSuccessorIsPendingAgain checks that a version does not wait for its predecessor, because the
// predecessor waits for it.
func TestMiddleVersionWithoutSuccessorIsPendingAgain(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	in.ClusterServiceVersion.Spec.Replaces = "cool.v0"
	p := operator("cool.v0", 0)
	hold(p, replacing, "BeingReplaced", "being replaced by csv: cool.v1", 0)
	in.Neighbours.Items = append(in.Neighbours.Items, p)
	require.Equal(t, pending, assess(t, in).Phase)
	successorOf(&in, pending)
	require.Equal(t, replacing, assess(t, in).Phase)
	require.Equal(t, "WaitingForOlderVersions", assess(t, in).Rule)
}

// TestVersionThatNeverRanIsReplaced checks that a version that never ran and lacks requirements delays its successor
// for five minutes, while the successor waits for nothing else.
func TestVersionThatNeverRanIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *csv.Input, s *v1alpha1.ClusterServiceVersion)
		gives  bool
		after  time.Duration
	}{
		"after an hour": {func(*csv.Input, *v1alpha1.ClusterServiceVersion) {}, true, 0},
		"not before five minutes": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(295 * time.Second)
		}, false, 5 * time.Second},
		"the successor lacks something":  {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.Status.Reason = "RequirementsNotMet" }, false, hourOn},
		"the successor is being deleted": {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.DeletionTimestamp = ago(0) }, false, hourOn},
		"there is no successor":          {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) { in.Neighbours.Items = nil }, false, hourOn},
		"its operator runs": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.Deployments = olmcore.Found(installed().DeepCopy())
		}, false, hourOn},
		"it ran before": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded}}, s.Conditions...)
		}, false, hourOn},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsNotMet", "one or more requirements couldn't be found")
			s := successorOf(&in, pending)
			s.Status.Reason = "AllRequirementsMet"
			in.CustomResourceDefinitions.Items = nil
			out := reconciled(t, in)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			in.ClusterServiceVersion.Status.RequirementStatus = after.Status.RequirementStatus
			c.change(&in, s)
			out = reconciled(t, in)
			require.Equal(t, c.after, out.RequeueAfter)
			if !c.gives {
				require.Empty(t, out.Transitions)
				return
			}
			require.Len(t, out.Transitions, 1)
			require.Equal(t, "Replacing", out.Transitions[0].To)
		})
	}
}

const (
	unchecked = "requirements not yet checked"
	allMet    = "all requirements found, attempting install"
	wellDone  = "install strategy completed with no errors"
)

func onSpec(change func(s *v1alpha1.ClusterServiceVersionSpec)) func(in *csv.Input) {
	return func(in *csv.Input) { change(&in.ClusterServiceVersion.Spec) }
}

func webhook(change func(w *v1alpha1.WebhookDescription)) func(in *csv.Input) {
	return onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
		w := csvtest.Webhook("w.example.com", v1alpha1.ValidatingAdmissionWebhook)
		change(&w)
		s.WebhookDefinitions = []v1alpha1.WebhookDescription{w}
	})
}

func webhookRow(change func(w *v1alpha1.WebhookDescription), message string) row {
	return row{unjudged, webhook(change), toReporting(failed, "InvalidWebhookDescription", message, nil)}
}

func invalid(message string, change func(s *v1alpha1.ClusterServiceVersionSpec)) row {
	return row{unjudged, onSpec(change), to(failed, "InvalidInstallStrategy", message)}
}

// OLM's case: another strategy: an error in each phase.
func TestInvalidAndUnusualCSVs(t *testing.T) {
	const unrecognized = "install strategy invalid: unrecognized install strategy"
	noStrategy := onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategyName = "" })
	deployed := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) { deploy(t, in); change(in) }
	}
	run(t, map[string]row{
		"a name that is not a valid label value": {is(pending, "", ""), func(in *csv.Input) { in.ClusterServiceVersion.Name = "cool.v1." },
			to(failed, "InvalidInstallStrategy", `name "cool.v1." cannot be used as a label value`)},
		"a name of 63 characters is valid": {brandNew, func(in *csv.Input) {
			in.ClusterServiceVersion.Name = "a23456789012345678901234567890123456789012345678901234567890123"
		}, to(pending, "RequirementsUnknown", unchecked)},
		"a CRD without name": invalid(`invalid CRD name "": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Name = "" }),
		"a CRD without plural": invalid(`invalid CRD name ".example.com": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.CustomResourceDefinitions.Owned[0].Name = ".example.com"
		}),
		"a CRD without version": invalid("CRD cools.example.com is described without a version", func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Version = "" }),
		"an invalid required CRD": invalid(`invalid CRD name "hots": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "hots"}}
		}),
		"a Deployment, no name": invalid("deployments[0]: name is empty", func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = ""
		}),
		"an empty selector": invalid(`deployment "cool" has no selector`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Selector = &metav1.LabelSelector{}
		}),
		"a cluster permission, no account": invalid("clusterPermissions[0]: serviceAccountName is empty",
			func(s *v1alpha1.ClusterServiceVersionSpec) {
				s.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{}}
			}),

		"no strategy name, Pending":          {is(pending, "RequirementsUnknown", ""), noStrategy, to(failed, "InvalidInstallStrategy", unrecognized)},
		"no strategy name, already reported": {is(failed, "InvalidInstallStrategy", unrecognized), noStrategy, nothing},

		"no Deployments: nothing to install": {is(installReady, "AllRequirementsMet", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategySpec.DeploymentSpecs = nil }),
			to(installing, "InstallSucceeded", "waiting for install components to report healthy")},
		"no Deployments: always healthy": {is(installing, "InstallSucceeded", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategySpec.DeploymentSpecs = nil }),
			to(succeeded, "InstallSucceeded", wellDone)},

		"a webhook without generateName":   webhookRow(func(w *v1alpha1.WebhookDescription) { w.GenerateName = "" }, "webhook description without generateName"),
		"a webhook without deploymentName": webhookRow(func(w *v1alpha1.WebhookDescription) { w.DeploymentName = "" }, `webhook description "w.example.com" without deploymentName`),
		"a webhook of an unknown one":      webhookRow(func(w *v1alpha1.WebhookDescription) { w.DeploymentName = "hot" }, `webhook description "w.example.com" names the unknown deployment "hot"`),
		"a webhook of an unknown type":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.Type = "Odd" }, `webhook description "w.example.com" has the unknown type "Odd"`),
		"a webhook's port is too high":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.ContainerPort = 65536 }, `webhook description "w.example.com": containerPort 65536 is outside 1-65535`),
		"a webhook's port is negative":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.ContainerPort = -1 }, `webhook description "w.example.com": containerPort -1 is outside 1-65535`),
		"a webhook that is bad stays Failed, without another write": {is(failed, "InvalidWebhookDescription", "webhook description without generateName"), deployed(webhook(func(w *v1alpha1.WebhookDescription) { w.GenerateName = "" })),
			after(hourOn, nothing)},
		"a valid webhook": {unjudged, webhook(func(*v1alpha1.WebhookDescription) {}), toReporting(installReady, "AllRequirementsMet", allMet, nil)},

		"an unknown reason, Pending":    {is(pending, "Odd", ""), nil, toReporting(installReady, "AllRequirementsMet", allMet, nil)},
		"an unknown reason, Failed":     {is(failed, "Odd", ""), deployed(func(*csv.Input) {}), to(succeeded, "InstallSucceeded", wellDone)},
		"an unknown reason, Installing": {is(installing, "Odd", ""), deployed(func(*csv.Input) {}), to(succeeded, "InstallSucceeded", wellDone)},

		"a group of that name in another namespace is ignored": {unjudged, func(in *csv.Input) {
			elsewhere := group()
			elsewhere.Namespace, elsewhere.UID = "other", "elsewhere"
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, elsewhere)
		}, toReporting(installReady, "AllRequirementsMet", allMet, nil)},
		"a wait that began in the future begins now": {is(pending, "RequirementsNotMet", "one or more requirements couldn't be found"), func(in *csv.Input) {
			in.CustomResourceDefinitions.Items = nil
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(-time.Hour)
			in.ClusterServiceVersion.Status.RequirementStatus = metReport()
			r := &in.ClusterServiceVersion.Status.RequirementStatus[0]
			r.Status, r.Message, r.UUID = "NotPresent", "CRD is not present", ""
		}, after(5*time.Second, nothing)},
		"an unknown install mode is ignored, and reported once": {brandNew, onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallModes = append(s.InstallModes, v1alpha1.InstallMode{Type: "SomeNamespaces", Supported: true})
		}), func(in csv.Input) olmcore.Result {
			res := moves(in, pending, "RequirementsUnknown", unchecked)
			res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonUnknownInstallMode, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(), Path: "spec.installModes[2].type",
				Message: `install mode "SomeNamespaces" is unknown and is ignored`,
			}}
			return res
		}},
		"an unknown install mode supports nothing": {is(pending, "RequirementsUnknown", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallModes = []v1alpha1.InstallMode{{Type: "SomeNamespaces", Supported: true}}
		}), to(failed, "UnsupportedOperatorGroup", "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace")},
	})
}

// TestMissingPartsOfObjectsAreAccepted checks that every part that an API server can leave out of an object is treated
// as missing.
func TestMissingPartsOfObjectsAreAccepted(t *testing.T) {
	in := input(pending, "RequirementsUnknown", unchecked)
	in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{{Group: "g", Version: "v1", Kind: "K"}}
	in.APIServices = olmcore.Found(&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.g"}})
	in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"}})
	in.Deployments = olmcore.Found(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"}})
	in = labelled(t, in)
	a := assess(t, in)
	require.Equal(t, "RequirementsNotMet", a.Rule)
	require.Equal(t, "APIService v1.g is not available", a.Requirements[1].Message)
	in.OperatorGroups = olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}})
	require.Equal(t, "OperatorGroupNotReady", assess(t, in).Rule)
}

// TestEveryEdgeIsTaken checks that a situation leads over each edge of the table. TestTransitionsFollowTheGraph checks
// that no other edge is taken.
func TestEveryEdgeIsTaken(t *testing.T) {
	everything := []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting}
	type situation struct {
		from   []phaseName
		to     phaseName
		change func(in *csv.Input)
	}
	noCRD := func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }
	noHash := func(in *csv.Input) { delete(in.Deployments.Items[0].Labels, "olm.deployment-spec-hash") }
	situations := []situation{
		{[]phaseName{none}, pending, func(*csv.Input) {}},
		{[]phaseName{none, pending, installReady, installing, succeeded, failed}, failed, func(in *csv.Input) { in.OperatorGroups.Items = nil }},
		{[]phaseName{none, pending, installReady, installing, succeeded, failed}, replacing, func(in *csv.Input) { successorOf(in, installing) }},
		{everything, deleting, func(in *csv.Input) {
			in.ClusterServiceVersion.DeletionTimestamp = ago(0)
			in.Deletion = csvtest.Deletion()
			in.Deletion.ClusterObjects = olmcore.Found[olmcore.Object](&rbacv1.ClusterRole{ObjectMeta: ours("r")})
		}},
		{[]phaseName{pending, failed}, pending, noCRD},
		{[]phaseName{pending}, installReady, func(*csv.Input) {}},
		{[]phaseName{installReady}, installing, func(*csv.Input) {}},
		{[]phaseName{installing, failed}, succeeded, func(*csv.Input) {}},
		{[]phaseName{installing, succeeded, failed}, installReady, noHash},
		{[]phaseName{failed}, installing, func(in *csv.Input) {
			in.ClusterServiceVersion.Status.Reason = "InstallComponentFailed"
			in.Deployments.Items[0].Status.Conditions = nil
		}},
		{[]phaseName{installing}, installing, func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }},
		{[]phaseName{succeeded}, succeeded, func(*csv.Input) {}},
		{[]phaseName{replacing}, pending, func(*csv.Input) {}},
		{[]phaseName{replacing}, deleting, func(in *csv.Input) { successorOf(in, succeeded) }},
	}
	taken := map[edge]bool{
		// A Deployment that cannot be computed; nothing in a CSV leads there without serving certificates.
		{From: installReady, To: pending}: true, {From: installing, To: pending}: true, {From: succeeded, To: pending}: true,
	}
	for _, s := range situations {
		for _, from := range s.from {
			in := input(from, "SomeReason", "")
			deploy(t, &in)
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(time.Minute)
			s.change(&in)
			if from == replacing && s.to == deleting && in.ClusterServiceVersion.DeletionTimestamp != nil {
				continue // a superseded CSV keeps its phase while it is cleaned up after
			}
			out := reconciled(t, in)
			require.Len(t, out.Transitions, 1, "%s -> %s", from, s.to)
			x := out.Transitions[0]
			require.Equal(t, edge{From: from, To: s.to}, edge{From: phaseName(x.From), To: phaseName(x.To)})
			taken[edge{From: from, To: s.to}] = true
		}
	}
	for _, e := range csv.Edges() {
		require.NotEmpty(t, e.By)
		require.True(t, taken[edge{From: e.From, To: e.To}], "no situation takes %s -> %s by %s", e.From, e.To, e.By)
	}
	for e := range taken {
		require.True(t, csv.Edges().Allows(e.From, e.To), "the table does not have %s -> %s", e.From, e.To)
	}
}

// OLM's case: the history is trimmed at, below and above its limit.
func TestHistoryIsLimited(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "")
	s := &in.ClusterServiceVersion.Status
	for len(s.Conditions) < 20 {
		s.Conditions = append(s.Conditions, s.Conditions[0])
	}
	out := reconciled(t, in)
	after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
	require.True(t, ok)
	require.Len(t, after.Status.Conditions, 20)
	require.Equal(t, failed, after.Status.Conditions[19].Phase)
}
