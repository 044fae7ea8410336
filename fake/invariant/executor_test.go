// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func newNamespace(t *testing.T) *fake.Cluster {
	c := fake.NewCluster(noon)
	require.NoError(t, c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	return c
}

func TestTheFakeClusterIsAnExecutor(t *testing.T) {
	c := newNamespace(t)
	require.NoError(t, invariant.CheckExecutor(t.Context(), c, c, "ns"))
	require.Nil(t, fake.Find[*v1alpha1.Subscription](c, "ns", "check-executor"), "nothing is left")
}

// executor is an Executor with one habit of its own.
type executor func(c *fake.Cluster, a olmcore.Action) error

// running makes an executor of a fake cluster.
type running struct {
	cluster *fake.Cluster
	habit   executor
}

func (r running) Do(_ context.Context, a olmcore.Action) error { return r.habit(r.cluster, a) }

// without runs actions with another Target.
func without(change func(*olmcore.Ref), only ...olmcore.Verb) executor {
	return func(c *fake.Cluster, a olmcore.Action) error {
		verb, _, _ := a.Describe()
		applies := false
		for _, v := range only {
			applies = applies || v == verb
		}
		if applies {
			switch x := a.(type) {
			case olmcore.Update:
				change(&x.Target)
				a = x
			case olmcore.UpdateStatus:
				change(&x.Target)
				a = x
			case olmcore.Delete:
				change(&x.Target)
				a = x
			}
		}
		return c.Do(context.Background(), a)
	}
}

func TestCheckExecutorCatchesWhoBreaksTheContract(t *testing.T) {
	anyVersion := func(r *olmcore.Ref) { r.ResourceVersion = "" }
	anyIncarnation := func(r *olmcore.Ref) { r.UID = "" }
	swallowing := func(which func(error) bool) executor {
		return func(c *fake.Cluster, a olmcore.Action) error {
			if err := c.Do(context.Background(), a); err != nil && !which(err) {
				return err
			}
			return nil
		}
	}
	idle := func(verb olmcore.Verb) executor {
		return func(c *fake.Cluster, a olmcore.Action) error {
			if v, _, _ := a.Describe(); v == verb {
				return nil
			}
			return c.Do(context.Background(), a)
		}
	}
	for name, tt := range map[string]struct {
		habit executor
		want  string
	}{
		"no creates":                            {idle(olmcore.VerbCreate), "create makes the object"},
		"no updates":                            {idle(olmcore.VerbUpdate), "update changes spec and metadata"},
		"no statuses":                           {idle(olmcore.VerbUpdateStatus), "update of the status changes nothing else"},
		"no deletes":                            {idle(olmcore.VerbDelete), "delete with an old resourceVersion is a Conflict"},
		"create or else fine":                   {swallowing(apierrors.IsAlreadyExists), "creating it again is AlreadyExists"},
		"gone is fine":                          {swallowing(apierrors.IsNotFound), "deleting it again is NotFound"},
		"conflicts are fine":                    {swallowing(apierrors.IsConflict), "update with an old resourceVersion is a Conflict"},
		"updates of any version":                {without(anyVersion, olmcore.VerbUpdate), "update with an old resourceVersion is a Conflict"},
		"statuses of any version":               {without(anyVersion, olmcore.VerbUpdateStatus), "update of the status with an old resourceVersion is a Conflict"},
		"deletes of any version":                {without(anyVersion, olmcore.VerbDelete), "delete with an old resourceVersion is a Conflict"},
		"updates of any incarnation":            {without(anyIncarnation, olmcore.VerbUpdate), "update of another incarnation is refused"},
		"deletes of any incarnation":            {without(anyIncarnation, olmcore.VerbDelete), "delete of another incarnation is refused"},
		"a status that takes the spec along":    {withSpec, "update of the status changes nothing else"},
		"patches that take nothing away":        {additive, "update removes what is not there any more"},
		"objects as scratch paper":              {scribbling, "the action's objects are left alone"},
		"update or else create":                 {upserting, "update of what is gone is NotFound"},
		"a delete that leaves a finalizer over": {lingering, "delete removes the object"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newNamespace(t)
			require.ErrorContains(t, invariant.CheckExecutor(t.Context(), running{c, tt.habit}, c, "ns"), tt.want)
		})
	}
	c := newNamespace(t)
	require.NoError(t, c.Create(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "check-executor"}, Spec: &v1alpha1.SubscriptionSpec{}}))
	require.ErrorContains(t, invariant.CheckExecutor(t.Context(), c, c, "ns"), "exists before the check")
}

func withSpec(c *fake.Cluster, a olmcore.Action) error {
	if err := c.Do(context.Background(), a); err != nil {
		return err
	}
	if u, ok := a.(olmcore.UpdateStatus); ok {
		return fake.Edit(c, "ns", u.Target.Name, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = s.Status.CurrentCSV })
	}
	return nil
}

func additive(c *fake.Cluster, a olmcore.Action) error {
	u, ok := a.(olmcore.Update)
	if s, is := u.After.(*v1alpha1.Subscription); ok && is && s.Labels == nil {
		s = s.DeepCopy()
		s.Labels, s.Spec.Channel = u.Before.GetLabels(), u.Before.(*v1alpha1.Subscription).Spec.Channel
		u.After = s
		a = u
	}
	return c.Do(context.Background(), a)
}

func scribbling(c *fake.Cluster, a olmcore.Action) error {
	err := c.Do(context.Background(), a)
	if u, ok := a.(olmcore.Update); ok {
		u.After.SetResourceVersion(c.ResourceVersion())
	}
	return err
}

func upserting(c *fake.Cluster, a olmcore.Action) error {
	err := c.Do(context.Background(), a)
	if u, ok := a.(olmcore.Update); ok && apierrors.IsNotFound(err) {
		o := u.After.DeepCopyObject().(olmcore.Object)
		o.SetResourceVersion("")
		return c.Create(o)
	}
	return err
}

func lingering(c *fake.Cluster, a olmcore.Action) error {
	if d, ok := a.(olmcore.Delete); ok {
		if s := fake.Find[*v1alpha1.Subscription](c, "ns", d.Target.Name); s != nil && olmcore.RefOf(s) == d.Target {
			if err := fake.Edit(c, "ns", d.Target.Name, func(s *v1alpha1.Subscription) { s.Finalizers = []string{"example.com/held"} }); err != nil {
				return err
			}
			d.Target = d.Target.Unversioned()
			a = d
		}
	}
	return c.Do(context.Background(), a)
}

// timeless is a cluster whose objects do not say when they were created.
type timeless struct{ *fake.Cluster }

func (t timeless) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := t.Cluster.Get(ctx, gvk, namespace, name)
	if err == nil {
		o = o.DeepCopyObject().(olmcore.Object)
		o.SetCreationTimestamp(metav1.Time{})
	}
	return o, err
}

func TestAnExecutorWhoseObjectsHaveNoTimeIsNone(t *testing.T) {
	c := newNamespace(t)
	require.ErrorContains(t, invariant.CheckExecutor(t.Context(), c, timeless{c}, "ns"), "creationTimestamp")
}
