// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// sharedWorld is an operator that is being deleted, and whose ClusterRole a version of another namespace needs too.
type sharedWorld struct {
	in     *cleanup.Input
	role   *rbacv1.ClusterRole
	sharer *v1alpha1.ClusterServiceVersion
	plan   *v1alpha1.InstallPlan
	group  *operatorsv1.OperatorGroup
}

func newSharedWorld() sharedWorld {
	in := leaving()
	role := &rbacv1.ClusterRole{ObjectMeta: ours("shared")}
	sharer := operator("hot.v1", 1)
	sharer.Namespace, sharer.UID, sharer.Annotations = "other", "hot", nil
	role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "other", Name: "hot.v1", UID: "hot"}})
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "plan", UID: "plan", ResourceVersion: "1"}}
	plan.Status.Plan = []*v1alpha1.Step{nil, {Resolving: "hot.v1", Status: v1alpha1.StepStatusCreated, Resource: v1alpha1.StepResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: role.Name,
	}}}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "group", UID: "group", ResourceVersion: "1"}}
	in.Deployments.Items = nil
	in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
	in.Deletion.Sharers.Items = append(in.Deletion.Sharers.Items, sharer)
	return sharedWorld{&in, role, sharer, plan, group}
}

// recordedInPlan removes the record of the co-owner, so that only the InstallPlan shows it.
func (w sharedWorld) recordedInPlan() sharedWorld {
	w.role.Annotations = nil
	w.in.Deletion.InstallPlans.Items = append(w.in.Deletion.InstallPlans.Items, w.plan)
	w.in.Deletion.SharerGroups.Items = append(w.in.Deletion.SharerGroups.Items, w.group)
	return w
}

// TestSharedObjectIsHandedOver checks the records that keep an object. A step recorded a co-owner on it, with the UID
// of the co-owner. Or an InstallPlan that runs as the controller applied a step for another CSV. Tenants whose
// InstallPlans run as a ServiceAccount can keep no object.
func TestSharedObjectIsHandedOver(t *testing.T) {
	byPlan := func(change func(w sharedWorld)) func(sharedWorld) {
		return func(w sharedWorld) { w.recordedInPlan(); change(w) }
	}
	for name, c := range map[string]struct {
		change    func(w sharedWorld)
		nextOwner string
	}{
		"recorded": {func(sharedWorld) {}, "other/hot.v1"},
		"recorded without a UID": {func(w sharedWorld) {
			w.role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "other", Name: "hot.v1"}})
		}, "other/hot.v1"},
		"recorded for an earlier incarnation": {func(w sharedWorld) { w.sharer.UID = "forged" }, ""},
		"not recorded":                        {func(w sharedWorld) { w.role.Annotations = nil }, ""},
		"recorded, gone":                      {func(w sharedWorld) { w.in.Deletion.Sharers.Items = nil }, ""},
		"recorded, being deleted": {
			func(w sharedWorld) { w.sharer.DeletionTimestamp, w.sharer.Finalizers = ago(0), []string{"x"} }, ""},
		"recorded, a copy": {func(w sharedWorld) {
			w.sharer.Labels = map[string]string{"olm.copiedFrom": "else"}
			w.sharer.Status.Reason = v1alpha1.CSVReasonCopied
		}, ""},
		"recorded for the CSV itself": {func(w sharedWorld) {
			w.role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "ns", Name: "cool.v1"}})
			w.in.Deletion.Sharers.Items = []*v1alpha1.ClusterServiceVersion{w.in.ClusterServiceVersion}
		}, ""},
		"two": {func(w sharedWorld) {
			first := operator("a.v1", 1)
			first.Namespace, first.UID, first.Annotations = "a", "a", nil
			w.in.Deletion.Sharers.Items = append(w.in.Deletion.Sharers.Items, first)
			w.role.Annotations = olmcore.SetCoOwners(w.role.Annotations,
				append(olmcore.CoOwners(w.role.Annotations), olmcore.Owner{Namespace: "a", Name: "a.v1", UID: "a"}))
		}, "a/a.v1"},
		"in a plan":                  {byPlan(func(sharedWorld) {}), "other/hot.v1"},
		"in a plan of its own group": {byPlan(func(w sharedWorld) { w.plan.Status.Plan[1].Resource.Group = "example.com" }), ""},
		"in a plan, another object":  {byPlan(func(w sharedWorld) { w.plan.Status.Plan[1].Resource.Name = "else" }), ""},
		"in a plan, not applied":     {byPlan(func(w sharedWorld) { w.plan.Status.Plan[1].Status = v1alpha1.StepStatusUnknown }), ""},
		"in a plan that runs as an account": {
			byPlan(func(w sharedWorld) { w.plan.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Name: "weak"} }), ""},
		"in a plan, forged":            {byPlan(func(w sharedWorld) { w.group.Spec.ServiceAccountName = "weak" }), ""},
		"in a plan without a group":    {byPlan(func(w sharedWorld) { w.in.Deletion.SharerGroups.Items = nil }), ""},
		"in a plan of another version": {byPlan(func(w sharedWorld) { w.plan.Status.Plan[1].Resolving = "hot.v2" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedWorld()
			c.change(w)
			out := reconciled(t, *w.in)
			if c.nextOwner == "" {
				require.Contains(t, does(t, *w.in), "delete ClusterRole shared")
				return
			}
			require.Contains(t, does(t, *w.in), "update ClusterRole shared")
			isUpdate := func(a olmcore.Action) bool { _, is := a.(olmcore.Update); return is }
			action := out.Actions[slices.IndexFunc(out.Actions, isUpdate)].(olmcore.Update)
			require.Equal(t, c.nextOwner, action.After.GetLabels()["olm.owner.namespace"]+"/"+action.After.GetLabels()["olm.owner"])
			require.NotEqual(t, string(w.in.ClusterServiceVersion.UID), action.After.GetLabels()["olm.owner.uid"])
			for _, owner := range olmcore.CoOwners(action.After.GetAnnotations()) {
				require.NotEqual(t, c.nextOwner, owner.Namespace+"/"+owner.Name)
			}
			require.Equal(t, cleanup.ReasonHandedOver, out.Diagnostics[0].Reason)
			require.Equal(t, "it is kept because ClusterServiceVersion "+c.nextOwner+" needs it too", out.Diagnostics[0].Message)

			w.in.Deletion.ClusterObjects.Items = nil // a later read: it is another's
			require.Equal(t, release, does(t, *w.in))
		})
	}
}

// TestCleanupWaitsForListsOfSharers checks that a cleanup waits if a list was not read that shows which other CSVs need
// an object.
func TestCleanupWaitsForListsOfSharers(t *testing.T) {
	for name, change := range map[string]func(d *cleanup.Deletion){
		"Sharers":      func(d *cleanup.Deletion) { d.Sharers = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{} },
		"InstallPlans": func(d *cleanup.Deletion) { d.InstallPlans.Complete = false },
		"SharerGroups": func(d *cleanup.Deletion) { d.SharerGroups.Complete = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedWorld()
			change(&w.in.Deletion)
			out := reconciled(t, *w.in)
			require.NotEmpty(t, out.Diagnostics)
			require.Equal(t, cleanup.ReasonNotObserved, out.Diagnostics[0].Reason)
			for _, a := range out.Actions {
				require.IsType(t, olmcore.UpdateStatus{}, a)
			}
			w.in.Deletion.ClusterObjects.Items = nil
			require.Equal(t, release, does(t, *w.in), "nothing has to go")
		})
	}
}

// TestCoOwnerDeletesObjectsOfMissingOwner checks when a cleanup deletes an object whose owner labels name another
// version. That version must not exist, no InstallPlan may be about to create it, and the object must record this
// version as a co-owner.
func TestCoOwnerDeletesObjectsOfMissingOwner(t *testing.T) {
	owner := func(name string) olmcore.Owner {
		return olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "other", Name: name}
	}
	own := olmcore.Owner{Namespace: "ns", Name: "cool.v1"}
	for name, c := range map[string]struct {
		change func(w sharedWorld)
		want   string // empty for the release of the version alone
	}{
		"the owner is gone":  {func(sharedWorld) {}, "delete ClusterRole shared"},
		"the owner is there": {func(w sharedWorld) { w.role.Labels = owner("hot.v1").Labels() }, ""},
		"the owner is being deleted": {func(w sharedWorld) {
			w.role.Labels = owner("hot.v1").Labels()
			w.sharer.DeletionTimestamp, w.sharer.Finalizers = ago(0), []string{"x"}
		}, ""},
		"the owner is about to be created": {func(w sharedWorld) {
			w.plan.Spec.ClusterServiceVersionNames = []string{"gone.v1"}
			w.plan.Status.Phase = v1alpha1.InstallPlanPhaseInstalling
			w.in.Deletion.InstallPlans.Items = []*v1alpha1.InstallPlan{w.plan}
		}, ""},
		"the plan of the owner is complete": {func(w sharedWorld) {
			w.plan.Spec.ClusterServiceVersionNames = []string{"gone.v1"}
			w.plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
			w.in.Deletion.InstallPlans.Items = []*v1alpha1.InstallPlan{w.plan}
		}, "delete ClusterRole shared"},
		"another co-owner is alive": {func(w sharedWorld) {
			w.role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{own, owner("hot.v1")})
		}, "update ClusterRole shared"},
		"recorded for this incarnation": {func(w sharedWorld) {
			w.role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "ns", Name: "cool.v1", UID: w.in.ClusterServiceVersion.UID}})
		}, "delete ClusterRole shared"},
		"recorded for another incarnation": {func(w sharedWorld) {
			w.role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "ns", Name: "cool.v1", UID: "earlier"}})
		}, ""},
		"not recorded":         {func(w sharedWorld) { w.role.Annotations = nil }, ""},
		"without owner labels": {func(w sharedWorld) { w.role.Labels = nil }, ""},
		"the owner is of another kind": {func(w sharedWorld) {
			w.role.Labels = olmcore.Owner{Kind: "OperatorGroup", Namespace: "other", Name: "g"}.Labels()
		}, ""},
		"in the namespace of a tenant": {func(w sharedWorld) { w.role.Namespace = "kube-system" }, ""},
		"created after the deletion":   {func(w sharedWorld) { w.role.CreationTimestamp = *ago(-time.Hour) }, ""},
		"with an owner reference to another": {func(w sharedWorld) {
			w.role.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion",
				Name: "x", UID: "x"}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedWorld()
			w.role.Labels, w.role.Annotations = owner("gone.v1").Labels(), olmcore.SetCoOwners(nil, []olmcore.Owner{own})
			c.change(w)
			got := does(t, *w.in)
			if c.want == "" {
				require.Equal(t, release, got)
				return
			}
			require.Contains(t, got, c.want)
		})
	}
}

// strictPaths is a Reader like a client of an API server. A name that is not a valid path segment is an error.
type strictPaths struct{ olmcore.Reader }

func (r strictPaths) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return nil, fmt.Errorf("invalid resource name %q: %v", name, problems)
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

// TestForgedInstallPlanDoesNotBlockCleanup checks that an InstallPlan of another namespace does not keep a version from
// being uninstalled, whatever ClusterServiceVersion its status names.
func TestForgedInstallPlanDoesNotBlockCleanup(t *testing.T) {
	for _, name := range []string{"a/b", "..", "../../../../api/v1/namespaces/kube-system", "%2e", strings.Repeat("a", 10000)} {
		w := newSharedWorld().recordedInPlan()
		w.plan.Status.Plan[1].Resolving = name
		snapshot, err := olmcore.NewSnapshot([]olmcore.Object{w.in.ClusterServiceVersion, w.role, w.sharer, w.plan, w.group}, olmcore.Everything)
		require.NoError(t, err)
		in := *w.in
		in.Deletion, err = cleanup.Gather(t.Context(), strictPaths{snapshot}, in)
		require.NoError(t, err, name)
		require.Contains(t, deletions(reconciled(t, in)), "ClusterRole shared", name)
	}
}
