// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
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

// readOrEmpty makes a list that was not read hold nothing.
func readOrEmpty(in *csv.Input) {
	fields := reflect.ValueOf(in).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Kind() == reflect.Struct && field.FieldByName("Complete").IsValid() && !field.FieldByName("Complete").Bool() {
			field.SetZero()
		}
	}
}

// arbitrary draws an Input around a CSV that gets past the first checks often.
func arbitrary(t *rapid.T, hostile bool) csv.Input {
	in := gen.Value[csv.Input](vocabulary(hostile)).Draw(t, "in")
	in.Now = now
	in.Checkpoint = nil
	if !hostile {
		in.Config = csv.Config{}
		readOrEmpty(&in)
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

func TestTheLawsHoldForAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, invariant.Laws(reconcile, arbitrary(t, false)))
	})
}

func TestHostileInputIsRefusedOrAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := arbitrary(t, true)
		_, err := csv.Reconcile(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		_, _ = csv.Assess(in)
	})
}

func TestOnlyKnownEdgesAreTaken(t *testing.T) {
	allowed := map[edge]bool{}
	for _, e := range csv.Edges() {
		allowed[e] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		out, err := csv.Reconcile(arbitrary(t, false))
		require.NoError(t, ignoreInvalid(err))
		for _, x := range out.Transitions {
			from := v1alpha1.ClusterServiceVersionPhase(x.From)
			if from == v1alpha1.CSVPhaseUnknown {
				from = none
			}
			require.True(t, allowed[edge{From: from, To: phaseName(x.To)}], "%s -> %s (%s)", x.From, x.To, x.Reason)
			require.NotEmpty(t, x.Message)
		}
	})
}

func ignoreInvalid(err error) error {
	if err != nil && strings.Contains(err.Error(), "invalid input") {
		return nil
	}
	return err
}
