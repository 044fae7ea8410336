// SPDX-License-Identifier: Apache-2.0

package plantest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

// Counting is a Reader that remembers what was read, and may fail.
type Counting struct {
	olmcore.Reader
	// Kinds counts the reads of each kind.
	Kinds map[string]int
	// Fail is the kind whose reads fail.
	Fail string
}

// Reader returns a Counting that reads objects.
func Reader(t *testing.T, objects ...olmcore.Object) Counting {
	t.Helper()
	s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return Counting{Reader: s, Kinds: map[string]int{}}
}

// Get implements olmcore.Reader.
func (c Counting) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	c.Kinds[gvk.Kind]++
	if gvk.Kind == c.Fail {
		return nil, errors.New("no answer")
	}
	return c.Reader.Get(ctx, gvk, namespace, name)
}

// List implements olmcore.Reader.
func (c Counting) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	c.Kinds[gvk.Kind]++
	if gvk.Kind == c.Fail {
		return nil, errors.New("no answer")
	}
	return c.Reader.List(ctx, gvk, namespace, selector)
}

// Refer puts the Subscriptions' references in front of what Create asks for.
func Refer(in create.Input, out create.Outcome) olmcore.Result {
	if out.Plan.Name == "" {
		return out.Result
	}
	result := out.Result
	var writes []olmcore.Action
	for _, d := range in.Resolution.Decisions {
		for _, s := range in.Subscriptions.Items {
			if s.Name != d.Name || !slices.Contains(out.Subscriptions, s.Name) || s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == out.Plan.UID {
				continue
			}
			after := s.DeepCopy()
			after.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: out.Plan.Namespace, Name: out.Plan.Name, UID: out.Plan.UID}
			after.Status.InstallPlanGeneration, after.Status.CurrentCSV = out.Generation, d.CurrentCSV
			after.Status.LastUpdated = olmcore.Timestamp(in.Now)
			writes = append(writes, olmcore.UpdateStatusOf(s, after, olmcore.Cause{Reason: "Refer"}))
		}
	}
	result.Actions = append(writes, result.Actions...)
	return result
}

// Installs is the resolution that installs bundles for the Subscriptions of their packages.
func Installs(operators ...olmcore.Operator) func([]*v1alpha1.Subscription) olmcore.Resolution {
	return func(subs []*v1alpha1.Subscription) olmcore.Resolution {
		var r olmcore.Resolution
		for _, s := range subs {
			r.Observed = append(r.Observed, olmcore.FingerprintOf(s))
			d := olmcore.SubscriptionDecision{Name: s.Name, CurrentCSV: s.Status.CurrentCSV}
			for _, o := range operators {
				if s.Spec.Package == o.Package {
					d.CurrentCSV, d.Changed = o.Name, s.Status.CurrentCSV != o.Name
				}
			}
			r.Decisions = append(r.Decisions, d)
		}
		for _, o := range operators {
			for _, s := range subs {
				if s.Spec.Package == o.Package {
					o.For = append(slices.Clone(o.For), s.Name)
				}
			}
			r.Operators = append(r.Operators, o)
		}
		return r
	}
}

// World is a cluster with a namespace that an OperatorGroup manages.
func World(t testing.TB, objects ...olmcore.Object) *fake.Cluster {
	t.Helper()
	c, err := NewWorld(objects...)
	require.NoError(t, err)
	return c
}

// NewWorld is World for those who handle the error.
func NewWorld(objects ...olmcore.Object) (*fake.Cluster, error) {
	c := fake.NewCluster(Noon)
	c.AutoCreateNamespaces = true
	g := Group()
	g.ObjectMeta = metav1.ObjectMeta{Namespace: NS, Name: "group"}
	if err := c.Create(g); err != nil {
		return nil, err
	}
	if err := c.UpdateStatus(g); err != nil {
		return nil, err
	}
	for _, o := range objects {
		o = o.DeepCopyObject().(olmcore.Object)
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetCreationTimestamp(metav1.Time{})
		if err := c.Create(o); err != nil {
			return nil, err
		}
	}
	return c, c.Settle()
}

// CreateInput is the Input of a resolution that installs operators.
func CreateInput(subs []*v1alpha1.Subscription, operators ...olmcore.Operator) create.Input {
	return create.Input{Now: Noon, Namespace: NS, Subscriptions: olmcore.Found(subs...), Resolution: Installs(operators...)(subs)}
}

// Planned is the Outcome of create.Plan.
func Planned(t testing.TB, in create.Input) create.Outcome {
	t.Helper()
	out, err := create.Plan(Completed(in))
	require.NoError(t, err)
	return out
}

// Completed says that what the input lacks does not exist.
func Completed(in create.Input) create.Input {
	in.Subscriptions.Complete, in.InstallPlans.Complete, in.OperatorGroups.Complete = true, true, true
	in.ClusterServiceVersions.Complete, in.ConfigMaps.Complete = true, true
	return in
}

// Made returns the plan that Create asks for, as the cluster then has it.
func Made(t testing.TB, out create.Outcome) *v1alpha1.InstallPlan {
	t.Helper()
	require.Len(t, out.Actions, 1)
	p := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*v1alpha1.InstallPlan)
	p.UID, p.ResourceVersion, p.CreationTimestamp = "uid-plan", "1", metav1.NewTime(Noon)
	return p
}

// Referring returns the Subscriptions as they refer to a plan.
func Referring(subs []*v1alpha1.Subscription, p *v1alpha1.InstallPlan) []*v1alpha1.Subscription {
	var out []*v1alpha1.Subscription
	for _, s := range subs {
		s = s.DeepCopy()
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: p.Name, UID: p.UID}
		out = append(out, s)
	}
	return out
}

// SweepInput is the Input of a namespace with these objects.
func SweepInput(objects ...olmcore.Object) sweep.Input {
	in := sweep.Input{
		Now: Noon, Namespace: NS, Namespaces: olmcore.Found(&corev1.Namespace{ObjectMeta: ClusterMeta(NS)}),
		Subscriptions: olmcore.Found[*v1alpha1.Subscription](), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), OtherPlans: olmcore.Found[*v1alpha1.InstallPlan](),
	}
	for _, o := range objects {
		switch x := o.(type) {
		case *v1alpha1.Subscription:
			in.Subscriptions.Items = append(in.Subscriptions.Items, x)
		case *v1alpha1.InstallPlan:
			if x.Namespace == NS {
				in.InstallPlans.Items = append(in.InstallPlans.Items, x)
			} else {
				in.OtherPlans.Items = append(in.OtherPlans.Items, x)
			}
		case *corev1.ConfigMap:
			in.ConfigMaps.Items = append(in.ConfigMaps.Items, x)
		}
	}
	return in
}

// SweepResult is Swept for those who handle the error.
func SweepResult(in sweep.Input) (olmcore.Result, error) {
	out, err := sweep.Reconcile(in)
	return out.Result, err
}

// Swept is the Result of sweep.Reconcile.
func Swept(t require.TestingT, in sweep.Input) olmcore.Result {
	result, err := SweepResult(in)
	require.NoError(t, err)
	return result
}

// Shown is an object without what only its cluster knows; owners are named.
func Shown(t testing.TB, c *fake.Cluster, o olmcore.Object) string {
	t.Helper()
	values, err := olmcore.ToMap(o)
	require.NoError(t, err)
	metadata := values["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		delete(metadata, field)
	}
	delete(values, "status")
	annotations, _ := metadata["annotations"].(map[string]any)
	if delete(annotations, "olmcore/step-hash"); len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	var owners []any
	for _, ref := range o.GetOwnerReferences() {
		owner := "nobody"
		for _, candidate := range c.Objects() {
			if candidate.GetUID() == ref.UID {
				owner = ref.Kind + " " + ref.Name
			}
		}
		owners = append(owners, owner)
	}
	if delete(metadata, "ownerReferences"); owners != nil {
		metadata["owners"] = owners
	}
	if labels, _ := metadata["labels"].(map[string]any); labels["olm.owner.uid"] != nil {
		labels["olm.owner.uid"] = "some"
	}
	text, err := yaml.Marshal(values)
	require.NoError(t, err)
	return string(text)
}

// Normal is YAML text in one form.
func Normal(t testing.TB, text string) string {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	out, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
