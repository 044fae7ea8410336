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
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// writes lists the actions that make or change something, the CSV and its
// OperatorGroup apart.
func writes(actions []olmcore.Action) (list []string) {
	for _, a := range actions {
		verb, target, _ := a.Describe()
		if verb != olmcore.VerbDelete && target.Kind != "ClusterServiceVersion" && target.Kind != "OperatorGroup" {
			list = append(list, string(verb)+" "+target.Kind+" "+target.Name)
		}
	}
	return list
}

// TestNoOtherEdgeIsTaken: over likely worlds, only edges of the table; nothing
// leads from Deleting, and from Replacing only to Deleting or back to Pending.
func TestNoOtherEdgeIsTaken(t *testing.T) {
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
			require.Contains(t, edges, edge{From: from, To: to})
			require.False(t, from == deleting && to != deleting)
			require.False(t, from == replacing && to != deleting && to != pending)
		}
	})
}

// TestAReplacedVersionInstallsNothing: once a later version is Succeeded, however
// far down the chain, no earlier one writes an install object again.
func TestAReplacedVersionInstallsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		in.Neighbours.Items = nil
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
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
		require.Empty(t, writes(out.Actions), assess(t, in).Rule)
	})
}

func TestMetIsThatEveryEntryIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		if in.ClusterServiceVersion.Status.Phase != none {
			in.ClusterServiceVersion.Status.Phase = rapid.SampledFrom([]phaseName{pending, succeeded, failed}).Draw(t, "again")
		}
		if of := []string{
			"the CRD is gone", "the CRD version is gone", "the CRD is not established", "the CRD is leaving", "the account is gone", "the account is another's", "the role is gone", "a new cluster is asked",
		}; rapid.Bool().Draw(t, "lacking") {
			oddities[rapid.SampledFrom(of).Draw(t, "what")](t, &in)
		}
		a := assess(t, in)
		if len(a.Requirements) == 0 {
			return
		}
		unmet := slices.ContainsFunc(a.Requirements, func(r v1alpha1.RequirementStatus) bool {
			return r.Status != "Present" && r.Status != "DeploymentFound"
		})
		require.Equal(t, unmet, slices.Contains([]string{"RequirementsNotMet", "RequirementsNotMet", "T46'", "UpgradeBegan", "RequirementsNotMet"}, a.Rule), a.Rule)
	})
}

// TestWhatInstallReadyTakes: it is entered from Pending only with everything met,
// with nobody else's CRD, and with a predecessor that made way.
func TestWhatInstallReadyTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		c := in.ClusterServiceVersion
		c.Status.Phase, c.Status.Reason = pending, "RequirementsUnknown"
		switch rapid.IntRange(0, 3).Draw(t, "beside") {
		case 0:
			oddities["a predecessor"](t, &in)
		case 1:
			oddities["a stranger with the same CRD"](t, &in)
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

// TestWhatSucceededTakes: every Deployment of the strategy is there, ours, ready,
// and of the wanted spec.
func TestWhatSucceededTakes(t *testing.T) {
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
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
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

// wantedHash is the hash that an installation from nothing would write.
func wantedHash(t require.TestingT, in csv.Input) string {
	fresh := input(installReady, "AllRequirementsMet", "")
	c := in.ClusterServiceVersion
	fresh.ClusterServiceVersion.Spec.InstallStrategy, fresh.ClusterServiceVersion.Annotations = c.Spec.InstallStrategy, c.Annotations
	out, err := csv.Reconcile(fresh)
	require.NoError(t, err)
	require.NotEmpty(t, out.Actions)
	return out.Actions[0].(olmcore.Create).Object.GetLabels()["olm.deployment-spec-hash"]
}

func TestTheInstallTimeoutIsFiveMinutesToTheInstant(t *testing.T) {
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

// TestWhatWasNotReadDecidesNothing: for each phase and each list, an unread list
// either plays no role, or holds everything as it is.
func TestWhatWasNotReadDecidesNothing(t *testing.T) {
	held := map[string]int{}
	for list := range unreadable(&csv.Input{}) {
		for _, phase := range knownPhases {
			in := input(phase, "SomeReason", "words")
			in.Deployments.Items = []*appsv1.Deployment{installed()}
			in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup(coolAPI, "ns")), olmcore.Found(rival(failed, time.Hour))
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
			require.Empty(t, got.Transitions)
			require.Equal(t, 5*time.Second, got.RequeueAfter)
			require.Equal(t, []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonNotObserved, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
				Message: "the list of " + list + " was not read, so nothing is decided",
			}}, got.Diagnostics)
		}
	}
	require.Len(t, held, len(unreadable(&csv.Input{})), "each list matters somewhere: %v", held)
}

func TestNothingIsInstalledWithoutJustOneGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		in.OperatorGroups.Items = nil
		for _, name := range rapid.SampledFrom([][]string{nil, {"a", "b"}, {"a", "b", "c"}}).Draw(t, "groups") {
			g := group()
			g.Name, g.UID = name, typesUID(olmcore.Ref{Name: name})
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, g)
		}
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
		require.Empty(t, writes(out.Actions), assess(t, in).Rule)
	})
}

// TestWhatWeCreateCanBeFoundAgain: in the CSV's namespace by an owner reference to
// its UID, outside by the three labels and without one.
func TestWhatWeCreateCanBeFoundAgain(t *testing.T) {
	created := map[string]bool{}
	for _, phase := range []phaseName{pending, installReady} {
		in := input(phase, "RequirementsUnknown", "")
		s := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
		s.ClusterPermissions = s.Permissions
		in.ServiceAccounts.Items, in.Roles.Items, in.RoleBindings.Items = nil, nil, nil
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
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

// TestAGroupThatCannotBeUsedIsWaitedFor in every phase that needs it.
func TestTheGroupsAccountIsWaitedForInEveryPhase(t *testing.T) {
	for _, phase := range []phaseName{installReady, installing, succeeded, failed} {
		in := input(phase, "SomeReason", "words")
		in.Deployments.Items = []*appsv1.Deployment{installed()}
		in.OperatorGroups.Items[0].Spec = operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"ns"}, ServiceAccountName: "limited"}
		check(t, in, requeue(moves(in, phase, "SomeReason", "waiting for OperatorGroup service account limited"), 10*time.Second))
	}
}
