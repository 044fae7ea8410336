// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// mayHold says once more, from the objects of the cluster alone, what the policy lets a deletion wait for.
func (h *history) mayHold(v *v1alpha1.ClusterServiceVersion) map[olmcore.Key]bool {
	holds, rbac := map[olmcore.Key]bool{}, false
	operands := v.Spec.Cleanup.Enabled && v.Annotations[cleanup.AnnotationCleanup] == "" && !h.superseded(v) && !h.keepsOperands(v)
	var stopping []olmcore.Key
	for _, o := range h.c.Objects() {
		key, owner := olmcore.KeyOf(o), olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: v.Namespace, Name: v.Name}
		stuck := h.waited(o, 5*time.Minute) || key.Kind == "PriorityClass" && h.waited(o, time.Minute)
		created := o.GetCreationTimestamp()
		mine := owner.Owns(o.GetLabels()) && !created.After(v.DeletionTimestamp.Time)
		switch d := o.(type) {
		case *appsv1.Deployment:
			if d.Namespace == v.Namespace && owner.Owns(d.Labels) && olmcore.OwnedBy(d, v.UID) && !h.waited(o, 30*time.Second) {
				stopping = append(stopping, key)
			}
			continue
		}
		switch {
		case isCopyOf(o, v):
			holds[key] = o.GetDeletionTimestamp() == nil
		case key.Kind == "Cool":
			holds[key] = operands && key.Namespace == "ns"
		case key.Namespace == "" && mine && !stuck && key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace":
			holds[key] = true
			rbac = rbac || key.Group == "rbac.authorization.k8s.io"
		}
	}
	for _, key := range stopping {
		holds[key] = rbac // a Deployment is waited for when permissions are to go
	}
	for key, yes := range holds {
		if !yes {
			delete(holds, key)
		}
	}
	return holds
}

// superseded: a newer version goes on, or was installed before this one went.
func (h *history) superseded(v *v1alpha1.ClusterServiceVersion) bool {
	replaced := func(reason v1alpha1.ConditionReason) bool { return reason == "Replaced" || reason == "BeingReplaced" }
	why := v.Status.Reason
	for _, c := range slices.Backward(v.Status.Conditions) {
		if why != "WaitingOnCleanup" {
			break
		}
		why = c.Reason
	}
	return v.Status.Phase == replacing || replaced(why) || slices.ContainsFunc(h.live(), func(s *v1alpha1.ClusterServiceVersion) bool {
		return s.Spec.Replaces == v.Name && s.Namespace == v.Namespace
	})
}

// keepsOperands: another operator or a Subscription needs the custom resources.
func (h *history) keepsOperands(v *v1alpha1.ClusterServiceVersion) bool {
	s := fake.Find[*v1alpha1.Subscription](h.c, "ns", "cool")
	return s != nil && s.Status.InstalledCSV == v.Name || v.Annotations["olm.targetNamespaces"] != "ns" ||
		slices.ContainsFunc(csvs(h.c), func(o *v1alpha1.ClusterServiceVersion) bool { return o.UID != v.UID && o.DeletionTimestamp == nil })
}

// checkHolds asks for each deletion what it waits for: nothing but what the policy names, and when there is nothing of
// that, it ends.
func (h *history) checkHolds(t *rapid.T) {
	for _, v := range csvs(h.c) {
		if v.DeletionTimestamp == nil || !slices.Contains(v.Finalizers, cleanup.Finalizer) {
			continue
		}
		in, err := csv.Gather(context.Background(), h.c, types.NamespacedName{Namespace: v.Namespace, Name: v.Name}, csv.Config{})
		require.NoError(t, err)
		in.Now = h.c.Now()
		allowed := h.mayHold(v)
		assessed := assess(t, in)
		if len(allowed) == 0 {
			require.Equal(t, cleanup.StageRelease, assessed.Stage, "%s waits for nothing\n%s", v.Name, fake.Format(h.d.Events))
			continue
		}
		require.NotEqual(t, cleanup.StageRelease, assessed.Stage, "%s would leave %v", v.Name, allowed)
		out := reconciled(t, in)
		require.Positive(t, out.RequeueAfter, "it looks again")
		require.LessOrEqual(t, assessed.Pending, len(allowed))
		require.Positive(t, assessed.Pending)
		for _, a := range out.Actions {
			if verb, target, _ := a.Describe(); verb == olmcore.VerbDelete {
				require.True(t, allowed[target.Key()], "%s deletes %s", v.Name, target)
			}
		}
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			h.checkReport(t, after, allowed)
		}
	}
}

func (h *history) checkReport(t *rapid.T, v *v1alpha1.ClusterServiceVersion, allowed map[olmcore.Key]bool) {
	for _, list := range v.Status.Cleanup.PendingDeletion {
		for _, instance := range list.Instances {
			key := olmcore.Key{Group: list.Group, Kind: list.Kind, Namespace: instance.Namespace, Name: instance.Name}
			require.True(t, allowed[key], "%s says that it waits for %s", v.Name, key)
		}
	}
}

// TestNoRefusalHoldsADeletionForEver: the API server never lets some kinds be deleted. Each deletion ends all the same,
// soon after the time that the policy gives, and says what it left.
func TestNoRefusalHoldsADeletionForEver(t *testing.T) {
	kinds := []string{"Cool", "ValidatingWebhookConfiguration", "APIService", "Deployment", "ClusterRoleBinding", "ClusterRole", "PriorityClass"}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		h := newHistory(t)
		h.bring(t, 1, true)
		require.NoError(t, h.d.RunUntilIdle(ctx, time.Hour))
		require.NoError(t, h.c.Create(cool("c")))
		refused := map[string]bool{}
		for _, kind := range kinds {
			if rapid.Bool().Draw(t, kind) {
				refused[kind], h.forbidden["delete "+kind] = true, true
			}
		}
		v := h.live()[0]
		require.NoError(t, h.c.Delete(refOf(v)))
		require.NoError(t, h.d.RunUntilIdle(ctx, time.Duration(1+len(refused))*(10*time.Minute+2*time.Minute)))
		require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", v.Name), "%s", fake.Format(h.d.Events))
		said := map[string]bool{}
		for _, e := range h.d.Events {
			if e.Diagnostic != nil && e.Diagnostic.Reason == cleanup.ReasonCleanupSkipped {
				said[e.Diagnostic.Target.Kind] = true
			}
		}
		for _, o := range h.c.Objects() {
			kind := olmcore.KeyOf(o).Kind
			owner, _ := olmcore.OwnerOf(o.GetLabels())
			if left := owner.Name == v.Name && o.GetNamespace() == "" || kind == "Cool" && v.Spec.Cleanup.Enabled; left {
				require.True(t, refused[kind], "%s stays", olmcore.KeyOf(o))
				require.True(t, said[kind], "%s stays, and nobody says so", olmcore.KeyOf(o))
			}
		}
	})
}
