// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func reconcile(in csv.Input) (olmcore.Result, error) {
	out, err := csv.Reconcile(in)
	return out.Result, err
}

func vocabulary(hostile bool) gen.Vocabulary {
	operand := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cool"}}
	operand.SetNamespace("ns")
	operand.SetName("one")
	return gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"cool.v1", "cool.v2", "cool", "cools.example.com", "group"}, Hostile: hostile,
		Words: map[string][]string{
			"phase":             {"", "Pending", "InstallReady", "Installing", "Succeeded", "Failed", "Replacing", "Deleting", "Unknown"},
			"reason":            {"", "InstallSucceeded", "RequirementsNotMet", "NoOperatorGroup", "BeingReplaced", "Replaced", "InstallComponentFailed", "InstallComponentFailedNoRetry", "WaitingOnCleanup"},
			"replaces":          {"", "cool.v1", "cool.v2"},
			"strategyname":      {"deployment", "deployment", "deployment", "other"},
			"version":           {"v1", "1.2.3"},
			"type":              {"Available", "Progressing", "Established", "NamesAccepted", "OwnNamespace"},
			"status":            {"True", "False"},
			"kind":              {"Cool", "ServiceAccount", "Role", "ClusterRole", "Group", "User"},
			"group":             {"example.com", ""},
			"kubernetesversion": {"", "v1.36.2", "nonsense"},
			"minkubeversion":    {"", "1.20.0", "99.0.0", "x"},
			"finalizers":        {cleanup.Finalizer, cleanup.Finalizer, "other", "orphan", "foregroundDeletion"},
			"annotations":       {"a", "b", cleanup.OverrideAbandon},
		},
		Objects: []olmcore.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role", UID: "1"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "2"}}, operand,
		},
	}
}

// readOrEmpty removes the items of lists that were not read.
func readOrEmpty(in any) {
	fields := reflect.ValueOf(in).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Kind() == reflect.Struct && field.FieldByName("Complete").IsValid() && !field.FieldByName("Complete").Bool() {
			field.SetZero()
		}
	}
}

// arbitrary draws an Input around a CSV that often passes the first checks.
func arbitrary(t *rapid.T, hostile bool) csv.Input {
	in := gen.Value[csv.Input](vocabulary(hostile)).Draw(t, "in")
	in.Now = now
	in.Checkpoint = nil
	if !hostile {
		in.Config = csv.Config{}
		readOrEmpty(&in)
		readOrEmpty(&in.Deletion)
		readOrEmpty(&in.Serving)
		maps.DeleteFunc(in.Deletion.Operands, func(_ schema.GroupKind, list olmcore.Observed[olmcore.Object]) bool { return !list.Complete })
	}
	base := input(pending, "RequirementsUnknown", "")
	c := in.ClusterServiceVersion
	if c == nil || hostile {
		return in
	}
	for _, at := range []**metav1.Time{&c.Status.LastUpdateTime, &c.Status.LastTransitionTime, &c.Status.CertsLastUpdated, &c.Status.CertsRotateAt} {
		if *at != nil && (*at).IsZero() {
			*at = nil // JSON has no pointer to a zero time
		}
	}
	// Values that no JSON decodes to.
	c.Spec.Version.Pre, c.Spec.Version.Build, c.Spec.Release.Release = nil, nil, nil
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastUpdateTime, c.Status.Conditions[i].LastTransitionTime = nil, nil
	}
	c.Namespace, c.Name, c.UID, c.ResourceVersion = "ns", "cool.v1", "uid-cool.v1", "10"
	if rapid.Bool().Draw(t, "sound") {
		c.Spec.InstallStrategy, c.Spec.CustomResourceDefinitions = base.ClusterServiceVersion.Spec.InstallStrategy, base.ClusterServiceVersion.Spec.CustomResourceDefinitions
		c.Labels, c.Annotations, c.Spec.InstallModes = base.ClusterServiceVersion.Labels, base.ClusterServiceVersion.Annotations, base.ClusterServiceVersion.Spec.InstallModes
		in.OperatorGroups = base.OperatorGroups
		if rapid.Bool().Draw(t, "met") {
			in.CustomResourceDefinitions, in.ServiceAccounts, in.Roles, in.RoleBindings = base.CustomResourceDefinitions, base.ServiceAccounts, base.Roles, base.RoleBindings
			in.ClusterRoles, in.ClusterRoleBindings = base.ClusterRoles, base.ClusterRoleBindings
		}
		if rapid.Bool().Draw(t, "finalizer") {
			c.Finalizers = []string{cleanup.Finalizer}
		}
	}
	return in
}

func TestLawsHoldForRandomInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { require.NoError(t, invariant.Laws(reconcile, arbitrary(t, false))) })
}

func TestHostileInputReturnsAnErrorOrAnOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := arbitrary(t, true)
		_, err := csv.Reconcile(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		_, _ = csv.Assess(in)
	})
}

func TestTransitionsFollowTheGraph(t *testing.T) {
	edges := csv.Edges()
	rapid.Check(t, func(t *rapid.T) {
		out, err := csv.Reconcile(arbitrary(t, false))
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		for _, x := range out.Transitions {
			from := v1alpha1.ClusterServiceVersionPhase(x.From)
			if from == v1alpha1.CSVPhaseUnknown {
				from = none
			}
			require.True(t, edges.Allows(from, phaseName(x.To)), "%s -> %s (%s)", x.From, x.To, x.Reason)
			require.NotEmpty(t, x.Message)
		}
	})
}

// anyWorld draws an Input that a cluster can contain. Most describe a healthy operator with a few oddities, some
// contain any objects.
func anyWorld(t *rapid.T) csv.Input {
	if rapid.IntRange(0, 9).Draw(t, "arbitrary") == 0 {
		return distinct(arbitrary(t, false))
	}
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		in := likely(t)
		return deleted(in)
	}
	return likely(t)
}

func TestLawsHoldForRealisticInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { require.NoError(t, invariant.Laws(reconcile, anyWorld(t))) })
}

func TestOrderOfListsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		other := shuffled(in, func(n int) []int { return rapid.Permutation(indices(n)).Draw(t, "order") })
		want, wantErr := outcome(in)
		got, gotErr := outcome(other)
		require.Equal(t, wantErr, gotErr)
		if !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("(-one order +another):\n%s", cmp.Diff(want, got))
		}
		require.Equal(t, assess(t, in), assess(t, other))
	})
}

// TestRepeatedCallsConverge applies all actions at one instant, in a cluster where nothing else changes. After a few
// calls no action is returned any more, and no result occurs twice.
func TestRepeatedCallsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		var last []olmcore.Action
		for range 12 {
			out, err := csv.Reconcile(in)
			if err != nil || len(out.Actions) == 0 {
				return
			}
			if equality.Semantic.DeepEqual(last, out.Actions) {
				t.Fatalf("asked for twice: %v", last)
			}
			last = out.Actions
			gone := false
			if in, gone = applied(t, in, out.Actions); gone {
				return
			}
		}
		t.Fatalf("still asked for after 12 calls: %v", last)
	})
}

var knownPhases = []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting, v1alpha1.CSVPhaseUnknown}

var knownReasons = []reason{
	"RequirementsUnknown", "RequirementsNotMet", "AllRequirementsMet", "OwnerConflict", "InstallComponentFailed",
	"InstallComponentFailedNoRetry", "InvalidInstallStrategy", "InstallWaiting", "InstallSucceeded", "InstallCheckFailed",
	"ComponentUnhealthy", "BeingReplaced", "Replaced", "NeedsReinstall", "NeedsCertRotation", "APIServiceResourceIssue",
	"APIServiceResourcesNeedReinstall", "APIServiceInstallFailed", "Copied", "InvalidInstallModes", "NoTargetNamespaces",
	"UnsupportedOperatorGroup", "NoOperatorGroup", "TooManyOperatorGroups", "InterOperatorGroupOwnerConflict",
	"CannotModifyStaticOperatorGroupProvidedAPIs", "DetectedClusterChange", "InvalidWebhookDescription",
	"OperatorConditionNotUpgradeable", "WaitingOnCleanup",
}

// soundStatus checks what holds for every written status.
func soundStatus(t require.TestingT, before, after *v1alpha1.ClusterServiceVersionStatus, now time.Time) {
	require.False(t, equality.Semantic.DeepEqual(before, after), "a write that changes nothing")
	require.Equal(t, olmcore.Timestamp(now), *after.LastUpdateTime)
	moved := before.Phase != after.Phase || before.LastTransitionTime == nil && after.Phase == installing
	if moved {
		require.Equal(t, olmcore.Timestamp(now), *after.LastTransitionTime)
	} else if before.LastTransitionTime != nil {
		require.Equal(t, before.LastTransitionTime, after.LastTransitionTime, "the phase stayed")
	}
	if before.Phase == after.Phase && before.Reason == after.Reason && before.Message == after.Message {
		require.LessOrEqual(t, len(after.Conditions), len(before.Conditions)+1)
		return
	}
	require.Contains(t, knownPhases, after.Phase)
	require.NotEmpty(t, after.Message)
	if before.Reason != after.Reason {
		require.Contains(t, knownReasons, after.Reason)
	}
	n := len(after.Conditions)
	require.True(t, n > 0 && n <= 20, "%d entries", n)
	last := after.Conditions[n-1]
	require.Equal(t, [2]string{string(after.Phase), string(after.Reason)}, [2]string{string(last.Phase), string(last.Reason)})
	kept := after.Conditions
	if grown := n > len(before.Conditions) || n == 20 && len(before.Conditions) >= 20 && !sameEntry(before.Conditions[len(before.Conditions)-1], last); grown {
		kept = after.Conditions[:n-1]
		require.Equal(t, after.Message, last.Message)
		require.Equal(t, []any{after.LastUpdateTime, after.LastTransitionTime}, []any{last.LastUpdateTime, last.LastTransitionTime})
		require.True(t, n == 1 || !sameEntry(after.Conditions[n-2], last), "an entry that says the same again")
	}
	require.True(t, equality.Semantic.DeepEqual(kept, before.Conditions[len(before.Conditions)-len(kept):]), "the past stays as it was")
}

func sameEntry(a, b v1alpha1.ClusterServiceVersionCondition) bool {
	return a.Phase == b.Phase && a.Reason == b.Reason
}

// OLM's case: the history is trimmed at, below and above its limit.
func TestWrittenStatusIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		if c := in.ClusterServiceVersion; c != nil && rapid.Bool().Draw(t, "long") {
			for i := range 19 {
				c.Status.Conditions = append(c.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: knownPhases[i%2], Reason: "x"})
			}
		}
		out, err := csv.Reconcile(in)
		after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		if err != nil || !written {
			require.Empty(t, out.Transitions)
			return
		}
		soundStatus(t, &in.ClusterServiceVersion.Status, &after.Status, in.Now)
	})
}

// waitsFor contains the event that ends each wait without a deadline.
var waitsFor = map[string]string{
	"Health": "a Deployment, or nothing: it is installed", "InvalidSpec": "a change of the spec", "NoTargetNamespaces": "a namespace",
	"InvalidInstallModes": "a change of the spec", "UnsupportedOperatorGroup": "a change of the spec or of the group",
	"APIConflict": "a change of one of the groups", "InvalidStrategy": "a change of the spec", "RequirementsNotMet": "a requirement",
	"WaitingForOlderVersions": "the predecessor", "Copy": "nothing: it is a copy", "Cleanup": "nothing: there is no finalizer",
}

// TestEveryWaitHasADeadlineOrAnEvent checks what a CSV waits for after all actions have been applied.
func TestEveryWaitHasADeadlineOrAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		for range 12 {
			out, err := csv.Reconcile(in)
			require.GreaterOrEqual(t, out.RequeueAfter, time.Duration(0))
			if err != nil || out.RequeueAfter > 0 && len(out.Actions) == 0 {
				return
			}
			if len(out.Actions) == 0 {
				rule := assess(t, in).Rule
				require.NotEmpty(t, waitsFor[rule], "%s waits for nothing that would come", rule)
				return
			}
			gone := false
			if in, gone = applied(t, in, out.Actions); gone {
				return
			}
		}
	})
}

// TestCopiesAreNotReconciled checks that the only action for a copy is to remove the finalizer, which only originals
// need.
func TestCopiesAreNotReconciled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		c := in.ClusterServiceVersion
		switch rapid.IntRange(0, 2).Draw(t, "mark") {
		case 0:
			c.Status.Reason = "Copied"
		case 1:
			c.Labels = map[string]string{"olm.copiedFrom": "other"}
		case 2:
			c.Annotations = map[string]string{"olm.operatorNamespace": "other"}
		}
		out, err := outcome(in)
		if err != nil {
			return
		}
		want := csv.Outcome{}
		if slices.Contains(c.Finalizers, cleanup.Finalizer) {
			after := c.DeepCopy()
			after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == cleanup.Finalizer })
			want.Actions = []olmcore.Action{olmcore.UpdateOf(c, after, olmcore.Cause{Reason: cleanup.ReasonCopyReleased, Message: "a copy has nothing to clean up"})}
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// installed is the Deployment of input's CSV, available.
var installed = sync.OnceValue(func() *appsv1.Deployment {
	out, err := csv.Reconcile(input(installReady, "AllRequirementsMet", ""))
	if err != nil {
		panic(err)
	}
	d := out.Actions[0].(olmcore.Create).Object.(*appsv1.Deployment)
	d.UID, d.ResourceVersion, d.Generation, d.CreationTimestamp = "deployment-cool", "20", 1, *ago(time.Hour)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}}
	return d
})

// oddity changes the world of the CSV of input, so that something is wrong or only different.
type oddity func(t *rapid.T, in *csv.Input)

func deployment(change func(d *appsv1.Deployment)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, d := range in.Deployments.Items {
			change(d)
		}
	}
}

func group1(change func(g *operatorsv1.OperatorGroup)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, g := range in.OperatorGroups.Items {
			change(g)
		}
	}
}

func strategy(change func(s *v1alpha1.StrategyDetailsDeployment)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec) }
}

func spec(change func(s *v1alpha1.ClusterServiceVersionSpec)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.ClusterServiceVersion.Spec) }
}

func crd1(change func(c *apiextensionsv1.CustomResourceDefinition)) oddity {
	return func(_ *rapid.T, in *csv.Input) {
		for _, c := range in.CustomResourceDefinitions.Items {
			change(c)
		}
	}
}

func config(change func(c *csv.Config)) oddity {
	return func(_ *rapid.T, in *csv.Input) { change(&in.Config) }
}

func phaseOf(t *rapid.T, what string) phaseName {
	return rapid.SampledFrom(csvtest.Phases).Draw(t, what)
}

// oddities are drawn a few at a time. Later ones build on earlier ones.
var oddities = map[string]oddity{
	"the Deployment is not available": deployment(func(d *appsv1.Deployment) { d.Status.Conditions = nil }),
	"the Deployment exceeded its progress deadline": deployment(func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Reason: "ProgressDeadlineExceeded"}}
	}),
	"the Deployment has a new generation": deployment(func(d *appsv1.Deployment) { d.Generation = 2 }),
	"old replicas":                        deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }),
	"no hash label":                       deployment(func(d *appsv1.Deployment) { delete(d.Labels, "olm.deployment-spec-hash") }),
	"another hash label": deployment(func(d *appsv1.Deployment) {
		d.Labels, _ = olmcore.MergeMaps(d.Labels, map[string]string{"olm.deployment-spec-hash": "old"})
	}),
	"no installed-alongside annotation": deployment(func(d *appsv1.Deployment) { d.Annotations = nil }),
	"no template annotations":           deployment(func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }),
	"the Deployment has no owner":       deployment(func(d *appsv1.Deployment) { d.Labels, d.OwnerReferences = nil, nil }),
	"the Deployment is the predecessor's": deployment(func(d *appsv1.Deployment) {
		d.Labels, d.OwnerReferences = ours("cool").Labels, ownerCSV("cool.v0")
		d.Labels["olm.owner"] = "cool.v0"
	}),
	"the Deployment has two owners":   deployment(func(d *appsv1.Deployment) { d.OwnerReferences = append(ownerCSV("cool.v0"), ownerCSV("cool.v1")...) }),
	"the Deployment is being deleted": deployment(func(d *appsv1.Deployment) { d.DeletionTimestamp = ago(time.Second) }),
	"an additional Deployment": func(_ *rapid.T, in *csv.Input) {
		d := installed().DeepCopy()
		d.Name, d.UID = "old", "old"
		in.Deployments.Items = append(in.Deployments.Items, d)
	},
	"the CRD is gone":            func(_ *rapid.T, in *csv.Input) { in.CustomResourceDefinitions.Items = nil },
	"the CRD version is gone":    crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }),
	"the CRD is not established": crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }),
	"the CRD is being deleted":   crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = ago(0) }),
	"the CRD came before": crd1(func(c *apiextensionsv1.CustomResourceDefinition) {
		c.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v0"}
	}),
	"the CRD calls the operator for conversions": func(t *rapid.T, in *csv.Input) {
		in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{csvtest.Webhook("w.example.com", v1alpha1.ConversionWebhook)}
		crd1(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion = ourConversion() })(t, in)
	},
	"the account is gone": func(_ *rapid.T, in *csv.Input) { in.ServiceAccounts.Items = nil },
	"the account belongs to another CSV": func(_ *rapid.T, in *csv.Input) {
		for _, a := range in.ServiceAccounts.Items {
			a.OwnerReferences = ownerCSV("cool.v2")
		}
	},
	"the role is gone":    func(_ *rapid.T, in *csv.Input) { in.Roles.Items = nil },
	"the binding is gone": func(_ *rapid.T, in *csv.Input) { in.RoleBindings.Items = nil },
	"no group":            func(_ *rapid.T, in *csv.Input) { in.OperatorGroups.Items = nil },
	"two groups": func(_ *rapid.T, in *csv.Input) {
		second := group()
		second.Name, second.UID = "second", "second"
		in.OperatorGroups.Items = append(in.OperatorGroups.Items, second)
	},
	"the group watches more":    group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{"ns", "a"} }),
	"the group watches nothing": group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = nil }),
	"the group watches all":     group1(func(g *operatorsv1.OperatorGroup) { g.Status.Namespaces = []string{""} }),
	"the group is new":          group1(func(g *operatorsv1.OperatorGroup) { g.Status = operatorsv1.OperatorGroupStatus{} }),
	"the group is static":       group1(func(g *operatorsv1.OperatorGroup) { g.Spec.StaticProvidedAPIs = true }),
	"the group lists nothing":   group1(func(g *operatorsv1.OperatorGroup) { g.Annotations = nil }),
	"the group fails forward": group1(func(g *operatorsv1.OperatorGroup) {
		g.Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	}),
	"the group's account is missing": group1(func(g *operatorsv1.OperatorGroup) { g.Spec.ServiceAccountName = "limited" }),
	"the group has an account": group1(func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "limited", &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "limited"}
	}),
	"another group lists the API": func(t *rapid.T, in *csv.Input) {
		in.OtherGroups = olmcore.Found(otherGroup(coolAPI, rapid.SampledFrom([]string{"ns", "", "elsewhere"}).Draw(t, "watched")))
		in.OtherProviders = olmcore.Found(competitor(phaseOf(t, "rival"), time.Duration(rapid.SampledFrom([]int{1, 1000}).Draw(t, "age"))*time.Hour))
	},
	"a successor": func(t *rapid.T, in *csv.Input) {
		s := successorOf(in, phaseOf(t, "successor"))
		if rapid.Bool().Draw(t, "deleted") {
			s.DeletionTimestamp = ago(0)
		}
		if rapid.Bool().Draw(t, "followed") {
			last := operator("cool.v3", 3)
			last.Spec.Replaces = "cool.v2"
			hold(last, phaseOf(t, "last"), "InstallSucceeded", "", time.Minute)
			in.Neighbours.Items = append(in.Neighbours.Items, last)
		}
	},
	"a predecessor": func(t *rapid.T, in *csv.Input) { predecessorOf(in, phaseOf(t, "predecessor")) },
	"a cycle":       spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.Replaces = "cool.v2" }),
	"itself":        spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.Replaces = "cool.v1" }),
	"another operator owns the same CRD": func(_ *rapid.T, in *csv.Input) {
		in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1))
	},
	"the predecessor is not upgradeable": func(_ *rapid.T, in *csv.Input) {
		said := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v0"}}
		in.OperatorConditions = olmcore.Found(said)
		said.Status.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "False", Message: "migrating"}}
	},
	"another strategy":    spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategyName = "helm" }),
	"no Deployments":      strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.DeploymentSpecs = nil }),
	"a rule without verb": strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.Permissions[0].Rules[0].Verbs = nil }),
	"cluster permissions": strategy(func(s *v1alpha1.StrategyDetailsDeployment) { s.ClusterPermissions = slices.Clone(s.Permissions) }),
	"webhooks": spec(func(s *v1alpha1.ClusterServiceVersionSpec) {
		s.WebhookDefinitions = []v1alpha1.WebhookDescription{csvtest.Webhook("w.example.com", v1alpha1.MutatingAdmissionWebhook)}
	}),
	"a bad webhook":          spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.WebhookDefinitions = []v1alpha1.WebhookDescription{{}} }),
	"a new cluster is asked": spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.MinKubeVersion = "99.0.0" }),
	"no install modes":       spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallModes = nil }),
	"a bad CRD name":         spec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Name = "cools" }),
	"a new generation":       func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Generation = 7 },
	"an annotation":          func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Annotations["new"] = "x" },
	"no labels":              func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Labels = nil },
	"no finalizer":           func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Finalizers = nil },
	"no finalizer of ours":   func(_ *rapid.T, in *csv.Input) { in.ClusterServiceVersion.Finalizers = []string{"other"} },
	"the last write failed": func(t *rapid.T, in *csv.Input) {
		class := rapid.SampledFrom([]olmcore.ErrorClass{olmcore.Forbidden, olmcore.Invalid, olmcore.Transient, olmcore.Conflict, olmcore.Webhook, olmcore.Gone}).Draw(t, "class")
		in.LastRun = olmcore.LastResults{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}: {
			Class: class, Message: "no", Count: rapid.IntRange(1, 9).Draw(t, "count"), First: now.Add(-time.Hour), Last: now,
		}}
	},
	"RBAC changed": func(_ *rapid.T, in *csv.Input) { in.Judged = &csv.Judged{Account: "another"} },
	"unread": func(t *rapid.T, in *csv.Input) {
		lists := unreadable(in)
		lists[rapid.SampledFrom(slices.Sorted(maps.Keys(lists))).Draw(t, "list")]()
	},
	"AdoptForeignDeployments": config(func(c *csv.Config) { c.AdoptForeignDeployments = true }),
}

// unread replaces a list by one that was not read.
func unread[T any](list *olmcore.Observed[T]) { *list = olmcore.Observed[T]{} }

// unreadable returns functions that replace one of the lists of an Input by one that was not read.
func unreadable(in *csv.Input) map[string]func() {
	return map[string]func(){
		"OperatorGroups":                             func() { unread(&in.OperatorGroups) },
		"OperatorGroups of all namespaces":           func() { unread(&in.OtherGroups) },
		"ClusterServiceVersions":                     func() { unread(&in.Neighbours) },
		"ClusterServiceVersions of other namespaces": func() { unread(&in.OtherProviders) },
		"CustomResourceDefinitions":                  func() { unread(&in.CustomResourceDefinitions) },
		"ServiceAccounts":                            func() { unread(&in.ServiceAccounts) },
		"Roles":                                      func() { unread(&in.Roles) },
		"RoleBindings":                               func() { unread(&in.RoleBindings) },
		"ClusterRoles":                               func() { unread(&in.ClusterRoles) },
		"ClusterRoleBindings":                        func() { unread(&in.ClusterRoleBindings) },
		"Deployments":                                func() { unread(&in.Deployments) },
	}
}

// likely draws the world of a healthy operator with a few oddities, in any phase and with any history.
func likely(t *rapid.T) csv.Input {
	why := rapid.SampledFrom([]reason{
		"RequirementsUnknown", "RequirementsNotMet", "AllRequirementsMet", "InstallSucceeded", "InstallWaiting", "ComponentUnhealthy",
		"InstallComponentFailed", "InstallComponentFailedNoRetry", "NoOperatorGroup", "InterOperatorGroupOwnerConflict",
		"CannotModifyStaticOperatorGroupProvidedAPIs", "OwnerConflict", "InvalidInstallStrategy", "BeingReplaced", "Replaced", "NeedsReinstall",
	}).Draw(t, "reason")
	in := input(phaseOf(t, "phase"), why, "words")
	in.Now = now
	c := in.ClusterServiceVersion
	age := time.Duration(rapid.SampledFrom([]int{0, 1, 5, 10, 29, 30, 31, 299, 300, 301, 3600}).Draw(t, "age")) * time.Second
	if c.Status.Phase != none {
		c.Status.LastTransitionTime, c.Status.LastUpdateTime = ago(age), ago(age)
		c.Status.Conditions = past(t, c.Status.Conditions[0], age)
	}
	if rapid.IntRange(0, 3).Draw(t, "deployed") > 0 {
		in.Deployments.Items = []*appsv1.Deployment{installed().DeepCopy()}
	}
	names := slices.Sorted(maps.Keys(oddities))
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(names)-1), 0, 4).Draw(t, "oddities") {
		oddities[names[i]](t, &in)
	}
	return distinct(in)
}

// past returns a history that ends with an entry.
func past(t *rapid.T, last v1alpha1.ClusterServiceVersionCondition, age time.Duration) []v1alpha1.ClusterServiceVersionCondition {
	n := rapid.SampledFrom([]int{0, 1, 3, 19}).Draw(t, "past")
	var list []v1alpha1.ClusterServiceVersionCondition
	for i := range n {
		at := ago(age + time.Duration(n-i)*time.Minute)
		list = append(list, v1alpha1.ClusterServiceVersionCondition{
			Phase:  []phaseName{succeeded, pending, failed}[i%3],
			Reason: []reason{"InstallSucceeded", "NeedsReinstall", "InstallComponentFailed"}[i%3], Message: fmt.Sprint("entry ", i),
			LastUpdateTime: at, LastTransitionTime: at,
		})
	}
	last.LastUpdateTime, last.LastTransitionTime = ago(age), ago(age)
	return append(list, last)
}

// TestCheckpointDetectsEveryChange checks a CSV in each phase, with all related objects.
func TestCheckpointDetectsEveryChange(t *testing.T) {
	given := 0
	for _, phase := range knownPhases {
		in := input(phase, "InstallSucceeded", "install strategy completed with no errors")
		deploy(t, &in)
		versioned(in)
		if checkpointOf(in) != nil {
			given++
		}
		require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in), "%s", phase)
	}
	require.NotZero(t, given)
	in := converged(t, small(t), 3)
	in.OtherGroups, in.OtherProviders = olmcore.Found(otherGroup("X.v1.x", "other")), olmcore.Found(competitor(succeeded, time.Hour))
	in.OperatorConditions = olmcore.Found(&operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "x", ResourceVersion: "1"}})
	require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in))
	// While the CSV is not being deleted, nothing looks at Deletion; what was inspected changes no answer.
	require.NoError(t, invariant.CheckpointCovers(csv.Reconcile, in, "Deletion", "Inspected"))
	in.ClusterServiceVersion.ResourceVersion = ""
	require.Nil(t, checkpointOf(in), "without versions nothing can be recognised")
}

// TestCheckpointIgnoresDeletionFields changes each field of Deletion. The Checkpoint of a CSV at rest does not cover
// these fields. While the CSV is not being deleted, the outcome stays the same. While it is being deleted, no
// Checkpoint is returned, and an older one does not hold.
func TestCheckpointIgnoresDeletionFields(t *testing.T) {
	in := converged(t, small(t), 3)
	checkpoint := checkpointOf(in)
	require.NotNil(t, checkpoint)
	deleted := in
	deleted.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	deleted.ClusterServiceVersion.DeletionTimestamp = ago(0)
	deleted.ClusterServiceVersion.Finalizers = []string{cleanup.Finalizer}
	deleted.ClusterServiceVersion.ResourceVersion += "0"
	deleted.Deletion = csvtest.Deletion()
	owner := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: in.ClusterServiceVersion.Namespace, Name: in.ClusterServiceVersion.Name}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "role", ResourceVersion: "1", Labels: owner.Labels()}}
	version := competitor(succeeded, time.Hour)
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "plan", UID: "plan", ResourceVersion: "1"}}
	changes := map[string]func(d *cleanup.Deletion){
		"Peers":          func(d *cleanup.Deletion) { d.Peers = olmcore.Found(version) },
		"Namespaces":     func(d *cleanup.Deletion) { d.Namespaces = olmcore.Found(csvtest.Namespace("else", nil)) },
		"ClusterObjects": func(d *cleanup.Deletion) { d.ClusterObjects = olmcore.Found[olmcore.Object](role) },
		"Unread":         func(d *cleanup.Deletion) { d.Unread = []schema.GroupKind{{Kind: "ClusterRole"}} },
		"Sharers":        func(d *cleanup.Deletion) { d.Sharers = olmcore.Found(version) },
		"InstallPlans":   func(d *cleanup.Deletion) { d.InstallPlans = olmcore.Found(plan) },
		"SharerGroups":   func(d *cleanup.Deletion) { d.SharerGroups = olmcore.Found(otherGroup("", "other")) },
		"Copies":         func(d *cleanup.Deletion) { d.Copies = olmcore.Found(version) },
		"WellKnown":      func(d *cleanup.Deletion) { d.WellKnown = olmcore.Found[olmcore.Object](role) },
		"Operands": func(d *cleanup.Deletion) {
			d.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{{Kind: "X"}: olmcore.Found[olmcore.Object]()}
		},
		"Refused": func(d *cleanup.Deletion) { d.Refused = []schema.GroupKind{{Kind: "X"}} },
	}
	for field := range reflect.TypeFor[cleanup.Deletion]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			change := changes[field.Name]
			require.NotNil(t, change, "the test changes each field")
			changed := in
			change(&changed.Deletion)
			want := reconciled(t, changed)
			changed.Checkpoint = checkpoint
			require.Empty(t, cmp.Diff(want.Result, reconciled(t, changed).Result))

			changed = deleted
			change(&changed.Deletion)
			want = reconciled(t, changed)
			require.Nil(t, want.Checkpoint)
			changed.Checkpoint = checkpoint
			require.Empty(t, cmp.Diff(want.Result, reconciled(t, changed).Result))
		})
	}
}

func TestCheckpointDetectsEveryChangeInRandomWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		versioned(in)
		require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in))
	})
}

// versioned gives the objects of a fixture a resourceVersion, which all objects that were read have.
func versioned(in csv.Input) {
	var objects []olmcore.Object
	addTo(&objects, in.ServiceAccounts.Items)
	addTo(&objects, in.Roles.Items)
	addTo(&objects, in.RoleBindings.Items)
	for _, o := range objects {
		o.SetResourceVersion("1")
	}
}

// FuzzClusterServiceVersion decodes a CSV from any bytes. It is reconciled in a namespace that contains everything, and
// while it is being deleted.
func FuzzClusterServiceVersion(f *testing.F) {
	for _, phase := range []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting} {
		data, err := json.Marshal(input(phase, "InstallSucceeded", "").ClusterServiceVersion)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"ns","uid":"1"},"spec":{"install":{"spec":{"deployments":[{"spec":{"selector":{"matchExpressions":[{}]}}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &v1alpha1.ClusterServiceVersion{}
		if json.Unmarshal(data, c) != nil {
			return
		}
		in := input(pending, "", "")
		in.Neighbours.Items = append(in.Neighbours.Items, operator("cool.v2", 2))
		in.ClusterServiceVersion = c
		for _, deleted := range []bool{c.DeletionTimestamp != nil, true} {
			if deleted && c.DeletionTimestamp == nil {
				c.DeletionTimestamp = ago(0)
			}
			if err := invariant.Deterministic(reconcile, in); err != nil {
				t.Fatal(err)
			}
			if _, err := csv.Reconcile(in); err != nil && !errors.Is(err, olmcore.ErrInvalidInput) {
				t.Fatal(err)
			}
			_, _ = csv.Assess(in)
			csv.Affected(c)
		}
	})
}

// FuzzLaws searches for an input that breaks a law.
func FuzzLaws(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		if err := invariant.Laws(reconcile, arbitrary(t, false)); err != nil {
			t.Fatal(err)
		}
	}))
}
