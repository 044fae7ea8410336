// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var now, ago, hold, succeeded = csvtest.Now, csvtest.Ago, csvtest.Hold, csvtest.Succeeded

var key = types.NamespacedName{Namespace: "ns", Name: "cool.v1"}

// world is a cluster with an operator that may watch all namespaces, and the objects that its InstallPlan created.
type world struct {
	csv     *v1alpha1.ClusterServiceVersion
	group   *operatorsv1.OperatorGroup
	account *corev1.ServiceAccount
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	// plan is the InstallPlan, nil where it was swept.
	plan *v1alpha1.InstallPlan
	crd  *apiextensionsv1.CustomResourceDefinition
	more []olmcore.Object
}

// newWorld returns a world whose OperatorGroup targets some namespaces. An empty name means all namespaces.
func newWorld(targets ...string) *world {
	c := csvtest.Operator("cool.v1", 1)
	hold(c, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	c.Spec.InstallModes = append(c.Spec.InstallModes,
		v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: true},
		v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true})
	g := csvtest.Group()
	g.Spec.TargetNamespaces, g.Status.Namespaces = slices.DeleteFunc(slices.Clone(targets), func(n string) bool { return n == "" }), targets
	w := &world{csv: c, group: g, crd: definition("cools", "example.com", "v1")}
	w.install()
	return w
}

// install makes what the InstallPlan makes for the permissions of the CSV.
func (w *world) install() {
	planned, err := olmcore.PermissionObjects(w.csv)
	if err != nil {
		panic(err)
	}
	w.plan = csvtest.Plan(w.csv)
	for _, o := range planned {
		o.SetNamespace("ns")
		o.SetUID(types.UID("uid-" + olmcore.RefOf(o).Kind + o.GetName()))
		o.SetResourceVersion("1")
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(w.csv)})
		if o.GetLabels() != nil {
			o.GetLabels()[olmcore.LabelManaged] = "true"
		}
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			w.account = o
		case *rbacv1.Role:
			w.role = o
		case *rbacv1.RoleBinding:
			w.binding = o
		}
	}
}

// step returns the step of the InstallPlan for a Role or RoleBinding.
func (w *world) step(kind string) *v1alpha1.Step {
	for _, s := range w.plan.Status.Plan {
		if s.Resource.Kind == kind {
			return s
		}
	}
	panic("the plan has no step for a " + kind)
}

func definition(plural, group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	name := plural + "." + group
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
		Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v1"},
	}}
	crd.Spec.Group, crd.Spec.Names.Plural = group, plural
	for _, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: true})
	}
	return crd
}

func service(version, group string) *apiregistrationv1.APIService {
	s := &apiregistrationv1.APIService{ObjectMeta: csvtest.Ours(version + "." + group)}
	s.Spec.Group, s.Spec.Version = group, version
	return s
}

func copyIn(namespace string) *v1alpha1.ClusterServiceVersion {
	c := csvtest.Copied(namespace)
	c.Spec = v1alpha1.ClusterServiceVersionSpec{} // the metadata is enough
	return c
}

func (w *world) objects() []olmcore.Object {
	all := slices.Clone(w.more)
	if w.csv != nil {
		all = append(all, w.csv)
	}
	if w.group != nil {
		all = append(all, w.group)
	}
	if w.account != nil {
		all = append(all, w.account)
	}
	if w.role != nil {
		all = append(all, w.role)
	}
	if w.binding != nil {
		all = append(all, w.binding)
	}
	if w.plan != nil {
		all = append(all, w.plan)
	}
	if w.crd != nil {
		all = append(all, w.crd)
	}
	return all
}

func (w *world) input(t require.TestingT) permissions.Input { return inputOf(t, w.objects()) }

func inputOf(t require.TestingT, objects []olmcore.Object) permissions.Input {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := permissions.Gather(context.Background(), snapshot, key)
	require.NoError(t, err)
	in.Now = now
	return in
}

// reconcile calls permissions.Reconcile and returns only the Result.
func reconcile(in permissions.Input) (olmcore.Result, error) {
	out, err := permissions.Reconcile(in)
	return out.Result, err
}

// reconciled calls permissions.Reconcile with a valid Input.
func reconciled(t require.TestingT, in permissions.Input) olmcore.Outcome {
	out, err := permissions.Reconcile(in)
	require.NoError(t, err)
	return out
}

// converge applies the actions of Reconcile until none are left.
func (w *world) converge(t testing.TB) *world {
	t.Helper()
	for range 4 {
		out := reconciled(t, w.input(t))
		if len(out.Actions) == 0 {
			return w
		}
		w.apply(out.Actions)
	}
	require.Fail(t, "not converged after four rounds")
	return w
}

// apply applies actions to the objects of a world that the library wrote.
func (w *world) apply(actions []olmcore.Action) {
	for _, a := range actions {
		_, target, _ := a.Describe()
		w.more = slices.DeleteFunc(slices.Clone(w.more), func(o olmcore.Object) bool { return olmcore.KeyOf(o) == target.Key() })
		var after olmcore.Object
		switch a := a.(type) {
		case olmcore.Create:
			after = a.Object.DeepCopyObject().(olmcore.Object)
			after.SetUID(types.UID(fmt.Sprint("uid-", target.Key())))
		case olmcore.Update:
			after = a.After.DeepCopyObject().(olmcore.Object)
		default:
			continue
		}
		after.SetResourceVersion(after.GetResourceVersion() + "1")
		w.more = append(w.more, after)
	}
}

// find returns an object of a world that the library wrote.
func find[T olmcore.Object](w *world, namespace, name string) (found T) {
	for _, o := range w.more {
		if typed, is := o.(T); is && o.GetNamespace() == namespace && o.GetName() == name {
			return typed
		}
	}
	return found
}

// lines returns one line for each action and each Diagnostic.
func lines(res olmcore.Result) []string {
	var list []string
	for _, a := range res.Actions {
		verb, target, _ := a.Describe()
		list = append(list, fmt.Sprintf("%s %s", verb, target.Key()))
	}
	for _, d := range res.Diagnostics {
		list = append(list, "report "+d.Reason)
	}
	return list
}
